/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/outputs.h"

#include "output/csv_log.h"
#include "output/json_log.h"
#include "packet/packet.h"
#include "util/arena.h"

#define FIRST_MARKS 16

_Static_assert((int)ZN_TSTAT_TCP_COMPLETE == (int)ZN_OUTPUT_TCP_COMPLETE &&
                   (int)ZN_TSTAT_TCP_NOCOMPLETE == (int)ZN_OUTPUT_TCP_NOCOMPLETE &&
                   (int)ZN_TSTAT_UDP_COMPLETE == (int)ZN_OUTPUT_UDP_COMPLETE,
               "a log's number is its output's");

int zn_outputs_init(zn_outputs *o, uint32_t chosen, unsigned sets, zn_error *err)
{
    int rc;
    o->chosen = chosen;
    zn_tstat_init(&o->tstat, sets);
    zn_fields_init(&o->fields, sets);
    rc = zn_table_init(&o->table[0], &o->fields, ZN_PROTO_TCP, err);
    return rc != 0 ? rc : zn_table_init(&o->table[1], &o->fields, ZN_PROTO_UDP, err);
}

void zn_outputs_fini(zn_outputs *o)
{
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        zn_text_fini(&o->text[i]);
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        zn_table_fini(&o->table[i]);
    zn_heap_free(o->marks);
    memset(o, 0, sizeof *o);
}

static bool is_chosen(const zn_outputs *o, int output)
{
    return (o->chosen & 1u << output) != 0;
}

/* The text of a chosen output, which gets another line; or NULL. */
static zn_text *next_line(zn_outputs *o, int output)
{
    if (!is_chosen(o, output))
        return NULL;
    o->lines[output]++;
    return &o->text[output];
}

void zn_outputs_record(zn_outputs *o, const zn_record *r)
{
    zn_tstat_log log = zn_tstat_log_of(r);
    int table = r->proto == ZN_PROTO_TCP ? ZN_OUTPUT_TCP_TABLE : ZN_OUTPUT_UDP_TABLE;
    zn_text *to = log == ZN_TSTAT_NONE ? NULL : next_line(o, (int)log);
    if (to != NULL)
        zn_tstat_line(to, &o->tstat, log, r);
    if ((to = next_line(o, ZN_OUTPUT_JSONL)) != NULL)
        zn_json_record(to, &o->fields, r);
    if ((to = next_line(o, ZN_OUTPUT_CSV)) != NULL)
        zn_csv_log_record(to, &o->fields, r);
    if (is_chosen(o, ZN_OUTPUT_RECORD_ROWS))
        zn_event_put_record(&o->text[ZN_OUTPUT_RECORD_ROWS], r);
    if (is_chosen(o, table))
        zn_table_add(&o->table[table - ZN_OUTPUT_TEXTS], r);
}

void zn_outputs_release(zn_outputs *o, const zn_release *release)
{
    zn_text *to = next_line(o, ZN_OUTPUT_OBSERVATIONS);
    if (to != NULL)
        zn_json_release(to, release);
    if (is_chosen(o, ZN_OUTPUT_OBSERVATION_ROWS))
        zn_event_put_release(&o->text[ZN_OUTPUT_OBSERVATION_ROWS], release);
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

void zn_outputs_header(const zn_outputs *o, zn_output output, zn_text *out)
{
    if ((int)output <= (int)ZN_TSTAT_UDP_COMPLETE)
        zn_tstat_header(out, &o->tstat, (zn_tstat_log)output);
    else if (output == ZN_OUTPUT_CSV)
        zn_csv_log_header(out, &o->fields);
}

bool zn_outputs_full(const zn_outputs *o)
{
    size_t bytes = 0;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        bytes += o->text[i].n;
    return bytes >= ZN_OUTPUTS_BYTES || o->table[0].rows >= ZN_OUTPUTS_ROWS ||
           o->table[1].rows >= ZN_OUTPUTS_ROWS;
}

bool zn_outputs_is_released(int text)
{
    return text == ZN_OUTPUT_OBSERVATIONS || text == ZN_OUTPUT_OBSERVATION_ROWS;
}

size_t zn_outputs_released_bytes(const zn_outputs *o)
{
    return o->text[ZN_OUTPUT_OBSERVATIONS].n + o->text[ZN_OUTPUT_OBSERVATION_ROWS].n;
}

int zn_outputs_check(const zn_outputs *o, zn_error *err)
{
    bool failed = o->table[0].failed || o->table[1].failed;
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        failed |= o->text[i].failed;
    if (failed)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for output; nothing cut was written");
    return 0;
}

void zn_outputs_clear(zn_outputs *o)
{
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        o->text[i].n = o->lines[i] = 0;
    o->mark_count = 0;
}

size_t zn_outputs_memory(const zn_outputs *o)
{
    size_t bytes = o->mark_cap * sizeof *o->marks;
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        bytes += zn_table_memory(&o->table[i]);
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++)
        bytes += o->text[i].cap;
    return bytes;
}
