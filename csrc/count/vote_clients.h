/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The addresses that were clients at any probe, by hash, for the epochs that votes still ask about:
 * a vote for a server address is suppressed when the address was a client in the epoch of the vote
 * or in the last one before it that had any vote about addresses. Whatever is not known for certain
 * counts as a client: epochs that are forgotten, epochs of which marks may be missing, and every
 * address once a set is full.
 */
#ifndef ZN_COUNT_VOTE_CLIENTS_H
#define ZN_COUNT_VOTE_CLIENTS_H

#include "anonymity/addr_set.h"

#define ZN_VOTE_EPOCH_NONE INT64_C(-2) /* so early that no vote asks about the epoch after it */

typedef struct zn_vote_clients {
    zn_addr_set set[2]; /* of `epoch` and `last_epoch` */
    int64_t rotate_ns;  /* length of an epoch; 0: there is one */
    int64_t epoch, last_epoch;
    int64_t lost_epoch; /* marks up to this epoch may be missing for good, */
    int64_t gone_epoch; /* and up to this one until probes come back */
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
/* Returns whether the address was a client in the epoch of t_ns or the last one before, or may have
 * been. */
bool zn_vote_clients_have(zn_vote_clients *c, zn_id id, int64_t t_ns);

#endif
