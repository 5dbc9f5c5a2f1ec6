/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The last bit of byte 0: whether the message is whole. Then the message. */
#include "proto/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    bool whole = (zn_cursor_u8(&c) & 1) != 0;
    zn_dns_addresses addresses;
    zn_parse state = zn_dns_read_addresses(zn_cursor_rest(&c), whole, &addresses);
    if (addresses.n > ZN_DNS_ADDRESSES || (state != ZN_DONE && addresses.n != 0))
        __builtin_trap();
    if (whole && state == ZN_NEED_MORE)
        __builtin_trap();
    return 0;
}
