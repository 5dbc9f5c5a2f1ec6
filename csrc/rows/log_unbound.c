/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Query logs of Unbound: lines of log-queries, and of log-replies, which show that the server
 * answered.
 *
 *   [1716640000] unbound[123:0] query: 192.0.2.1 a.example. A IN
 *   [1716640000] unbound[123:0] reply: 192.0.2.1 a.example. A IN NOERROR 0.000000 1 60
 *
 * Without log-tag-queryreply both say `info`. log-time-ascii writes local times without a year
 * ("May 25 10:00:00"), log-time-iso ISO 8601. A year that is missing is 1972 at first, a leap year,
 * and four years more whenever the months begin again.
 */
#include "rows/log_fixed.h"

/* Columns, as the preset has them. */
enum {
    UNBOUND_TIME,
    UNBOUND_TAG,
    UNBOUND_REPLY, /* the line is about a reply */
    UNBOUND_CLIENT,
    UNBOUND_NAME,
    UNBOUND_TYPE,
    UNBOUND_CLASS,
    UNBOUND_RCODE,
    UNBOUND_DURATION,
    UNBOUND_CACHED,
    UNBOUND_SIZE
};

enum { FIRST_YEAR = 1972, LEAP = 4, HALF_YEAR = 6 };
enum { ASCII_BYTES = 15, ISO_BYTES = 19 }; /* of "May 25 10:00:00", "1972-05-25 10:00:00" */

/* Forms of a time, in the name of its cell. */
static const zn_span BRACKETS = ZN_LOG_LITERAL("s"), ASCII = ZN_LOG_LITERAL("ascii");

/* Returns the year of a month: a row that is more than half a year before the last row is of the
 * next year, and a row that is as much after the last row is of the year before. */
static unsigned year_of(zn_log_source *s, unsigned month)
{
    unsigned year = s->year == 0 ? FIRST_YEAR : s->year, last = s->month == 0 ? month : s->month;
    if (month + HALF_YEAR < last)
        year += LEAP;
    if (month > last + HALF_YEAR && year > FIRST_YEAR)
        return year - LEAP;
    s->year = year;
    s->month = month;
    return year;
}

/* Reads "May 25 10:00:00". The text is written as ISO 8601 into `iso`. */
static bool read_ascii(zn_log_source *s, zn_cursor *c, uint8_t iso[ISO_BYTES])
{
    zn_cursor rest = *c;
    unsigned month = zn_log_fixed_take_month(&rest), day, year;
    zn_span clock;
    if (month == 0 || !zn_log_fixed_take(&rest, ZN_LOG_LITERAL(" ")))
        return false;
    day = zn_log_fixed_take_two(&rest);
    clock = zn_cursor_take(&rest, ASCII_BYTES - 6);
    if (!zn_cursor_ok(&rest))
        return false;
    *c = rest;
    year = year_of(s, month);
    for (unsigned i = 4; i-- > 0; year /= 10)
        iso[i] = (uint8_t)('0' + year % 10);
    iso[4] = iso[7] = '-';
    iso[5] = (uint8_t)('0' + month / 10);
    iso[6] = (uint8_t)('0' + month % 10);
    iso[8] = (uint8_t)('0' + day / 10);
    iso[9] = (uint8_t)('0' + day % 10);
    memcpy(iso + 10, clock.p, clock.n);
    return true;
}

/* Reads the time and the space after it. *ascii: `iso` has the time. */
static bool read_time(zn_log_source *s, zn_cursor *c, zn_log_line *out, uint8_t iso[ISO_BYTES],
                      bool *ascii)
{
    zn_span text;
    *ascii = read_ascii(s, c, iso);
    if (*ascii)
        return zn_log_fixed_take(c, ZN_LOG_LITERAL(" "));
    if (zn_log_fixed_take(c, ZN_LOG_LITERAL("["))) {
        if (!zn_log_fixed_until(c, ']', &text) || !zn_log_fixed_is_word(text, ZN_LOG_LITERAL(".")))
            return false;
        zn_log_fixed_set(out, UNBOUND_TIME, text);
        out->cells[UNBOUND_TIME].name = BRACKETS;
        return zn_log_fixed_take(c, ZN_LOG_LITERAL(" "));
    }
    if (!zn_log_fixed_until(c, ' ', &text) || !zn_log_fixed_is_word(text, ZN_LOG_LITERAL("-:.+")))
        return false;
    zn_log_fixed_set(out, UNBOUND_TIME, text);
    return true;
}

