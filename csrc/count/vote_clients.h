/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of the addresses that were clients at any probe, in the epochs that votes still refer to.
 * A vote for a server address is suppressed if the address was a client in the epoch of the vote,
 * or in the last epoch before it that had a vote about addresses. An address of unknown state
 * counts as a client: in a forgotten epoch, in an epoch with missing marks, and in a full set.
 */
#ifndef ZN_COUNT_VOTE_CLIENTS_H
#define ZN_COUNT_VOTE_CLIENTS_H

#include "anonymity/addr_set.h"

#define ZN_VOTE_EPOCH_NONE INT64_C(-2) /* no vote refers to the epoch after it */

typedef struct zn_vote_clients {
    zn_addr_set set[2]; /* clients of `epoch` and of `last_epoch` */
    int64_t rotate_ns;  /* length of an epoch; 0: there is one */
    int64_t epoch, last_epoch;
    int64_t lost_epoch; /* marks up to this epoch may be missing for good */
    int64_t gone_epoch; /* marks up to this epoch may be missing until probes come back */
} zn_vote_clients;

/* Makes empty sets for max_clients addresses an epoch; *c is zero. Returns 0, or a negative zn_err
 * with *err filled; zn_vote_clients_fini accepts what is left. */
int zn_vote_clients_init(zn_vote_clients *c, uint32_t max_clients, int64_t rotate_ns,
                         zn_error *err);
void zn_vote_clients_fini(zn_vote_clients *c);
/* Returns the epoch of a time. */
int64_t zn_vote_clients_epoch(const zn_vote_clients *c, int64_t t_ns);
/* Adds an address that was a client in the epoch of t_ns. */
void zn_vote_clients_add(zn_vote_clients *c, zn_id id, int64_t t_ns);
/* Returns true if the address was, or may have been, a client in the epoch of t_ns or in the last
 * epoch before it. */
bool zn_vote_clients_have(zn_vote_clients *c, zn_id id, int64_t t_ns);

#endif
