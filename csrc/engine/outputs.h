/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What an engine puts out: a text buffer for each output that is lines, and the tables that become
 * Parquet, of TCP and of UDP. A program reads text[output].bytes, of which .n are there, and then
 * calls zn_outputs_clear. Marks divide both where a period of --split ends, so that what
 * belongs to which period does not depend on when the buffers are emptied.
 */
#ifndef ZN_ENGINE_OUTPUTS_H
#define ZN_ENGINE_OUTPUTS_H

#include "output/format_state.h"
#include "output/table.h"
#include "util/text.h"
#include "zanon/zanon.h"

#define ZN_OUTPUTS_ROWS 65536              /* of a table, that are enough to be taken */
#define ZN_OUTPUTS_BYTES ((size_t)8 << 20) /* of all texts: the same */

/* Outputs for zanon-net's own binding: rows of bytes, which are texts too, then tables. */
enum {
    ZN_OUTPUT_RECORD_ROWS = ZN_OUTPUT_CSV + 1, /* zn_event_record */
    ZN_OUTPUT_OBSERVATION_ROWS,                /* zn_event_observation */
    ZN_OUTPUT_TEXTS,
    ZN_OUTPUT_TCP_TABLE = ZN_OUTPUT_TEXTS,
    ZN_OUTPUT_UDP_TABLE,
    ZN_OUTPUTS
};
#define ZN_OUTPUT_TABLES (ZN_OUTPUTS - ZN_OUTPUT_TEXTS)

/* From here on what was put out belongs to another period. */
typedef struct zn_mark {
    int64_t period_ns;
    size_t at[ZN_OUTPUT_TEXTS], lines[ZN_OUTPUT_TEXTS]; /* of each text before: bytes, lines */
    size_t rows[ZN_OUTPUT_TABLES];
} zn_mark;

typedef struct zn_outputs {
    zn_text text[ZN_OUTPUT_TEXTS];
    size_t lines[ZN_OUTPUT_TEXTS]; /* of those that are lines */
    zn_table table[ZN_OUTPUT_TABLES];
    zn_format_state state;
    uint32_t chosen; /* bits */
    zn_mark *marks;
    size_t mark_count, mark_cap;
} zn_outputs;

/* *o is zero; 0, or a negative zn_err. */
int zn_outputs_init(zn_outputs *o, uint32_t chosen, unsigned sets, zn_error *err);
void zn_outputs_fini(zn_outputs *o);

void zn_outputs_record(zn_outputs *o, const zn_record *r);
void zn_outputs_release(zn_outputs *o, const zn_release *release);
/* A period begins; 0, or -ZN_ERR_CAPACITY. */
int zn_outputs_mark(zn_outputs *o, int64_t period_ns, zn_error *err);
/* The line that a file of this output starts with, which may be none. */
void zn_outputs_header(const zn_outputs *o, zn_output output, zn_text *out);

/* What Python calls an output. */
const char *zn_outputs_name(int output);
/* How the names of its files begin and end; NULL: it has none. */
const char *zn_outputs_stem(int output);
const char *zn_outputs_suffix(int output);
/* A text that is rows of bytes, not lines. */
bool zn_outputs_is_rows(int output);

/* So much has gathered that it should be taken before more is made. */
bool zn_outputs_full(const zn_outputs *o);
/* A text of releases, not of records. */
bool zn_outputs_is_released(int text);
/* Bytes of those. */
size_t zn_outputs_released_bytes(const zn_outputs *o);
/* 0, or -ZN_ERR_CAPACITY when memory was out. */
int zn_outputs_check(const zn_outputs *o, zn_error *err);
/* The texts were taken, and so were the rows of the tables, or there is no mark. */
void zn_outputs_clear(zn_outputs *o);
/* Bytes of memory in use. */
size_t zn_outputs_memory(const zn_outputs *o);

#endif
