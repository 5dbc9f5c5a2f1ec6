/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames of all types but HEADERS are passed over by their length. A HEADERS frame and its
 * CONTINUATIONs are put together first, then decoded field by field. That holds for every block,
 * also one without a host, since each may change the table that the next one needs.
 */
#include "proto/http2.h"

#include "proto/ascii.h"

#define FRAME_HEADER_BYTES 9u

enum { FRAME_DATA = 0, FRAME_HEADERS = 1, FRAME_PUSH_PROMISE = 5, FRAME_CONTINUATION = 9 };

enum { FLAG_END_STREAM = 0x01, FLAG_END_HEADERS = 0x04, FLAG_PADDED = 0x08, FLAG_PRIORITY = 0x20 };

typedef struct frame_header {
    size_t length;
    uint8_t type, flags;
    uint32_t stream;
} frame_header;

static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
#define PREFACE_BYTES (sizeof preface - 1)

/* A field that names the host, copied because the next field may overwrite it. */
typedef struct named {
    zn_span text;
    bool seen, twice;
} named;

zn_parse zn_http2_preface(zn_span bytes, size_t *used)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    size_t n = bytes.n < PREFACE_BYTES ? bytes.n : PREFACE_BYTES;
    *used = PREFACE_BYTES;
    if (n == 0 || memcmp(zn_cursor_take(&c, n).p, preface, n) != 0)
        return ZN_OTHER;
    return n == PREFACE_BYTES ? ZN_DONE : ZN_NEED_MORE;
}

static frame_header read_frame_header(zn_cursor *c)
{
    frame_header h;
    h.length = zn_cursor_be24(c);
    h.type = zn_cursor_u8(c);
    h.flags = zn_cursor_u8(c);
    h.stream = zn_cursor_be32(c) & 0x7fffffff;
    return h;
}

/* The fragment of a header block in a frame's payload (RFC 9113 6.2); false when it does not
 * fit. */
static bool fragment_of(const frame_header *h, zn_cursor payload, zn_span *out)
{
    size_t padding = 0, left;
    if (h->type == FRAME_HEADERS && (h->flags & FLAG_PADDED) != 0)
        padding = zn_cursor_u8(&payload);
    if (h->type == FRAME_HEADERS && (h->flags & FLAG_PRIORITY) != 0)
        zn_cursor_skip(&payload, 5);
    left = zn_cursor_left(&payload);
    if (!zn_cursor_ok(&payload) || padding > left)
        return false;
    *out = zn_cursor_take(&payload, left - padding);
    return true;
}

/* Puts a header block together from its frames. ZN_DONE: *block is whole. */
static zn_parse gather(zn_cursor *c, zn_http2_scratch *scratch, zn_span *block)
{
    uint32_t stream = 0;
    *block = (zn_span){scratch->block, 0};
    for (bool first = true;; first = false) {
        frame_header h = read_frame_header(c);
        zn_span fragment;
        if (!zn_cursor_ok(c))
            return ZN_NEED_MORE;
        if (h.type != (first ? FRAME_HEADERS : FRAME_CONTINUATION) || h.stream == 0)
            return ZN_MALFORMED;
        if ((!first && h.stream != stream) || h.length > ZN_HTTP2_BLOCK_MAX)
            return ZN_MALFORMED;
        stream = h.stream;
        if (zn_cursor_left(c) < h.length)
            return ZN_NEED_MORE;
        if (!fragment_of(&h, zn_cursor_sub(c, h.length), &fragment) ||
            fragment.n > ZN_HTTP2_BLOCK_MAX - block->n)
            return ZN_MALFORMED;
        if (fragment.n != 0)
            memcpy(scratch->block + block->n, fragment.p, fragment.n);
        block->n += fragment.n;
        if ((h.flags & FLAG_END_HEADERS) != 0)
            return ZN_DONE;
    }
}

static bool is_named(zn_span name, const char *text, size_t n)
{
    return name.n == n && memcmp(name.p, text, n) == 0;
}

#define IS_NAMED(name, literal) is_named((name), literal, sizeof(literal) - 1)

