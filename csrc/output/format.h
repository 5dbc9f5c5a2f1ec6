/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A format that is text, or rows of bytes: what is written of a record, or of a release, behind
 * what was written before. Each format is such a struct, zn_format_<name>, in a file of its
 * own; engine/outputs.c has the list of them.
 */
#ifndef ZN_OUTPUT_FORMAT_H
#define ZN_OUTPUT_FORMAT_H

#include "release/record.h"
#include "util/text.h"

/* What the formats of one run keep: output/format_state.h. */
typedef struct zn_format_state zn_format_state;

typedef struct zn_format {
    const char *name;          /* of the output, as Python has it */
    const char *stem, *suffix; /* of its files: "flows", ".csv"; NULL: it has none */
    bool is_rows;              /* of bytes, not lines */
    /* Prepares what the format keeps, for these sets of columns (ZN_SET_*); NULL: nothing. */
    void (*init)(zn_format_state *state, unsigned sets);
    /* Appends the line that a file begins with; NULL: none. */
    void (*header)(const zn_format_state *state, zn_text *out);
    /* Appends a record; false for one that the format leaves out. NULL: takes no records. */
    bool (*record)(zn_format_state *state, zn_text *out, const zn_record *r);
    /* Appends a release. NULL: takes none. */
    void (*release)(zn_text *out, const zn_release *release);
} zn_format;

#endif
