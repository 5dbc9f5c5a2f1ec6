/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/outputs.h"

#include "output/packet_file.h"
#include "util/arena.h"
#include "util/protocol.h"

#define FIRST_MARKS 16

/* X(NUMBER, name), a row for each format that is text: zn_format_<name> of its file in output/. */
#define FORMATS(X)                                                                                 \
    X(TCP_COMPLETE, tcp_complete)                                                                  \
    X(TCP_NOCOMPLETE, tcp_nocomplete)                                                              \
    X(UDP_COMPLETE, udp_complete)                                                                  \
    X(JSONL, jsonl)                                                                                \
    X(OBSERVATIONS, observations)                                                                  \
    X(CSV, csv)                                                                                    \
    X(PACKETS, packets)                                                                            \
    X(PACKETS_NG, packets_ng)                                                                      \
    X(VIEW1_PACKETS, view1_packets)                                                                \
    X(VIEW1_PACKETS_NG, view1_packets_ng)                                                          \
    X(VIEW2_PACKETS, view2_packets)                                                                \
    X(VIEW2_PACKETS_NG, view2_packets_ng)                                                          \
    X(VIEW3_PACKETS, view3_packets)                                                                \
    X(VIEW3_PACKETS_NG, view3_packets_ng)                                                          \
    ZN_OWN_FORMATS(X)

#define DECLARE(number, name) extern const zn_format zn_format_##name;
FORMATS(DECLARE)

#define ROW(number, name) [ZN_OUTPUT_##number] = &zn_format_##name,
static const zn_format *const formats[] = {FORMATS(ROW)};

void zn_outputs_observation(zn_text *out, const zn_release *release)
{
    zn_format_observations.release(out, release);
}
_Static_assert(sizeof formats / sizeof formats[0] == ZN_OUTPUT_TEXTS, "a row for each");

/* A row for each table: the flows of one protocol. */
static const struct {
    const char *name, *stem, *suffix; /* as in zn_format */
    uint8_t proto;
} tables[] = {
    [ZN_OUTPUT_TCP_TABLE - ZN_OUTPUT_TEXTS] = {"tcp_table", "tcp", ".parquet", ZN_PROTO_TCP},
    [ZN_OUTPUT_UDP_TABLE - ZN_OUTPUT_TEXTS] = {"udp_table", "udp", ".parquet", ZN_PROTO_UDP},
};
_Static_assert(sizeof tables / sizeof tables[0] == ZN_OUTPUT_TABLES, "a row for each");

const char *zn_outputs_name(int output)
{
    return output < ZN_OUTPUT_TEXTS ? formats[output]->name : tables[output - ZN_OUTPUT_TEXTS].name;
}

const char *zn_outputs_stem(int output)
{
    return output < ZN_OUTPUT_TEXTS ? formats[output]->stem : tables[output - ZN_OUTPUT_TEXTS].stem;
}

const char *zn_outputs_suffix(int output)
{
    return output < ZN_OUTPUT_TEXTS ? formats[output]->suffix
                                    : tables[output - ZN_OUTPUT_TEXTS].suffix;
}

bool zn_outputs_is_rows(int output)
{
    return output < ZN_OUTPUT_TEXTS && formats[output]->is_rows;
}

static int init_text(zn_outputs *o, int i, unsigned sets, zn_error *err)
{
    if (formats[i]->init != NULL)
        formats[i]->init(&o->state, sets);
    if (formats[i]->header != NULL)
        formats[i]->header(&o->state, &o->header[i]);
    return o->header[i].failed ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for output") : 0;
}

/* Those of `chosen` that take records of the protocol's flows. */
static uint32_t outputs_of(uint32_t chosen, uint8_t proto)
{
    uint32_t taking = 0;
    for (unsigned left = chosen; left != 0; left &= left - 1) {
        int i = __builtin_ctz(left);
        uint8_t of = i < ZN_OUTPUT_TEXTS ? formats[i]->proto : tables[i - ZN_OUTPUT_TEXTS].proto;
        if ((of == 0 || of == proto) && (i >= ZN_OUTPUT_TEXTS || formats[i]->record != NULL))
            taking |= UINT32_C(1) << i;
    }
    return taking;
}

int zn_outputs_init(zn_outputs *o, uint32_t chosen, unsigned tstat_sets, unsigned field_sets,
                    zn_error *err)
{
    int rc = 0;
    o->chosen = chosen;
    o->tcp = o->tcp_midstream = outputs_of(chosen, ZN_PROTO_TCP);
    o->udp = outputs_of(chosen, ZN_PROTO_UDP);
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        if (formats[i]->omits_midstream)
            o->tcp_midstream &= ~(UINT32_C(1) << i);
    zn_fields_init(&o->state.fields, field_sets);
    for (int i = 0; i < ZN_OUTPUT_TEXTS && rc == 0; i++)
        rc = init_text(o, i, tstat_sets, err);
    for (int i = 0; i < ZN_OUTPUT_TABLES && rc == 0; i++)
        rc = zn_table_init(&o->table[i], &o->state.fields, tables[i].proto, err);
    return rc;
}

