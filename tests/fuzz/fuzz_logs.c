/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of other tools. Bits 0 to 4 of the first byte choose the preset, bit 5 votes without
 * evidence, bit 6 z, and bit 7 whether suppressed rows leave. A log that comes whole and a log that
 * comes in pieces of seven bytes give the same output, each row is counted once, and the output can
 * be read as such a log again.
 */
#include "rows/filter.h"

#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static zn_row_filter *opened(uint8_t choice)
{
    size_t count;
    zn_row_filter *filter;
    zn_row_filter_config config = {
        .gate = {.z = 1 + choice / 64 % 2,
                 .window_ns = 3600 * ZN_NS_PER_S,
                 .rotate_ns = 3600 * ZN_NS_PER_S,
                 .max_tuples = 1 << 10,
                 .max_attributes = 1 << 10,
                 .keep_suppressed = choice >= 128},
        .unit = ZN_TIME_ISO,
        .established = choice / 32 % 2 == 0,
        .user_v4_bits = 32,
        .user_v6_bits = 56,
    };
    (void)zn_log_presets(&count);
    config.preset = 1 + choice % 32 % count;
    if (zn_row_filter_open(&filter, &config, NULL) != 0)
        __builtin_trap();
    return filter;
}

/* Feeds the bytes in pieces of n. */
static zn_row_filter *fed(uint8_t choice, const uint8_t *bytes, size_t left, size_t n, int *rc)
{
    zn_row_filter *filter = opened(choice);
    *rc = 0;
    for (; left != 0 && *rc == 0; left -= n, bytes += n) {
        n = n < left ? n : left;
        *rc = zn_row_filter_feed(filter, bytes, n, NULL);
    }
    if (*rc == 0)
        *rc = zn_row_filter_end(filter, NULL);
    if (*rc == 0)
        *rc = zn_row_filter_finish(filter, NULL);
    return filter;
}

static void check_counts(const zn_row_filter *filter)
{
    zn_row_filter_stats stats = zn_row_filter_get_stats(filter);
    uint64_t decided = 0;
    for (size_t i = 0; i < ZN_LOG_REASON_COUNT; i++)
        decided += stats.reasons[i];
    if (decided != stats.read.observations || stats.written > stats.read.observations)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_row_filter *whole, *cut, *again;
    const zn_text *one, *other;
    int rc, rc_cut, rc_again;
    if (size == 0)
        return 0;
    whole = fed(data[0], data + 1, size - 1, size, &rc);
    cut = fed(data[0], data + 1, size - 1, 7, &rc_cut);
    check_counts(whole);
    one = zn_row_filter_output(whole);
    other = zn_row_filter_output(cut);
    if (rc != rc_cut)
        __builtin_trap();
    if (rc == 0 &&
        (one->n != other->n || (one->n != 0 && memcmp(one->bytes, other->bytes, one->n) != 0)))
        __builtin_trap();
    if (one->n != 0 && rc == 0) {
        again = fed(data[0], (const uint8_t *)one->bytes, one->n, one->n, &rc_again);
        if (rc_again != 0 ||
            zn_row_filter_get_stats(again).read.rows != zn_row_filter_get_stats(whole).written)
            __builtin_trap();
        zn_row_filter_close(again);
    }
    zn_row_filter_close(whole);
    zn_row_filter_close(cut);
    return 0;
}
