/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The first bits of a field are its form (RFC 7541 6); numbers continue after a prefix of some bits
 * (5.1), texts are plain or in the Huffman code of Appendix B (5.2). That code is canonical, so it
 * is read by counting. The distance of a code of n bits from the first code of n bits is the index
 * of its symbol among the symbols with codes of n bits.
 */
#include "proto/hpack.h"

#include "proto/hpack_tables.h"

#define ENTRY_BYTES 32u
#define STATIC_ENTRIES (sizeof hpack_fields / sizeof hpack_fields[0])
#define NUMBER_BYTES_MAX 4u /* after the prefix: 28 bits, more than any length here */

/* A text that is being decoded; `bytes` has ZN_HPACK_BYTES. */
typedef struct text_buffer {
    uint8_t *bytes;
    size_t n;
} text_buffer;

void zn_hpack_start(zn_hpack *table)
{
    table->count = table->text_bytes = 0;
    table->max_bytes = ZN_HPACK_BYTES;
}

static size_t entry_bytes(const zn_hpack_entry *e)
{
    return (size_t)e->name_bytes + e->value_bytes;
}

/* Drops the oldest entries until the other entries and `more` bytes fit, or the table is empty. */
static void evict(zn_hpack *t, size_t more)
{
    size_t bytes = t->text_bytes + t->count * (size_t)ENTRY_BYTES, text = 0;
    uint16_t n = 0;
    while (n < t->count && bytes + more > t->max_bytes) {
        text += entry_bytes(&t->entry[n]);
        bytes -= entry_bytes(&t->entry[n]) + ENTRY_BYTES;
        n++;
    }
    t->count = (uint16_t)(t->count - n);
    t->text_bytes = (uint16_t)(t->text_bytes - text);
    memmove(t->entry, t->entry + n, t->count * sizeof t->entry[0]);
    memmove(t->text, t->text + text, t->text_bytes);
    memset(t->text + t->text_bytes, 0, text);
}

static void insert(zn_hpack *t, const zn_hpack_field *f)
{
    size_t bytes = f->name.n + f->value.n + ENTRY_BYTES;
    evict(t, bytes);
    if (bytes > t->max_bytes)
        return; /* RFC 7541 4.4: an attempt to add it empties the table */
    t->entry[t->count++] = (zn_hpack_entry){(uint16_t)f->name.n, (uint16_t)f->value.n};
    if (f->name.n != 0)
        memcpy(t->text + t->text_bytes, f->name.p, f->name.n);
    if (f->value.n != 0)
        memcpy(t->text + t->text_bytes + f->name.n, f->value.p, f->value.n);
    t->text_bytes = (uint16_t)(t->text_bytes + f->name.n + f->value.n);
}

/* Looks up the field of an index (RFC 7541 2.3.3); returns false if the index has no field. */
static bool look_up(const zn_hpack *t, size_t index, zn_hpack_field *out)
{
    size_t newest, at = 0;
    if (index == 0 || index > STATIC_ENTRIES + t->count)
        return false;
    if (index <= STATIC_ENTRIES) {
        out->name.p = (const uint8_t *)hpack_fields[index - 1].name;
        out->name.n = hpack_fields[index - 1].name_bytes;
        out->value.p = (const uint8_t *)hpack_fields[index - 1].value;
        out->value.n = hpack_fields[index - 1].value_bytes;
        return true;
    }
    newest = t->count - (index - STATIC_ENTRIES);
    for (size_t i = 0; i < newest; i++)
        at += entry_bytes(&t->entry[i]);
    out->name = (zn_span){t->text + at, t->entry[newest].name_bytes};
    out->value = (zn_span){t->text + at + out->name.n, t->entry[newest].value_bytes};
    return true;
}

/* A number after the `bits` low bits of its first byte; false when it is too large. */
static bool read_number(zn_cursor *c, uint8_t first, unsigned bits, size_t *out)
{
    size_t mask = ((size_t)1 << bits) - 1;
    *out = first & mask;
    if (*out != mask)
        return true;
    for (unsigned i = 0; i < NUMBER_BYTES_MAX; i++) {
        uint8_t byte = zn_cursor_u8(c);
        *out += (size_t)(byte & 0x7f) << (7 * i);
        if ((byte & 0x80) == 0)
            return zn_cursor_ok(c);
    }
    return false;
}

