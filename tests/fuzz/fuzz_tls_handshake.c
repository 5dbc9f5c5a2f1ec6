/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The first bytes of a client or a server. */
#include "proto/tls.h"
#include "proto/tls_suite.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static zn_tls_scratch scratch;
    zn_span head = {data, size}, certificate, name;
    zn_tls_details details;
    zn_tls_choice choice;
    bool ended;
    zn_span bytes = zn_tls_handshake_bytes(head, scratch.bytes, sizeof scratch.bytes, &ended);
    if (bytes.n > size)
        __builtin_trap();
    zn_tls_read_details(bytes, &details);
    if (details.versions > ZN_TLS_VERSIONS)
        __builtin_trap();
    if (zn_tls_first_certificate(bytes, &certificate) == ZN_DONE && certificate.n > bytes.n)
        __builtin_trap();
    if (zn_tls_server_choice(bytes, &choice) == ZN_DONE && choice.message_bytes > bytes.n)
        __builtin_trap();
    if (bytes.n != 0 && zn_tls_handshake_offset(head, bytes.n - 1) >= size)
        __builtin_trap();
    if (zn_x509_common_name(head, &name) == ZN_DONE && name.n > size)
        __builtin_trap();
    return 0;
}
