/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's decisions on releases. Fixed for a run, but for z. */
#ifndef ZN_RELEASE_POLICY_H
#define ZN_RELEASE_POLICY_H

#include "analyzer/roles.h"
#include "anonymity/user_caps.h"

typedef struct zn_policy {
    const zn_roles *roles; /* borrowed from the engine */
    uint32_t z;
    int64_t window_ns;
    bool exact; /* measurements of flows with a suppressed name stay exact */
    bool keep_client_port;
    /* of coarse records */
    zn_coarse_end coarse_end;
    zn_coarse_steps coarse_steps;
    zn_coarse_client coarse_client;
    /* of all other records, and of observations */
    int64_t times_ns;         /* times are multiples of times_ns; 0: exact */
    unsigned digits;          /* digits kept of counts above 99; 0: all */
    zn_user_caps_config caps; /* without its window and sizes */
} zn_policy;

#define ZN_PORT_DISCARD 9 /* no server uses it (RFC 863) */

/* Returns true if many servers share the port, so that it shows no more than the protocol. */
static inline bool zn_port_is_common(uint16_t port)
{
    return port == 53 || port == 80 || port == 443 || port == 853;
}

/* Returns what may be disclosed of a time: the last multiple of step_ns; with 0 the time itself. */
static inline int64_t zn_policy_time(int64_t t_ns, int64_t step_ns)
{
    return step_ns == 0 ? t_ns : t_ns - t_ns % step_ns;
}

#endif
