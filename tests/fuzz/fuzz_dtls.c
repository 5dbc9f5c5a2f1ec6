/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Byte 0, modulo 4: what the rest is. 0, 1: a datagram, cut or whole; 2: the body of a ClientHello,
 * after two bytes of its declared length; 3: the body of a HelloVerifyRequest.
 */
#include "build/build_dtls.h"
#include "proto/dtls.h"
#include "proto/tls.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Every byte that a result points to can be read. */
static void read_all(zn_span span)
{
    (void)zn_hash64(&(zn_hash_key){1, 2}, span.p, span.n);
}

static void read_hello(zn_span body, size_t declared)
{
    zn_tls_hello hello;
    zn_parse state = zn_tls_datagram_hello(body, declared, &hello);
    if (state != ZN_DONE && (hello.name.n != 0 || hello.cookie.n != 0))
        __builtin_trap();
    read_all(hello.name);
    read_all(hello.cookie);
}

/* What is built of a datagram with a fragment of this hello is bytes of it, of listed fields, or
 * zeros. */
static void build(zn_span datagram, const zn_dtls_fragment *part)
{
    static uint8_t body[1 << 16], out[1 << 16];
    zn_build_dtls_hello hello = {part->message, {body, part->length}};
    if (part->length > sizeof body || datagram.n > sizeof out)
        return;
    memset(body, 0xa5, part->length);
    memset(out, 0, datagram.n);
    if (!zn_build_dtls_datagram(datagram, &hello, 1, out))
        return;
    for (size_t i = 0; i < datagram.n; i++)
        if (out[i] != 0 && out[i] != 0xa5 && out[i] != datagram.p[i])
            __builtin_trap();
}

static void read_fragments(zn_span datagram, bool whole)
{
    zn_dtls_reader reader = zn_dtls_read(datagram, whole);
    zn_dtls_fragment part;
    while (zn_dtls_next_fragment(&reader, &part) == ZN_DONE) {
        if (part.offset > part.length || part.bytes.n > part.length - part.offset ||
            (whole && part.cut))
            __builtin_trap();
        read_hello(part.bytes, part.length);
        if (whole)
            build(datagram, &part);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    uint8_t what = zn_cursor_u8(&c) % 4;
    size_t declared = what == 2 ? zn_cursor_be16(&c) : 0;
    zn_span rest = zn_cursor_rest(&c), cookie;
    if (what == 2)
        read_hello(rest, declared);
    else if (what == 3 && zn_dtls_verify_request(rest, &cookie) == ZN_DONE)
        read_all(cookie);
    else if (what < 2)
        read_fragments(rest, what == 1);
    return 0;
}
