/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How the value of a field gets from a record into a column of output/table: most are numbers of
 * the record as they are, and are copied without asking what they mean.
 */
#ifndef ZN_OUTPUT_FIELD_COPY_H
#define ZN_OUTPUT_FIELD_COPY_H

#include "output/fields.h"

typedef enum zn_copy_kind {
    ZN_COPY_NOTHING, /* there is no value, or it is always 0 */
    ZN_COPY_8,       /* eight bytes of the record */
    ZN_COPY_4,
    ZN_COPY_2,
    ZN_COPY_1,
    ZN_COPY_COUNT,     /* a uint64_t into four bytes */
    ZN_COPY_MS,        /* ns into a double, ms */
    ZN_COPY_DURATION,  /* the record's last_ns less its first_ns, as ZN_COPY_MS */
    ZN_COPY_BIT,       /* a bool */
    ZN_COPY_DISCLOSED, /* a zn_disclosure: whether it is a pseudonym */
    ZN_COPY_FLAG, /* a bool, false where the one at `beside` is true; nothing in a coarse record */
    ZN_COPY_WORD, /* an enum, told as the word of that number in zn_field_words */
    ZN_COPY_ADDRESS,
    ZN_COPY_TEXT, /* a zn_span, of a record whose source is `beside`, where that is one */
    ZN_COPY_CELL, /* not a plain number: through zn_field_value */
    ZN_COPY_KINDS
} zn_copy_kind;

typedef struct zn_field_copy {
    zn_copy_kind kind;
    uint32_t offset; /* in a zn_record */
    uint32_t beside; /* ZN_COPY_ADDRESS: offset of its zn_disclosure; others as told above */
} zn_field_copy;

/* Of a field, for flows of a protocol. */
zn_field_copy zn_field_copy_of(const zn_field *field, uint8_t proto);

#endif
