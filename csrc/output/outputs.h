/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The outputs of an engine: a text buffer for each output that consists of lines, and tables, one
 * of TCP and one of UDP, that become Parquet. A program reads text[output].bytes, text[output].n of
 * them, and then calls zn_outputs_clear; or it takes each text with zn_outputs_lines. Marks divide
 * texts and tables where a period of --split ends, so that a line's period does not depend on when
 * the buffers are emptied.
 */
#ifndef ZN_OUTPUT_OUTPUTS_H
#define ZN_OUTPUT_OUTPUTS_H

#include "output/format_state.h"
#include "output/table.h"
#include "util/protocol.h"
#include "util/text.h"
#include "zanon/zanon.h"

#define ZN_OUTPUTS_ROWS 65536              /* rows of a table after which the outputs are full */
#define ZN_OUTPUTS_BYTES ((size_t)8 << 20) /* bytes of all texts after which they are */

/* X(NUMBER, name), a row for each format that is not in zanon.h: its number is ZN_OUTPUT_<NUMBER>,
 * and zn_format_<name> of its file in output/ writes it. Rows of events have the bytes of
 * zn_event_record_row and zn_event_observation_row. */
#define ZN_OWN_FORMATS(X)                                                                          \
    X(RECORD_ROWS, record_rows)                                                                    \
    X(OBSERVATION_ROWS, observation_rows)
#define ZN_OWN_NUMBER(number, name) ZN_OUTPUT_##number,

/* Outputs for zanon-net's own binding: the texts of the list, then tables. */
enum {
    ZN_OUTPUT_LAST_PUBLIC = ZN_OUTPUT_VIEW3_PACKETS_NG,
    ZN_OWN_FORMATS(ZN_OWN_NUMBER) /* ZN_OUTPUT_RECORD_ROWS, and so on */
    ZN_OUTPUT_TEXTS,
    ZN_OUTPUT_TCP_TABLE = ZN_OUTPUT_TEXTS,
    ZN_OUTPUT_UDP_TABLE,
    ZN_OUTPUTS
};
#define ZN_OUTPUT_TABLES (ZN_OUTPUTS - ZN_OUTPUT_TEXTS)
_Static_assert(ZN_OUTPUT_VIEW3_PACKETS_NG == ZN_OUTPUT_PACKETS_NG + 2 * ZN_VIEWS_MAX,
               "each view has two outputs");

/* The place in all outputs where another period begins. */
typedef struct zn_mark {
    int64_t period_ns;
    size_t at[ZN_OUTPUT_TEXTS], lines[ZN_OUTPUT_TEXTS]; /* bytes and lines of each text before it */
    size_t rows[ZN_OUTPUT_TABLES];
} zn_mark;

typedef struct zn_outputs {
    zn_text text[ZN_OUTPUT_TEXTS];
    size_t lines[ZN_OUTPUT_TEXTS]; /* of texts that are no rows */
    zn_table table[ZN_OUTPUT_TABLES];
    zn_text header[ZN_OUTPUT_TEXTS]; /* the line that a file of this output begins with */
    zn_format_state state;
    uint32_t chosen;        /* bits 1u << output */
    uint32_t tcp, udp;      /* chosen outputs that take records of such flows */
    uint32_t tcp_midstream; /* outputs of `tcp` that take flows whose SYN was not captured */
    zn_mark *marks;
    size_t mark_count, mark_cap;
    size_t passed;                 /* marks, by zn_outputs_next_mark */
    size_t taken[ZN_OUTPUT_TEXTS]; /* bytes of each text, by zn_outputs_lines */
} zn_outputs;

/* Prepares the outputs of the set `chosen` with column sets (ZN_SET_*): tstat_sets in Tstat's logs,
 * field_sets in all other formats. All bytes of *o are zero before. Returns 0, or a negative zn_err
 * with *err filled; zn_outputs_fini either way. */
int zn_outputs_init(zn_outputs *o, uint32_t chosen, unsigned tstat_sets, unsigned field_sets,
                    zn_error *err);
/* Frees all memory; the outputs are zero then. */
void zn_outputs_fini(zn_outputs *o);

/* Returns the chosen outputs that take the record of a flow, as bits 1u << output. */
static inline uint32_t zn_outputs_of_flow(const zn_outputs *o, uint8_t proto, bool midstream)
{
    if (proto == ZN_PROTO_UDP)
        return o->udp;
    return midstream ? o->tcp_midstream : o->tcp;
}
/* Writes a record to every chosen output of records. */
void zn_outputs_record(zn_outputs *o, const zn_record *r);
/* Writes a released name to every chosen output of released names. */
void zn_outputs_release(zn_outputs *o, const zn_release *release);
/* Begins the period that starts at period_ns. Returns 0, or -ZN_ERR_CAPACITY. */
int zn_outputs_mark(zn_outputs *o, int64_t period_ns, zn_error *err);

/* Takes the lines of a text that were not taken: those before the next mark, or all. */
zn_span zn_outputs_lines(zn_outputs *o, int text);
/* Takes packets of a text, ZN_OUTPUT_PACKETS or that of a view, that were not taken, of those
 * before the next mark or of all, into out[0 .. max - 1]. Returns how many; *more: others are
 * left. Borrows. */
size_t zn_outputs_packets(zn_outputs *o, int text, zn_frame *out, size_t max, bool *more);
/* Passes the next mark; false where there is none. *period_ns is the start of its period. */
bool zn_outputs_next_mark(zn_outputs *o, int64_t *period_ns);

/* Returns the name of an output in Python. */
const char *zn_outputs_name(int output);
/* Return how the names of the output's files begin and end; NULL: it has no files. */
const char *zn_outputs_stem(int output);
const char *zn_outputs_suffix(int output);
/* Returns whether the output is a text of rows, not of lines. */
bool zn_outputs_is_rows(int output);

/* Returns whether so much has gathered that the program should take it. */
bool zn_outputs_full(const zn_outputs *o);
/* Returns whether a text holds records, not released names or packets. */
bool zn_outputs_is_of_records(int text);
/* Returns the bytes in the other texts. */
size_t zn_outputs_other_bytes(const zn_outputs *o);
/* Returns 0, or -ZN_ERR_CAPACITY when there was no memory for an output. */
int zn_outputs_check(const zn_outputs *o, zn_error *err);
/* Empties the texts and forgets the marks, once the caller has taken the texts and, where there are
 * marks, the tables' rows. */
void zn_outputs_clear(zn_outputs *o);
/* Returns the bytes of memory in use. */
size_t zn_outputs_memory(const zn_outputs *o);

/* Appends the line of an observation to a text. */
void zn_outputs_observation(zn_text *out, const zn_release *release);

#endif
