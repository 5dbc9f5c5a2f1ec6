/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/gquic.h"

#define HASH_BYTES 12u
#define TAGS_MAX 128u          /* of a message, as in Chromium */
#define MESSAGE_MAX (1u << 14) /* bytes of the values of a message that is looked at */
#define STREAM_OF_HANDSHAKE 1u

/* Bits of the first byte of Q043. */
enum {
    HAS_VERSION = 0x01,
    IS_RESET = 0x02,
    HAS_NONCE = 0x04,
    HAS_ID = 0x08,
    NUMBER_BITS = 0x30,
    RESERVED_BITS = 0xc0
};

/* ---- headers --------------------------------------------------------------------------------- */

/* Q043. Only the client's packets have a version. */
static zn_parse read_q043(zn_cursor *c, uint32_t version, zn_gquic_packet *out)
{
    static const uint8_t number_bytes[] = {1, 2, 4, 6};
    uint8_t first = zn_cursor_u8(c);
    uint8_t wanted = version == 0 ? HAS_VERSION | HAS_ID : 0;
    if ((first & (RESERVED_BITS | IS_RESET | HAS_NONCE | HAS_VERSION)) != (wanted & HAS_VERSION) ||
        (first & wanted) != wanted)
        return ZN_OTHER;
    if ((first & HAS_ID) != 0)
        out->id = zn_cursor_take(c, ZN_GQUIC_ID_BYTES);
    if (version == 0)
        out->version = zn_cursor_be32(c);
    out->number_bytes = number_bytes[(first & NUMBER_BITS) >> 4];
    zn_cursor_skip(c, out->number_bytes);
    return out->version == ZN_GQUIC_Q043 ? ZN_DONE : ZN_OTHER;
}

/* The connection IDs of Q046: the client's packet has the receiver's ID, the server's packet has
 * its own. */
static void read_q046(zn_cursor *c, uint8_t first, bool from_client, zn_gquic_packet *out)
{
    if (zn_cursor_u8(c) != (from_client ? 0x50 : 0x05))
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    out->id = zn_cursor_take(c, ZN_GQUIC_ID_BYTES);
    out->number_bytes = (uint8_t)((first & 3u) + 1);
    zn_cursor_skip(c, out->number_bytes);
}

/* Q050. The packet has the form of QUIC's Initial (RFC 9000 17.2.2). */
static void read_q050(zn_cursor *c, uint8_t first, bool from_client, zn_gquic_packet *out)
{
    zn_span receiver = zn_cursor_take(c, zn_cursor_u8(c));
    zn_span sender = zn_cursor_take(c, zn_cursor_u8(c));
    uint64_t length;
    out->id = from_client ? receiver : sender;
    if ((first & 0x30) != 0 || out->id.n != ZN_GQUIC_ID_BYTES)
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    (void)zn_quic_vector(c); /* token */
    length = zn_quic_varint(c);
    if (zn_cursor_ok(c) && length != 0 && length <= zn_cursor_left(c)) {
        out->sealed.n = (size_t)length;
        return;
    }
    zn_cursor_fail(c, c->whole ? ZN_CURSOR_BAD : ZN_CURSOR_SHORT);
}

zn_parse zn_gquic_packet_read(zn_span datagram, bool whole, uint32_t version, zn_gquic_packet *out)
{
    zn_cursor c = zn_cursor_over_span(datagram, whole), at = c;
    uint8_t first = zn_cursor_u8(&at);
    bool is_long = (first & ZN_QUIC_LONG_FORM) != 0;
    zn_parse result = ZN_DONE;
    memset(out, 0, sizeof *out);
    out->version = version;
    if (!is_long) {
        result = read_q043(&c, version, out);
    } else {
        uint32_t named = zn_cursor_be32(&at);
        if (named == ZN_GQUIC_Q046)
            read_q046(&at, first, version == 0, out);
        else if (named == ZN_GQUIC_Q050)
            read_q050(&at, first, version == 0, out);
        else
            result = ZN_OTHER;
        if (version != 0 && named != version)
            result = ZN_OTHER;
        out->version = named;
        c = at;
    }
    if (!zn_cursor_ok(&c))
        return zn_cursor_parse(&c);
    out->header = zn_span_first(datagram, datagram.n - zn_cursor_left(&c));
    out->sealed = zn_cursor_take(&c, out->sealed.n != 0 ? out->sealed.n : zn_cursor_left(&c));
    return result;
}

/* ---- protection ------------------------------------------------------------------------------ */

__extension__ typedef unsigned __int128 uint128;

/* FNV-1a with 128 bits. */
static uint128 hash_more(uint128 hash, zn_span bytes)
{
    const uint128 prime = (uint128)1 << 88 | 0x13b;
    zn_cursor c = zn_cursor_over_span(bytes, true);
    while (zn_cursor_left(&c) > 0) {
        hash ^= zn_cursor_u8(&c);
        hash *= prime;
    }
    return hash;
}

