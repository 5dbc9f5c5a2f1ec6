/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* One row: is it an observation, and what becomes of it. */
#include "rows/json_row.h"
#include "rows/row_filter_internal.h"

#include <stdio.h>

static const char *const options[] = {"--time", "--user", "--attribute", "--pass"};

const char *zn_row_fault_name(zn_row_fault fault)
{
    static const char *const names[] = {
#define ZN_ROW_FAULT_NAME(name, text) #name,
        ZN_ROW_FAULTS(ZN_ROW_FAULT_NAME)
#undef ZN_ROW_FAULT_NAME
    };
    return names[fault];
}

const char *zn_row_fault_text(zn_row_fault fault)
{
    static const char *const texts[] = {
#define ZN_ROW_FAULT_TEXT(name, text) text,
        ZN_ROW_FAULTS(ZN_ROW_FAULT_TEXT)
#undef ZN_ROW_FAULT_TEXT
    };
    return texts[fault];
}

/* Decides and writes the rows that were read. */
int zn_row_filter_flush(zn_row_filter *s, zn_error *err)
{
    const zn_gated_row *gated;
    size_t count;
    int rc = s->row_count == 0 ? 0 : zn_row_gate_decide(s->gate, s->rows, s->row_count, err);
    if (rc != 0 || s->row_count == 0)
        return rc;
    s->row_count = 0;
    gated = zn_row_gate_decided(s->gate, &count);
    for (size_t i = 0; i < count; i++)
        zn_row_log_write(&s->out, &s->style, &gated[i]);
    s->stats.written += count;
    return s->out.failed ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the output") : 0;
}

/* Counts the row being read as one that cannot be; an error where that is to end the reading. */
int zn_row_filter_fault(zn_row_filter *s, zn_row_fault fault, zn_error *err)
{
    s->stats.faults[fault]++;
    if (s->stats.first_fault == ZN_FAULT_GOOD) {
        s->stats.first_fault = fault;
        s->stats.first_fault_line = s->line;
    }
    if (!s->strict)
        return 0;
    return zn_fail(err, ZN_ERR_FORMAT, 0, "line %llu: %s", (unsigned long long)s->line,
                   zn_row_fault_text(fault));
}

/* A JSON number that has one spelling only: two spellings must not make two users. */
static bool is_whole_number(zn_span number)
{
    zn_cursor c = zn_cursor_over_span(number, true);
    bool negative = number.n > 1 && *number.p == '-';
    if (negative)
        zn_cursor_skip(&c, 1);
    if (negative && number.n == 2 && *c.p == '0')
        return false;
    while (zn_cursor_left(&c) != 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < '0' || byte > '9')
            return false;
    }
    return true;
}

/* Whether the row is an observation, whose time is set; a fault if it is none. */
static zn_row_fault normalise(zn_row_filter *s, zn_row *row)
{
    const zn_value *user = &row->value[ZN_ROW_USER];
    zn_timestamp timestamp;
    for (size_t i = 0; i < ZN_ROW_PASS; i++)
        if (row->value[i].kind == ZN_VALUE_NONE || row->value[i].text.n == 0)
            return ZN_FAULT_MISSING;
    if (user->kind == ZN_VALUE_JSON && !is_whole_number(user->text))
        return ZN_FAULT_USER;
    if (!zn_timestamp_parse(row->value[ZN_ROW_TIME].text, s->style.unit, &timestamp))
        return ZN_FAULT_TIME;
    s->stats.without_offset += !timestamp.has_offset;
    row->t_ns = timestamp.t_ns;
    return ZN_FAULT_GOOD;
}

/* Whether the first time of all is a plain number where ISO 8601 was to be: nobody said what it
 * counts, and a guess could be wrong by a factor of a thousand. */
static bool unit_missing(const zn_row_filter *s, const zn_row *row)
{
    return s->style.unit == ZN_TIME_ISO && s->stats.observations == 0 &&
           zn_timestamp_is_number(row->value[ZN_ROW_TIME].text);
}

static void count_observation(zn_row_filter_stats *stats, int64_t t_ns)
{
    if (stats->observations == 0 || t_ns < stats->first_ns)
        stats->first_ns = t_ns;
    if (stats->observations == 0 || t_ns > stats->last_ns)
        stats->last_ns = t_ns;
    stats->observations++;
}

void zn_row_filter_write_header(zn_row_filter *s)
{
    if (!s->headed && s->style.format == ZN_ROWS_CSV)
        zn_row_log_header(&s->out, &s->style);
    s->headed = true;
}

/* Lays out the columns by a header line, which it writes over. */
int zn_row_filter_take_header(zn_row_filter *s, uint8_t *line, size_t n, zn_error *err)
{
    size_t which = 0;
    zn_row_fault fault = zn_csv_header(&s->layout, line, n, &s->columns, &which);
    char header[sizeof "line 18446744073709551615: the header"] = "--header";
    zn_span name = s->columns.name[which];
    int disclosure = (int)(name.n > 60 ? 60 : name.n);
    s->laid_out = true;
    if (fault == ZN_FAULT_GOOD)
        return 0;
    if (s->header.n == 0)
        (void)snprintf(header, sizeof header, "line %llu: the header", (unsigned long long)s->line);
    if (fault == ZN_FAULT_MISSING && s->layout.columns == 1)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "%s is a single column; choose the --delimiter that parts it", header);
    if (fault == ZN_FAULT_MISSING)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%s has no column '%.*s'; name the right one with %s",
                       header, disclosure, (const char *)name.p, options[which < 3 ? which : 3]);
    if (fault == ZN_FAULT_TWICE)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%s has two columns '%.*s'", header, disclosure,
                       (const char *)name.p);
    return zn_fail(err, s->header.n == 0 ? ZN_ERR_FORMAT : ZN_ERR_CONFIG, 0,
                   "%s cannot be read: %s", header, zn_row_fault_text(fault));
}

/* An empty line; in JSON Lines also one of blanks, which in CSV are a field. */
static bool is_blank(const zn_row_filter *s, zn_span row)
{
    size_t i = 0;
    if (s->format == ZN_ROWS_JSONL)
        while (i < row.n && (row.p[i] == ' ' || row.p[i] == '\t'))
            i++;
    return i == row.n || (i + 1 == row.n && row.p[i] == '\r');
}

/* Takes one whole row of n bytes, without its line feed. */
int zn_row_filter_take_row(zn_row_filter *s, uint8_t *bytes, size_t n, zn_error *err)
{
    zn_row *row = &s->rows[s->row_count];
    zn_row_fault fault;
    if (is_blank(s, (zn_span){bytes, n}))
        return 0;
    if (!s->laid_out) {
        int rc = zn_row_filter_take_header(s, bytes, n, err);
        if (rc == 0)
            zn_row_filter_write_header(s);
        return rc;
    }
    s->stats.rows++;
    fault = s->format == ZN_ROWS_CSV ? zn_csv_row(&s->layout, bytes, n, row)
                                     : zn_json_row(bytes, n, &s->columns, row);
    if (fault == ZN_FAULT_GOOD)
        fault = normalise(s, row);
    if (fault == ZN_FAULT_TIME && unit_missing(s, row))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "line %llu: the time is a plain number; say what it counts with --time-unit",
                       (unsigned long long)s->line);
    if (fault != ZN_FAULT_GOOD)
        return zn_row_filter_fault(s, fault, err);
    count_observation(&s->stats, row->t_ns);
    s->row_count++;
    return s->row_count == ZN_ROW_BATCH ? zn_row_filter_flush(s, err) : 0;
}
