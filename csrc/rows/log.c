/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/log.h"

static const char DIGITS[] = "0123456789abcdef";

/* Returns whether a reader without quotes would cut this field, or trim it. */
static bool needs_quotes(const zn_row_style *style, zn_span field)
{
    if (field.n != 0 && (field.p[0] == ' ' || field.p[field.n - 1] == ' '))
        return true;
    for (size_t i = 0; i < field.n; i++)
        if (field.p[i] < 0x20 || field.p[i] == '"' || field.p[i] == style->delimiter)
            return true;
    return false;
}

/* Writes a field without quotes: two digits replace each byte that would end the field. */
static void put_bare_field(zn_text *out, const zn_row_style *style, zn_span field)
{
    for (size_t i = 0; i < field.n; i++) {
        uint8_t byte = field.p[i];
        if (byte == style->delimiter || byte == '\r' || byte == '\n') {
            zn_text_literal(out, "\\x");
            zn_text_char(out, DIGITS[byte >> 4]);
            zn_text_char(out, DIGITS[byte & 15]);
        } else
            zn_text_char(out, (char)byte);
    }
}

void zn_row_log_field(zn_text *out, const zn_row_style *style, zn_span field)
{
    if (!style->quotes) {
        put_bare_field(out, style, field);
        return;
    }
    if (!needs_quotes(style, field)) {
        zn_text_span(out, field);
        return;
    }
    zn_text_char(out, '"');
    while (field.n != 0) {
        const uint8_t *quote = memchr(field.p, '"', field.n);
        zn_span part = {field.p, quote == NULL ? field.n : (size_t)(quote - field.p) + 1};
        zn_text_span(out, part);
        if (quote != NULL)
            zn_text_char(out, '"');
        field.p += part.n;
        field.n -= part.n;
    }
    zn_text_char(out, '"');
}

/* Returns the number of first bytes that need no escape in a JSON string; 0xe2 begins U+2028 and
 * U+2029. */
static size_t plain_bytes(zn_span text)
{
    size_t n = 0;
    while (n < text.n && text.p[n] >= 0x20 && text.p[n] != '"' && text.p[n] != '\\' &&
           text.p[n] != 0xe2)
        n++;
    return n;
}

/* Writes the character that is not plain at the beginning of `text`; returns its bytes. */
static size_t put_escaped(zn_text *out, zn_span text)
{
    uint8_t byte = text.p[0];
    if (byte == 0xe2) {
        bool line_end = text.n >= 3 && text.p[1] == 0x80 && (text.p[2] | 1) == 0xa9;
        if (!line_end) {
            zn_text_bytes(out, (const char *)text.p, 1);
            return 1;
        }
        zn_text_bytes(out, text.p[2] == 0xa8 ? "\\u2028" : "\\u2029", 6);
        return 3;
    }
    zn_text_char(out, '\\');
    if (byte >= 0x20) {
        zn_text_char(out, (char)byte);
        return 1;
    }
    zn_text_literal(out, "u00");
    zn_text_char(out, DIGITS[byte >> 4]);
    zn_text_char(out, DIGITS[byte & 15]);
    return 1;
}

static void put_string(zn_text *out, zn_span text)
{
    zn_text_char(out, '"');
    while (text.n != 0) {
        zn_span plain = {text.p, plain_bytes(text)};
        size_t taken = plain.n;
        zn_text_span(out, plain);
        text.p += taken;
        text.n -= taken;
        taken = text.n != 0 ? put_escaped(out, text) : 0;
        text.p += taken;
        text.n -= taken;
    }
    zn_text_char(out, '"');
}

void zn_row_log_value(zn_text *out, const zn_row_style *style, const zn_value *value)
{
    if (style->format == ZN_ROWS_CSV) {
        if (value->kind != ZN_VALUE_NONE)
            zn_row_log_field(out, style, value->text);
        return;
    }
    switch (value->kind) {
    case ZN_VALUE_NONE:
        zn_text_literal(out, "null");
        break;
    case ZN_VALUE_TEXT:
        put_string(out, value->text);
        break;
    case ZN_VALUE_JSON:
        zn_text_span(out, value->text);
        break;
    }
}

void zn_row_log_before(zn_text *out, const zn_row_style *style, size_t i)
{
    if (i != 0)
        zn_text_char(out, style->format == ZN_ROWS_CSV ? (char)style->delimiter : ',');
    if (style->format == ZN_ROWS_JSONL) {
        put_string(out, style->columns->name[i]);
        zn_text_char(out, ':');
    }
}

void zn_row_log_time(zn_text *out, const zn_row_style *style, int64_t t_ns)
{
    bool quoted = style->format == ZN_ROWS_JSONL && style->unit == ZN_TIME_ISO;
    if (quoted)
        zn_text_char(out, '"');
    zn_timestamp_put(out, t_ns, style->unit);
    if (quoted)
        zn_text_char(out, '"');
}

static void put_pseudonym(zn_text *out, const zn_row_style *style,
                          const char pseudonym[ZN_PSEUDONYM_CHARS])
{
    if (style->format == ZN_ROWS_JSONL)
        zn_text_char(out, '"');
    zn_text_bytes(out, pseudonym, ZN_PSEUDONYM_CHARS);
    if (style->format == ZN_ROWS_JSONL)
        zn_text_char(out, '"');
}

void zn_row_log_header(zn_text *out, const zn_row_style *style)
{
    for (size_t i = 0; i < style->columns->count; i++) {
        if (i == ZN_ROW_USER && !style->with_user)
            continue;
        zn_row_log_before(out, style, i);
        zn_row_log_field(out, style, style->columns->name[i]);
    }
    zn_text_char(out, '\n');
}

void zn_row_log_write(zn_text *out, const zn_row_style *style, const zn_gated_row *row)
{
    if (style->format == ZN_ROWS_JSONL)
        zn_text_char(out, '{');
    zn_row_log_before(out, style, ZN_ROW_TIME);
    zn_row_log_time(out, style, row->t_ns);
    if (style->with_user) {
        zn_row_log_before(out, style, ZN_ROW_USER);
        put_pseudonym(out, style, row->pseudonym);
    }
    zn_row_log_before(out, style, ZN_ROW_ATTRIBUTE);
    zn_row_log_value(out, style, &row->attribute);
    for (size_t i = ZN_ROW_PASS; i < style->columns->count; i++) {
        zn_row_log_before(out, style, i);
        zn_row_log_value(out, style, &row->pass[i - ZN_ROW_PASS]);
    }
    if (style->format == ZN_ROWS_JSONL)
        zn_text_char(out, '}');
    zn_text_char(out, '\n');
}
