/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/log_form.h"
#include "util/block.h"
#include "util/text.h"

void zn_log_source_begin(zn_log_source *s)
{
    s->head.n = s->opened.n = 0;
    s->laid_out = s->members = false;
    s->fields = s->fields_at = 0;
    s->separator = '\t';
    s->unset = (zn_log_mark){{'-'}, 1};
    s->empty = (zn_log_mark){"(empty)", 7};
    memset(s->role, ZN_LOG_CORRELATE, sizeof s->role);
}

void zn_log_source_fini(zn_log_source *s)
{
    zn_text_fini(&s->head);
    zn_text_fini(&s->written);
    zn_text_fini(&s->opened);
    zn_text_fini(&s->closed);
    zn_text_fini(&s->partial);
    zn_text_fini(&s->ended);
}

bool zn_log_source_field(zn_log_source *s, size_t i, zn_span name)
{
    size_t found = zn_log_preset_find(s->preset, name, i);
    zn_log_role role =
        found == s->preset->count ? ZN_LOG_CORRELATE : s->preset->columns[found].role;
    for (size_t j = 0; j < i; j++)
        if (s->role[j] == role && (role == ZN_LOG_TIME || role == ZN_LOG_CLIENT ||
                                   role == ZN_LOG_SERVER || role == ZN_LOG_DNS_NAME))
            return false;
    s->role[i] = (uint8_t)role;
    return true;
}

static bool is_name(zn_log_role role)
{
    return role == ZN_LOG_NAME || role == ZN_LOG_DNS_NAME;
}

/* Returns true if every log needs a column of this role: a time, a client and an attribute. */
static bool needs(const zn_log_preset *preset, zn_log_role role)
{
    return role == ZN_LOG_TIME || role == ZN_LOG_CLIENT ||
           (preset->server_decides ? role == ZN_LOG_SERVER : is_name(role));
}

/* Returns true if a field has this role, or for a name the role of any name. */
static bool has(const zn_log_source *s, zn_log_role role)
{
    for (size_t i = 0; i < s->fields; i++)
        if (s->role[i] == role || (is_name(role) && is_name(s->role[i])))
            return true;
    return false;
}

int zn_log_source_check(const zn_log_source *s, uint64_t line, zn_error *err)
{
    for (size_t i = 0; i < s->preset->count; i++) {
        const zn_log_column *column = &s->preset->columns[i];
        if (needs(s->preset, column->role) && !has(s, column->role))
            return zn_fail(err, ZN_ERR_CONFIG, 0,
                           "line %llu: the header has no column '%.*s'; --preset %s needs it",
                           (unsigned long long)line, (int)column->name.n,
                           (const char *)column->name.p, s->preset->name);
    }
    return 0;
}

/* The fields of a row that is being split. */
typedef struct split {
    zn_span row;
    zn_log_cell *cells;
    size_t max, count, from; /* from: offset of the current field */
    uint32_t odd;            /* not 0: a byte is not printable ASCII */
} split;

static inline void end_field(split *s, size_t at)
{
    if (s->count < s->max)
        s->cells[s->count].text = zn_span_part(s->row, s->from, at);
    s->count += s->count <= s->max;
    s->from = at + 1;
}

/* Ends the fields that end in the block at offset `at`, whose first `seen` bytes were seen
 * before. */
static inline void split_block(split *s, uint8_t separator, size_t at, size_t seen)
{
    zn_block block = zn_block_load(s->row.p + at);
    uint32_t fresh = ~UINT32_C(0) << seen;
    uint32_t ends = zn_block_equal(block, separator) & fresh;
    s->odd |= zn_block_odd(block) & fresh & ~ends;
    for (; ends != 0; ends &= ends - 1)
        end_field(s, at + (size_t)__builtin_ctz(ends));
}

static void split_short(split *s, uint8_t separator)
{
    for (size_t at = 0; at < s->row.n; at++) {
        uint8_t byte = s->row.p[at];
        if (byte == separator)
            end_field(s, at);
        else
            s->odd |= byte < 0x20 || byte >= 0x7f;
    }
}

size_t zn_log_split(zn_span row, uint8_t separator, zn_log_cell *cells, size_t max,
                    zn_row_fault *fault)
{
    split s = {.row = row, .cells = cells, .max = max};
    size_t at = 0;
    *fault = ZN_FAULT_GOOD;
    if (row.n < ZN_BLOCK_BYTES) {
        split_short(&s, separator);
    } else {
        for (; at + ZN_BLOCK_BYTES <= row.n; at += ZN_BLOCK_BYTES)
            split_block(&s, separator, at, 0);
        if (at != row.n)
            split_block(&s, separator, row.n - ZN_BLOCK_BYTES, at + ZN_BLOCK_BYTES - row.n);
    }
    end_field(&s, row.n);
    if (s.odd != 0) {
        zn_utf8 found = zn_utf8_check(row);
        *fault = found == ZN_UTF8_INVALID   ? ZN_FAULT_UTF8
                 : found == ZN_UTF8_CONTROL ? ZN_FAULT_CONTROL
                                            : ZN_FAULT_GOOD;
    }
    return s.count;
}

int zn_log_source_fail(zn_error *err, uint64_t line, const char *problem)
{
    return zn_fail(err, ZN_ERR_FORMAT, 0, "line %llu: %s", (unsigned long long)line, problem);
}
