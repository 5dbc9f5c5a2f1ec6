/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* CPU time of the z-table alone and of the levels on top of it, for test_levels.py: the hashes are
 * computed before the clock starts. */
#include "anonymity/levels.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define LEVELS 2
#define PART 256

typedef struct bench {
    zn_observation *observations;
    zn_id *chains; /* LEVELS + 1 for each observation */
    size_t n;
} bench;

static double cpu_s(void)
{
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void levels_free(bench *b)
{
    if (b == NULL)
        return;
    free(b->observations);
    free(b->chains);
    free(b);
}

/* Hashes n exposures, whose labels are numbers by level. Returns NULL without memory. */
bench *levels_make(const zn_columns *in, const uint64_t *domains, const uint64_t *categories,
                   size_t n)
{
    bench *b = calloc(1, sizeof *b);
    zn_hash_key key;
    if (b == NULL || zn_hash_key_random(&key, NULL) != 0)
        return b;
    b->n = n;
    b->observations = calloc(n, sizeof *b->observations);
    b->chains = calloc(n * (LEVELS + 1), sizeof *b->chains);
    if (b->observations == NULL || b->chains == NULL) {
        levels_free(b);
        return NULL;
    }
    zn_observations_hash(&key, in, n, b->observations);
    for (size_t i = 0; i < n; i++) {
        zn_id *chain = b->chains + i * (LEVELS + 1);
        chain[0] = b->observations[i].attribute;
        chain[1] = zn_hash128(&key, 'd', &domains[i], sizeof domains[i]);
        chain[2] = zn_hash128(&key, 'c', &categories[i], sizeof categories[i]);
    }
    return b;
}

static zn_ztable *open_table(uint32_t z, int64_t window_ns)
{
    zn_ztable_config config = zn_ztable_default_config(z, window_ns);
    zn_ztable *table;
    config.keep = z;
    return zn_ztable_open(&table, &config, NULL) == 0 ? table : NULL;
}

/* Returns the CPU seconds of the z-table alone, and sets *published. The observations of a part lie
 * in the nearest cache, where a program that hashes them leaves them. */
double levels_off(const bench *b, uint32_t z, int64_t window_ns, uint64_t *published)
{
    zn_ztable *table = open_table(z, window_ns);
    zn_observation part[PART];
    uint8_t decisions[PART];
    double seconds = 0;
    for (size_t at = 0; table != NULL && at < b->n; at += PART) {
        size_t n = b->n - at < PART ? b->n - at : PART;
        double began;
        memcpy(part, b->observations + at, n * sizeof *part);
        began = cpu_s();
        zn_ztable_observe_batch(table, part, n, decisions);
        seconds += cpu_s() - began;
    }
    published[0] = table != NULL ? zn_ztable_get_stats(table).released : 0;
    zn_ztable_close(table);
    return seconds;
}

static void copy_chain(void *of, size_t i, zn_id *chain)
{
    memcpy(chain, (zn_id *)of + i * (LEVELS + 1), (LEVELS + 1) * sizeof *chain);
}

/* Returns the CPU seconds with levels, measured likewise, and fills published[LEVELS + 1]. */
double levels_on(const bench *b, uint32_t z, int64_t window_ns, uint64_t *published)
{
    zn_ztable *table = open_table(z, window_ns);
    zn_levels_config config = zn_levels_default_config(table, LEVELS, z, window_ns);
    zn_id chains[PART * (LEVELS + 1)];
    zn_observation part[PART];
    zn_exposures exposures = {.observations = part, .chain = copy_chain, .of = chains};
    zn_level_decision decisions[PART];
    zn_levels *levels;
    double seconds = 0;
    if (table == NULL || zn_levels_open(&levels, &config, NULL) != 0)
        return -1;
    for (size_t at = 0; at < b->n; at += PART) {
        double began;
        exposures.n = b->n - at < PART ? b->n - at : PART;
        memcpy(part, b->observations + at, exposures.n * sizeof *part);
        memcpy(chains, b->chains + at * (LEVELS + 1), exposures.n * (LEVELS + 1) * sizeof *chains);
        began = cpu_s();
        zn_levels_decide(levels, &exposures, decisions);
        seconds += cpu_s() - began;
    }
    for (uint32_t i = 0; i <= LEVELS; i++)
        published[i] = zn_levels_level_stats(levels, i).published;
    zn_levels_close(levels);
    zn_ztable_close(table);
    return seconds;
}
