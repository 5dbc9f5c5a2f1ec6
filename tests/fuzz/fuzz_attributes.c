/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Byte 0: the attribute. Then the message, or for STUN the client's bytes of a connection. A text
 * needs no escape in a log. */
#include "proto/attribute_readers.h"
#include "proto/sip.h"
#include "proto/stun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Reads the head of a message of SIP, by which a response is matched with its request. */
static void read_head(zn_span message)
{
    zn_sip_message head;
    if (zn_sip_read(message, &head) == ZN_DONE &&
        (zn_span_offset(message, head.call_id) + head.call_id.n > message.n ||
         zn_span_offset(message, head.sequence) + head.sequence.n > message.n))
        __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    unsigned attribute = zn_cursor_u8(&c) % ZN_ATTRIBUTE_COUNT;
    zn_attribute_text text = {.n = 0};
    zn_span message = zn_cursor_rest(&c);
    zn_parse state;
    if (attribute == ZN_ATTRIBUTE_STUN)
        message = zn_stun_first(message);
    if (attribute == ZN_ATTRIBUTE_SIP)
        read_head(message);
    state = zn_attribute_row_of(attribute)->read(message, &text);
    if (state == ZN_NEED_MORE || (state == ZN_DONE && text.n == 0))
        __builtin_trap();
    if (text.place.n != 0 && zn_span_offset(message, text.place) + text.place.n > message.n)
        __builtin_trap();
    for (size_t i = 0; i < text.n; i++)
        if (text.text[i] <= 0x20 || text.text[i] > 0x7e || text.text[i] == '"' ||
            text.text[i] == '\\')
            __builtin_trap();
    return 0;
}
