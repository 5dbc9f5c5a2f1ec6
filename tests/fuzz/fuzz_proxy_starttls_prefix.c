/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/proxy_starttls_prefix.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    size_t used;
    zn_parse state = zn_proxy_or_starttls_prefix_skip((zn_span){data, size}, &used);
    if ((state == ZN_DONE) != (used != 0) || used > 16 + 65535 + size)
        __builtin_trap();
    return 0;
}
