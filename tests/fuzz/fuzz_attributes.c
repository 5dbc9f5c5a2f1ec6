/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Byte 0: the attribute. Then the message, or for STUN the client's bytes of a connection. A text
 * needs no escape in a log. */
#include "proto/attribute_readers.h"
#include "proto/stun.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    unsigned attribute = zn_cursor_u8(&c) % ZN_ATTRIBUTE_COUNT;
    zn_attribute_text text = {.n = 0};
    zn_span message = zn_cursor_rest(&c);
    zn_parse state;
    if (attribute == ZN_ATTRIBUTE_STUN)
        message = zn_stun_first(message);
    state = zn_attribute_row_of(attribute)->read(message, &text);
    if (state == ZN_NEED_MORE || (state == ZN_DONE && text.n == 0))
        __builtin_trap();
    for (size_t i = 0; i < text.n; i++)
        if (text.text[i] <= 0x20 || text.text[i] > 0x7e || text.text[i] == '"' ||
            text.text[i] == '\\')
            __builtin_trap();
    return 0;
}
