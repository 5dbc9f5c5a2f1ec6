/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/fields.h"

#include "util/protocol.h"

#define NAME_MAX_BYTES 32

typedef struct common_field {
    const char *name;
    zn_field_type type;
    bool nullable;
} common_field;

static const common_field common[ZN_COMMON_COUNT] = {
    [ZN_COMMON_T_START] = {"t_start_ns", ZN_FIELD_TIME, false},
    [ZN_COMMON_T_END] = {"t_end_ns", ZN_FIELD_TIME, false},
    [ZN_COMMON_PROTO] = {"proto", ZN_FIELD_U8, false},
    [ZN_COMMON_CLIENT] = {"client", ZN_FIELD_TEXT, true},
    [ZN_COMMON_SERVER] = {"server", ZN_FIELD_TEXT, true},
    [ZN_COMMON_CLIENT_PORT] = {"client_port", ZN_FIELD_U16, false},
    [ZN_COMMON_SERVER_PORT] = {"server_port", ZN_FIELD_U16, false},
    [ZN_COMMON_NAME] = {"name", ZN_FIELD_TEXT, true},
    [ZN_COMMON_NAME_SOURCE] = {"name_source", ZN_FIELD_TEXT, true},
    [ZN_COMMON_NAME_STATUS] = {"name_status", ZN_FIELD_TEXT, false},
    [ZN_COMMON_ECH] = {"ech", ZN_FIELD_TEXT, false},
    [ZN_COMMON_EPOCH] = {"epoch", ZN_FIELD_I64, false},
    [ZN_COMMON_C_PACKETS] = {"c_pkts", ZN_FIELD_U64, false},
    [ZN_COMMON_S_PACKETS] = {"s_pkts", ZN_FIELD_U64, false},
    [ZN_COMMON_C_BYTES] = {"c_bytes", ZN_FIELD_U64, false},
    [ZN_COMMON_S_BYTES] = {"s_bytes", ZN_FIELD_U64, false},
    [ZN_COMMON_COMPLETE] = {"complete", ZN_FIELD_BOOL, true},
    [ZN_COMMON_MIDSTREAM] = {"midstream", ZN_FIELD_BOOL, true},
    [ZN_COMMON_EVICTED] = {"early", ZN_FIELD_BOOL, true},
};

static const char *const source_words[] = {
    [ZN_SOURCE_NONE] = NULL,   [ZN_SOURCE_TLS] = "tls", [ZN_SOURCE_QUIC] = "quic",
    [ZN_SOURCE_HTTP] = "http", [ZN_SOURCE_DNS] = "dns",
};

static const char *const status_words[] = {
    [ZN_NAME_NONE] = "none",
    [ZN_NAME_RELEASED] = "released",
    [ZN_NAME_SUPPRESSED] = "suppressed",
    [ZN_NAME_UNCONFIRMED] = "unconfirmed",
    [ZN_NAME_INVALID] = "invalid",
};

static const char *const ech_words[] = {[ZN_ECH_NONE] = "none", [ZN_ECH_OFFERED] = "offered"};

const char *const *zn_field_words(const zn_field *field, size_t *n)
{
    switch (field->common) {
    case ZN_COMMON_NAME_SOURCE:
        *n = sizeof source_words / sizeof source_words[0];
        return source_words;
    case ZN_COMMON_NAME_STATUS:
        *n = sizeof status_words / sizeof status_words[0];
        return status_words;
    case ZN_COMMON_ECH:
        *n = sizeof ech_words / sizeof ech_words[0];
        return ech_words;
    default:
        *n = 0;
        return NULL;
    }
}

const char *zn_name_source_word(zn_name_source source)
{
    return source_words[source];
}

static zn_field_type type_of(const zn_column *c)
{
    switch (c->kind) {
    case ZN_COLUMN_INTERNAL:
    case ZN_COLUMN_ENCRYPTED:
    case ZN_COLUMN_RESOLVER_ENCRYPTED:
        return ZN_FIELD_BOOL;
    case ZN_COLUMN_UDP_TYPE:
    case ZN_COLUMN_NO_COUNT:
        return ZN_FIELD_U8;
    case ZN_COLUMN_PORT:
    case ZN_COLUMN_METHOD:
        return ZN_FIELD_U16;
    case ZN_COLUMN_COUNT:
    case ZN_COLUMN_TOTAL:
    case ZN_COLUMN_CONNECTION:
        return ZN_FIELD_U32;
    case ZN_COLUMN_BYTES:
        return ZN_FIELD_U64;
    case ZN_COLUMN_MS:
    case ZN_COLUMN_DURATION_MS:
        return ZN_FIELD_MS;
    case ZN_COLUMN_SIDE_DURATION_S:
        return ZN_FIELD_SECONDS;
    case ZN_COLUMN_START_MS:
    case ZN_COLUMN_END_MS:
    case ZN_COLUMN_WHEN:
    case ZN_COLUMN_SIDE_START_MS:
        return ZN_FIELD_TIME;
    default:
        return ZN_FIELD_TEXT;
    }
}

static zn_field *find(zn_fields *fields, const char *name)
{
    for (size_t i = 0; i < fields->n; i++)
        if (strncmp(fields->at[i].name, name, NAME_MAX_BYTES) == 0)
            return &fields->at[i];
    return NULL;
}

