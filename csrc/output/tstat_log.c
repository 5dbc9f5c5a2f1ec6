/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/tstat_log.h"

#include "output/format_state.h"
#include "util/protocol.h"

#include <endian.h>

#define EVERY_SET (ZN_SET_E2E | ZN_SET_LAYER7 | ZN_SET_P2P | ZN_SET_OPTIONS)
#define ADVANCED_SET 16 /* Tstat counts it among all sets, although it has no columns */

static zn_tstat_put put_of_number(const zn_column *c)
{
    switch (c->size) {
    case 1:
        return ZN_TSTAT_PUT_1;
    case 2:
        return ZN_TSTAT_PUT_2;
    case 4:
        return ZN_TSTAT_PUT_4;
    default:
        return ZN_TSTAT_PUT_8;
    }
}

static zn_tstat_put put_of(const zn_column *c)
{
    switch (c->kind) {
    case ZN_COLUMN_NUMBER:
    case ZN_COLUMN_CODE:
        return put_of_number(c);
    case ZN_COLUMN_MS:
        return ZN_TSTAT_PUT_MS;
    case ZN_COLUMN_TIME:
        return ZN_TSTAT_PUT_TIME;
    case ZN_COLUMN_UNMEASURED:
        return ZN_TSTAT_PUT_ZERO;
    case ZN_COLUMN_DURATION_MS:
        return ZN_TSTAT_PUT_DURATION;
    case ZN_COLUMN_PSEUDONYM:
        return ZN_TSTAT_PUT_PSEUDONYM;
    default:
        return ZN_TSTAT_PUT_CELL;
    }
}

/* Sets the text that is printed if the column has no value. */
static void set_missing(zn_tstat_step *s)
{
    size_t n = strnlen(s->column->missing, ZN_TSTAT_MISSING_MAX);
    ZN_ASSERT(n < ZN_TSTAT_MISSING_MAX);
    memcpy(s->missing, s->column->missing, n);
    s->missing[n] = ' ';
    s->missing_bytes = (uint8_t)(n + 1);
}

static void set_steps(zn_tstat *t, zn_tstat_log log, const zn_log_columns *columns)
{
    t->columns[log] = columns->n;
    for (size_t i = columns->n; i-- > 0;) {
        zn_tstat_step *s = &t->step[log][i];
        *s = (zn_tstat_step){.put = put_of(columns->at[i]),
                             .offset = columns->at[i]->offset,
                             .run = 1,
                             .column = columns->at[i]};
        if (s->put == ZN_TSTAT_PUT_CELL && s->column->missing != NULL)
            set_missing(s);
        if ((s->put == ZN_TSTAT_PUT_8 || s->put == ZN_TSTAT_PUT_MS) && i + 1 < columns->n &&
            s[1].put == s->put)
            s->run = s[1].run + 1;
    }
}

/* The log a record belongs to. */
static zn_tstat_log log_of(const zn_record *r)
{
    if (r->proto == ZN_PROTO_UDP)
        return ZN_TSTAT_UDP_COMPLETE;
    return r->complete ? ZN_TSTAT_TCP_COMPLETE : ZN_TSTAT_TCP_NOCOMPLETE;
}

static void put_header(zn_text *out, const zn_tstat *t, zn_tstat_log log)
{
    zn_text_char(out, '#');
    if (log != ZN_TSTAT_UDP_COMPLETE) {
        zn_text_u64(out, t->number / 10);
        zn_text_u64(out, t->number % 10);
        zn_text_char(out, '#');
    }
    for (size_t i = 0; i < t->columns[log]; i++) {
        if (i != 0)
            zn_text_char(out, ' ');
        zn_column_put_word(out, t->step[log][i].column->name);
        zn_text_char(out, ':');
        zn_text_u64(out, i + 1);
    }
    zn_text_char(out, '\n');
}

/* Prints a value that is not a plain number, and a blank, at `at`. Returns the end of both, with
 * room for `capacity` more bytes, or NULL without memory. */
static char *put_cell(zn_text *out, const zn_tstat_step *s, const zn_record *r, char *at,
                      size_t capacity)
{
    zn_cell value;
    zn_column_cell(s->column, r, &value);
    if (value.kind == ZN_CELL_NONE) {
        memcpy(at, s->missing, sizeof s->missing); /* a constant length, which has space */
        return at + s->missing_bytes;
    }
    out->n = (size_t)(at - out->bytes);
    zn_cell_put(out, &value);
    zn_text_char(out, ' ');
    return zn_text_reserve(out, capacity);
}

/* Prints a number and a blank. */
static inline char *put_number(char *at, uint64_t number)
{
    if (ZN_LIKELY(number < 10)) {
        uint16_t two = htole16((uint16_t)(number + ('0' | ' ' << 8)));
        memcpy(at, &two, sizeof two);
        return at + sizeof two;
    }
    at = zn_digits_put(at, number);
    *at++ = ' ';
    return at;
}

/* Prints a run of numbers, as most columns are; most are small. */
static char *put_run(char *at, const zn_tstat_step *s, const zn_record *r)
{
    for (const zn_tstat_step *end = s + s->run; s < end; s++) {
        uint64_t number;
        memcpy(&number, (const char *)r + s->offset, sizeof number);
        at = put_number(at, number);
    }
    return at;
}

