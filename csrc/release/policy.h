/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The operator's decisions on releases. Fixed for a run, but for z. */
#ifndef ZN_RELEASE_POLICY_H
#define ZN_RELEASE_POLICY_H

#include "analyzer/roles.h"

typedef struct zn_policy {
    const zn_roles *roles; /* borrowed from the engine */
    uint32_t z;
    int64_t window_ns;
    bool exact; /* measurements of flows with a suppressed name stay exact */
    bool keep_client_port;
} zn_policy;

#endif
