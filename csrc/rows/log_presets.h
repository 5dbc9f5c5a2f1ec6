/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Presets of `filter --preset`: logs of other tools, with the role of each column that is known. A
 * column that no preset names is never written.
 */
#ifndef ZN_ROWS_LOG_PRESETS_H
#define ZN_ROWS_LOG_PRESETS_H

#include "release/log_row.h"
#include "util/timestamp.h"

typedef struct zn_log_column {
    zn_span name; /* of a column, or the path of a JSON member (rows/json_path.h) */
    zn_log_role role;
} zn_log_column;

/* Form of the lines of a log. */
typedef enum zn_log_kind {
    ZN_LOG_ZEEK,  /* Zeek's TSV, or JSON Lines if the first byte is '{' */
    ZN_LOG_LINES, /* JSON Lines */
    ZN_LOG_CSV,
    ZN_LOG_TSTAT,
    ZN_LOG_DNSTAP, /* frames of Frame Streams */
    ZN_LOG_BIND,
    ZN_LOG_UNBOUND
} zn_log_kind;

typedef struct zn_log_preset {
    const char *name;
    zn_log_kind kind;
    zn_span path;        /* #path of a Zeek log; empty: any */
    zn_time_unit unit;   /* of times that are plain numbers */
    bool server_decides; /* the log has no names: the server's address is the attribute */
    const zn_log_column *columns;
    size_t count;
} zn_log_preset;

#define ZN_LOG_COLUMNS_MAX 256 /* of a preset */

/* Returns the presets, and sets *count. */
const zn_log_preset *zn_log_presets(size_t *count);

/* Returns the index of the column of that name; preset->count if the preset does not know it. hint:
 * an index to begin with, which speeds the search up. */
size_t zn_log_preset_find(const zn_log_preset *preset, zn_span name, size_t hint);
/* Return a role's name, and its rule for written values, for 0 <= role < ZN_LOG_ROLE_COUNT. */
const char *zn_log_role_name(zn_log_role role);
const char *zn_log_role_disclosure(zn_log_role role);

/* Returns true if a column of the preset can show evidence. */
bool zn_log_preset_has_evidence(const zn_log_preset *preset);

#endif
