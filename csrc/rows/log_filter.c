/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows/reader finds the lines, and the form of the log reads them into cells. When a batch of rows
 * is full, a header comes, or no whole line is left, release/log_gate decides the batch and the
 * form writes the rows, before the next portion moves the bytes that rows borrow.
 */
#include "rows/log_filter.h"

#include "crypto/keys.h"
#include "rows/coarse_queue.h"
#include "util/arena.h"

#define POOL (16 * ZN_LOG_CELLS_MAX) /* cells of a batch */

struct zn_log_filter {
    zn_row_reader reader;
    zn_log_source source;
    const zn_log_form *form;
    zn_log_gate *gate;
    zn_log_cell *pool;
    size_t used; /* cells of the pool */
    zn_coarse_queue coarse;
    zn_text out;
    zn_text lines; /* of a binary log */
    uint64_t written;
};

static const zn_log_form *form_of(const zn_log_preset *preset)
{
    static const zn_log_form *const forms[] = {
        [ZN_LOG_ZEEK] = &zn_log_form_zeek,       [ZN_LOG_LINES] = &zn_log_form_members,
        [ZN_LOG_CSV] = &zn_log_form_csv,         [ZN_LOG_TSTAT] = &zn_log_form_tstat,
        [ZN_LOG_DNSTAP] = &zn_log_form_dnstap,   [ZN_LOG_BIND] = &zn_log_form_bind,
        [ZN_LOG_UNBOUND] = &zn_log_form_unbound,
    };
    return forms[preset->kind];
}

/* ---- output ---- */

/* Writes the header of the current file, unless the output has it. Another header ends the log
 * before it. */
static void write_header(zn_log_filter *s)
{
    zn_log_source *source = &s->source;
    if (source->head.n == 0 ||
        (source->written.n == source->head.n &&
         memcmp(source->written.bytes, source->head.bytes, source->head.n) == 0))
        return;
    zn_coarse_queue_flush(&s->coarse, &s->out); /* of the columns before */
    if (source->written.n != 0)
        zn_text_bytes(&s->out, source->ended.bytes, source->ended.n);
    source->ended.n = source->written.n = 0;
    zn_text_bytes(&s->out, source->head.bytes, source->fields_at);
    zn_text_bytes(&s->out, source->opened.bytes, source->opened.n);
    zn_text_bytes(&s->out, source->head.bytes + source->fields_at,
                  source->head.n - source->fields_at);
    zn_text_bytes(&source->written, source->head.bytes, source->head.n);
}

/* Writes a row, or the line of a coarse row into the queue. */
static bool write_row(zn_log_filter *s, const zn_gated_log *row)
{
    zn_coarse_queue_pass(&s->coarse, row->minute, &s->out);
    s->form->put(&s->source, row->coarse ? &s->coarse.text : &s->out, row);
    return !row->coarse || zn_coarse_queue_add(&s->coarse);
}

/* Decides and writes the rows that were read. */
static int flush(zn_log_filter *s, zn_error *err)
{
    const zn_gated_log *gated;
    size_t count;
    int rc = zn_log_gate_decide(s->gate, err);
    s->used = 0;
    if (rc != 0)
        return rc;
    gated = zn_log_gate_decided(s->gate, &count);
    if (count != 0)
        write_header(s);
    for (size_t i = 0; i < count; i++)
        if (!write_row(s, &gated[i]))
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for coarse rows");
    s->written += count;
    if (s->out.failed || s->source.head.failed || s->source.written.failed ||
        s->source.closed.failed || s->source.ended.failed)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the output");
    return 0;
}

/* ---- lines ---- */

static int begin_source(void *owner, zn_error *err)
{
    zn_log_filter *s = owner;
    (void)err;
    zn_log_source_begin(&s->source);
    return 0;
}

/* Takes a line that the reader found. A line of a header ends the batch, because it may change the
 * columns. */
static int take_line(void *owner, const zn_row_line *line, zn_row_taken *taken, zn_error *err)
{
    zn_log_filter *s = owner;
    zn_log_row row;
    zn_log_line read = {.number = line->number};
    bool header = line->n != 0 && line->bytes[0] == '#';
    int rc = 0;
    if (header || POOL - s->used < ZN_LOG_CELLS_MAX || zn_log_gate_is_full(s->gate))
        rc = flush(s, err);
    read.cells = s->pool + s->used;
    if (rc == 0)
        rc = s->form->read(&s->source, line->bytes, line->n, &read, err);
    if (rc != 0 || !read.is_row)
        return rc;
    taken->is_row = true;
    taken->fault = read.fault;
    row = (zn_log_row){read.cells, read.count};
    if (taken->fault == ZN_FAULT_GOOD)
        taken->fault = zn_log_gate_take(s->gate, &row, &taken->t_ns);
    if (taken->fault == ZN_FAULT_GOOD)
        s->used += read.count;
    return 0;
}

static zn_row_fault check_lines(void *owner, uint8_t *row, size_t n)
{
    zn_log_filter *s = owner;
    return s->source.laid_out ? zn_csv_check(&s->source.csv, row, n) : ZN_FAULT_GOOD;
}

