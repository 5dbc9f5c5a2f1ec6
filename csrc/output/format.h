/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A format of text, or of rows of bytes: appends a record, or a release, to the output so far. Each
 * format is such a struct, zn_format_<name>, in a file of its own; output/outputs.c has the list of
 * them.
 */
#ifndef ZN_OUTPUT_FORMAT_H
#define ZN_OUTPUT_FORMAT_H

#include "release/record.h"
#include "util/text.h"

/* The state of the formats of one run: output/format_state.h. */
typedef struct zn_format_state zn_format_state;

typedef struct zn_format {
    const char *name;          /* of the output, in Python */
    const char *stem, *suffix; /* of its files, such as "flows" and ".csv"; NULL: no files */
    bool is_rows;              /* the output is rows of bytes, not lines */
    uint8_t proto;             /* of the flows whose records it takes; 0: of all */
    bool omits_midstream;      /* takes no record of a TCP flow whose SYN was not captured */
    /* Prepares the format's state for these sets of columns (ZN_SET_*); NULL: no state. */
    void (*init)(zn_format_state *state, unsigned sets);
    /* Appends the first line of a file; NULL: files have no such line. */
    void (*header)(const zn_format_state *state, zn_text *out);
    /* Appends a record; returns false if the format omits the record. NULL: the format has no
     * records. */
    bool (*record)(zn_format_state *state, zn_text *out, const zn_record *r);
    /* Appends a release. NULL: takes none. */
    void (*release)(zn_text *out, const zn_release *release);
} zn_format;

#endif
