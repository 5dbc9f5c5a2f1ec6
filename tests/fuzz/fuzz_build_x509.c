/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Two bytes: the length of a certificate. Then its common name. */
#include "build/build_x509.h"
#include "proto/tls.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool is_possible(size_t n, zn_span name)
{
    for (size_t i = 0; i < name.n; i++)
        if (name.p[i] < ' ' || name.p[i] > '~')
            return false;
    return name.n <= ZN_BUILD_X509_NAME_MAX && n >= ZN_BUILD_X509_MIN(name.n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t out[UINT16_MAX];
    zn_cursor c = zn_cursor_over(data, size, true);
    size_t n = zn_cursor_be16(&c);
    zn_span name = zn_cursor_rest(&c), read = {NULL, 0};
    zn_parse state;
    memset(out, 0, n);
    if (!zn_build_x509(out, n, name)) {
        for (size_t i = 0; i < n; i++)
            if (out[i] != 0)
                __builtin_trap();
        if (is_possible(n, name))
            __builtin_trap();
        return 0;
    }
    state = zn_x509_common_name((zn_span){out, n}, &read);
    if (state != (name.n == 0 ? ZN_OTHER : ZN_DONE) || !zn_span_equal(read, name))
        __builtin_trap();
    return 0;
}
