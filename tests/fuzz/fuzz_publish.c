/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows through a publisher: whatever comes, each row has one fate, and the same bytes leave however
 * they are cut. The first byte chooses the settings.
 */
#include "rows/publisher.h"

#include <string.h>

#define NAME(text) {(const uint8_t *)(text), sizeof(text) - 1}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const zn_taxonomy *hierarchy(void)
{
    static const zn_span labels[] = {NAME("a"), NAME("x"), NAME("*"), NAME("b"),
                                     NAME("x"), NAME("*"), NAME("c"), NAME("y"),
                                     NAME("*"), NAME(""),  NAME("y"), NAME("*")};
    static zn_taxonomy *taxonomy;
    zn_taxonomy_config config = {.labels = labels, .lines = 4, .levels = 3};
    if (taxonomy == NULL && zn_taxonomy_open(&taxonomy, &config, NULL, NULL) != 0)
        __builtin_trap();
    return taxonomy;
}

static zn_publisher *open_publisher(uint8_t choice)
{
    const zn_taxonomy *columns[] = {hierarchy(), hierarchy()};
    zn_publisher_config config = {
        .window = {.groups = {.columns = columns,
                              .column_count = 2,
                              .sensitive_count = 1,
                              .rule = {.k = 2, .l = 1 + (choice & 1), .max_share = 1, .t = 1},
                              .neighbours = 3,
                              .growth = 3,
                              .lambda = 0.7},
                   .rows = 4,
                   .delay_ns = (choice & 2) != 0 ? 8 * ZN_NS_PER_S : 0,
                   .sliding = (choice & 4) != 0,
                   .with_user = true,
                   .once_ns = (choice & 10) == 10 ? 2 * ZN_NS_PER_S : 0, /* it needs a delay */
                   .once_users = 2},
        .to = (zn_row_format)(choice >> 4 & 1),
        .unit = ZN_TIME_S,
        .delimiter = ',',
        .quotes = (choice & 64) == 0,
        .columns = {{NAME("t"), NAME("u"), NAME("q"), NAME("r"), NAME("s"), NAME("p")}, 6, 0},
        .unknown = (choice & 32) != 0 ? ZN_UNKNOWN_TOP : ZN_UNKNOWN_SUPPRESS,
        .max_memory = 1 << 23};
    zn_publisher *publisher;
    if (zn_publisher_open(&publisher, &config, NULL) != 0)
        __builtin_trap();
    return publisher;
}

/* Feeds the bytes in portions of n. */
static zn_publisher *fed(uint8_t choice, const uint8_t *bytes, size_t left, size_t n)
{
    zn_publisher *publisher = open_publisher(choice);
    int rc = 0;
    for (; left != 0 && rc == 0; left -= n, bytes += n) {
        n = n < left ? n : left;
        rc = zn_publisher_feed(publisher, bytes, n, NULL);
    }
    if (rc == 0 && zn_publisher_end(publisher, NULL) == 0)
        (void)zn_publisher_finish(publisher, NULL);
    return publisher;
}

static void check_fates(const zn_publisher *publisher)
{
    const zn_window_stats *stats = zn_window_get_stats(zn_publisher_window(publisher));
    uint64_t sum = stats->fates[ZN_FATE_RELEASED];
    for (unsigned i = ZN_FATE_USERS; i < ZN_FATE_COUNT; i++)
        sum += stats->fates[i];
    if (sum > stats->rows || stats->rows > zn_publisher_read_stats(publisher)->observations)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_publisher *whole, *cut;
    const zn_text *one, *other;
    if (size == 0)
        return 0;
    whole = fed(data[0], data + 1, size - 1, size);
    cut = fed(data[0], data + 1, size - 1, 7);
    check_fates(whole);
    one = zn_publisher_output(whole);
    other = zn_publisher_output(cut);
    if (one->n != other->n || (one->n != 0 && memcmp(one->bytes, other->bytes, one->n) != 0))
        __builtin_trap();
    zn_publisher_close(whole);
    zn_publisher_close(cut);
    return 0;
}
