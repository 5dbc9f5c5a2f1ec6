/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "io/field_copy.h"

#include "base/packet.h"

_Static_assert(sizeof(zn_name_source) == sizeof(int) && sizeof(zn_name_status) == sizeof(int) &&
                   sizeof(zn_shown) == sizeof(int) && sizeof(zn_ech) == sizeof(int),
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
        return (zn_field_copy){ZN_COPY_ADDRESS, AT(client.addr), AT(client.shown)};
    case ZN_COMMON_SERVER:
        return (zn_field_copy){ZN_COPY_ADDRESS, AT(server.addr), AT(server.shown)};
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
    case ZN_COMMON_EARLY:
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

static zn_field_copy copy_of_column(const zn_column *c)
{
    uint32_t side = c->side == 's' ? AT(server) : c->side == 'c' ? AT(client) : 0;
    uint32_t offset = side + (uint32_t)c->offset;
    switch (c->kind) {
    case ZN_COLUMN_COUNT:
    case ZN_COLUMN_TOTAL:
        return (zn_field_copy){ZN_COPY_COUNT, offset, 0};
    case ZN_COLUMN_BYTES:
        return (zn_field_copy){ZN_COPY_8, offset, 0};
    case ZN_COLUMN_MS:
        return (zn_field_copy){ZN_COPY_MS, offset, 0};
    case ZN_COLUMN_START_MS:
        return (zn_field_copy){ZN_COPY_8, AT(first_ns), 0};
    case ZN_COLUMN_END_MS:
        return (zn_field_copy){ZN_COPY_8, AT(last_ns), 0};
    case ZN_COLUMN_RESOLVER:
        return (zn_field_copy){ZN_COPY_ADDRESS, AT(resolver), AT(resolver_shown)};
    case ZN_COLUMN_DURATION_MS:
        return (zn_field_copy){ZN_COPY_DURATION, AT(first_ns), 0};
    case ZN_COLUMN_ENCRYPTED:
        return (zn_field_copy){ZN_COPY_SHOWN, side + (uint32_t)offsetof(zn_record_side, shown), 0};
    case ZN_COLUMN_NAME_TLS:
        return (zn_field_copy){ZN_COPY_TEXT, AT(name), ZN_SOURCE_TLS};
    case ZN_COLUMN_NAME_HTTP:
        return (zn_field_copy){ZN_COPY_TEXT, AT(name), ZN_SOURCE_HTTP};
    case ZN_COLUMN_NAME_QUIC:
        return (zn_field_copy){ZN_COPY_TEXT, AT(name), ZN_SOURCE_QUIC};
    case ZN_COLUMN_FQDN:
        return (zn_field_copy){ZN_COPY_TEXT, AT(fqdn), ZN_SOURCE_NONE};
    case ZN_COLUMN_CERTIFICATE:
        return (zn_field_copy){ZN_COPY_TEXT, AT(certificate), ZN_SOURCE_NONE};
    case ZN_COLUMN_AGENT:
        return (zn_field_copy){ZN_COPY_TEXT, AT(user_agent), ZN_SOURCE_NONE};
    case ZN_COLUMN_INTERNAL:
        return (zn_field_copy){ZN_COPY_BIT, side + (uint32_t)offsetof(zn_record_side, internal), 0};
    case ZN_COLUMN_CONNECTION:
        return (zn_field_copy){ZN_COPY_4, AT(connection_type), 0};
    case ZN_COLUMN_METHOD:
        return (zn_field_copy){ZN_COPY_2, AT(http_method), 0};
    case ZN_COLUMN_NO_COUNT:
        return (zn_field_copy){ZN_COPY_NOTHING, 0, 0};
    default:
        return (zn_field_copy){ZN_COPY_CELL, 0, 0};
    }
}

zn_field_copy zn_field_copy_of(const zn_field *field, uint8_t proto)
{
    const zn_column *c = proto == ZN_PROTO_TCP ? field->tcp : field->udp;
    if (field->common != ZN_COMMON_COUNT)
        return copy_of_common(field->common);
    return c != NULL ? copy_of_column(c) : (zn_field_copy){ZN_COPY_NOTHING, 0, 0};
}
