/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Bits of byte 0: what may be disclosed of a ClientHello, and whether the rest are records, a
 * message, the body of a DTLS hello or a server's records.
 */
#include "build/build_tls.h"
#include "util/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

enum { NAME = 1, FINGERPRINT = 2, FORMS = 12, RECORDS = 0, MESSAGE = 4, DATAGRAM = 8, SERVER = 12 };

static zn_tls_scratch scratch;

static bool build_once(unsigned bits, zn_span in, uint8_t *out)
{
    static const uint8_t common_name[] = "*.example.org";
    zn_build_choice choice = {(bits & NAME) != 0, (bits & FINGERPRINT) != 0};
    zn_build_certificates made;
    memset(out, 0, in.n);
    switch (bits & FORMS) {
    case RECORDS:
        return zn_build_client_hello(in, &choice, &scratch, out);
    case MESSAGE:
        return zn_build_client_hello_message(in, &choice, out);
    case DATAGRAM:
        return zn_build_client_hello_datagram(in, &choice, out);
    default:
        return zn_build_server_flight(in, (zn_span){common_name, sizeof common_name - 1}, &scratch,
                                      out, &made);
    }
}

static zn_parse read_hello(unsigned bits, zn_span in, zn_tls_hello *out)
{
    switch (bits & FORMS) {
    case RECORDS:
        return zn_tls_client_hello(in, false, &scratch, out);
    case MESSAGE:
        return zn_tls_bare_hello(in, out);
    default:
        return zn_tls_datagram_hello(in, in.n, out);
    }
}

/* A fingerprint is that of a hello that can be built, and has its space. */
static void check_print(unsigned bits, zn_span in, bool built)
{
    static zn_build_fingerprint print;
    bool read;
    switch (bits & FORMS) {
    case RECORDS:
        read = zn_build_tls_fingerprint(in, &scratch, &print);
        break;
    case MESSAGE:
        read = zn_build_tls_fingerprint_message(in, &print);
        break;
    default:
        read = zn_build_tls_fingerprint_datagram(in, &print);
        break;
    }
    if ((read && !built) || print.n > sizeof print.bytes)
        __builtin_trap();
}

/* A hello of SSL 2.0 is never built. One with damaged extensions has no fingerprint to build. */
static bool can_be_built(unsigned bits, zn_span in, const zn_tls_hello *hello)
{
    if ((bits & FORMS) == RECORDS && (zn_header_u8(in, 0) & ZN_TLS_V2_HEADER) != 0)
        return false;
    return (bits & FINGERPRINT) == 0 || hello->details.versions != 0;
}

/* What parsers read of the output is what they read of the input, or what stands for it. */
static void check_hello(unsigned bits, zn_span in, zn_span out, bool built)
{
    static uint8_t name[ZN_TLS_HELLO_MAX];
    zn_tls_hello before, after;
    size_t n;
    bool whole = read_hello(bits, in, &before) == ZN_DONE;
    if (built != (whole && can_be_built(bits, in, &before)))
        __builtin_trap();
    if (!built) {
        for (size_t i = 0; i < out.n; i++)
            if (out.p[i] != 0)
                __builtin_trap();
        return;
    }
    n = before.name.n;
    if (n != 0)
        memcpy(name, before.name.p, n);
    if (read_hello(bits, out, &after) != ZN_DONE || after.consumed != before.consumed ||
        after.name.n != n)
        __builtin_trap();
    for (size_t i = 0; (bits & NAME) != 0 && i < n; i++)
        if ((name[i] >= 'A' && name[i] <= 'Z' ? name[i] | 0x20 : name[i]) != after.name.p[i])
            bits &= ~(unsigned)NAME; /* then it is masked */
    if (n == 0 || (bits & NAME) != 0)
        return;
    zn_build_masked_name(name, n);
    if (memcmp(name, after.name.p, n) != 0)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    unsigned bits = zn_cursor_u8(&c);
    zn_span in = zn_cursor_rest(&c);
    uint8_t *first, *again;
    bool built;
    if (in.n == 0)
        return 0;
    first = zn_heap_alloc(in.n);
    again = zn_heap_alloc(in.n);
    if (first == NULL || again == NULL)
        __builtin_trap();
    built = build_once(bits, in, first);
    if ((bits & FORMS) != SERVER) {
        check_print(bits, in, built);
        check_hello(bits, in, (zn_span){first, in.n}, built);
    }
    /* Nothing is left of which something else could be built, or that a second time takes away. */
    if (build_once(bits, (zn_span){first, in.n}, again) != built)
        __builtin_trap();
    if ((bits & FORMS) != SERVER && memcmp(first, again, in.n) != 0)
        __builtin_trap();
    zn_heap_free(first);
    zn_heap_free(again);
    return 0;
}
