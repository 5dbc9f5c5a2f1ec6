/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/quic.h"

#include "proto/quic_crypto.h"

#define QUIC_V2 UINT32_C(0x6b3343cf)
#define VARINT_MAX (UINT64_C(1) << 62)

/* A transport parameter (RFC 9000 18) */
enum { GOOGLE_USER_AGENT = 0x3129 };

uint64_t zn_quic_varint(zn_cursor *c)
{
    uint8_t first = zn_cursor_u8(c);
    uint64_t value = first & 0x3fu;
    for (unsigned more = (1u << (first >> 6)) - 1; more > 0; more--)
        value = value << 8 | zn_cursor_u8(c);
    return zn_cursor_ok(c) ? value : 0;
}

zn_span zn_quic_vector(zn_cursor *c)
{
    uint64_t n = zn_quic_varint(c);
    return zn_cursor_take(c, n < SIZE_MAX ? (size_t)n : SIZE_MAX);
}

static zn_quic_type type_of(uint8_t first, uint32_t version)
{
    static const zn_quic_type of_v1[] = {ZN_QUIC_INITIAL, ZN_QUIC_ZERO_RTT, ZN_QUIC_HANDSHAKE,
                                         ZN_QUIC_RETRY};
    unsigned bits = first >> 4 & 3u;
    return of_v1[version == QUIC_V2 ? (bits + 3) % 4 : bits]; /* RFC 9369 3.2: shifted by one */
}

/* Reads a packet after its connection IDs, to its end; `start` stands at its first byte. */
static void read_rest(zn_cursor *c, zn_cursor start, zn_quic_packet *out)
{
    uint64_t length;
    size_t left;
    if (out->type == ZN_QUIC_RETRY) { /* RFC 9000 17.2.5: the token and its tag, to the end */
        left = zn_cursor_left(c);
        left = left < ZN_QUIC_TAG_BYTES ? left : ZN_QUIC_TAG_BYTES;
        out->header = zn_cursor_take(&start, zn_cursor_left(&start) - left);
        out->sealed = zn_cursor_take(&start, left);
        out->cut = !c->whole;
        (void)zn_cursor_rest(c);
        return;
    }
    if (out->type == ZN_QUIC_INITIAL)
        (void)zn_quic_vector(c); /* token */
    length = zn_quic_varint(c);
    left = zn_cursor_left(c);
    out->cut = zn_cursor_ok(c) && length > left && !c->whole;
    out->header = zn_cursor_take(&start, zn_cursor_left(&start) - left);
    out->sealed = zn_cursor_take(c, out->cut || length > left ? left : (size_t)length);
    if (length > left && !out->cut)
        zn_cursor_fail(c, ZN_CURSOR_BAD);
}

zn_parse zn_quic_next_packet(zn_cursor *datagram, zn_quic_packet *out)
{
    zn_cursor c = *datagram;
    uint8_t first = zn_cursor_u8(&c);
    zn_parse state;
    if (!zn_cursor_ok(&c) || (first & ZN_QUIC_LONG_FORM) == 0)
        return ZN_OTHER;
    memset(out, 0, sizeof *out);
    out->version = zn_cursor_be32(&c);
    out->dcid = zn_cursor_take(&c, zn_cursor_u8(&c));
    out->scid = zn_cursor_take(&c, zn_cursor_u8(&c));
    if (!zn_cursor_ok(&c)) {
        state = zn_cursor_parse(&c);
    } else if (out->version == 0 || !zn_quic_reads(out->version)) {
        out->type = out->version == 0 ? ZN_QUIC_NEGOTIATION : ZN_QUIC_FOREIGN;
        (void)zn_cursor_rest(&c); /* RFC 8999: only its version knows where it ends */
        state = ZN_DONE;
    } else if (out->dcid.n > ZN_QUIC_ID_MAX || out->scid.n > ZN_QUIC_ID_MAX) {
        state = ZN_MALFORMED;
    } else {
        out->type = type_of(first, out->version);
        read_rest(&c, *datagram, out);
        state = zn_cursor_parse(&c);
    }
    if (state == ZN_DONE)
        *datagram = c;
    return state;
}

bool zn_quic_is_short(zn_cursor datagram, zn_span dcid)
{
    uint8_t first = zn_cursor_u8(&datagram);
    zn_span id = zn_cursor_take(&datagram, dcid.n);
    return zn_cursor_ok(&datagram) && (first & ZN_QUIC_LONG_FORM) == 0 && zn_span_equal(id, dcid);
}