/* Returns true if the first 12 bytes of `sealed` are the hash of the other bytes and the side. */
static bool has_hash(const zn_gquic_packet *packet, zn_quic_side from, zn_span plain)
{
    static const uint8_t sides[2][6] = {[ZN_QUIC_CLIENT] = "Client", [ZN_QUIC_SERVER] = "Server"};
    uint128 hash = (uint128)UINT64_C(0x6c62272e07bb0142) << 64 | UINT64_C(0x62b821756295c58d);
    zn_cursor c = zn_cursor_over_span(packet->sealed, true);
    bool equal = true;
    hash = hash_more(hash, packet->header);
    hash = hash_more(hash, plain);
    hash = hash_more(hash, (zn_span){sides[from], sizeof sides[from]});
    for (unsigned i = 0; i < HASH_BYTES; i++)
        equal &= zn_cursor_u8(&c) == (uint8_t)(hash >> 8 * i);
    return equal;
}

/* Opens a packet of Q050 with keys from the client's ID. */
static zn_parse open_q050(zn_quic *q, const zn_gquic_packet *packet, zn_quic_side from, zn_span id,
                          zn_span *frames)
{
    zn_quic_packet sealed = {
        .version = packet->version, .header = packet->header, .sealed = packet->sealed};
    zn_quic_secret sides[2];
    zn_quic_keys keys;
    if (!zn_quic_derive(q, packet->version, id, sides) ||
        !zn_quic_expand(packet->version, &sides[from], &keys) ||
        zn_quic_unseal(q, &keys, &sealed, frames) != ZN_DONE)
        return ZN_OTHER;
    return ZN_DONE;
}

zn_parse zn_gquic_open(zn_quic *q, const zn_gquic_packet *packet, zn_quic_side from, zn_span id,
                       zn_span *frames)
{
    if (packet->version == ZN_GQUIC_Q050)
        return open_q050(q, packet, from, id, frames);
    *frames = (zn_span){packet->sealed.p, 0};
    if (packet->sealed.n <= HASH_BYTES)
        return ZN_OTHER;
    *frames = zn_span_after(packet->sealed, HASH_BYTES);
    if (has_hash(packet, from, *frames))
        return ZN_DONE;
    frames->n = 0;
    return ZN_OTHER;
}

/* ---- frames ---------------------------------------------------------------------------------- */

/* Returns a number of n bytes, the most significant first. */
static uint64_t take_number(zn_cursor *c, size_t n)
{
    uint64_t value = 0;
    for (size_t i = 0; i < n; i++)
        value = value << 8 | zn_cursor_u8(c);
    return value;
}

static void add_part(zn_cursor *c, uint64_t offset, zn_span bytes, zn_quic_crypto_frames *out)
{
    if (!zn_cursor_ok(c) || bytes.n == 0)
        return;
    if (out->n == ZN_QUIC_CRYPTO_FRAMES)
        zn_cursor_fail(c, ZN_CURSOR_BAD);
    else
        out->frame[out->n++] = (zn_quic_crypto_frame){offset, bytes};
}

/* STREAM: 1, end of the stream, length given, three bits of the offset's size, two of the ID's. The
 * handshake of Q050 has no stream. */
static void read_stream(zn_cursor *c, const zn_gquic_packet *packet, uint8_t type,
                        zn_quic_crypto_frames *out)
{
    size_t size = type >> 2 & 7u;
    uint64_t stream = take_number(c, (type & 3u) + 1);
    uint64_t offset = take_number(c, size == 0 ? 0 : size + 1);
    zn_span bytes = zn_cursor_take(c, (type & 0x20) != 0 ? zn_cursor_be16(c) : zn_cursor_left(c));
    if (stream == STREAM_OF_HANDSHAKE && packet->version != ZN_GQUIC_Q050)
        add_part(c, offset, bytes, out);
}

/* ACK: 0, 1, more blocks, a bit, two bits of the size of numbers, two of the size of blocks. */
static void skip_ack(zn_cursor *c, uint8_t type)
{
    static const uint8_t sizes[] = {1, 2, 4, 6};
    size_t block = sizes[type & 3u];
    unsigned blocks = 0, times;
    zn_cursor_skip(c, sizes[type >> 2 & 3u] + 2u); /* largest number, delay */
    if ((type & 0x20) != 0)
        blocks = zn_cursor_u8(c);
    zn_cursor_skip(c, block + blocks * (1 + block));
    times = zn_cursor_u8(c);
    if (times != 0)
        zn_cursor_skip(c, 5u + (times - 1) * 3u);
}

