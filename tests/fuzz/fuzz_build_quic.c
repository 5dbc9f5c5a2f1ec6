/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte 0: bit 0: whether a datagram is whole; bit 1: whether the server sent it; bit 2: whether the
 * rest is a datagram, or the frames of an Initial, which is sealed here first. Byte 1: how many
 * bytes of a stream stand for the sender's, times 8. What is built is read as the same packets; an
 * Initial that opened opens again, with the same frames; and it is built as itself.
 */
#include "build/build_quic.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define STREAM_BYTES 2048
#define HEADER_BYTES 25

static zn_quic *quic;
static uint8_t stream[STREAM_BYTES];
static const uint8_t id[8] = {0x83, 0x94, 0xc8, 0xf0, 0x3e, 0x51, 0x57, 0x08};
static const zn_span key_id = {id, sizeof id};

static void close_quic(void)
{
    zn_quic_close(quic);
}

static void expect(bool ok)
{
    if (!ok)
        __builtin_trap();
}

static void open_quic(void)
{
    if (quic != NULL)
        return;
    expect(zn_quic_open(&quic, NULL) == 0 && atexit(close_quic) == 0);
    memset(stream, 's', sizeof stream);
}

static zn_quic_keys keys_of(uint32_t version, zn_quic_side side)
{
    zn_quic_secret sides[2];
    zn_quic_keys keys = {0};
    expect(zn_quic_derive(quic, version, key_id, sides) &&
           zn_quic_expand(version, &sides[side], &keys));
    return keys;
}

/* Every CRYPTO frame has bytes of the stream, and the place that it had. */
static void check_frames(zn_span before, zn_span after, size_t streamed)
{
    zn_cursor a = zn_cursor_over_span(before, true), b = zn_cursor_over_span(after, true);
    zn_quic_frame old, new;
    while (zn_cursor_left(&a) > 0 && zn_cursor_ok(&a)) /* whether all are known */
        zn_quic_next_frame(&a, &old);
    if (!zn_cursor_ok(&a)) {
        zn_cursor_skip_zeros(&b);
        expect(zn_cursor_left(&b) == 0);
    }
    while (zn_cursor_left(&b) > 0) {
        zn_quic_next_frame(&b, &new);
        expect(zn_cursor_ok(&b));
        if (new.type == ZN_QUIC_FRAME_CONNECTION_CLOSE)
            expect(new.data.n == 0 || zn_span_find(new.data, 0) == 0);
        if (new.type != ZN_QUIC_FRAME_CRYPTO || new.data.n == 0)
            continue;
        expect(new.offset < streamed);
        for (uint64_t i = 0; i < new.data.n; i++)
            expect(new.data.p[i] == (new.offset + i < streamed ? 's' : 0));
    }
}

static void check_packets(zn_span before, zn_span after, bool whole,
                          const zn_build_quic_choice *choice, unsigned resealed)
{
    zn_cursor a = zn_cursor_over_span(before, whole), b = zn_cursor_over_span(after, whole);
    zn_quic_packet old, new;
    uint8_t *kept = malloc(before.n + 1);
    unsigned opened = 0;
    expect(kept != NULL);
    while (zn_quic_next_packet(&a, &old) == ZN_DONE) {
        zn_span plain, again;
        zn_quic_keys keys;
        expect(zn_quic_next_packet(&b, &new) == ZN_DONE &&
               zn_cursor_left(&a) == zn_cursor_left(&b));
        if (old.type == ZN_QUIC_FOREIGN || old.type == ZN_QUIC_NEGOTIATION)
            break;
        expect(old.type == new.type && old.version == new.version &&
               zn_span_equal(old.dcid, new.dcid) && zn_span_equal(old.scid, new.scid));
        if (old.type != ZN_QUIC_INITIAL)
            continue;
        keys = keys_of(old.version, choice->sender);
        if (zn_quic_unseal(quic, &keys, &old, &plain) != ZN_DONE)
            continue;
        opened++;
        memcpy(kept, plain.p, plain.n);
        expect(zn_quic_unseal(quic, &keys, &new, &again) == ZN_DONE && again.n == plain.n);
        check_frames((zn_span){kept, plain.n}, again, choice->crypto.n);
    }
    expect(opened == resealed);
    free(kept);
}

static void build(zn_span datagram, bool whole, const zn_build_quic_choice *choice)
{
    uint8_t *out = calloc(1, datagram.n + 1), *again = calloc(1, datagram.n + 1);
    unsigned resealed;
    expect(out != NULL && again != NULL);
    resealed = zn_build_quic_datagram(quic, datagram, whole, choice, out);
    check_packets(datagram, (zn_span){out, datagram.n}, whole, choice, resealed);
    expect(zn_build_quic_datagram(quic, (zn_span){out, datagram.n}, whole, choice, again) ==
           resealed);
    expect(memcmp(out, again, datagram.n) == 0 && out[datagram.n] == 0);
    free(out);
    free(again);
}

/* Seals frames as an Initial, and builds that. */
static void build_frames(zn_span frames, const zn_build_quic_choice *choice)
{
    zn_quic_keys keys = keys_of(1, choice->sender);
    size_t n = HEADER_BYTES + frames.n, length = n - 20 + ZN_QUIC_TAG_BYTES;
    uint8_t *packet = calloc(1, n + ZN_QUIC_TAG_BYTES);
    expect(packet != NULL);
    packet[0] = 0xc2; /* an Initial with a packet number of three bytes */
    packet[4] = 1;    /* version */
    packet[5] = sizeof id;
    memcpy(packet + 6, id, sizeof id);
    packet[14] = 0; /* Source Connection ID */
    packet[15] = 0; /* token */
    packet[16] = 0x80;
    packet[17] = (uint8_t)(length >> 16);
    packet[18] = (uint8_t)(length >> 8);
    packet[19] = (uint8_t)length;
    memset(packet + 20, 7, 3);                  /* number */
    memset(packet + 23, ZN_QUIC_FRAME_PING, 2); /* so that a sample fits */
    if (frames.n != 0)
        memcpy(packet + HEADER_BYTES, frames.p, frames.n);
    if (zn_quic_seal(quic, &keys, packet, 20, n))
        build((zn_span){packet, n + ZN_QUIC_TAG_BYTES}, true, choice);
    free(packet);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    uint8_t what = zn_cursor_u8(&c);
    size_t streamed = 8u * zn_cursor_u8(&c);
    zn_span rest = zn_cursor_rest(&c);
    zn_build_quic_choice choice = {.sender = (what & 2) != 0 ? ZN_QUIC_SERVER : ZN_QUIC_CLIENT,
                                   .key_id = &key_id,
                                   .crypto = {stream, streamed}};
    open_quic();
    if ((what & 4) != 0)
        build(rest, (what & 1) != 0, &choice);
    else
        build_frames(rest, &choice);
    return 0;
}
