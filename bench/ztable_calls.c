/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Wall time of each single call of the C table, for test_ztable.py: Python cannot measure it. */
#include "zanon/ztable.h"

#include <stdlib.h>
#include <time.h>

#define DOMAIN 1
#define MAX_ATTRIBUTES (UINT32_C(1) << 25)

typedef struct bench {
    zn_ztable *table;
    zn_hash_key key;
} bench;

static uint64_t now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * UINT64_C(1000000000) + (uint64_t)now.tv_nsec;
}

/* NULL when the table cannot be made. */
bench *calls_open(uint32_t z, int64_t window_ns, uint32_t keep, uint32_t max_tuples)
{
    zn_ztable_config config = zn_ztable_default_config(z, window_ns);
    bench *b = calloc(1, sizeof *b);
    zn_error err;
    config.keep = keep;
    config.max_tuples = max_tuples;
    config.max_attributes = MAX_ATTRIBUTES;
    if (b != NULL && zn_hash_key_random(&b->key, &err) == 0 &&
        zn_ztable_open(&b->table, &config, &err) == 0)
        return b;
    free(b);
    return NULL;
}

void calls_close(bench *b)
{
    zn_ztable_close(b->table);
    free(b);
}

/* Wall time of each of n calls in ns, hashing and the reading of the clock included. */
void calls_each(bench *b, const zn_columns *in, size_t n, uint32_t *ns)
{
    uint64_t before = now_ns(), after;
    for (size_t i = 0; i < n; i++) {
        zn_columns column = {in->t_ns + i, in->user + i, in->attribute + i, DOMAIN};
        zn_observation o;
        zn_observations_hash(&b->key, &column, 1, &o);
        (void)zn_ztable_observe(b->table, &o);
        after = now_ns();
        ns[i] = (uint32_t)(after - before);
        before = after;
    }
}