/* Reads a frame that is neither STREAM nor ACK. */
static void read_other(zn_cursor *c, const zn_gquic_packet *packet, uint8_t type,
                       zn_quic_crypto_frames *out)
{
    uint64_t offset;
    switch (type) {
    case 0x00: /* PADDING */
        zn_cursor_skip_zeros(c);
        break;
    case 0x01: /* RST_STREAM: stream, offset, error */
        zn_cursor_skip(c, 16);
        break;
    case 0x02: /* CONNECTION_CLOSE: error, reason */
        zn_cursor_skip(c, 4);
        zn_cursor_skip(c, zn_cursor_be16(c));
        break;
    case 0x03: /* GOAWAY: error, stream, reason */
        zn_cursor_skip(c, 8);
        zn_cursor_skip(c, zn_cursor_be16(c));
        break;
    case 0x04: /* WINDOW_UPDATE: stream, offset */
        zn_cursor_skip(c, 12);
        break;
    case 0x05: /* BLOCKED: stream */
        zn_cursor_skip(c, 4);
        break;
    case 0x06: /* STOP_WAITING, which only Q043 has */
        if (packet->version != ZN_GQUIC_Q043)
            zn_cursor_fail(c, ZN_CURSOR_BAD);
        zn_cursor_skip(c, packet->number_bytes);
        break;
    case 0x07: /* PING */
        break;
    case 0x08: /* CRYPTO, which only Q050 has */
        if (packet->version != ZN_GQUIC_Q050)
            zn_cursor_fail(c, ZN_CURSOR_BAD);
        offset = zn_quic_varint(c);
        add_part(c, offset, zn_quic_vector(c), out);
        break;
    default:
        zn_cursor_fail(c, ZN_CURSOR_BAD);
        break;
    }
}

zn_parse zn_gquic_frames_read(const zn_gquic_packet *packet, zn_span frames,
                              zn_quic_crypto_frames *out)
{
    zn_cursor c = zn_cursor_over_span(frames, true);
    out->n = 0;
    while (zn_cursor_left(&c) > 0) {
        uint8_t type = zn_cursor_u8(&c);
        if ((type & 0x80) != 0)
            read_stream(&c, packet, type, out);
        else if ((type & 0x40) != 0)
            skip_ack(&c, type);
        else
            read_other(&c, packet, type, out);
    }
    if (zn_cursor_ok(&c))
        return ZN_DONE;
    out->n = 0;
    return ZN_MALFORMED;
}

/* ---- messages -------------------------------------------------------------------------------- */

/* Tags, the first letter in the lowest byte. */
#define TAG(a, b, c, d)                                                                            \
    ((uint32_t)(a) | (uint32_t)(b) << 8 | (uint32_t)(c) << 16 | (uint32_t)(d) << 24)

/* The places of a message's values, behind its table. */
typedef struct places {
    size_t table;                  /* bytes of the message's head and table */
    size_t name[2], token[2], end; /* from and to, in the values; end of the values */
} places;

/* Reads the head and the table of a message: its tag, the number of values, and for each value its
 * tag and where it ends. */
static zn_parse read_table(zn_span bytes, uint32_t message, places *out)
{
    zn_cursor c = zn_cursor_over_span(bytes, false), table;
    uint32_t tag = zn_cursor_le32(&c), last = 0;
    unsigned tags;
    memset(out, 0, sizeof *out);
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    if (tag != message)
        return ZN_OTHER;
    tags = zn_cursor_le16(&c);
    zn_cursor_skip(&c, 2);
    if (tags > TAGS_MAX)
        return ZN_MALFORMED;
    table = zn_cursor_sub(&c, (size_t)tags * 8);
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    for (unsigned i = 0; i < tags; i++) {
        size_t from = out->end;
        tag = zn_cursor_le32(&table);
        out->end = zn_cursor_le32(&table);
        if ((i != 0 && tag <= last) || out->end < from || out->end > MESSAGE_MAX)
            return ZN_MALFORMED;
        if (tag == TAG('S', 'N', 'I', 0))
            memcpy(out->name, (size_t[]){from, out->end}, sizeof out->name);
        if (tag == TAG('S', 'T', 'K', 0))
            memcpy(out->token, (size_t[]){from, out->end}, sizeof out->token);
        last = tag;
    }
    out->table = 8 + (size_t)tags * 8;
    return ZN_DONE;
}

zn_parse zn_gquic_hello_read(zn_span bytes, zn_gquic_message *out)
{
    places at;
    zn_parse result = read_table(bytes, TAG('C', 'H', 'L', 'O'), &at);
    zn_span values;
    memset(out, 0, sizeof *out);
    if (result != ZN_DONE)
        return result;
    values = zn_span_after(bytes, at.table);
    if (values.n < at.end)
        return ZN_NEED_MORE;
    out->name = zn_span_part(values, at.name[0], at.name[1]);
    out->token = zn_span_part(values, at.token[0], at.token[1]);
    out->bytes = at.table + at.end;
    return ZN_DONE;
}

zn_parse zn_gquic_rejection_read(zn_span bytes, zn_span *token)
{
    places at;
    zn_parse result = read_table(bytes, TAG('R', 'E', 'J', 0), &at);
    zn_span values;
    *token = (zn_span){bytes.p, 0};
    if (result != ZN_DONE)
        return result;
    values = zn_span_after(bytes, at.table);
    if (values.n < at.token[1])
        return ZN_NEED_MORE;
    *token = zn_span_part(values, at.token[0], at.token[1]);
    return ZN_DONE;
}
