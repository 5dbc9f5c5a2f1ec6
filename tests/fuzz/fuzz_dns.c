/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The last bit of byte 0: whether the message is whole. Then the message. */
#include "proto/dns.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    bool whole = (zn_cursor_u8(&c) & 1) != 0;
    zn_dns_question question;
    zn_span message = zn_cursor_rest(&c);
    size_t used;
    zn_parse state = zn_dns_question_parse(message, whole, &question);
    if (question.name_bytes > ZN_DNS_NAME_MAX || (state != ZN_DONE && question.id != 0))
        __builtin_trap();
    if (whole && state == ZN_NEED_MORE)
        __builtin_trap();
    if (state == ZN_DONE && (question.end > message.n || question.end < question.name_bytes))
        __builtin_trap();
    state = zn_dns_tcp_question_parse(message, &question, &used);
    if (state == ZN_DONE && (used < 2u + question.end || message.n < 2u + question.end))
        __builtin_trap();
    return 0;
}
