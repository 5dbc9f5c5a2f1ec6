/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The way of a column's value from a record into a table of output/table.h. Most values are numbers
 * that are copied as they are.
 */
#ifndef ZN_OUTPUT_FIELD_COPY_H
#define ZN_OUTPUT_FIELD_COPY_H

#include "output/columns.h"

typedef enum zn_copy_kind {
    ZN_COPY_NOTHING, /* the value is always 0 */
    ZN_COPY_8,       /* eight bytes of the record */
    ZN_COPY_4,
    ZN_COPY_2,
    ZN_COPY_1,
    ZN_COPY_COUNT,     /* a uint64_t into four bytes */
    ZN_COPY_MS,        /* ns into a double, ms */
    ZN_COPY_DURATION,  /* the record's last_ns less its first_ns, as ZN_COPY_MS */
    ZN_COPY_BIT,       /* a bool */
    ZN_COPY_DISCLOSED, /* a zn_disclosure: whether the address is a pseudonym */
    ZN_COPY_FLAG,      /* a zn_flag */
    ZN_COPY_WORD,      /* an enum, written as the word of that number in zn_column_words */
    ZN_COPY_ADDRESS,   /* a zn_addr, and behind it its zn_disclosure */
    ZN_COPY_TEXT,      /* a zn_span, of a record whose source is `source`, where that is one */
    ZN_COPY_CELL,      /* not a plain number: through zn_column_cell */
    ZN_COPY_KINDS
} zn_copy_kind;

typedef struct zn_field_copy {
    zn_copy_kind kind;
    uint32_t offset; /* in a zn_record */
    zn_name_source source;
} zn_field_copy;

/* The way of this column's values. */
zn_field_copy zn_field_copy_of(const zn_column *column);

#endif
