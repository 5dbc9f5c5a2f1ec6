/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/field_copy.h"

#include "util/protocol.h"

_Static_assert(sizeof(zn_name_source) == sizeof(int) && sizeof(zn_name_status) == sizeof(int) &&
                   sizeof(zn_disclosure) == sizeof(int) && sizeof(zn_ech) == sizeof(int),
               "words and what is shown are read as int");

#define AT(member) ((uint32_t)offsetof(zn_record, member))

static zn_field_copy copy_of_common(zn_common member)
{
    switch (member) {
    case ZN_COMMON_T_START:
        return (zn_field_copy){ZN_COPY_8, AT(first_ns), 0};
    case ZN_COMMON_T_END:
        return (zn_field_copy){ZN_COPY_8, AT(last_ns), 0};
    case ZN_COMMON_PROTO:
        return (zn_field_copy){ZN_COPY_1, AT(proto), 0};
    case ZN_COMMON_CLIENT:
        return (zn_field_copy){ZN_COPY_ADDRESS, AT(client.addr), AT(client.disclosure)};
    case ZN_COMMON_SERVER:
        return (zn_field_copy){ZN_COPY_ADDRESS, AT(server.addr), AT(server.disclosure)};
    case ZN_COMMON_NAME_SOURCE:
        return (zn_field_copy){ZN_COPY_WORD, AT(source), 0};
    case ZN_COMMON_NAME_STATUS:
        return (zn_field_copy){ZN_COPY_WORD, AT(status), 0};
    case ZN_COMMON_ECH:
        return (zn_field_copy){ZN_COPY_WORD, AT(ech), 0};
    case ZN_COMMON_NAME:
        return (zn_field_copy){ZN_COPY_TEXT, AT(name), ZN_SOURCE_NONE};
    case ZN_COMMON_COMPLETE:
        return (zn_field_copy){ZN_COPY_FLAG, AT(complete), AT(midstream)};
    case ZN_COMMON_MIDSTREAM: /* not in a coarse record anyway */
        return (zn_field_copy){ZN_COPY_FLAG, AT(midstream), AT(coarse)};
    case ZN_COMMON_EVICTED:
        return (zn_field_copy){ZN_COPY_FLAG, AT(early), AT(coarse)};
    case ZN_COMMON_CLIENT_PORT:
        return (zn_field_copy){ZN_COPY_2, AT(client.port), 0};
    case ZN_COMMON_SERVER_PORT:
        return (zn_field_copy){ZN_COPY_2, AT(server.port), 0};
    case ZN_COMMON_EPOCH:
        return (zn_field_copy){ZN_COPY_8, AT(epoch), 0};
    case ZN_COMMON_C_PACKETS:
        return (zn_field_copy){ZN_COPY_8, AT(client.packets), 0};
    case ZN_COMMON_S_PACKETS:
        return (zn_field_copy){ZN_COPY_8, AT(server.packets), 0};
    case ZN_COMMON_C_BYTES:
        return (zn_field_copy){ZN_COPY_8, AT(client.bytes_all), 0};
    case ZN_COMMON_S_BYTES:
        return (zn_field_copy){ZN_COPY_8, AT(server.bytes_all), 0};
    default:
        return (zn_field_copy){ZN_COPY_CELL, 0, 0};
    }
}

static zn_copy_kind kind_of_column(zn_column_kind kind)
{
    switch (kind) {
    case ZN_COLUMN_COUNT:
    case ZN_COLUMN_TOTAL:
        return ZN_COPY_COUNT;
    case ZN_COLUMN_BYTES:
    case ZN_COLUMN_START_MS:
    case ZN_COLUMN_END_MS:
        return ZN_COPY_8;
    case ZN_COLUMN_CONNECTION:
        return ZN_COPY_4;
    case ZN_COLUMN_METHOD:
        return ZN_COPY_2;
    case ZN_COLUMN_INTERNAL:
        return ZN_COPY_BIT;
    case ZN_COLUMN_MS:
        return ZN_COPY_MS;
    case ZN_COLUMN_DURATION_MS:
        return ZN_COPY_DURATION;
    case ZN_COLUMN_ENCRYPTED:
        return ZN_COPY_DISCLOSED;
    case ZN_COLUMN_RESOLVER:
        return ZN_COPY_ADDRESS;
    case ZN_COLUMN_NAME_TLS:
    case ZN_COLUMN_NAME_HTTP:
    case ZN_COLUMN_NAME_QUIC:
    case ZN_COLUMN_TEXT:
        return ZN_COPY_TEXT;
    case ZN_COLUMN_NO_COUNT:
        return ZN_COPY_NOTHING;
    default:
        return ZN_COPY_CELL;
    }
}

static uint32_t secondary_column(zn_column_kind kind)
{
    switch (kind) {
    case ZN_COLUMN_RESOLVER:
        return AT(resolver_disclosure);
    case ZN_COLUMN_NAME_TLS:
        return ZN_SOURCE_TLS;
    case ZN_COLUMN_NAME_HTTP:
        return ZN_SOURCE_HTTP;
    case ZN_COLUMN_NAME_QUIC:
        return ZN_SOURCE_QUIC;
    default:
        return 0;
    }
}

zn_field_copy zn_field_copy_of(const zn_field *field, uint8_t proto)
{
    const zn_column *c = proto == ZN_PROTO_TCP ? field->tcp : field->udp;
    if (field->common != ZN_COMMON_COUNT)
        return copy_of_common(field->common);
    if (c == NULL)
        return (zn_field_copy){ZN_COPY_NOTHING, 0, 0};
    return (zn_field_copy){kind_of_column(c->kind), zn_column_place(c), secondary_column(c->kind)};
}
