/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build_quic.h"

enum {
    OPEN_LONG = 0xf0,        /* unprotected bits of a long header's first byte */
    OPEN_SHORT = 0xe0,       /* unprotected bits of a short header's first byte */
    OPEN_NEGOTIATION = 0xc0, /* defined bits of Version Negotiation's first byte */
    RESERVED = 0x0c          /* bits of an Initial's first byte that must be zeros */
};

static void put(uint8_t *out, zn_span bytes)
{
    if (bytes.n != 0)
        memcpy(out, bytes.p, bytes.n);
}

/* ---- headers --------------------------------------------------------------------------------- */

/* Copies a variable-length integer in its encoding. Returns its value. */
static uint64_t copy_varint(zn_cursor *from, uint8_t **out)
{
    zn_cursor after = *from;
    uint64_t value = zn_quic_varint(&after);
    zn_span bytes = zn_cursor_take(from, zn_cursor_left(from) - zn_cursor_left(&after));
    put(*out, bytes);
    *out += bytes.n;
    return value;
}

static uint8_t open_bits(const zn_quic_packet *packet, uint8_t first)
{
    return first & (packet->type == ZN_QUIC_NEGOTIATION ? OPEN_NEGOTIATION : OPEN_LONG);
}

/* Builds the header up to the packet number from the packet's bytes. */
static void put_header(const zn_quic_packet *packet, zn_cursor from, uint8_t *out)
{
    bool is_read = packet->type != ZN_QUIC_NEGOTIATION && packet->type != ZN_QUIC_FOREIGN;
    size_t ids = 1 + packet->dcid.n + 1 + packet->scid.n;
    zn_span version, bytes;
    *out++ = open_bits(packet, zn_cursor_u8(&from));
    version = zn_cursor_take(&from, sizeof packet->version);
    put(out, version);
    out += version.n;
    if (!is_read && (packet->dcid.n > ZN_QUIC_ID_MAX || packet->scid.n > ZN_QUIC_ID_MAX))
        return;
    bytes = zn_cursor_take(&from, ids);
    put(out, bytes);
    out += bytes.n;
    if (!is_read || packet->type == ZN_QUIC_RETRY)
        return;
    if (packet->type == ZN_QUIC_INITIAL) {
        size_t token = (size_t)copy_varint(&from, &out); /* the parser has found it in the packet */
        zn_cursor_skip(&from, token);
        out += token;
    }
    (void)copy_varint(&from, &out); /* length */
}

/* ---- frames ---------------------------------------------------------------------------------- */

static void put_frame(const zn_quic_frame *frame, zn_span crypto, uint8_t *out)
{
    size_t head = frame->bytes.n - frame->data.n;
    if (frame->type == ZN_QUIC_FRAME_PADDING)
        return;
    if (frame->type != ZN_QUIC_FRAME_CRYPTO) {
        put(out, zn_span_first(frame->bytes, head));
    } else if (frame->offset < crypto.n) {
        put(out, zn_span_first(frame->bytes, head));
        crypto = zn_span_after(crypto, (size_t)frame->offset);
        put(out + head, zn_span_first(crypto, frame->data.n));
    }
}

/* Builds the frames of an Initial's plaintext. If a frame is malformed or must not be in an
 * Initial, all frames become PADDING. */
static void put_frames(zn_span plain, zn_span crypto, uint8_t *out)
{
    zn_cursor c = zn_cursor_over_span(plain, true);
    uint8_t *at = out;
    while (zn_cursor_left(&c) > 0) {
        zn_quic_frame frame;
        zn_quic_next_frame(&c, &frame);
        if (!zn_cursor_ok(&c)) {
            memset(out, 0, plain.n);
            return;
        }
        put_frame(&frame, crypto, at);
        at += frame.bytes.n;
    }
}

/* ---- packets --------------------------------------------------------------------------------- */

/* Opens an Initial, builds its frames after its header in `out`, and seals it. Returns false,
 * without a change of `out`, if it does not open. */
static bool reseal(zn_quic *q, const zn_quic_packet *packet, const zn_build_quic_choice *choice,
                   uint8_t *out)
{
    zn_span key_id = choice->key_id != NULL ? *choice->key_id : packet->dcid;
    zn_quic_secret sides[2];
    zn_quic_keys keys;
    zn_span plain, front;
    zn_cursor c;
    uint8_t first = out[0];
    if ((choice->key_id == NULL && choice->sender != ZN_QUIC_CLIENT) ||
        !zn_quic_derive(q, packet->version, key_id, sides) ||
        !zn_quic_expand(packet->version, &sides[choice->sender], &keys) ||
        zn_quic_unseal(q, &keys, packet, &plain) != ZN_DONE)
        return false;
    front = zn_quic_front(q);
    c = zn_cursor_over_span(front, true);
    out[0] = zn_cursor_u8(&c) & (uint8_t)~RESERVED;
    put(out + packet->header.n, zn_span_after(front, packet->header.n)); /* packet number */
    put_frames(plain, choice->crypto, out + front.n);
    if (zn_quic_seal(q, &keys, out, packet->header.n, front.n + plain.n))
        return true;
    memset(out + packet->header.n, 0, packet->sealed.n);
    out[0] = first;
    return false;
}

static void put_retry_tag(const zn_quic_packet *packet, const zn_build_quic_choice *choice,
                          uint8_t *out)
{
    uint8_t tag[ZN_QUIC_TAG_BYTES];
    if (choice->key_id != NULL && !packet->cut && packet->sealed.n == sizeof tag &&
        zn_quic_retry_tag(packet->version, *choice->key_id, (zn_span){out, packet->header.n}, tag))
        memcpy(out + packet->header.n, tag, sizeof tag);
}

unsigned zn_build_quic_datagram(zn_quic *q, zn_span datagram, bool whole,
                                const zn_build_quic_choice *choice, uint8_t *out)
{
    zn_cursor c = zn_cursor_over_span(datagram, whole);
    zn_cursor start = c;
    zn_quic_packet packet;
    unsigned resealed = 0;
    zn_parse state;
    while ((state = zn_quic_next_packet(&c, &packet)) == ZN_DONE) {
        uint8_t *at = out + (datagram.n - zn_cursor_left(&start));
        put_header(&packet, start, at);
        if (packet.type == ZN_QUIC_INITIAL)
            resealed += reseal(q, &packet, choice, at);
        else if (packet.type == ZN_QUIC_RETRY)
            put_retry_tag(&packet, choice, at);
        start = c;
    }
    if (state == ZN_OTHER && zn_cursor_left(&c) > 0)
        out[datagram.n - zn_cursor_left(&c)] = zn_cursor_u8(&start) & OPEN_SHORT;
    return resealed;
}
