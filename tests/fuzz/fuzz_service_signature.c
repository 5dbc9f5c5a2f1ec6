/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A segment's or datagram's first bytes. */
#include "proto/nameless.h"
#include "proto/service_signature.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_span bytes = {data, size};
    zn_datagram_signature signature = zn_datagram_signature_of(bytes, size);
    if (signature.kind == ZN_DATAGRAM_RTP && size < 12)
        __builtin_trap();
    if (zn_service_signature_of(bytes) != ZN_SIGNATURE_NONE && size < 4)
        __builtin_trap();
    (void)zn_service_is_imap(bytes);
    for (unsigned side = 0; side < 2; side++) {
        zn_nameless n = {UINT32_MAX, false};
        zn_nameless_hear(&n, bytes);
        zn_nameless_open(&n, bytes, side != 0);
        if (n.known && size == 0)
            __builtin_trap();
    }
    return 0;
}
