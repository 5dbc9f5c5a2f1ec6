/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Flow records as columns in memory, laid out as Apache Arrow has them (Arrow columnar format 1.4),
 * so that a writer of Parquet takes them as they are: little-endian values, a bitmap of what is
 * there, and text as 32-bit indices into a dictionary.
 *
 * All columns lie in one block, which can be taken away with its rows, read at leisure, and given
 * back. Growth is the only thing that can fail; the table then remembers `failed` and takes no more.
 */
#ifndef ZN_IO_TABLE_H
#define ZN_IO_TABLE_H

#include "io/dictionary.h"
#include "io/field_copy.h"

typedef struct zn_table_column {
    uint8_t *values; /* bits of a ZN_FIELD_BOOL, indices of a ZN_FIELD_TEXT */
    uint8_t *valid;  /* ZN_PRESENT_SOME: a bit a row */
    uint64_t nulls;  /* ZN_PRESENT_SOME: rows without a value */
    zn_dictionary dictionary;
} zn_table_column;

/* Room for rows of every column: bitmaps first, then values. */
typedef struct zn_table_block {
    uint8_t *bytes;
    size_t size;
    size_t bitmaps; /* bytes at its start that hold bitmaps */
    size_t cap;     /* rows, a multiple of 4096 */
} zn_table_block;

typedef struct zn_table_step {
    zn_field_copy copy;
    uint32_t column;
} zn_table_step;

typedef struct zn_table {
    const zn_fields *fields; /* borrowed */
    zn_table_column column[ZN_FIELDS_MAX];
    zn_table_step step[2][ZN_FIELDS_MAX]; /* of a row of TCP, of UDP; like ones together */
    zn_table_block block;                 /* bytes NULL: none yet */
    uint8_t *is[2];                       /* a bit a row: of TCP, of UDP */
    size_t rows, rows_of[2];
    size_t next_cap; /* of the next block */
    zn_hash_key key;
    bool failed;
} zn_table;

/* *t is zero; 0, or a negative zn_err. */
int zn_table_init(zn_table *t, const zn_fields *fields, zn_error *err);
void zn_table_fini(zn_table *t);
void zn_table_add(zn_table *t, const zn_record *r);

/* Which rows have a value of a column, a bit each; NULL: all of them. */
const uint8_t *zn_table_valid(const zn_table *t, size_t column);
/* The block with the rows, now the caller's; the table forgets them, and what its dictionaries held. */
zn_table_block zn_table_take(zn_table *t);
/* Gives back a block from zn_table_take, whose rows nobody reads any more, to be filled again. */
void zn_table_give(zn_table *t, zn_table_block block);
void zn_table_block_free(zn_table_block block);

/* Bytes of a value of this type; 0 for bits. */
size_t zn_table_width(zn_field_type type);
/* Bytes of memory in use. */
size_t zn_table_memory(const zn_table *t);

#endif
