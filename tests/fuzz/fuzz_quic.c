/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte 0, modulo 8: what the rest is. 0, 1: a datagram, cut or whole, whose Initials are opened
 * with keys from their own ID; 2: the plaintext of an Initial; 3: handshake messages, and then
 * transport parameters. 4, 5: a datagram of Google's QUIC, cut or whole; 6: its frames, in each
 * version; 7: its messages.
 */
#include "proto/gquic.h"
#include "proto/quic_crypto.h"
#include "proto/tls.h"
#include "util/hash.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static zn_quic *quic;

static void close_quic(void)
{
    zn_quic_close(quic);
}

/* Every byte that a result points to can be read. */
static void read_all(zn_span span)
{
    (void)zn_hash64(&(zn_hash_key){1, 2}, span.p, span.n);
}

static void read_frames(zn_span plain)
{
    static zn_quic_crypto_frames frames;
    uint64_t last = 0;
    if (zn_quic_read_frames(plain, &frames) != ZN_DONE && frames.n != 0)
        __builtin_trap();
    for (size_t i = 0; i < frames.n; i++) {
        read_all(frames.frame[i].bytes);
        if (frames.frame[i].offset < last || frames.frame[i].bytes.n == 0)
            __builtin_trap();
        last = frames.frame[i].offset;
    }
}

static void read_hello(zn_span head)
{
    zn_tls_hello hello;
    zn_parse state = zn_tls_bare_hello(head, &hello);
    if (hello.consumed > head.n || (state != ZN_DONE && hello.name.n != 0))
        __builtin_trap();
    read_all(hello.name);
    read_all(hello.transport_parameters);
    read_all(zn_quic_user_agent(hello.transport_parameters));
    read_all(zn_quic_user_agent(head));
}

static void read_packets(zn_cursor datagram)
{
    zn_quic_packet packet;
    zn_quic_secret sides[2];
    zn_quic_keys keys;
    zn_span plain;
    while (zn_quic_next_packet(&datagram, &packet) == ZN_DONE) {
        read_all(packet.dcid);
        read_all(packet.scid);
        read_all(packet.header);
        read_all(packet.sealed);
        (void)zn_quic_is_short(datagram, packet.scid);
        if (packet.type != ZN_QUIC_INITIAL ||
            !zn_quic_derive(quic, packet.version, packet.dcid, sides) ||
            !zn_quic_expand(packet.version, &sides[ZN_QUIC_CLIENT], &keys))
            continue;
        if (zn_quic_unseal(quic, &keys, &packet, &plain) == ZN_DONE)
            read_frames(plain);
        else if (plain.n != 0)
            __builtin_trap();
    }
}

static void read_gquic_frames(const zn_gquic_packet *packet, zn_span plain)
{
    static zn_quic_crypto_frames frames;
    if (zn_gquic_frames_read(packet, plain, &frames) != ZN_DONE && frames.n != 0)
        __builtin_trap();
    for (size_t i = 0; i < frames.n; i++) {
        read_all(frames.frame[i].bytes);
        if (frames.frame[i].bytes.n == 0)
            __builtin_trap();
    }
}

static void read_gquic_messages(zn_span bytes)
{
    zn_gquic_message hello;
    zn_span token;
    if (zn_gquic_hello_read(bytes, &hello) == ZN_DONE && (hello.bytes > bytes.n || hello.bytes < 8))
        __builtin_trap();
    read_all(hello.name);
    read_all(hello.token);
    (void)zn_gquic_rejection_read(bytes, &token);
    read_all(token);
}

/* Reads the packet of either side. */
static void read_gquic(zn_span datagram, bool whole)
{
    static const uint32_t versions[] = {0, ZN_GQUIC_Q043, ZN_GQUIC_Q046, ZN_GQUIC_Q050};
    for (size_t i = 0; i < sizeof versions / sizeof versions[0]; i++) {
        zn_quic_side from = versions[i] == 0 ? ZN_QUIC_CLIENT : ZN_QUIC_SERVER;
        zn_gquic_packet packet;
        zn_span frames;
        if (zn_gquic_packet_read(datagram, whole, versions[i], &packet) != ZN_DONE)
            continue;
        read_all(packet.id);
        read_all(packet.header);
        read_all(packet.sealed);
        if (zn_gquic_open(quic, &packet, from, packet.id, &frames) == ZN_DONE)
            read_gquic_frames(&packet, frames);
        else if (frames.n != 0)
            __builtin_trap();
    }
}

static void read_google(uint8_t what, zn_span rest)
{
    if (what < 6)
        read_gquic(rest, what == 5);
    else if (what == 7)
        read_gquic_messages(rest);
    else
        for (uint8_t i = 0; i < 3; i++)
            read_gquic_frames(&(zn_gquic_packet){.version = i == 0   ? ZN_GQUIC_Q043
                                                            : i == 1 ? ZN_GQUIC_Q046
                                                                     : ZN_GQUIC_Q050,
                                                 .number_bytes = 4},
                              rest);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    uint8_t what = zn_cursor_u8(&c) % 8;
    zn_span rest = zn_cursor_rest(&c);
    if (quic == NULL && (zn_quic_open(&quic, NULL) != 0 || atexit(close_quic) != 0))
        __builtin_trap();
    if (what >= 4)
        read_google(what, rest);
    else if (what == 2)
        read_frames(rest);
    else if (what == 3)
        read_hello(rest);
    else
        read_packets(zn_cursor_over_span(rest, what == 1));
    return 0;
}
