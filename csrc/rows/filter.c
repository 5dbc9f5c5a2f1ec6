/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * rows/reader finds the rows. When a batch of rows is full, or no whole row is left,
 * release/row_gate decides the batch and rows/log writes the released rows, before the next portion
 * moves the bytes that rows borrow.
 */
#include "rows/filter.h"

#include "rows/log.h"
#include "util/arena.h"

#define PASS_MAX 16  /* columns passed on */
#define NULLS_MAX 16 /* texts that mean no value */

struct zn_row_filter {
    zn_row_format to;
    zn_row_reader reader;
    zn_row_gate *gate;
    zn_log_filter *log; /* NULL: the rows have columns that the config names */
    uint8_t *nulls;     /* the config's texts that mean no value */
    zn_span null[NULLS_MAX];
    zn_row_style style;
    bool headed; /* the output has its header */
    bool ladder; /* rows are generalized */
    zn_row rows[ZN_ROW_BATCH];
    size_t row_count;
    zn_text out;
    uint64_t written;
};

/* ---- opening ---- */

static int copy_nulls(zn_row_filter *s, const zn_row_filter_config *config, zn_error *err)
{
    size_t bytes = 1;
    uint8_t *at;
    if (config->null_count > NULLS_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "at most %d texts can mean no value", NULLS_MAX);
    for (size_t i = 0; i < config->null_count; i++)
        bytes += config->nulls[i].n;
    s->nulls = at = zn_heap_alloc(bytes);
    if (at == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the settings");
    for (size_t i = 0; i < config->null_count; i++) {
        zn_span text = config->nulls[i];
        if (text.n != 0)
            memcpy(at, text.p, text.n);
        s->null[i] = (zn_span){at, text.n};
        at += text.n;
    }
    return 0;
}

static int open_reader(zn_row_filter *s, const zn_row_filter_config *config, size_t own,
                       zn_error *err)
{
    static const char *const options[] = {"--time", "--user"};
    zn_row_reader_config reader = {
        .format = config->format,
        .unit = config->unit,
        .delimiter = config->delimiter,
        .quotes = config->quotes,
        .columns = config->columns,
        .required = ZN_ROW_ATTRIBUTE, /* a row without an attribute is no fault */
        .may_lack = config->gate.ladder.column_count == 0,
        .with_user = true,
        .nulls = s->null,
        .null_count = config->null_count,
        .header = config->header,
        .strict = config->strict,
    };
    size_t most = own + PASS_MAX < ZN_ROW_COLUMNS_MAX ? own + PASS_MAX : ZN_ROW_COLUMNS_MAX;
    if (config->columns.count < own || config->columns.count > most)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%zu to %zu columns can be read, not %zu", own, most,
                       config->columns.count);
    reader.columns.scalars = own;
    for (size_t i = 0; i < ZN_ROW_COLUMNS_MAX; i++)
        reader.option[i] = i < ZN_ROW_ATTRIBUTE ? options[i] : i < own ? "--attribute" : "--pass";
    return zn_row_reader_init(&s->reader, &reader, err);
}

/* Opens the filter of a log in place of reader and gate. */
static int open_log(zn_row_filter *s, const zn_row_filter_config *config, zn_error *err)
{
    size_t count;
    const zn_log_preset *presets = zn_log_presets(&count);
    zn_log_gate_config gate = {
        .z = config->gate.z,
        .window_ns = config->gate.window_ns,
        .rotate_ns = config->gate.rotate_ns,
        .key_file = config->gate.key_file,
        .max_tuples = config->gate.max_tuples,
        .max_attributes = config->gate.max_attributes,
        .with_user = config->gate.with_user,
        .keep_suppressed = config->gate.keep_suppressed,
        .never = config->gate.never,
        .never_count = config->gate.never_count,
        .established = config->established,
        .unit = config->unit,
        .internal = config->internal,
        .internal_count = config->internal_count,
        .user_v4_bits = config->user_v4_bits,
        .user_v6_bits = config->user_v6_bits,
    };
    if (config->preset > count)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "there is no preset %zu", config->preset);
    return zn_log_filter_open(&s->log, &presets[config->preset - 1], &gate, config->strict, err);
}

