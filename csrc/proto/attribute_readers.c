/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/attribute_readers.h"

const zn_attribute_row *zn_attribute_row_of(unsigned attribute)
{
    static const zn_attribute_row rows[] = {
#define ROW(a, ID, word, column, message, reader, ...)                                             \
    [ZN_ATTRIBUTE_##ID] = {ZN_EXPOSES_##message, zn_read_##reader},
        ZN_ATTRIBUTES(ROW, )
#undef ROW
    };
    return &rows[attribute];
}
