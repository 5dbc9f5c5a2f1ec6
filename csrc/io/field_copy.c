/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "io/field_copy.h"

#include "base/packet.h"

#define AT(member) ((uint32_t)offsetof(zn_record, member))

static zn_field_copy copy_of_common(zn_common member)
{
    switch (member) {
    case ZN_COMMON_T_START:
        return (zn_field_copy){ZN_COPY_8, AT(first_ns)};
    case ZN_COMMON_T_END:
        return (zn_field_copy){ZN_COPY_8, AT(last_ns)};
    case ZN_COMMON_PROTO:
        return (zn_field_copy){ZN_COPY_1, AT(proto)};
    case ZN_COMMON_CLIENT_PORT:
        return (zn_field_copy){ZN_COPY_2, AT(client.port)};
    case ZN_COMMON_SERVER_PORT:
        return (zn_field_copy){ZN_COPY_2, AT(server.port)};
    case ZN_COMMON_EPOCH:
        return (zn_field_copy){ZN_COPY_8, AT(epoch)};
    case ZN_COMMON_C_PACKETS:
        return (zn_field_copy){ZN_COPY_8, AT(client.packets)};
    case ZN_COMMON_S_PACKETS:
        return (zn_field_copy){ZN_COPY_8, AT(server.packets)};
    case ZN_COMMON_C_BYTES:
        return (zn_field_copy){ZN_COPY_8, AT(client.bytes_all)};
    case ZN_COMMON_S_BYTES:
        return (zn_field_copy){ZN_COPY_8, AT(server.bytes_all)};
    default:
        return (zn_field_copy){ZN_COPY_CELL, 0};
    }
}

static zn_field_copy copy_of_column(const zn_column *c)
{
    uint32_t side = c->side == 's' ? AT(server) : c->side == 'c' ? AT(client) : 0;
    uint32_t offset = side + (uint32_t)c->offset;
    switch (c->kind) {
    case ZN_COLUMN_COUNT:
    case ZN_COLUMN_TOTAL:
        return (zn_field_copy){ZN_COPY_COUNT, offset};
    case ZN_COLUMN_BYTES:
        return (zn_field_copy){ZN_COPY_8, offset};
    case ZN_COLUMN_MS:
        return (zn_field_copy){ZN_COPY_MS, offset};
    case ZN_COLUMN_START_MS:
        return (zn_field_copy){ZN_COPY_8, AT(first_ns)};
    case ZN_COLUMN_END_MS:
        return (zn_field_copy){ZN_COPY_8, AT(last_ns)};
    case ZN_COLUMN_CONNECTION:
        return (zn_field_copy){ZN_COPY_4, AT(connection_type)};
    case ZN_COLUMN_METHOD:
        return (zn_field_copy){ZN_COPY_2, AT(http_method)};
    case ZN_COLUMN_NO_COUNT:
        return (zn_field_copy){ZN_COPY_NOTHING, 0};
    default:
        return (zn_field_copy){ZN_COPY_CELL, 0};
    }
}

zn_field_copy zn_field_copy_of(const zn_field *field, uint8_t proto)
{
    const zn_column *c = proto == ZN_PROTO_TCP ? field->tcp : field->udp;
    if (field->common != ZN_COMMON_COUNT)
        return copy_of_common(field->common);
    return c != NULL ? copy_of_column(c) : (zn_field_copy){ZN_COPY_NOTHING, 0};
}