/* Opens reader and gate. */
static int open_rows(zn_row_filter *s, const zn_row_filter_config *config, zn_error *err)
{
    zn_row_gate_config gate = config->gate;
    size_t attributes = gate.ladder.column_count != 0 ? gate.ladder.column_count : 1;
    int rc = copy_nulls(s, config, err);
    if (rc == 0)
        rc = open_reader(s, config, ZN_ROW_ATTRIBUTE + attributes, err);
    gate.pass_count = config->columns.count - ZN_ROW_ATTRIBUTE - attributes;
    return rc == 0 ? zn_row_gate_open(&s->gate, &gate, err) : rc;
}

int zn_row_filter_open(zn_row_filter **out, const zn_row_filter_config *config, zn_error *err)
{
    zn_row_filter *s = zn_block_alloc(sizeof *s);
    int rc;
    *out = NULL;
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    s->to = config->to;
    s->ladder = config->gate.ladder.column_count != 0;
    s->style.delimiter = config->delimiter;
    s->style.quotes = config->quotes;
    s->style.unit = config->unit;
    s->style.with_user = config->gate.with_user;
    s->style.columns = &s->reader.config.columns;
    rc = config->preset != 0 ? open_log(s, config, err) : open_rows(s, config, err);
    if (rc != 0)
        zn_row_filter_close(s);
    else
        *out = s;
    return rc;
}

void zn_row_filter_close(zn_row_filter *s)
{
    if (s == NULL)
        return;
    zn_log_filter_close(s->log);
    zn_heap_free(s->nulls);
    zn_row_gate_close(s->gate);
    zn_row_reader_fini(&s->reader);
    zn_text_fini(&s->out);
    zn_block_free(s, sizeof *s);
}

/* ---- rows ---- */

/* The output has the format of the first source's unless another was asked for. */
static void fix_format(zn_row_filter *s)
{
    if (s->style.format == ZN_ROWS_AUTO)
        s->style.format = s->to == ZN_ROWS_AUTO ? zn_row_reader_format(&s->reader) : s->to;
}

/* Decides and writes the rows that were read. */
static int flush(zn_row_filter *s, zn_error *err)
{
    const zn_gated_row *gated;
    size_t count;
    int rc = s->row_count == 0 ? 0 : zn_row_gate_decide(s->gate, s->rows, s->row_count, err);
    if (rc != 0 || s->row_count == 0)
        return rc;
    s->row_count = 0;
    fix_format(s);
    gated = zn_row_gate_decided(s->gate, &count);
    for (size_t i = 0; i < count; i++)
        zn_row_log_write(&s->out, &s->style, &gated[i]);
    s->written += count;
    return s->out.failed ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the output") : 0;
}

static void write_header(zn_row_filter *s)
{
    fix_format(s);
    if (!s->headed && s->style.format == ZN_ROWS_CSV)
        zn_row_log_header(&s->out, &s->style);
    s->headed = true;
}

/* Takes the row that was read. */
static int take(zn_row_filter *s, zn_error *err)
{
    size_t which = 0;
    if (s->ladder && !zn_row_gate_find(s->gate, s->row_count, &s->rows[s->row_count], &which)) {
        zn_span name = s->reader.config.columns.name[which];
        return zn_fail(err, ZN_ERR_FORMAT, 0,
                       "line %llu: the hierarchy of column '%.*s' has not its value; --unknown "
                       "says what becomes of such rows",
                       (unsigned long long)s->reader.row_line, (int)(name.n > 60 ? 60 : name.n),
                       (const char *)name.p);
    }
    return ++s->row_count == ZN_ROW_BATCH ? flush(s, err) : 0;
}

/* Takes all rows that are there; `final`: also the bytes after the last line feed. */
static int consume(zn_row_filter *s, bool final, zn_error *err)
{
    zn_row_found what = ZN_FOUND_HEADER;
    int rc = 0;
    while (rc == 0 && what != ZN_FOUND_NONE) {
        rc = zn_row_reader_next(&s->reader, final, &s->rows[s->row_count], &what, err);
        if (rc == 0 && what == ZN_FOUND_HEADER)
            write_header(s);
        if (rc == 0 && what == ZN_FOUND_ROW)
            rc = take(s, err);
    }
    if (rc != 0) {
        (void)flush(s, NULL); /* rows before the error count */
        return rc;
    }
    return flush(s, err);
}

