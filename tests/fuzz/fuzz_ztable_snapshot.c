/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Snapshots of a z-table (input after a first byte): as they are or, with a first byte of 0x80 or
 * more, with the checksum made right. A table that takes one is whole, has no more users than the
 * snapshot says, and decides as a table that is restored from its own snapshot.
 */
#include "util/little_endian.h"

#include <stdlib.h>

#define CHECKSUM 8
#define CAP 4096
#define STEPS 40
#define STEP_BYTES 300
#define SNAPSHOT_MAX (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const zn_hash_key published = {UINT64_C(0x656e2d6e6f6e617a), UINT64_C(0x706d75642f312f74)};

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

/* Opens a table by the settings of a snapshot, with small caps, and restores it. */
static zn_ztable *restore(const uint8_t *snapshot, size_t n)
{
    zn_ztable_config config = zn_ztable_default_config(1, 1);
    zn_ztable *table;
    if (zn_ztable_snapshot_config(snapshot, n, &config, NULL) != 0)
        return NULL;
    config.max_tuples = config.max_attributes = CAP;
    if (zn_ztable_open(&table, &config, NULL) != 0)
        return NULL;
    if (zn_ztable_import(table, snapshot, n, NULL) != 0) {
        require(zn_ztable_get_stats(table).tuples == 0);
        require(zn_ztable_check(table) == NULL);
        zn_ztable_close(table);
        return NULL;
    }
    return table;
}

static size_t export_all(const zn_ztable *table, uint8_t *out)
{
    zn_ztable_cursor cursor = {0};
    size_t n, all = 0;
    while ((n = zn_ztable_export(table, &cursor, out + all, STEP_BYTES)) != 0)
        all += n;
    return all;
}

/* Observations in time order, of users and attributes that the input chooses. */
static void compare(zn_ztable *one, zn_ztable *other, const uint8_t *data, size_t size)
{
    for (size_t i = 0; i + 2 < size && i < STEPS; i++) {
        zn_observation o = {INT64_MAX - (int64_t)(STEPS - i) * 1000,
                            (uint64_t)data[i] << 56 | data[i + 1],
                            {data[i + 2], UINT64_C(1) << 56}};
        require(zn_ztable_observe(one, &o) == zn_ztable_observe(other, &o));
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t again[SNAPSHOT_MAX];
    uint8_t *copy;
    zn_ztable *table, *twin;
    size_t n;
    if (size < 1 || size > SNAPSHOT_MAX / 4)
        return 0;
    n = size - 1;
    copy = malloc(size);
    if (copy == NULL)
        return 0;
    memcpy(copy, data + 1, n);
    if (data[0] >= 0x80 && n >= CHECKSUM)
        (void)zn_le_put(copy + n - CHECKSUM, zn_hash64(&published, copy, n - CHECKSUM), CHECKSUM);
    table = restore(copy, n);
    if (table != NULL) {
        require(zn_ztable_check(table) == NULL);
        n = export_all(table, again);
        twin = restore(again, n);
        require(twin != NULL && zn_ztable_check(twin) == NULL);
        require(zn_ztable_get_stats(twin).tuples == zn_ztable_get_stats(table).tuples);
        compare(table, twin, data, size);
        zn_ztable_close(table);
        zn_ztable_close(twin);
    }
    free(copy);
    return 0;
}
