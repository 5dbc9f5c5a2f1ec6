/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The last bit of byte 0: whether the capture was cut. Then the head of the stream. */
#include "base/hash.h"
#include "proto/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static zn_tls_scratch scratch;
    zn_cursor c = zn_cursor_over(data, size, true);
    zn_tls_hello hello;
    bool cut = zn_cursor_u8(&c) & 1;
    zn_parse state = zn_tls_client_hello(zn_cursor_rest(&c), cut, &scratch, &hello);
    if (hello.consumed > size || (state != ZN_DONE && hello.name.n != 0))
        __builtin_trap();
    (void)zn_hash64(&(zn_hash_key){1, 2}, hello.name.p, hello.name.n);
    return 0;
}
