/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/dnstap.h"

#define NS_PER_S 1000000000
#define SECONDS_MAX (INT64_MAX / NS_PER_S - 1)
#define VARINT_BYTES 10u
#define CONTROL_BYTES_MAX 512u /* of the payload of a control frame */
#define CONTENT_TYPE 1u

/* Wire types of Protocol Buffers. */
enum { WIRE_VARINT = 0, WIRE_64 = 1, WIRE_BYTES = 2, WIRE_32 = 5 };

/* Fields of dnstap.Dnstap. */
enum { DNSTAP_MESSAGE = 14, DNSTAP_TYPE = 15 };

/* Fields of dnstap.Message. */
enum {
    MESSAGE_TYPE = 1,
    MESSAGE_SOCKET_PROTOCOL = 3,
    MESSAGE_QUERY_ADDRESS = 4,
    MESSAGE_RESPONSE_ADDRESS = 5,
    MESSAGE_RESPONSE_PORT = 7,
    MESSAGE_QUERY_TIME_SEC = 8,
    MESSAGE_QUERY_TIME_NSEC = 9,
    MESSAGE_QUERY_MESSAGE = 10,
    MESSAGE_RESPONSE_TIME_SEC = 12,
    MESSAGE_RESPONSE_TIME_NSEC = 13,
    MESSAGE_RESPONSE_MESSAGE = 14
};

typedef struct field {
    uint64_t number, wire;
    uint64_t value; /* unless the field has bytes */
    zn_span bytes;
} field;

typedef struct seconds {
    uint64_t s, ns;
    bool has_s;
} seconds;

static uint64_t take_varint(zn_cursor *c)
{
    uint64_t value = 0;
    for (unsigned i = 0; i < VARINT_BYTES; i++) {
        uint8_t byte = zn_cursor_u8(c);
        value |= (uint64_t)(byte & 0x7f) << (7 * i);
        if (byte < 0x80) {
            if (i == VARINT_BYTES - 1 && byte > 1)
                break;
            return value;
        }
    }
    zn_cursor_fail(c, ZN_CURSOR_BAD);
    return 0;
}

/* Takes the next field; the cursor fails if it is malformed. */
static void take_field(zn_cursor *c, field *out)
{
    uint64_t key = take_varint(c);
    *out = (field){.number = key >> 3, .wire = key & 7};
    switch (out->wire) {
    case WIRE_VARINT:
        out->value = take_varint(c);
        break;
    case WIRE_64:
        out->value = zn_cursor_le(c, 8);
        break;
    case WIRE_BYTES: {
        uint64_t n = take_varint(c);
        out->bytes = zn_cursor_take(c, n > SIZE_MAX ? SIZE_MAX : (size_t)n);
        break;
    }
    case WIRE_32:
        out->value = zn_cursor_le32(c);
        break;
    default: /* groups, which dnstap has not */
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    }
}

/* Reads an address of 4 or 16 bytes; *has is false if it has another length. */
static void read_address(zn_span bytes, bool *has, zn_addr *out)
{
    *has = bytes.n == 4 || bytes.n == sizeof out->byte;
    if (bytes.n == 4)
        *out = zn_addr_from_v4(bytes.p);
    else if (*has)
        memcpy(out->byte, bytes.p, bytes.n);
}

static int64_t time_of(const seconds *at, zn_cursor *c)
{
    if (!at->has_s)
        return ZN_DNSTAP_NO_TIME;
    if (at->s > SECONDS_MAX || at->ns >= NS_PER_S) {
        zn_cursor_fail(c, ZN_CURSOR_BAD);
        return ZN_DNSTAP_NO_TIME;
    }
    return (int64_t)at->s * NS_PER_S + (int64_t)at->ns;
}

/* Takes a field that has a number. */
static void take_number(zn_dnstap *out, seconds at[2], const field *f)
{
    switch (f->number) {
    case MESSAGE_TYPE:
        out->type = f->value;
        break;
    case MESSAGE_SOCKET_PROTOCOL:
        out->socket_protocol = f->value;
        break;
    case MESSAGE_RESPONSE_PORT:
        out->server_port = f->value;
        break;
    case MESSAGE_QUERY_TIME_SEC:
    case MESSAGE_RESPONSE_TIME_SEC:
        at[f->number == MESSAGE_RESPONSE_TIME_SEC].s = f->value;
        at[f->number == MESSAGE_RESPONSE_TIME_SEC].has_s = true;
        break;
    default:
        break;
    }
}

