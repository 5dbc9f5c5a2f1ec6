/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/field_copy.h"

_Static_assert(sizeof(zn_name_source) == sizeof(int) && sizeof(zn_name_status) == sizeof(int) &&
                   sizeof(zn_disclosure) == sizeof(int) && sizeof(zn_ech) == sizeof(int) &&
                   sizeof(zn_flag) == sizeof(int) && sizeof(zn_name_level) == sizeof(int) &&
                   sizeof(zn_server_level) == sizeof(int),
               "words, flags and disclosures are read as int");

static zn_copy_kind kind_of_number(const zn_column *c)
{
    switch (c->size) {
    case 1:
        return c->type == ZN_FIELD_BOOL ? ZN_COPY_BIT : ZN_COPY_1;
    case 2:
        return ZN_COPY_2;
    case 4:
        return ZN_COPY_4;
    default:
        return c->type == ZN_FIELD_U32 ? ZN_COPY_COUNT : ZN_COPY_8;
    }
}

static zn_copy_kind kind_of(const zn_column *c)
{
    switch (c->kind) {
    case ZN_COLUMN_NUMBER:
    case ZN_COLUMN_CODE:
        return kind_of_number(c);
    case ZN_COLUMN_NS:
    case ZN_COLUMN_TIME:
        return ZN_COPY_8;
    case ZN_COLUMN_MS:
        return ZN_COPY_MS;
    case ZN_COLUMN_DURATION_MS:
        return ZN_COPY_DURATION;
    case ZN_COLUMN_PSEUDONYM:
        return ZN_COPY_DISCLOSED;
    case ZN_COLUMN_FLAG:
        return ZN_COPY_FLAG;
    case ZN_COLUMN_NAME_SOURCE:
    case ZN_COLUMN_NAME_STATUS:
    case ZN_COLUMN_NAME_LEVEL:
    case ZN_COLUMN_SERVER_LEVEL:
    case ZN_COLUMN_ECH:
        return ZN_COPY_WORD;
    case ZN_COLUMN_ADDRESS:
        return ZN_COPY_ADDRESS;
    case ZN_COLUMN_NAME_TLS:
    case ZN_COLUMN_NAME_HTTP:
    case ZN_COLUMN_NAME_QUIC:
    case ZN_COLUMN_TEXT:
        return ZN_COPY_TEXT;
    case ZN_COLUMN_UNMEASURED:
        return ZN_COPY_NOTHING;
    default:
        return ZN_COPY_CELL;
    }
}

static zn_name_source source_of(zn_column_kind kind)
{
    switch (kind) {
    case ZN_COLUMN_NAME_TLS:
        return ZN_SOURCE_TLS;
    case ZN_COLUMN_NAME_HTTP:
        return ZN_SOURCE_HTTP;
    case ZN_COLUMN_NAME_QUIC:
        return ZN_SOURCE_QUIC;
    default:
        return ZN_SOURCE_NONE;
    }
}

zn_field_copy zn_field_copy_of(const zn_column *c)
{
    return (zn_field_copy){kind_of(c), c->offset, source_of(c->kind)};
}
