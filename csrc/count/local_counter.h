/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counter for probes on the same machine, which are processes that one run started. Messages and
 * answers are exchanged over rings in shared memory (count/vote_ring.h), and one zn_vote_shard
 * decides on all votes.
 *
 * The probes are part of the run. So a message that the shard refuses is an error of the run, and
 * no probe is ever replaced, refused or waited for in vain.
 */
#ifndef ZN_COUNT_LOCAL_COUNTER_H
#define ZN_COUNT_LOCAL_COUNTER_H

#include "count/vote_ring.h"
#include "count/vote_shard.h"

typedef struct zn_local_counter zn_local_counter;

/* Opens a counter for n probes. `shard` is borrowed. votes[i] and answers[i] are the rings from and
 * to probe i, and are copied. Returns 0, or -ZN_ERR_CAPACITY with *err filled and *out NULL. */
int zn_local_counter_open(zn_local_counter **out, zn_vote_shard *shard, const zn_vote_ring *votes,
                          const zn_vote_ring *answers, size_t n, zn_error *err);
/* Frees the counter. NULL is fine. */
void zn_local_counter_close(zn_local_counter *c);
/*
 * Takes some messages of each probe, decides, and puts the answers into the rings, without waiting.
 * Nothing is decided before `expected` probes have sent a message. Sets *more to true if a further
 * call may have work now, and bit i of *answered if probe i, or i plus a multiple of 64, got
 * answers. Returns 0, or a negative zn_err with *err filled: the run has to end.
 */
int zn_local_counter_step(zn_local_counter *c, uint32_t expected, bool *more, uint64_t *answered,
                          zn_error *err);
/* Returns true if a message of probe i was taken. */
bool zn_local_counter_has_sent(const zn_local_counter *c, size_t i);

#endif