static void take_bytes(zn_dnstap *out, const field *f)
{
    switch (f->number) {
    case MESSAGE_QUERY_ADDRESS:
        read_address(f->bytes, &out->has_client, &out->client);
        break;
    case MESSAGE_RESPONSE_ADDRESS:
        read_address(f->bytes, &out->has_server, &out->server);
        break;
    case MESSAGE_QUERY_MESSAGE:
        out->query = f->bytes;
        break;
    case MESSAGE_RESPONSE_MESSAGE:
        out->response = f->bytes;
        break;
    default:
        break;
    }
}

/* Reads a dnstap.Message. The last value of a field wins, as in all readers. */
static zn_parse parse_message(zn_span message, zn_dnstap *out)
{
    zn_cursor c = zn_cursor_over_span(message, true);
    seconds at[2] = {{0, 0, false}, {0, 0, false}}; /* of the query, of the response */
    while (zn_cursor_ok(&c) && zn_cursor_left(&c) != 0) {
        field f;
        take_field(&c, &f);
        if (f.wire == WIRE_VARINT)
            take_number(out, at, &f);
        else if (f.wire == WIRE_BYTES)
            take_bytes(out, &f);
        else if (f.wire == WIRE_32 &&
                 (f.number == MESSAGE_QUERY_TIME_NSEC || f.number == MESSAGE_RESPONSE_TIME_NSEC))
            at[f.number == MESSAGE_RESPONSE_TIME_NSEC].ns = f.value;
    }
    out->query_ns = time_of(&at[0], &c);
    out->response_ns = time_of(&at[1], &c);
    return zn_cursor_parse(&c);
}

zn_parse zn_dnstap_parse(zn_span frame, zn_dnstap *out)
{
    zn_cursor c = zn_cursor_over_span(frame, true);
    zn_span message = {NULL, 0};
    bool found = false, typed = false;
    zn_parse state;
    memset(out, 0, sizeof *out);
    while (zn_cursor_ok(&c) && zn_cursor_left(&c) != 0) {
        field f;
        take_field(&c, &f);
        if (f.number == DNSTAP_TYPE && f.wire == WIRE_VARINT)
            typed = f.value == 1; /* MESSAGE */
        if (f.number != DNSTAP_MESSAGE || f.wire != WIRE_BYTES)
            continue;
        if (found) /* readers would merge both */
            zn_cursor_fail(&c, ZN_CURSOR_BAD);
        found = true;
        message = f.bytes;
    }
    state = zn_cursor_parse(&c);
    if (state == ZN_DONE)
        state = found && typed ? parse_message(message, out) : ZN_OTHER;
    if (state != ZN_DONE)
        memset(out, 0, sizeof *out);
    return state;
}

zn_parse zn_fstrm_control_parse(zn_span payload, uint32_t *type, bool *dnstap)
{
    static const char content[] = "protobuf:dnstap.Dnstap";
    static const zn_span wanted = {(const uint8_t *)content, sizeof content - 1};
    zn_cursor c = zn_cursor_over_span(payload, true);
    bool named = false, known = false;
    *type = zn_cursor_be32(&c);
    if (payload.n > CONTROL_BYTES_MAX || *type < ZN_FSTRM_ACCEPT || *type > ZN_FSTRM_FINISH)
        zn_cursor_fail(&c, ZN_CURSOR_BAD);
    while (zn_cursor_ok(&c) && zn_cursor_left(&c) != 0) {
        uint32_t field_type = zn_cursor_be32(&c);
        zn_span value = zn_cursor_take(&c, zn_cursor_be32(&c));
        if (field_type != CONTENT_TYPE)
            zn_cursor_fail(&c, ZN_CURSOR_BAD);
        named = true;
        known |= zn_span_equal(value, wanted);
    }
    *dnstap = known || !named;
    return zn_cursor_parse(&c);
}
