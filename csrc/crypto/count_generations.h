/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Hashes of votes (crypto/count_hash.h) under a key that changes with time. At time t the key of
 * generation floor(t / length) + 1 is used. Without a length the only generation is 0.
 *
 * The counter cannot match the hashes of two generations, so every fact that it needs at a time
 * must have been sent under the generation of that time. A vote counts for a window. It is
 * therefore cast under its own generation, and once more under each later generation that begins
 * within the window; the repeated votes only count. The fact that an address was a client's matters
 * to the votes of its epoch and of the next epoch. It is sent under each generation under which
 * such votes are cast.
 *
 * A key is derived when a hash first needs it, and wiped when no vote can need it any more.
 */
#ifndef ZN_CRYPTO_COUNT_GENERATIONS_H
#define ZN_CRYPTO_COUNT_GENERATIONS_H

#include "crypto/count_hash.h"

typedef struct zn_count_periods {
    int64_t generation_ns; /* at least a window and two epochs; 0: there is one generation */
    int64_t window_ns;     /* a vote counts so long, and is so late at most */
    int64_t epoch_ns;      /* of clients' addresses */
} zn_count_periods;

/* Generations from the first to the last, which is the same or the next. */
typedef struct zn_count_range {
    uint64_t first, last;
} zn_count_range;

/* Returns the generation under which a vote at t_ns is cast, and the last generation in which the
 * vote counts. */
zn_count_range zn_count_generations_of_vote(const zn_count_periods *periods, int64_t t_ns);
/* The generations that need to know of a client at t_ns. */
zn_count_range zn_count_generations_of_client(const zn_count_periods *periods, int64_t t_ns);

typedef struct zn_count_generations zn_count_generations;

/* Opens the hashes. `keys` come from a key file, and are borrowed. secret: the secret that the
 * processes of one run share, for which there are no generations; NULL: the keys are derived from
 * the key file. Returns 0, or -ZN_ERR_CONFIG / -ZN_ERR_CRYPTO / -ZN_ERR_CAPACITY with *err
 * filled. */
int zn_count_generations_open(zn_count_generations **out, zn_keys *keys,
                              const zn_count_periods *periods, const zn_hash_key *secret,
                              zn_error *err);
void zn_count_generations_close(zn_count_generations *g);
const zn_count_periods *zn_count_generations_periods(const zn_count_generations *g);

/* As zn_count_hash_id, under the key of a generation. */
zn_id zn_count_generations_id(zn_count_generations *g, uint64_t generation, uint8_t domain,
                              zn_span bytes);
/* Returns true if libcrypto failed to make a key or a hash, which is then all zeros. */
bool zn_count_generations_failed(const zn_count_generations *g);
/* Wipes the keys that nothing needs which is asked or told at now_ns, or late by a window. */
void zn_count_generations_forget(zn_count_generations *g, int64_t now_ns);
/* Returns how many keys there are. */
unsigned zn_count_generations_held(const zn_count_generations *g);

#endif
