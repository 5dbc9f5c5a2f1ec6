/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The records of one protocol's flows as columns in memory, laid out as Apache Arrow has them
 * (Arrow columnar format 1.4), so that a writer of Parquet takes them as they are: little-endian
 * values, a bitmap of the rows that have one, and text as 32-bit indices into a dictionary.
 *
 * All columns lie in one block, which can be taken away with its rows, read at leisure, and given
 * back. Rows gather in a staging block that the processor's cache holds, and go on to the block
 * ZN_TABLE_STAGING at a time. Growth is the only thing that can fail; the table then remembers
 * `failed` and takes no more.
 */
#ifndef ZN_OUTPUT_TABLE_H
#define ZN_OUTPUT_TABLE_H

#include "output/dictionary.h"
#include "output/field_copy.h"
#include "output/fields.h"

#define ZN_TABLE_STAGING 64 /* rows: a word of each bitmap */

/* Room for rows of every column: bitmaps first, then values. */
typedef struct zn_table_block {
    uint8_t *bytes;
    size_t size;
    size_t bitmaps; /* bytes at its start that hold bitmaps */
    size_t cap;     /* rows, a multiple of ZN_TABLE_STAGING */
} zn_table_block;

typedef struct zn_table_place {
    uint8_t *values; /* bits of a ZN_FIELD_BOOL, indices of a ZN_FIELD_TEXT */
    uint8_t *valid;  /* of a nullable field: a bit a row */
} zn_table_place;

/* The places of the columns in a block. */
typedef struct zn_table_layout {
    zn_table_place column[ZN_COLUMNS_MAX];
} zn_table_layout;

/* One value of a row: from a record into staging. */
typedef struct zn_table_step {
    uint32_t offset; /* as in zn_field_copy, like the next member */
    zn_name_source source;
    uint32_t column;
    uint8_t *to; /* the column's staged values */
} zn_table_step;

/* Steps of writing a row, grouped by kind. */
typedef struct zn_table_plan {
    zn_table_step step[ZN_COLUMNS_MAX];
    uint32_t end[ZN_COPY_KINDS]; /* of the steps of each kind */
} zn_table_plan;

#define ZN_TABLE_ADDRESSES 3 /* columns of addresses: the client's, the server's, the resolver's */
/* columns of names and the like */
#define ZN_TABLE_TEXTS (5 + ZN_ATTRIBUTE_COUNT)

typedef struct zn_table {
    zn_fields fields;
    const zn_column *column[ZN_COLUMNS_MAX]; /* of each field */
    zn_dictionary dictionary[ZN_COLUMNS_MAX];
    uint64_t nulls[ZN_COLUMNS_MAX]; /* rows without a value */
    zn_table_plan plan;
    zn_table_block block, staging; /* block.bytes NULL: none yet */
    zn_table_layout in_block, in_staging;
    /* Addresses, and below texts, whose numbers are not found yet. */
    zn_addr staged[ZN_TABLE_ADDRESSES][ZN_TABLE_STAGING];
    uint32_t staged_column[ZN_TABLE_ADDRESSES];
    unsigned staged_columns;
    zn_short_text texts[ZN_TABLE_TEXTS][ZN_TABLE_STAGING];
    uint32_t text_column[ZN_TABLE_TEXTS];
    unsigned text_columns;
    size_t rows;
    size_t next_cap; /* of the next block */
    zn_hash_key key;
    bool failed;
} zn_table;

/* Makes a table of those fields that apply to flows of a protocol. *t is zero. Returns 0, or a
 * negative zn_err with *err filled. */
int zn_table_init(zn_table *t, const zn_fields *fields, uint8_t proto, zn_error *err);
void zn_table_fini(zn_table *t);
/* Appends a record of that protocol. */
void zn_table_add(zn_table *t, const zn_record *r);

/* Moves what is left in staging into the block: nothing is added any more before zn_table_take.
 * 0, or -ZN_ERR_CAPACITY. */
int zn_table_end(zn_table *t, zn_error *err);
/* A bit for each row in the block: whether it has a value of the column. NULL: all of them have. */
const uint8_t *zn_table_valid(const zn_table *t, size_t column);
/* The block with the rows, now the caller's; the table forgets them, and what its dictionaries
 * held. */
zn_table_block zn_table_take(zn_table *t);
/* Gives back a block from zn_table_take, whose rows are no longer read, to be filled again. */
void zn_table_give(zn_table *t, zn_table_block block);
void zn_table_block_free(zn_table_block block);

/* Bytes of a value of this type; 0 for bits. */
size_t zn_table_width(zn_field_type type);
/* Bytes of memory in use. */
size_t zn_table_memory(const zn_table *t);

#endif
