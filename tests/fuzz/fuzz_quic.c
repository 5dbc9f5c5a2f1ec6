/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte 0, modulo 4: what the rest is. 0, 1: a datagram, cut or whole, whose Initials are opened
 * with keys from their own ID; 2: the plaintext of an Initial; 3: handshake messages, and then
 * transport parameters.
 */
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    uint8_t what = zn_cursor_u8(&c) % 4;
    zn_span rest = zn_cursor_rest(&c);
    if (quic == NULL && (zn_quic_open(&quic, NULL) != 0 || atexit(close_quic) != 0))
        __builtin_trap();
    if (what == 2)
        read_frames(rest);
    else if (what == 3)
        read_hello(rest);
    else
        read_packets(zn_cursor_over_span(rest, what == 1));
    return 0;
}
