/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Queue of coarse lines. A coarse row shows the minute of its time only, so its place among other
 * rows must not show more. Its line leaves when the latest minute of all rows is over, after the
 * other rows of that minute. Lines that leave together are sorted by their text, which does not
 * depend on the order in which they came.
 */
#ifndef ZN_ROWS_COARSE_QUEUE_H
#define ZN_ROWS_COARSE_QUEUE_H

#include "util/text.h"

/* With as many lines, or bytes of lines, all lines leave at once. */
#define ZN_COARSE_LINES_MAX (UINT32_C(1) << 18)
#define ZN_COARSE_TEXT_MAX ((size_t)1 << 26)

/* All zeros is an empty queue. */
typedef struct zn_coarse_queue {
    zn_text text;            /* the lines, one after the other */
    size_t *from;            /* offset of each line; the offset of the end comes last */
    uint32_t *order, *spare; /* indices of lines, to sort them */
    uint32_t count, space;
    int64_t minute;     /* latest minute of a row, since the Unix epoch */
    uint64_t hold_full; /* lines that left before their minute ended */
} zn_coarse_queue;

/* Wipes and frees the lines. */
void zn_coarse_queue_fini(zn_coarse_queue *q);
/* Adds the bytes that were appended to q->text after the last line as a line. Returns false if
 * memory is exhausted. */
bool zn_coarse_queue_add(zn_coarse_queue *q);
/* Passes on to the minute of a row. Appends all lines to `out` if that is a later minute, or if the
 * queue is full. */
void zn_coarse_queue_pass(zn_coarse_queue *q, int64_t minute, zn_text *out);
/* Appends all lines to `out`. */
void zn_coarse_queue_flush(zn_coarse_queue *q, zn_text *out);

#endif