/* Adds the log's columns that are not there yet; the others get a value for its protocol too. */
static void add_log(zn_fields *fields, const zn_log_columns *log, bool udp)
{
    for (size_t i = 0; i < log->n; i++) {
        const zn_column *c = log->at[i];
        zn_field *field = find(fields, c->name);
        if (c->kind == ZN_COLUMN_ADDRESS || c->kind == ZN_COLUMN_PORT)
            continue;
        if (field == NULL) {
            field = &fields->at[fields->n++];
            *field = (zn_field){c->name, type_of(c), false, ZN_COMMON_COUNT, NULL, NULL};
        }
        *(udp ? &field->udp : &field->tcp) = c;
        field->nullable |= c->missing != NULL;
    }
}

void zn_fields_init(zn_fields *fields, unsigned sets)
{
    zn_log_columns log;
    fields->n = ZN_COMMON_COUNT;
    for (int i = 0; i < ZN_COMMON_COUNT; i++)
        fields->at[i] = (zn_field){common[i].name, common[i].type, common[i].nullable,
                                   (zn_common)i,   NULL,           NULL};
    zn_log_columns_tcp(&log, sets);
    add_log(fields, &log, false);
    zn_log_columns_udp(&log);
    add_log(fields, &log, true);
}

void zn_fields_select(zn_fields *out, const zn_fields *fields, uint8_t proto)
{
    out->n = 0;
    for (size_t i = 0; i < fields->n; i++)
        if (zn_field_applies(&fields->at[i], proto))
            out->at[out->n++] = fields->at[i];
}

bool zn_field_applies(const zn_field *field, uint8_t proto)
{
    return field->common != ZN_COMMON_COUNT ||
           (proto == ZN_PROTO_TCP ? field->tcp : field->udp) != NULL;
}

static void set_number(zn_cell *v, zn_cell_kind kind, uint64_t number)
{
    v->kind = kind;
    v->number = number;
}

/* How a flow went is not told of one that is told roughly. */
static void set_flag(zn_cell *v, const zn_record *r, bool flag)
{
    if (!r->coarse)
        set_number(v, ZN_CELL_FLAG, flag);
}

static void set_ns(zn_cell *v, int64_t ns)
{
    v->kind = ZN_CELL_TIME;
    v->ns = ns;
}

static void set_word(zn_cell *v, const char *word)
{
    v->kind = word != NULL ? ZN_CELL_TEXT : ZN_CELL_NONE;
    if (word != NULL)
        v->text = (zn_span){(const uint8_t *)word, strnlen(word, NAME_MAX_BYTES)};
}

static void set_address(zn_cell *v, const zn_record_side *side)
{
    v->kind = side->disclosure == ZN_DISCLOSURE_NONE ? ZN_CELL_NONE : ZN_CELL_ADDRESS;
    v->address = &side->addr;
}

static void name_value(zn_common member, const zn_record *r, zn_cell *v)
{
    switch (member) {
    case ZN_COMMON_NAME:
        v->kind = r->name.n != 0 ? ZN_CELL_TEXT : ZN_CELL_NONE;
        v->text = r->name;
        break;
    case ZN_COMMON_NAME_SOURCE:
        set_word(v, source_words[r->source]);
        break;
    case ZN_COMMON_NAME_STATUS:
        set_word(v, status_words[r->status]);
        break;
    case ZN_COMMON_ECH:
        set_word(v, ech_words[r->ech]);
        break;
    default:
        break;
    }
}

static void common_value(zn_common member, const zn_record *r, zn_cell *v)
{
    bool of_client = member == ZN_COMMON_CLIENT || member == ZN_COMMON_CLIENT_PORT ||
                     member == ZN_COMMON_C_PACKETS || member == ZN_COMMON_C_BYTES;
    const zn_record_side *side = of_client ? &r->client : &r->server;
    switch (member) {
    case ZN_COMMON_T_START:
        set_ns(v, r->first_ns);
        break;
    case ZN_COMMON_T_END:
        set_ns(v, r->last_ns);
        break;
    case ZN_COMMON_PROTO:
        set_number(v, ZN_CELL_COUNT, r->proto);
        break;
    case ZN_COMMON_CLIENT:
    case ZN_COMMON_SERVER:
        set_address(v, side);
        break;
    case ZN_COMMON_CLIENT_PORT:
    case ZN_COMMON_SERVER_PORT:
        set_number(v, ZN_CELL_COUNT, side->port);
        break;
    case ZN_COMMON_EPOCH:
        set_number(v, ZN_CELL_COUNT, (uint64_t)r->epoch);
        break;
    case ZN_COMMON_C_PACKETS:
    case ZN_COMMON_S_PACKETS:
        set_number(v, ZN_CELL_COUNT, side->packets);
        break;
    case ZN_COMMON_C_BYTES:
    case ZN_COMMON_S_BYTES:
        set_number(v, ZN_CELL_COUNT, side->bytes_all);
        break;
    case ZN_COMMON_COMPLETE:
        set_flag(v, r, r->complete && !r->midstream);
        break;
    case ZN_COMMON_MIDSTREAM:
        set_flag(v, r, r->midstream);
        break;
    case ZN_COMMON_EVICTED:
        set_flag(v, r, r->early);
        break;
    default:
        name_value(member, r, v);
        break;
    }
}

void zn_field_value(const zn_field *field, const zn_record *r, zn_cell *v)
{
    const zn_column *c = r->proto == ZN_PROTO_TCP ? field->tcp : field->udp;
    v->kind = ZN_CELL_NONE;
    if (field->common != ZN_COMMON_COUNT)
        common_value(field->common, r, v);
    else if (c != NULL)
        zn_column_cell(c, r, v);
}

void zn_field_put(zn_text *out, const zn_field *field, const zn_cell *v)
{
    if (field->common != ZN_COMMON_COUNT && v->kind == ZN_CELL_TIME)
        zn_text_i64(out, v->ns);
    else
        zn_cell_put(out, v);
}
