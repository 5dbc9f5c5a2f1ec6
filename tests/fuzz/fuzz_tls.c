/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The last bit of byte 0: whether the capture was cut. Then the head of the stream. */
#include "proto/ascii.h"
#include "proto/tls.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* The details of a whole hello, read on the way to its name, are those read alone. */
static void check_details(zn_span head, const zn_tls_details *read)
{
    static uint8_t bytes[ZN_TLS_HELLO_MAX];
    zn_tls_details alone;
    bool ended;
    zn_tls_read_details(zn_tls_handshake_bytes(head, bytes, sizeof bytes, &ended), &alone);
    if (read->versions != alone.versions || read->protocols != alone.protocols ||
        memcmp(read->version, alone.version, sizeof alone.version) != 0 ||
        read->session_id != alone.session_id || read->pre_shared_key != alone.pre_shared_key ||
        read->early_data != alone.early_data || read->retry != alone.retry)
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static zn_tls_scratch scratch;
    zn_cursor c = zn_cursor_over(data, size, true);
    zn_tls_hello hello;
    bool cut = zn_cursor_u8(&c) & 1;
    zn_span head = zn_cursor_rest(&c);
    zn_parse state = zn_tls_client_hello(head, cut, &scratch, &hello);
    if (hello.consumed > size || (state != ZN_DONE && hello.name.n != 0))
        __builtin_trap();
    if (hello.details.versions != 0 && zn_ascii_first(head) == ZN_TLS_CONTENT_HANDSHAKE)
        check_details(head, &hello.details);
    (void)zn_hash64(&(zn_hash_key){1, 2}, hello.name.p, hello.name.n);
    return 0;
}
