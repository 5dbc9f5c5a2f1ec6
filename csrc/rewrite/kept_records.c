/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/kept_records.h"

#include "packet/packet.h"
#include "proto/tls.h"

#define RECORD_BYTES_MAX (16384u + 2048u) /* RFC 5246 6.2.3 */
#define RECORD_TYPE_ALERT 21u
#define RECORD_TYPE_LAST 24u /* heartbeat */
#define SAMPLE_LEAST 8u
#define SAMPLE_MOST 32u

/* Segment, and the place of its kept bytes. */
typedef struct segment {
    uint32_t seq;
    zn_span payload;
    uint8_t *out;
    bool kept; /* true if a byte is kept */
} segment;

/* Returns the part of the segment with the n bytes from sequence number `from` on. */
static zn_span part_of(const segment *s, uint32_t from, uint32_t n)
{
    int32_t offset = zn_seq_ahead(from, s->seq);
    int64_t first = offset < 0 ? 0 : offset, end = (int64_t)offset + n;
    if (end > (int64_t)s->payload.n)
        end = (int64_t)s->payload.n;
    if (end <= first)
        return zn_span_first(s->payload, 0);
    return zn_span_part(s->payload, (size_t)first, (size_t)end);
}

static void keep(segment *s, uint32_t from, uint32_t n)
{
    zn_span part = part_of(s, from, n);
    if (part.n == 0)
        return;
    memcpy(s->out + zn_span_offset(s->payload, part), part.p, part.n);
    s->kept = true;
}

/* Returns true if the start of a record's content has no byte that text would not have: encrypted
 * content looks like random bytes. */
static bool is_text(zn_span content)
{
    zn_cursor c = zn_cursor_over_span(zn_span_first(content, SAMPLE_MOST), true);
    if (zn_cursor_left(&c) < SAMPLE_LEAST)
        return false;
    while (zn_cursor_left(&c) > 0)
        if (zn_cursor_u8(&c) >= 0x80)
            return false;
    return true;
}

/* Returns the number of bytes behind the header; 0 if it is not the header of a record. */
static uint32_t content_bytes(const zn_kept_side *side)
{
    zn_cursor c = zn_cursor_over(side->header, sizeof side->header, true);
    uint8_t type = zn_cursor_u8(&c), major = zn_cursor_u8(&c), minor = zn_cursor_u8(&c);
    uint32_t n = zn_cursor_be16(&c);
    bool known = type >= ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC && type <= RECORD_TYPE_LAST;
    return known && major == 3 && minor <= 4 && n <= RECORD_BYTES_MAX ? n : 0;
}

/* Adds bytes of the segment to the header of the side's next record. Returns true if the header is
 * whole now. */
static bool gather_header(zn_kept_side *side, segment *s)
{
    uint32_t from = side->next + side->header_bytes;
    zn_span part = part_of(s, from, ZN_RECORD_HEADER - side->header_bytes);
    zn_cursor c = zn_cursor_over_span(part, true);
    if (part.n == 0 || zn_seq_ahead(from, s->seq) < 0)
        return false;
    while (zn_cursor_left(&c) > 0)
        side->header[side->header_bytes++] = zn_cursor_u8(&c);
    return side->header_bytes == ZN_RECORD_HEADER;
}

/* Returns true if application data of the side is encrypted. */
static bool is_encrypted(const zn_kept_records *k, const zn_kept_side *side)
{
    return k->encrypts && (k->choice.version_1_3 || side->changed);
}

/* Keeps the part of a header that ends the segment, if the header may be that of application
 * data. */
static void keep_header(const zn_kept_records *k, const zn_kept_side *side, segment *s)
{
    const uint8_t *header = side->header;
    uint8_t n = side->header_bytes;
    if (n != 0 && header[0] == ZN_TLS_CONTENT_APPLICATION_DATA && (n < 2 || header[1] == 3) &&
        (n < 3 || header[2] <= 4) && is_encrypted(k, side))
        keep(s, side->next, n);
}

/* Notes a record that is not kept, whose content begins with `content`. */
static void take_other(zn_kept_records *k, zn_kept_side *side, bool server, zn_span content,
                       uint32_t n)
{
    uint8_t type = side->header[0];
    side->has_run = false;
    k->begun &= type != RECORD_TYPE_ALERT;
    side->changed |= type == ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC;
    if (type != ZN_TLS_CONTENT_HANDSHAKE || !server || k->chosen)
        return;
    k->chosen = true; /* a later message is no ServerHello in the clear */
    k->encrypts = zn_tls_server_choice(zn_span_first(content, n), &k->choice) == ZN_DONE &&
                  zn_tls_suite_encrypts(k->choice.suite);
}

/* Takes the record at side->next, whose header is whole. Returns false after the last record. */
static bool take_record(zn_kept_records *k, zn_kept_side *side, bool server, segment *s)
{
    uint32_t n = content_bytes(side), start = side->next;
    zn_span content = part_of(s, start + ZN_RECORD_HEADER, n);
    bool data = side->header[0] == ZN_TLS_CONTENT_APPLICATION_DATA;
    side->header_bytes = 0;
    if (n == 0) {
        side->reads = false;
        return false;
    }
    side->next += ZN_RECORD_HEADER + n;
    if (!data || !is_encrypted(k, side) || is_text(content)) {
        take_other(k, side, server, content, n);
        return k->begun;
    }
    if (!side->has_run)
        side->run = start;
    side->has_run = true;
    keep(s, start, ZN_RECORD_HEADER + n);
    return true;
}

void zn_kept_records_begin(zn_kept_records *k, unsigned client, uint32_t next)
{
    *k = (zn_kept_records){.begun = true};
    k->side[client].next = next;
    k->side[client].reads = true;
}

/* Begins to read the server's records if the segment starts with one. */
static void begin_server(zn_kept_side *side, const segment *s)
{
    zn_kept_side first = {.next = s->seq, .reads = true};
    segment copy = *s;
    if (gather_header(&first, &copy) && content_bytes(&first) != 0) {
        *side = first;
        side->header_bytes = 0;
    }
}

bool zn_kept_records_take(zn_kept_records *k, unsigned side_index, unsigned client, uint32_t seq,
                          zn_span payload, uint8_t *out)
{
    zn_kept_side *side = &k->side[side_index];
    segment s = {.seq = seq, .payload = payload, .out = out};
    bool server = side_index != client;
    if (!k->begun || payload.n == 0)
        return false;
    if (server && !side->reads && side->next == 0 && !k->chosen)
        begin_server(side, &s);
    if (side->has_run)
        keep(&s, side->run, side->next - side->run);
    while (side->reads && gather_header(side, &s) && take_record(k, side, server, &s))
        continue;
    if (k->begun && side->reads)
        keep_header(k, side, &s);
    return s.kept;
}