static void copy_value(named *out, uint8_t *copy, zn_span value)
{
    if (out->seen)
        out->twice = true;
    out->seen = true;
    if (value.n != 0)
        memcpy(copy, value.p, value.n); /* at most ZN_HPACK_BYTES */
    out->text = (zn_span){copy, value.n};
}

/* Decodes a header block, and finds the host in it. */
static zn_parse read_block(zn_span block, zn_hpack *table, zn_http2_scratch *scratch,
                           zn_http2_unit *out)
{
    zn_cursor c = zn_cursor_over_span(block, true);
    named authority = {{scratch->authority, 0}, false, false};
    named host = {{scratch->host, 0}, false, false};
    named path = {{scratch->path, 0}, false, false};
    named agent = {{scratch->agent, 0}, false, false};
    zn_hpack_field field;
    zn_parse state;
    while ((state = zn_hpack_next(table, &c, &scratch->hpack, &field)) == ZN_DONE) {
        if (IS_NAMED(field.name, ":authority")) {
            copy_value(&authority, scratch->authority, field.value);
        } else if (IS_NAMED(field.name, "host")) {
            copy_value(&host, scratch->host, field.value);
        } else if (IS_NAMED(field.name, ":method")) {
            out->request = true;
            out->method = IS_NAMED(field.value, "POST") ? 2 : 1;
            out->get = IS_NAMED(field.value, "GET");
        } else if (IS_NAMED(field.name, ":path")) {
            copy_value(&path, scratch->path, field.value);
        } else if (IS_NAMED(field.name, "user-agent")) {
            copy_value(&agent, scratch->agent, field.value);
        } else if (IS_NAMED(field.name, "content-type")) {
            out->dns_body = zn_doh_is_media_type(field.value);
        }
    }
    if (state == ZN_MALFORMED)
        return ZN_MALFORMED;
    /* RFC 9113 8.3.1: a server rejects a request whose two names differ. */
    if (authority.twice || host.twice ||
        (authority.seen && host.seen && !zn_ascii_equal(authority.text, host.text)))
        return ZN_OTHER;
    out->host = authority.seen ? authority.text : host.text;
    out->path = path.text;
    out->agent = agent.twice ? out->agent : agent.text;
    return ZN_DONE;
}

zn_parse zn_http2_next(zn_span bytes, zn_hpack *table, zn_http2_scratch *scratch,
                       zn_http2_unit *out)
{
    zn_cursor c = zn_cursor_over_span(bytes, false), frames = c;
    frame_header h = read_frame_header(&c);
    zn_span block;
    zn_parse state;
    *out = (zn_http2_unit){
        .host = {scratch->host, 0}, .path = {scratch->path, 0}, .agent = {scratch->agent, 0}};
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    out->used = FRAME_HEADER_BYTES + h.length;
    out->stream = h.stream;
    out->is_data = h.type == FRAME_DATA;
    if (h.type == FRAME_PUSH_PROMISE || h.type == FRAME_CONTINUATION)
        return ZN_MALFORMED;
    if (h.type != FRAME_HEADERS)
        return h.type == FRAME_DATA && h.stream == 0 ? ZN_MALFORMED : ZN_DONE;
    out->headers = true;
    state = gather(&frames, scratch, &block);
    if (state != ZN_DONE)
        return state;
    out->used = bytes.n - zn_cursor_left(&frames);
    return read_block(block, table, scratch, out);
}

zn_parse zn_http2_data(zn_span bytes, size_t most, zn_span *payload, bool *whole)
{
    zn_cursor c = zn_cursor_over_span(bytes, false);
    frame_header h = read_frame_header(&c);
    bool padded = (h.flags & FLAG_PADDED) != 0;
    size_t padding = padded ? 1u + zn_cursor_u8(&c) : 0, n;
    if (!zn_cursor_ok(&c))
        return ZN_NEED_MORE;
    if (padding > h.length)
        return ZN_MALFORMED;
    n = h.length - padding;
    *whole = n <= most && (h.flags & FLAG_END_STREAM) != 0;
    *payload = zn_cursor_take(&c, n < most ? n : most);
    return zn_cursor_ok(&c) ? ZN_DONE : ZN_NEED_MORE;
}