/* Decodes a Huffman text, as much as its buffer takes; false when it is malformed. */
static bool decode_huffman(zn_span coded, text_buffer *out)
{
    zn_cursor c = zn_cursor_over_span(coded, true);
    uint32_t code = 0, first = 0; /* of the present length */
    unsigned bits = 0, place = 0; /* codes that are shorter */
    bool ones = true;             /* all bits of an unfinished code are set, as padding has them */
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        for (unsigned i = 0; i < 8; i++, byte = (uint8_t)(byte << 1)) {
            uint32_t bit = byte >> 7;
            ones = ones && bit != 0;
            code = code << 1 | bit;
            first <<= 1;
            if (++bits > HPACK_CODE_BITS_MAX)
                return false;
            if (code - first < hpack_codes[bits]) {
                uint16_t symbol = hpack_symbols[place + (code - first)];
                if (symbol == HPACK_EOS)
                    return false;
                if (out->n < ZN_HPACK_BYTES)
                    out->bytes[out->n++] = (uint8_t)symbol;
                code = first = bits = place = 0;
                ones = true;
                continue;
            }
            first += hpack_codes[bits];
            place += hpack_codes[bits];
        }
    }
    return bits < 8 && ones;
}

/* A text (RFC 7541 5.2), decoded into `bytes` when it is coded. */
static bool read_text(zn_cursor *c, uint8_t *bytes, zn_span *out)
{
    uint8_t first = zn_cursor_u8(c);
    text_buffer decoded = {bytes, 0};
    size_t n;
    if (!zn_cursor_ok(c) || !read_number(c, first, 7, &n))
        return false;
    *out = zn_cursor_take(c, n);
    if (!zn_cursor_ok(c))
        return false;
    if ((first & 0x80) != 0) {
        if (!decode_huffman(*out, &decoded))
            return false;
        *out = (zn_span){decoded.bytes, decoded.n};
    }
    if (out->n > ZN_HPACK_BYTES)
        out->n = ZN_HPACK_BYTES; /* no table takes it, whatever its length, and it is no host */
    return true;
}

/* A field whose value, and perhaps name, is written out (RFC 7541 6.2). */
static bool read_literal(zn_hpack *t, zn_cursor *c, size_t index, zn_hpack_scratch *scratch,
                         zn_hpack_field *out)
{
    if (index == 0)
        return read_text(c, scratch->name, &out->name) && read_text(c, scratch->value, &out->value);
    if (!look_up(t, index, out))
        return false;
    /* The table's text moves when the field is added. */
    if (out->name.n != 0)
        memcpy(scratch->name, out->name.p, out->name.n);
    out->name.p = scratch->name;
    return read_text(c, scratch->value, &out->value);
}

/* A size update (RFC 7541 6.3). */
static bool read_size(zn_hpack *t, zn_cursor *c, uint8_t first)
{
    size_t size;
    if (!read_number(c, first, 5, &size) || size > ZN_HPACK_BYTES)
        return false;
    t->max_bytes = (uint16_t)size;
    evict(t, 0);
    return true;
}

zn_parse zn_hpack_next(zn_hpack *table, zn_cursor *block, zn_hpack_scratch *scratch,
                       zn_hpack_field *out)
{
    uint8_t first = 0;
    bool indexed, added;
    size_t index;
    do {
        if (zn_cursor_left(block) == 0)
            return ZN_OTHER;
        first = zn_cursor_u8(block);
        if ((first & 0xe0) == 0x20 && !read_size(table, block, first))
            return ZN_MALFORMED;
    } while ((first & 0xe0) == 0x20);
    indexed = (first & 0x80) != 0;
    added = (first & 0xc0) == 0x40;
    if (!read_number(block, first, indexed ? 7 : added ? 6 : 4, &index))
        return ZN_MALFORMED;
    if (indexed)
        return look_up(table, index, out) ? ZN_DONE : ZN_MALFORMED;
    if (!read_literal(table, block, index, scratch, out))
        return ZN_MALFORMED;
    if (added)
        insert(table, out);
    return ZN_DONE;
}
