/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow records as columns in memory, laid out as Apache Arrow has them (Arrow columnar format 1.4),
 * so that a writer of Parquet takes them as they are: little-endian values, a bitmap of what is
 * there, and text as 32-bit indices into a dictionary.
 *
 * Growth is the only thing that can fail; the table then remembers `failed` and takes no more.
 */
#ifndef ZN_IO_TABLE_H
#define ZN_IO_TABLE_H

#include "io/dictionary.h"
#include "io/fields.h"

typedef struct zn_table_column {
    uint8_t *values; /* bits of a ZN_FIELD_BOOL, indices of a ZN_FIELD_TEXT */
    uint8_t *valid;  /* a bit a row; NULL: no value is ever missing */
    uint64_t nulls;
    zn_dictionary dictionary;
} zn_table_column;

typedef struct zn_table {
    const zn_fields *fields; /* borrowed */
    zn_table_column column[ZN_FIELDS_MAX];
    size_t rows, cap; /* cap: a multiple of 8 */
    zn_hash_key key;
    bool failed;
} zn_table;

/* *t is zero; 0, or a negative zn_err. */
int zn_table_init(zn_table *t, const zn_fields *fields, zn_error *err);
void zn_table_fini(zn_table *t);
void zn_table_add(zn_table *t, const zn_record *r);
/* Forgets every row and what the dictionaries hold; the memory stays. */
void zn_table_clear(zn_table *t);
/* Bytes of a value of this type; 0 for bits. */
size_t zn_table_width(zn_field_type type);
/* Bytes of memory in use. */
size_t zn_table_memory(const zn_table *t);

#endif
