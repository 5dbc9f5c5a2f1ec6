/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/frame.h"

#include "util/arena.h"

/* Texts of a row's numbers. */
typedef struct row_digits {
    char user[ZN_DIGITS_MAX], attribute[ZN_DIGITS_MAX];
} row_digits;

struct zn_frame_filter {
    zn_row_gate *gate;
    bool strict, with_user;
    zn_row rows[ZN_ROW_BATCH];
    row_digits digits[ZN_ROW_BATCH];
    zn_row_cell time[ZN_ROW_BATCH], user[ZN_ROW_BATCH], attribute[ZN_ROW_BATCH];
    size_t place[ZN_ROW_BATCH]; /* of each row in its frame */
    size_t count;
    zn_row_filter_stats stats;
};

int zn_frame_filter_open(zn_frame_filter **out, const zn_row_filter_config *config, zn_error *err)
{
    zn_frame_filter *f = zn_block_alloc(sizeof *f);
    int rc;
    *out = NULL;
    if (f == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    f->strict = config->strict;
    f->with_user = config->gate.with_user;
    rc = zn_row_gate_open(&f->gate, &config->gate, err);
    if (rc != 0)
        zn_frame_filter_close(f);
    else
        *out = f;
    return rc;
}

void zn_frame_filter_close(zn_frame_filter *f)
{
    if (f == NULL)
        return;
    zn_row_gate_close(f->gate);
    zn_block_clear(f, sizeof *f);
    zn_block_free(f, sizeof *f);
}

/* Checks a text as CSV's reader checks a row. */
static zn_row_fault fault_of(zn_span text)
{
    if (text.n > ZN_ROW_BYTES_MAX)
        return ZN_FAULT_LONG;
    switch (zn_utf8_check(text)) {
    case ZN_UTF8_INVALID:
        return ZN_FAULT_UTF8;
    case ZN_UTF8_CONTROL:
        return ZN_FAULT_CONTROL;
    case ZN_UTF8_FINE:
        break;
    }
    return ZN_FAULT_GOOD;
}

/* Fills a value from a cell; an empty text is no value. */
static zn_row_fault take_cell(const zn_row_cell *cell, char digits[ZN_DIGITS_MAX], zn_value *out)
{
    out->text = zn_row_cell_text(cell, digits);
    out->kind = out->text.n == 0 ? ZN_VALUE_NONE : ZN_VALUE_TEXT;
    return cell->kind == ZN_ROW_TEXT ? fault_of(out->text) : ZN_FAULT_GOOD;
}

/* Fills the next row from cell i of each column. */
static zn_row_fault take_row(zn_frame_filter *f, size_t i, int64_t unit_ns)
{
    zn_row *row = &f->rows[f->count];
    row_digits *digits = &f->digits[f->count];
    zn_value *user = &row->value[ZN_ROW_USER], *attribute = &row->value[ZN_ROW_ATTRIBUTE];
    zn_row_fault fault = take_cell(&f->user[i], digits->user, user);
    if (fault == ZN_FAULT_GOOD)
        fault = take_cell(&f->attribute[i], digits->attribute, attribute);
    if (fault != ZN_FAULT_GOOD)
        return fault;
    if (f->time[i].kind == ZN_ROW_MISSING ||
        (user->kind == ZN_VALUE_NONE && attribute->kind != ZN_VALUE_NONE))
        return ZN_FAULT_MISSING;
    return zn_row_cell_time(&f->time[i], unit_ns, &row->t_ns) ? ZN_FAULT_GOOD : ZN_FAULT_TIME;
}

/* Decides the rows of the batch, and marks each row that may be written. */
static int flush(zn_frame_filter *f, zn_row_marks *out, zn_error *err)
{
    const zn_gated_row *gated;
    size_t count;
    int rc = zn_row_gate_decide(f->gate, f->rows, f->count, err);
    if (rc != 0)
        return rc;
    gated = zn_row_gate_decided(f->gate, &count);
    for (size_t i = 0; i < count; i++) {
        const zn_gated_row *row = &gated[i];
        size_t place = f->place[row->place];
        out->marks[place] = row->attribute.kind == ZN_VALUE_NONE ? ZN_MARK_BLANK : ZN_MARK_RELEASE;
        if (f->with_user)
            memcpy(out->pseudonyms + ZN_PSEUDONYM_CHARS * (out->written + i), row->pseudonym,
                   ZN_PSEUDONYM_CHARS);
    }
    out->written += count;
    f->stats.written += count;
    return 0;
}

/* Counts a row that cannot be read; in strict mode that is an error. */
static int count_fault(zn_frame_filter *f, zn_row_fault fault, zn_error *err)
{
    uint64_t line = f->stats.read.rows - 1;
    const char *text = zn_row_fault_text(fault);
    zn_row_stats_fault(&f->stats.read, fault, text, line);
    if (!f->strict)
        return 0;
    return zn_fail(err, ZN_ERR_FORMAT, 0, "row %llu, counted from 0: %s", (unsigned long long)line,
                   text);
}

/* Decides the next n <= ZN_ROW_BATCH rows, of which the first is row `start` of its frame. */
static int decide_batch(zn_frame_filter *f, zn_row_frame *rest, size_t start, size_t n,
                        zn_row_marks *out, zn_error *err)
{
    int rc = 0;
    zn_cells_read(&rest->time, f->time, n);
    zn_cells_read(&rest->user, f->user, n);
    zn_cells_read(&rest->attribute, f->attribute, n);
    f->count = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        zn_row_fault fault = take_row(f, i, rest->unit_ns);
        f->stats.read.rows++;
        if (fault != ZN_FAULT_GOOD) {
            rc = count_fault(f, fault, err);
            continue;
        }
        zn_row_stats_observation(&f->stats.read, f->rows[f->count].t_ns);
        f->place[f->count++] = start + i;
    }
    return rc == 0 && f->count != 0 ? flush(f, out, err) : rc;
}

int zn_frame_filter_decide(zn_frame_filter *f, const zn_row_frame *frame, zn_row_marks *out,
                           zn_error *err)
{
    zn_row_frame rest = *frame;
    int rc = 0;
    out->written = 0;
    memset(out->marks, ZN_MARK_DROP, frame->n);
    for (size_t start = 0; start < frame->n && rc == 0; start += ZN_ROW_BATCH) {
        size_t left = frame->n - start;
        rc = decide_batch(f, &rest, start, left < ZN_ROW_BATCH ? left : ZN_ROW_BATCH, out, err);
    }
    return rc;
}

zn_row_filter_stats zn_frame_filter_get_stats(const zn_frame_filter *f)
{
    zn_row_filter_stats stats = f->stats;
    zn_row_gate_skipped skipped = zn_row_gate_get_skipped(f->gate);
    stats.reasons[ZN_LOG_NO_ATTRIBUTE] = skipped.rows[ZN_ROW_EMPTY];
    stats.reasons[ZN_LOG_NEVER] = skipped.rows[ZN_ROW_NEVER];
    return stats;
}

zn_ztable_stats zn_frame_filter_table_stats(const zn_frame_filter *f)
{
    return zn_row_gate_stats(f->gate);
}

size_t zn_frame_filter_memory(const zn_frame_filter *f)
{
    return zn_row_gate_memory(f->gate) + sizeof *f;
}