void zn_outputs_fini(zn_outputs *o)
{
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++) {
        zn_text_fini(&o->text[i]);
        zn_text_fini(&o->header[i]);
    }
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        zn_table_fini(&o->table[i]);
    zn_heap_free(o->marks);
    memset(o, 0, sizeof *o);
}

void zn_outputs_record(zn_outputs *o, const zn_record *r)
{
    for (unsigned left = zn_outputs_of_flow(o, r->proto, r->midstream); left != 0;
         left &= left - 1) {
        int i = __builtin_ctz(left);
        if (i < ZN_OUTPUT_TEXTS)
            o->lines[i] += formats[i]->record(&o->state, &o->text[i], r) && !formats[i]->is_rows;
        else
            zn_table_add(&o->table[i - ZN_OUTPUT_TEXTS], r);
    }
}

void zn_outputs_release(zn_outputs *o, const zn_release *release)
{
    for (unsigned left = o->chosen; left != 0; left &= left - 1) {
        int i = __builtin_ctz(left);
        if (i >= ZN_OUTPUT_TEXTS || formats[i]->release == NULL)
            continue;
        formats[i]->release(&o->text[i], release);
        o->lines[i] += !formats[i]->is_rows;
    }
}

int zn_outputs_mark(zn_outputs *o, int64_t period_ns, zn_error *err)
{
    zn_mark *mark;
    if (o->mark_count == o->mark_cap) {
        size_t cap = o->mark_cap == 0 ? FIRST_MARKS : 2 * o->mark_cap;
        zn_mark *marks = zn_heap_resize(o->marks, cap * sizeof *marks);
        if (marks == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for output");
        o->marks = marks;
        o->mark_cap = cap;
    }
    mark = &o->marks[o->mark_count++];
    mark->period_ns = period_ns;
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        mark->rows[i] = o->table[i].rows;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        mark->at[i] = o->text[i].n, mark->lines[i] = o->lines[i];
    return 0;
}

zn_span zn_outputs_lines(zn_outputs *o, int text)
{
    bool all = o->passed == o->mark_count;
    size_t end = all ? o->text[text].n : o->marks[o->passed].at[text];
    zn_span lines = {NULL, end - o->taken[text]};
    if (lines.n != 0)
        lines.p = (const uint8_t *)o->text[text].bytes + o->taken[text];
    o->taken[text] = end;
    if (all)
        o->text[text].n = o->lines[text] = o->taken[text] = 0;
    return lines;
}

size_t zn_outputs_packets(zn_outputs *o, int text, zn_frame *out, size_t max, bool *more)
{
    zn_text *of = &o->text[text];
    size_t *taken = &o->taken[text], n = 0;
    bool all = o->passed == o->mark_count;
    zn_span records = {(const uint8_t *)of->bytes, all ? of->n : o->marks[o->passed].at[text]};
    while (n < max && zn_packet_file_next(records, taken, &out[n]))
        n++;
    *more = *taken < records.n;
    if (all && !*more)
        of->n = o->lines[text] = *taken = 0;
    return n;
}

bool zn_outputs_next_mark(zn_outputs *o, int64_t *period_ns)
{
    if (o->passed == o->mark_count)
        return false;
    *period_ns = o->marks[o->passed++].period_ns;
    if (o->passed == o->mark_count)
        o->passed = o->mark_count = 0;
    return true;
}

bool zn_outputs_full(const zn_outputs *o)
{
    size_t bytes = 0;
    bool full = false;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        bytes += o->text[i].n;
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        full |= o->table[i].rows >= ZN_OUTPUTS_ROWS;
    return full || bytes >= ZN_OUTPUTS_BYTES;
}

bool zn_outputs_is_of_records(int text)
{
    return formats[text]->record != NULL;
}

size_t zn_outputs_other_bytes(const zn_outputs *o)
{
    size_t bytes = 0;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        bytes += zn_outputs_is_of_records(i) ? 0 : o->text[i].n;
    return bytes;
}

int zn_outputs_check(const zn_outputs *o, zn_error *err)
{
    bool failed = false;
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        failed |= o->table[i].failed;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        failed |= o->text[i].failed;
    if (failed)
        return zn_fail(err, ZN_ERR_CAPACITY, 0,
                       "no memory for output; nothing incomplete was written");
    return 0;
}

void zn_outputs_clear(zn_outputs *o)
{
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        o->text[i].n = o->lines[i] = o->taken[i] = 0;
    o->mark_count = o->passed = 0;
}

size_t zn_outputs_memory(const zn_outputs *o)
{
    size_t bytes = o->mark_cap * sizeof *o->marks;
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        bytes += zn_table_memory(&o->table[i]);
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        bytes += o->text[i].cap + o->header[i].cap;
    return bytes;
}