/* ---- opening ---- */

int zn_log_filter_open(zn_log_filter **out, const zn_log_preset *preset,
                       const zn_log_gate_config *gate, bool strict, zn_error *err)
{
    zn_log_filter *s = zn_block_alloc(sizeof *s);
    const zn_log_form *form = form_of(preset);
    zn_row_reader_config reader = {.format = form->format,
                                   .delimiter = form->separator,
                                   .quotes = form->quotes,
                                   .strict = strict,
                                   .lines = {begin_source, take_line, check_lines, s}};
    zn_log_gate_config own = *gate;
    int rc;
    *out = NULL;
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a log");
    s->form = form;
    s->source.preset = preset;
    s->source.csv = (zn_csv_layout){.delimiter = form->separator, .quotes = form->quotes};
    own.unit = gate->unit == ZN_TIME_ISO ? preset->unit : gate->unit;
    own.server_decides = preset->server_decides;
    own.has_evidence = zn_log_preset_has_evidence(preset);
    s->pool = zn_heap_alloc(POOL * sizeof *s->pool);
    rc = s->pool == NULL ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a log") : 0;
    if (rc == 0)
        rc = zn_row_reader_init(&s->reader, &reader, err);
    if (rc == 0)
        rc = zn_log_gate_open(&s->gate, &own, err);
    if (rc != 0)
        zn_log_filter_close(s);
    else
        *out = s;
    return rc;
}

void zn_log_filter_close(zn_log_filter *s)
{
    if (s == NULL)
        return;
    zn_log_gate_close(s->gate);
    zn_row_reader_fini(&s->reader);
    zn_log_source_fini(&s->source);
    zn_coarse_queue_fini(&s->coarse);
    if (s->pool != NULL)
        zn_wipe(s->pool, POOL * sizeof *s->pool);
    zn_heap_free(s->pool);
    zn_text_fini(&s->out);
    zn_text_fini(&s->lines);
    zn_block_free(s, sizeof *s);
}

/* ---- input ---- */

static int consume(zn_log_filter *s, bool final, zn_error *err)
{
    zn_row_found what = ZN_FOUND_ROW;
    int rc = 0;
    while (rc == 0 && what != ZN_FOUND_NONE)
        rc = zn_row_reader_next(&s->reader, final, NULL, &what, err);
    if (rc != 0) {
        (void)flush(s, NULL); /* rows before the error count */
        return rc;
    }
    return flush(s, err);
}

static int take_bytes(zn_log_filter *s, zn_span bytes, zn_error *err)
{
    int rc = bytes.n == 0 ? 0 : zn_row_reader_append(&s->reader, bytes.p, bytes.n, err);
    return rc != 0 || bytes.n == 0 ? rc : consume(s, false, err);
}

/* Takes the lines of the next bytes of a binary log. The lines before damage count. */
static int decode(zn_log_filter *s, zn_span bytes, bool final, zn_error *err)
{
    int rc, lines_rc;
    s->lines.n = 0;
    rc = s->form->decode(&s->source, bytes, final, &s->lines, err);
    lines_rc =
        take_bytes(s, (zn_span){(const uint8_t *)s->lines.bytes, s->lines.n}, rc == 0 ? err : NULL);
    return rc != 0 ? rc : lines_rc;
}

int zn_log_filter_feed(zn_log_filter *s, const uint8_t *bytes, size_t n, zn_error *err)
{
    if (s->form->decode != NULL)
        return decode(s, (zn_span){bytes, n}, false, err);
    return take_bytes(s, (zn_span){bytes, n}, err);
}

int zn_log_filter_end(zn_log_filter *s, zn_error *err)
{
    int rc = s->form->decode == NULL ? 0 : decode(s, (zn_span){NULL, 0}, true, err);
    if (rc == 0)
        rc = consume(s, true, err);
    zn_row_reader_end(&s->reader);
    if (rc == 0)
        write_header(s);
    return rc;
}

int zn_log_filter_finish(zn_log_filter *s, zn_error *err)
{
    zn_coarse_queue_flush(&s->coarse, &s->out);
    if (s->source.written.n != 0)
        zn_text_bytes(&s->out, s->source.closed.bytes, s->source.closed.n);
    s->source.closed.n = 0;
    return s->out.failed ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the output") : 0;
}

/* ---- results ---- */

zn_text *zn_log_filter_output(zn_log_filter *s)
{
    return &s->out;
}

const zn_row_reader_stats *zn_log_filter_read_stats(const zn_log_filter *s)
{
    return &s->reader.stats;
}

uint64_t zn_log_filter_written(const zn_log_filter *s)
{
    return s->written;
}

uint64_t zn_log_filter_hold_full(const zn_log_filter *s)
{
    return s->coarse.hold_full;
}

const zn_log_gate *zn_log_filter_gate(const zn_log_filter *s)
{
    return s->gate;
}

size_t zn_log_filter_memory(const zn_log_filter *s)
{
    return zn_log_gate_memory(s->gate) + sizeof *s + POOL * sizeof *s->pool + s->reader.cap +
           s->out.cap + s->coarse.text.cap;
}