/* Reads "unbound[123:0] info: ". */
static bool read_origin(zn_cursor *c, zn_log_line *out)
{
    zn_span name, process, tag;
    if (!zn_log_fixed_until(c, '[', &name) || !zn_log_fixed_until(c, ']', &process) ||
        !zn_log_fixed_is_word(process, ZN_LOG_LITERAL(":")) ||
        !zn_log_fixed_take(c, ZN_LOG_LITERAL(" ")) || !zn_log_fixed_until(c, ':', &tag) ||
        !zn_log_fixed_take(c, ZN_LOG_LITERAL(" ")))
        return false;
    zn_log_fixed_set(out, UNBOUND_TAG, tag);
    return zn_span_equal(tag, ZN_LOG_LITERAL("info")) ||
           zn_span_equal(tag, ZN_LOG_LITERAL("query")) ||
           zn_span_equal(tag, ZN_LOG_LITERAL("reply"));
}

/* Reads the words of a query or a reply up to the end of the line. */
static bool read_words(zn_cursor *c, zn_log_line *out)
{
    zn_span word;
    bool more = true;
    size_t column = UNBOUND_CLIENT;
    for (; more && column <= UNBOUND_SIZE; column++) {
        word = zn_log_take_field(c, ' ', &more);
        if (column == UNBOUND_CLIENT ? !zn_log_fixed_is_address(word)
            : column == UNBOUND_NAME ? word.n < 1
                                     : !zn_log_fixed_is_word(word, ZN_LOG_LITERAL("-.")))
            return false;
        zn_log_fixed_set(out, column, word);
    }
    if (column > UNBOUND_RCODE)
        zn_log_fixed_set(out, UNBOUND_REPLY, ZN_LOG_LITERAL("1"));
    return !more && (column == UNBOUND_RCODE || column == UNBOUND_SIZE + 1);
}

static int read_line(zn_log_source *s, uint8_t *line, size_t n, zn_log_line *out, zn_error *err)
{
    zn_cursor c = zn_cursor_over(line, n, true);
    uint8_t iso[ISO_BYTES];
    bool ascii;
    (void)err;
    out->is_row = n != 0;
    zn_log_fixed_begin(s, out);
    if (!read_time(s, &c, out, iso, &ascii) || !read_origin(&c, out) || !read_words(&c, out))
        out->fault = ZN_FAULT_OTHER;
    else if (ascii) {
        memcpy(line, iso, ISO_BYTES); /* the tag and the words come later in the line */
        zn_log_fixed_set(out, UNBOUND_TIME, (zn_span){line, ISO_BYTES});
        out->cells[UNBOUND_TIME].name = ASCII;
    }
    return 0;
}

static void put_time(zn_text *out, const zn_log_cell *cell)
{
    zn_span t = cell->text;
    if (zn_span_equal(cell->name, ASCII) && t.n == ISO_BYTES) {
        zn_text_span(out, zn_log_fixed_month(zn_log_fixed_two_at(t, 5)));
        zn_text_char(out, ' ');
        zn_text_bytes(out, (const char *)t.p + 8, ISO_BYTES - 8);
    } else if (zn_span_equal(cell->name, BRACKETS)) {
        zn_text_char(out, '[');
        zn_text_span(out, t);
        zn_text_char(out, ']');
    } else
        zn_text_span(out, t);
}

static void write_row(const zn_log_source *s, zn_text *out, const zn_gated_log *row)
{
    size_t last = zn_log_fixed_has(row, UNBOUND_REPLY) ? UNBOUND_SIZE : UNBOUND_CLASS;
    (void)s;
    put_time(out, &row->cells[UNBOUND_TIME]);
    zn_text_literal(out, " unbound[0:0] ");
    zn_log_fixed_put(out, row, UNBOUND_TAG);
    zn_text_char(out, ':');
    for (size_t i = UNBOUND_CLIENT; i <= last; i++) {
        zn_text_char(out, ' ');
        zn_log_fixed_put(out, row, i);
        if (i == UNBOUND_NAME && zn_log_fixed_has(row, i))
            zn_text_char(out, '.');
    }
    zn_text_char(out, '\n');
}

const zn_log_form zn_log_form_unbound = {
    .format = ZN_ROWS_CSV, .separator = ' ', .read = read_line, .put = write_row};
