/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Values of columns, and the text they are printed as. */
#ifndef ZN_OUTPUT_COLUMN_CELL_H
#define ZN_OUTPUT_COLUMN_CELL_H

#include "output/columns.h"
#include "util/text.h"

typedef enum zn_cell_kind {
    ZN_CELL_NONE,
    ZN_CELL_NUMBER,
    ZN_CELL_NS,      /* ns, printed as they are */
    ZN_CELL_MS,      /* ns, printed as ms */
    ZN_CELL_SECONDS, /* ns, printed as seconds with six decimals */
    ZN_CELL_TEXT,    /* text, never empty */
    ZN_CELL_ADDRESS  /* *address */
} zn_cell_kind;

#define ZN_CELL_BYTES (5 * ZN_RECORD_VERSIONS)

/* The value of a column in one record; borrows from the record and from itself. */
typedef struct zn_cell {
    zn_cell_kind kind;
    uint64_t number;
    int64_t ns;
    zn_span text;
    const zn_addr *address;
    uint8_t buffer[ZN_CELL_BYTES]; /* for text that is put together */
} zn_cell;

/* Reads the value of a column in a record into *out. */
void zn_column_cell(const zn_column *column, const zn_record *r, zn_cell *out);
/* Reads the column's member, a number or an enum. */
uint64_t zn_column_number(const zn_column *column, const zn_record *r);

/* Returns the words of a column's values, *n of them, indexed by the number of its enum; a NULL
 * entry means no value. Returns NULL for a column whose values are not words. */
const char *const *zn_column_words(const zn_column *column, size_t *n);
/* "tls" and so on, NULL for none. */
const char *zn_name_source_word(zn_name_source source);
/* "name" and so on, NULL for none. */
const char *zn_name_level_word(zn_name_level level);
/* "name", "dns" or the word of an attribute; NULL for none. */
const char *zn_space_word(zn_space space);

/* Appends a value of any kind but NONE: no blank, no control character, never empty. */
void zn_cell_put(zn_text *out, const zn_cell *value);
/* Stores a number in 1, 2, 4 or 8 bytes; a number that does not fit is replaced by the largest that
 * fits. */
void zn_cell_store(uint8_t *to, size_t bytes, uint64_t number);
/* Appends a word that ends with NUL, such as a column's name. */
void zn_column_put_word(zn_text *out, const char *word);

#endif
