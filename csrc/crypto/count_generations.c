/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/count_generations.h"

#include "util/arena.h"

/* Places for keys. At one time at most the keys of the previous, the current and the next
 * generation are needed. */
#define HELD_MOST 4u

typedef struct held_key {
    uint64_t generation;
    zn_count_hash *hash; /* NULL: no key is held here */
} held_key;

struct zn_count_generations {
    zn_keys *keys;
    zn_count_periods periods;
    held_key held[HELD_MOST];
    bool failed;
};

/* ---- which generations ---- */

static int64_t later(int64_t t_ns, int64_t by_ns)
{
    return t_ns > INT64_MAX - by_ns ? INT64_MAX : t_ns + by_ns;
}

static uint64_t generation_of(const zn_count_periods *periods, int64_t t_ns)
{
    return periods->generation_ns == 0 ? 0 : (uint64_t)(t_ns / periods->generation_ns) + 1;
}

zn_count_range zn_count_generations_of_vote(const zn_count_periods *periods, int64_t t_ns)
{
    return (zn_count_range){generation_of(periods, t_ns),
                            generation_of(periods, later(t_ns, periods->window_ns))};
}

zn_count_range zn_count_generations_of_client(const zn_count_periods *periods, int64_t t_ns)
{
    int64_t begins_ns = t_ns - t_ns % periods->epoch_ns;
    int64_t asked_ns = later(later(begins_ns, periods->epoch_ns), periods->epoch_ns - 1);
    return (zn_count_range){generation_of(periods, begins_ns),
                            zn_count_generations_of_vote(periods, asked_ns).last};
}

/* ---- their keys ---- */

/* Returns true if generations are so long that no fact has to be sent under three of them. */
static bool is_long_enough(const zn_count_periods *periods)
{
    int64_t window_ns = periods->window_ns, epoch_ns = periods->epoch_ns;
    return periods->generation_ns >= later(later(window_ns, epoch_ns), epoch_ns);
}

int zn_count_generations_open(zn_count_generations **out, zn_keys *keys,
                              const zn_count_periods *periods, const zn_hash_key *secret,
                              zn_error *err)
{
    zn_count_generations *g;
    *out = NULL;
    if (secret != NULL && periods->generation_ns != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the secret of a run has no generations");
    if (periods->generation_ns != 0 && !is_long_enough(periods))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "a generation of a counter's hashes must last a window and two epochs");
    g = zn_heap_alloc(sizeof *g);
    if (g == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the hashes of votes");
    g->keys = keys;
    g->periods = *periods;
    *out = g;
    return secret == NULL ? zn_count_hash_open(&g->held[0].hash, keys, 0, err)
                          : zn_count_hash_open_local(&g->held[0].hash, secret, err);
}

/* Wipes a key. */
static void drop(held_key *held)
{
    zn_count_hash_close(held->hash);
    *held = (held_key){0, NULL};
}

void zn_count_generations_close(zn_count_generations *g)
{
    if (g == NULL)
        return;
    for (unsigned i = 0; i < HELD_MOST; i++)
        drop(&g->held[i]);
    zn_heap_free(g);
}

const zn_count_periods *zn_count_generations_periods(const zn_count_generations *g)
{
    return &g->periods;
}

/* Returns the place for a new key: an empty place, or the place of the oldest generation. */
static held_key *place_of(zn_count_generations *g)
{
    held_key *best = &g->held[0];
    for (unsigned i = 0; i < HELD_MOST; i++) {
        if (g->held[i].hash == NULL)
            return &g->held[i];
        if (g->held[i].generation < best->generation)
            best = &g->held[i];
    }
    return best;
}

/* Returns the hashes of a generation, NULL when libcrypto failed. */
static zn_count_hash *hashes_of(zn_count_generations *g, uint64_t generation)
{
    held_key *place;
    for (unsigned i = 0; i < HELD_MOST; i++)
        if (g->held[i].hash != NULL && g->held[i].generation == generation)
            return g->held[i].hash;
    place = place_of(g);
    drop(place);
    place->generation = generation;
    g->failed |= zn_count_hash_open(&place->hash, g->keys, generation, NULL) != 0;
    return place->hash;
}

zn_id zn_count_generations_id(zn_count_generations *g, uint64_t generation, uint8_t domain,
                              zn_span bytes)
{
    zn_count_hash *hashes = hashes_of(g, generation);
    zn_id id = {0};
    if (hashes != NULL) {
        id = zn_count_hash_id(hashes, domain, bytes);
        g->failed |= zn_count_hash_failed(hashes);
    }
    return id;
}

bool zn_count_generations_failed(const zn_count_generations *g)
{
    return g->failed;
}

void zn_count_generations_forget(zn_count_generations *g, int64_t now_ns)
{
    int64_t late_ns = now_ns > g->periods.window_ns ? now_ns - g->periods.window_ns : 0;
    zn_count_range needed = zn_count_generations_of_client(&g->periods, now_ns);
    needed.first = zn_count_generations_of_client(&g->periods, late_ns).first;
    for (unsigned i = 0; i < HELD_MOST; i++)
        if (g->held[i].generation < needed.first || g->held[i].generation > needed.last)
            drop(&g->held[i]);
}

unsigned zn_count_generations_held(const zn_count_generations *g)
{
    unsigned n = 0;
    for (unsigned i = 0; i < HELD_MOST; i++)
        n += g->held[i].hash != NULL;
    return n;
}