/* RFC 9000 19.3; nothing in it is of use here. */
static void skip_ack(zn_cursor *c, bool ecn)
{
    uint64_t ranges;
    (void)zn_quic_varint(c); /* largest acknowledged */
    (void)zn_quic_varint(c); /* delay */
    ranges = zn_quic_varint(c);
    (void)zn_quic_varint(c); /* first range */
    for (uint64_t i = 0; i < ranges && zn_cursor_ok(c); i++) {
        (void)zn_quic_varint(c); /* gap */
        (void)zn_quic_varint(c); /* range */
    }
    for (unsigned i = 0; ecn && i < 3; i++)
        (void)zn_quic_varint(c);
}

static void read_crypto(zn_cursor *c, zn_quic_frame *out)
{
    out->offset = zn_quic_varint(c);
    out->data = zn_quic_vector(c);
    if (out->offset + out->data.n >= VARINT_MAX)
        zn_cursor_fail(c, ZN_CURSOR_BAD);
}

void zn_quic_next_frame(zn_cursor *plain, zn_quic_frame *out)
{
    zn_cursor start = *plain;
    out->type = zn_cursor_u8(plain); /* RFC 9000 12.4: as short as it gets, so one byte */
    out->offset = 0;
    out->data = (zn_span){start.p, 0};
    switch (out->type) {
    case ZN_QUIC_FRAME_PADDING:
        zn_cursor_skip_zeros(plain);
        break;
    case ZN_QUIC_FRAME_PING:
        break;
    case ZN_QUIC_FRAME_ACK:
    case ZN_QUIC_FRAME_ACK_ECN:
        skip_ack(plain, out->type == ZN_QUIC_FRAME_ACK_ECN);
        break;
    case ZN_QUIC_FRAME_CRYPTO:
        read_crypto(plain, out);
        break;
    case ZN_QUIC_FRAME_CONNECTION_CLOSE:
        (void)zn_quic_varint(plain); /* error code */
        (void)zn_quic_varint(plain); /* type of the frame that caused it */
        out->data = zn_quic_vector(plain);
        break;
    default:
        zn_cursor_fail(plain, ZN_CURSOR_BAD);
        break;
    }
    out->bytes = zn_cursor_take(&start, zn_cursor_left(&start) - zn_cursor_left(plain));
}

/* Puts a CRYPTO frame in its place among the others; packets hold few, mostly in order. Returns
 * whether there is space for it. */
static bool insert_crypto(const zn_quic_frame *frame, zn_quic_crypto_frames *out)
{
    size_t at = out->n;
    if (frame->data.n == 0)
        return true;
    if (out->n == ZN_QUIC_CRYPTO_FRAMES)
        return false;
    for (; at > 0 && out->frame[at - 1].offset > frame->offset; at--)
        out->frame[at] = out->frame[at - 1];
    out->frame[at] = (zn_quic_crypto_frame){frame->offset, frame->data};
    out->n++;
    return true;
}

zn_parse zn_quic_read_frames(zn_span plain, zn_quic_crypto_frames *out)
{
    zn_cursor c = zn_cursor_over_span(plain, true);
    out->n = 0;
    if (plain.n == 0)
        return ZN_MALFORMED;
    while (zn_cursor_left(&c) > 0) {
        zn_quic_frame frame;
        zn_quic_next_frame(&c, &frame);
        if (zn_cursor_ok(&c) && frame.type == ZN_QUIC_FRAME_CRYPTO && !insert_crypto(&frame, out))
            zn_cursor_fail(&c, ZN_CURSOR_BAD);
    }
    if (!zn_cursor_ok(&c))
        out->n = 0;
    return zn_cursor_parse(&c);
}

zn_span zn_quic_user_agent(zn_span parameters)
{
    zn_cursor c = zn_cursor_over_span(parameters, true);
    zn_span agent = {parameters.p, 0};
    unsigned agents = 0;
    while (zn_cursor_left(&c) > 0) {
        uint64_t id = zn_quic_varint(&c);
        zn_span value = zn_quic_vector(&c);
        if (id == GOOGLE_USER_AGENT && zn_cursor_ok(&c)) {
            agent = value;
            agents++;
        }
    }
    if (!zn_cursor_ok(&c) || agents != 1)
        agent.n = 0;
    return agent;
}