static char *put_ms(char *at, int64_t ns)
{
    at = zn_digits_put_millionths(at, ns);
    *at++ = ' ';
    return at;
}

/* Prints a run of times. Most are 0: they never came, or are blank in a coarse record. */
static char *put_ms_run(char *at, const zn_tstat_step *s, const zn_record *r)
{
    for (const zn_tstat_step *end = s + s->run; s < end; s++) {
        int64_t ns;
        memcpy(&ns, (const char *)r + s->offset, sizeof ns);
        at = put_ms(at, ns);
    }
    return at;
}

static char *put_time(char *at, zn_tstat_time *last, int64_t ns)
{
    if (ns != last->ns || last->n == 0) {
        last->ns = ns;
        last->n = (size_t)(put_ms(last->text, ns) - last->text);
    }
    memcpy(at, last->text, sizeof last->text); /* a column's capacity: its length is a constant */
    return at + last->n;
}

#define LOAD(value) memcpy(&(value), (const char *)r + s->offset, sizeof(value))

static void put_line(zn_text *out, zn_tstat *t, zn_tstat_log log, const zn_record *r)
{
    const zn_tstat_step *s = t->step[log], *end = s + t->columns[log];
    size_t capacity = t->columns[log] * (ZN_FIXED_MAX + 1); /* numbers and blanks */
    char *at = zn_text_reserve(out, capacity);
    zn_disclosure disclosure;
    uint32_t four;
    uint16_t two;
    uint8_t one;
    int64_t ns;
    if (at == NULL)
        return;
    for (; s < end; s++) {
        switch (s->put) {
        case ZN_TSTAT_PUT_8:
            at = put_run(at, s, r);
            s += s->run - 1;
            break;
        case ZN_TSTAT_PUT_4:
            LOAD(four);
            at = put_number(at, four);
            break;
        case ZN_TSTAT_PUT_2:
            LOAD(two);
            at = put_number(at, two);
            break;
        case ZN_TSTAT_PUT_1:
            LOAD(one);
            at = put_number(at, one);
            break;
        case ZN_TSTAT_PUT_MS:
            at = put_ms_run(at, s, r);
            s += s->run - 1;
            break;
        case ZN_TSTAT_PUT_TIME:
            LOAD(ns);
            at = put_time(at, &t->time, ns);
            break;
        case ZN_TSTAT_PUT_ZERO:
            at = put_number(at, 0);
            break;
        case ZN_TSTAT_PUT_DURATION:
            at = put_ms(at, r->last_ns - r->first_ns);
            break;
        case ZN_TSTAT_PUT_PSEUDONYM:
            LOAD(disclosure);
            at = put_number(at, disclosure == ZN_DISCLOSURE_PSEUDONYM);
            break;
        case ZN_TSTAT_PUT_CELL:
            at = put_cell(out, s, r, at, capacity);
            if (at == NULL)
                return;
        }
    }
    at[-1] = '\n';
    out->n = (size_t)(at - out->bytes);
}

static void init_tcp_complete(zn_format_state *state, unsigned sets)
{
    zn_log_columns columns;
    unsigned tstat_sets = sets & EVERY_SET; /* those that Tstat has */
    state->tstat.number = tstat_sets == EVERY_SET ? tstat_sets + ADVANCED_SET : tstat_sets;
    zn_log_columns_tcp(&columns, sets);
    set_steps(&state->tstat, ZN_TSTAT_TCP_COMPLETE, &columns);
}

static void init_tcp_nocomplete(zn_format_state *state, unsigned sets)
{
    zn_log_columns columns;
    (void)sets; /* always the core alone */
    zn_log_columns_tcp(&columns, 0);
    set_steps(&state->tstat, ZN_TSTAT_TCP_NOCOMPLETE, &columns);
}

static void init_udp_complete(zn_format_state *state, unsigned sets)
{
    zn_log_columns columns;
    zn_log_columns_udp(&columns, sets);
    set_steps(&state->tstat, ZN_TSTAT_UDP_COMPLETE, &columns);
}

#define LOG(log, format, protocol)                                                                 \
    static void put_header_##format(const zn_format_state *state, zn_text *out)                    \
    {                                                                                              \
        put_header(out, &state->tstat, log);                                                       \
    }                                                                                              \
    static bool put_record_##format(zn_format_state *state, zn_text *out, const zn_record *r)      \
    {                                                                                              \
        bool mine = log_of(r) == (log);                                                            \
        if (mine)                                                                                  \
            put_line(out, &state->tstat, log, r);                                                  \
        return mine;                                                                               \
    }                                                                                              \
    const zn_format zn_format_##format = {.name = "log_" #format,                                  \
                                          .stem = "log_" #format,                                  \
                                          .suffix = "",                                            \
                                          .proto = protocol,                                       \
                                          .omits_midstream = true,                                 \
                                          .init = init_##format,                                   \
                                          .header = put_header_##format,                           \
                                          .record = put_record_##format};

LOG(ZN_TSTAT_TCP_COMPLETE, tcp_complete, ZN_PROTO_TCP)
LOG(ZN_TSTAT_TCP_NOCOMPLETE, tcp_nocomplete, ZN_PROTO_TCP)
LOG(ZN_TSTAT_UDP_COMPLETE, udp_complete, ZN_PROTO_UDP)
