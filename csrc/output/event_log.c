/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/event_log.h"

#define RECORD(field, format) {#field, format, offsetof(zn_event_record, field)}
#define OBSERVATION(field, format) {#field, format, offsetof(zn_event_observation, field)}
#define NAME_FORMAT "S253"
_Static_assert(ZN_EVENT_NAME_MAX == 253, "as the format says");

static const zn_event_field record_fields[] = {
    RECORD(t_start_ns, "i8"),   RECORD(t_end_ns, "i8"),    RECORD(epoch, "i8"),
    RECORD(c_pkts, "u8"),       RECORD(s_pkts, "u8"),      RECORD(c_bytes, "u8"),
    RECORD(s_bytes, "u8"),      RECORD(client, "16u1"),    RECORD(server, "16u1"),
    RECORD(client_port, "u2"),  RECORD(server_port, "u2"), RECORD(client_shown, "u1"),
    RECORD(server_shown, "u1"), RECORD(proto, "u1"),       RECORD(complete, "u1"),
    RECORD(ech, "u1"),          RECORD(name_status, "u1"), RECORD(name_source, "u1"),
    RECORD(name, NAME_FORMAT),
};

static const zn_event_field observation_fields[] = {
    OBSERVATION(t_ns, "i8"),        OBSERVATION(client, "16u1"),    OBSERVATION(client_shown, "u1"),
    OBSERVATION(name_source, "u1"), OBSERVATION(name, NAME_FORMAT),
};

const zn_event_field *zn_event_record_fields(size_t *count, size_t *row_bytes)
{
    *count = sizeof record_fields / sizeof record_fields[0];
    *row_bytes = sizeof(zn_event_record);
    return record_fields;
}

const zn_event_field *zn_event_observation_fields(size_t *count, size_t *row_bytes)
{
    *count = sizeof observation_fields / sizeof observation_fields[0];
    *row_bytes = sizeof(zn_event_observation);
    return observation_fields;
}

/* Copies an address; one that is withheld stays zero, whatever the record holds. */
static void put_address(uint8_t *out, const zn_addr *addr, zn_disclosure disclosure)
{
    if (disclosure != ZN_DISCLOSURE_NONE)
        memcpy(out, addr->byte, sizeof addr->byte);
}

static void put_name(char *out, zn_span name)
{
    if (name.n != 0 && name.n <= ZN_EVENT_NAME_MAX)
        memcpy(out, name.p, name.n);
}

static bool put_record(zn_format_state *state, zn_text *out, const zn_record *r)
{
    zn_event_record row;
    (void)state;
    memset(&row, 0, sizeof row); /* also between the fields */
    row.t_start_ns = r->first_ns;
    row.t_end_ns = r->last_ns;
    row.epoch = r->epoch;
    row.c_pkts = r->client.packets;
    row.s_pkts = r->server.packets;
    row.c_bytes = r->client.bytes_all;
    row.s_bytes = r->server.bytes_all;
    put_address(row.client, &r->client.addr, r->client.disclosure);
    put_address(row.server, &r->server.addr, r->server.disclosure);
    row.client_port = r->client.port;
    row.server_port = r->server.port;
    row.client_shown = (uint8_t)r->client.disclosure;
    row.server_shown = (uint8_t)r->server.disclosure;
    row.proto = r->proto;
    row.complete = r->complete;
    row.ech = r->ech == ZN_ECH_OFFERED;
    row.name_status = (uint8_t)r->status;
    row.name_source = (uint8_t)r->source;
    put_name(row.name, r->name);
    zn_text_bytes(out, (const char *)&row, sizeof row);
    return true;
}

const zn_format zn_format_record_rows = {
    .name = "record_rows", .is_rows = true, .record = put_record};

static void put_release(zn_text *out, const zn_release *release)
{
    zn_event_observation row;
    memset(&row, 0, sizeof row);
    row.t_ns = release->t_ns;
    put_address(row.client, &release->client, release->client_disclosure);
    row.client_shown = (uint8_t)release->client_disclosure;
    row.name_source = (uint8_t)release->source;
    put_name(row.name, release->name);
    zn_text_bytes(out, (const char *)&row, sizeof row);
}

const zn_format zn_format_observation_rows = {
    .name = "observation_rows", .is_rows = true, .release = put_release};
