/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Byte 0: the attribute. Then the message. A text needs no escape in a log. */
#include "proto/attribute_readers.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    unsigned attribute = zn_cursor_u8(&c) % ZN_ATTRIBUTE_COUNT;
    zn_attribute_text text = {.n = 0};
    zn_parse state = zn_attribute_row_of(attribute)->read(zn_cursor_rest(&c), &text);
    if (state == ZN_NEED_MORE || (state == ZN_DONE && text.n == 0))
        __builtin_trap();
    for (size_t i = 0; i < text.n; i++)
        if (text.text[i] <= 0x20 || text.text[i] > 0x7e || text.text[i] == '"' ||
            text.text[i] == '\\')
            __builtin_trap();
    return 0;
}
