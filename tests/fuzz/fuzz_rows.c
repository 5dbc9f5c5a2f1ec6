/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows of CSV without quoting (input after a first byte below 0x40), of CSV (below 0x80) or JSON
 * Lines (after any other). A row that can be read is written in each format and must be read back
 * the same; without quoting, as many values must be read back. Its time is read in each unit, and
 * must be read back, too.
 */
#include "rows/csv.h"
#include "rows/json.h"
#include "rows/log.h"
#include "rows/splitter.h"

#include <stdlib.h>
#include <string.h>

#define NAME(text) {(const uint8_t *)(text), sizeof(text) - 1}

static const zn_row_columns columns = {
    {NAME("t"), NAME("u"), NAME("a"), NAME("p")}, 4, ZN_ROW_PASS};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void lay_out(zn_csv_layout *layout, bool quotes)
{
    uint8_t header[] = "t,u,a,p";
    size_t which;
    layout->delimiter = ',';
    layout->quotes = quotes;
    if (zn_csv_header(layout, header, sizeof header - 1, &columns, &which) != ZN_FAULT_GOOD)
        __builtin_trap();
}

/* Text stays what it is; in CSV, so does the text of any JSON, and nothing is an empty text. */
static void check_value(const zn_value *value, const zn_value *again, bool csv)
{
    bool same = zn_span_equal(value->text, again->text);
    if (value->kind == ZN_VALUE_NONE ? again->text.n != 0 && csv : !same)
        __builtin_trap();
    if (!csv && value->kind != again->kind)
        __builtin_trap();
}

/* A value that CSV without quoting writes otherwise than it is. */
static bool is_escaped(const zn_value *value)
{
    for (size_t i = 0; i < value->text.n; i++)
        if (value->text.p[i] == ',' || value->text.p[i] == '\r' || value->text.p[i] == '\n')
            return true;
    return false;
}

static void check_written(const zn_csv_layout *layout, const zn_row *row, zn_row_format format)
{
    zn_row_style style = {format, ',', layout->quotes, ZN_TIME_NS, true, &columns};
    zn_gated_row gated = {.t_ns = 1, .attribute = row->value[ZN_ROW_ATTRIBUTE]};
    zn_row_splitter frame = {.quotes = format == ZN_ROWS_CSV && layout->quotes, .delimiter = ','};
    size_t bytes, lines;
    zn_text out = {0};
    zn_row again;
    zn_row_fault fault;
    memset(gated.pseudonym, 'x', sizeof gated.pseudonym);
    gated.pass = &row->value[ZN_ROW_PASS];
    zn_row_log_write(&out, &style, &gated);
    if (!zn_row_splitter_next(&frame, (zn_span){(uint8_t *)out.bytes, out.n}, &bytes, &lines) ||
        bytes != out.n)
        __builtin_trap();
    fault = format == ZN_ROWS_CSV ? zn_csv_row(layout, (uint8_t *)out.bytes, out.n - 1, &again)
                                  : zn_json_row((uint8_t *)out.bytes, out.n - 1, &columns, &again);
    if (fault != ZN_FAULT_GOOD)
        __builtin_trap();
    for (size_t i = ZN_ROW_ATTRIBUTE; i < columns.count; i++)
        if (format != ZN_ROWS_CSV || layout->quotes || !is_escaped(&row->value[i]))
            check_value(&row->value[i], &again.value[i], format == ZN_ROWS_CSV);
    zn_text_fini(&out);
}

static void check_time(zn_span text)
{
    for (int unit = ZN_TIME_S; unit <= ZN_TIME_ISO; unit++) {
        zn_timestamp t, again;
        zn_text out = {0};
        if (!zn_timestamp_parse(text, (zn_time_unit)unit, &t)) {
            (void)zn_timestamp_problem(text, (zn_time_unit)unit);
            continue;
        }
        if (t.t_ns < 0 || (unit != ZN_TIME_ISO) != zn_timestamp_is_number(text))
            __builtin_trap();
        zn_timestamp_put(&out, t.t_ns, (zn_time_unit)unit);
        if (!zn_timestamp_parse((zn_span){(uint8_t *)out.bytes, out.n}, (zn_time_unit)unit,
                                &again) ||
            again.t_ns != t.t_ns)
            __builtin_trap();
        zn_text_fini(&out);
    }
}

/* The check of a row, which writes nothing, finds what reading it finds. */
static zn_row_fault read_csv(const zn_csv_layout *layout, uint8_t *bytes, size_t n, zn_row *row)
{
    zn_row_fault checked = zn_csv_check(layout, bytes, n);
    zn_row_fault fault = zn_csv_row(layout, bytes, n, row);
    if ((fault == ZN_FAULT_GOOD) != (checked == ZN_FAULT_GOOD) && fault != ZN_FAULT_UTF8 &&
        fault != ZN_FAULT_CONTROL)
        __builtin_trap();
    return fault;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static zn_csv_layout layout, bare;
    bool csv = size == 0 || data[0] < 0x80, quotes = size != 0 && data[0] >= 0x40;
    zn_row_splitter frame = {.quotes = csv && quotes, .delimiter = ','};
    size_t left = size == 0 ? 0 : size - 1, bytes, lines;
    uint8_t *copy = malloc(left + 1), *at = copy;
    if (copy == NULL)
        return 0;
    lay_out(&layout, true);
    lay_out(&bare, false);
    if (left != 0)
        memcpy(copy, data + 1, left);
    while (left != 0) {
        zn_row row;
        zn_row_fault fault;
        if (!zn_row_splitter_next(&frame, (zn_span){at, left}, &bytes, &lines))
            bytes = left + 1;
        fault = csv ? read_csv(quotes ? &layout : &bare, at, bytes - 1, &row)
                    : zn_json_row(at, bytes - 1, &columns, &row);
        if (fault == ZN_FAULT_GOOD) {
            check_time(row.value[ZN_ROW_TIME].text);
            check_written(&layout, &row, ZN_ROWS_CSV);
            check_written(&bare, &row, ZN_ROWS_CSV);
            check_written(&layout, &row, ZN_ROWS_JSONL);
        }
        if (bytes > left)
            break;
        at += bytes;
        left -= bytes;
    }
    free(copy);
    return 0;
}