int zn_row_filter_feed(zn_row_filter *s, const uint8_t *bytes, size_t n, zn_error *err)
{
    int rc;
    if (s->log != NULL)
        return zn_log_filter_feed(s->log, bytes, n, err);
    rc = n == 0 ? 0 : zn_row_reader_append(&s->reader, bytes, n, err);
    return rc != 0 || n == 0 ? rc : consume(s, false, err);
}

int zn_row_filter_end(zn_row_filter *s, zn_error *err)
{
    int rc;
    if (s->log != NULL)
        return zn_log_filter_end(s->log, err);
    rc = consume(s, true, err);
    zn_row_reader_end(&s->reader);
    return rc;
}

int zn_row_filter_finish(zn_row_filter *s, zn_error *err)
{
    return s->log != NULL ? zn_log_filter_finish(s->log, err) : zn_row_gate_finish(s->gate, err);
}

/* ---- results ---- */

zn_text *zn_row_filter_output(zn_row_filter *s)
{
    return s->log != NULL ? zn_log_filter_output(s->log) : &s->out;
}

zn_popularity *zn_row_filter_popularity(zn_row_filter *s)
{
    return s->log != NULL ? NULL : zn_row_gate_popularity(s->gate);
}

zn_row_filter_stats zn_row_filter_get_stats(const zn_row_filter *s)
{
    zn_row_filter_stats stats = {.read = s->reader.stats, .written = s->written};
    if (s->log != NULL) {
        zn_log_gate_stats gate = zn_log_gate_get_stats(zn_log_filter_gate(s->log));
        stats.read = *zn_log_filter_read_stats(s->log);
        stats.written = zn_log_filter_written(s->log);
        stats.hold_full = zn_log_filter_hold_full(s->log);
        memcpy(stats.reasons, gate.rows, sizeof stats.reasons);
    } else {
        static const uint8_t reasons[ZN_ROW_REFUSALS] = {[ZN_ROW_EMPTY] = ZN_LOG_NO_ATTRIBUTE,
                                                         [ZN_ROW_INVALID] = ZN_LOG_INVALID,
                                                         [ZN_ROW_HOME] = ZN_LOG_HOME,
                                                         [ZN_ROW_NEVER] = ZN_LOG_NEVER,
                                                         [ZN_ROW_NOT_LISTED] = ZN_LOG_NOT_LISTED,
                                                         [ZN_ROW_SKIPPED] = ZN_LOG_SKIPPED};
        zn_row_gate_skipped skipped = zn_row_gate_get_skipped(s->gate);
        for (size_t i = ZN_ROW_EMPTY; i < ZN_ROW_REFUSALS; i++)
            stats.reasons[reasons[i]] = skipped.rows[i];
    }
    return stats;
}

zn_ztable_stats zn_row_filter_table_stats(const zn_row_filter *s)
{
    return s->log != NULL ? zn_log_gate_table_stats(zn_log_filter_gate(s->log))
                          : zn_row_gate_stats(s->gate);
}

const zn_row_ladder_stats *zn_row_filter_ladder_stats(const zn_row_filter *s)
{
    return s->log != NULL ? NULL : zn_row_gate_ladder_stats(s->gate);
}

const zn_row_labels *zn_row_filter_labels(const zn_row_filter *s)
{
    return s->log != NULL ? NULL : zn_row_gate_labels(s->gate);
}

const zn_levels *zn_row_filter_levels(const zn_row_filter *s)
{
    return s->log != NULL ? NULL : zn_row_gate_levels(s->gate);
}

zn_row_format zn_row_filter_format(const zn_row_filter *s)
{
    return zn_row_reader_format(&s->reader);
}

size_t zn_row_filter_memory(const zn_row_filter *s)
{
    if (s->log != NULL)
        return zn_log_filter_memory(s->log) + sizeof *s;
    return zn_row_gate_memory(s->gate) + sizeof *s + s->reader.cap + s->out.cap;
}
