/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/record_copy.h"

#include "release/disclosure.h"

#include <string.h>

/* First byte of a packed coarse record. Another record begins with its protocol. */
#define COARSE 0

#define TEXTS (5 + ZN_ATTRIBUTE_COUNT) /* that a record borrows */

#define FIELD_SMALL(name, member) uint8_t name;
#define FIELD_TEXT(name, member) uint8_t name;
#define FIELD_COUNT(name, member) uint8_t name;
#define FIELD_MINUTE(name, member) int32_t name;
#define FIELD_WHOLE(name, member) __typeof__(((zn_record *)NULL)->member) name;
#define FIELD(a, form, name, member) FIELD_##form(name, member)

typedef struct packed_coarse {
    uint8_t form; /* COARSE */
    ZN_COARSE_MEMBERS(FIELD, )
} packed_coarse;

_Static_assert(sizeof(packed_coarse) == 64, "a coarse record takes one cache line");
_Static_assert(ZN_HOSTNAME_MAX <= UINT8_MAX, "a byte has the length of a name");

static void copy(zn_span *span, uint8_t *to, size_t cap)
{
    size_t n = span->n < cap ? span->n : cap;
    ZN_ASSERT(span->n <= cap);
    if (n != 0)
        memcpy(to, span->p, n);
    *span = (zn_span){to, n};
}

void zn_record_copy(zn_record *r, zn_record_texts *texts)
{
    copy(&r->name, texts->text[0], sizeof texts->text[0]);
    copy(&r->fqdn, texts->text[1], sizeof texts->text[1]);
    copy(&r->certificate, texts->text[2], sizeof texts->text[2]);
    copy(&r->user_agent, texts->text[3], sizeof texts->text[3]);
    copy(&r->http_status, texts->status, sizeof texts->status);
    for (size_t i = 0; i < ZN_ATTRIBUTE_COUNT; i++)
        copy(&r->attribute[i], texts->text[4 + i], sizeof texts->text[4 + i]);
}

/* The texts of a record, in the order in which they are packed. */
static void list_texts(zn_record *r, zn_span *list[TEXTS])
{
    list[0] = &r->name;
    list[1] = &r->fqdn;
    list[2] = &r->certificate;
    list[3] = &r->user_agent;
    list[4] = &r->http_status;
    for (size_t i = 0; i < ZN_ATTRIBUTE_COUNT; i++)
        list[5 + i] = &r->attribute[i];
}

static uint8_t *pack(uint8_t *to, const void *from, size_t n)
{
    if (n != 0)
        memcpy(to, from, n);
    return to + n;
}

/* Returns the byte of a coarse count: 0 of 0, otherwise 2k + 1 of 2^k and 2k + 2 of 2^(k + 1/2). */
static uint8_t byte_of_count(uint64_t count)
{
    unsigned bits = 63 - (unsigned)__builtin_clzll(count | 1);
    if (count == 0)
        return 0;
    return (uint8_t)(2 * bits + ((count & (count - 1)) != 0 ? 2 : 1));
}

static uint64_t count_of_byte(uint8_t byte)
{
    unsigned bits = (byte - 1u) / 2;
    if (byte == 0)
        return 0;
    return byte % 2 != 0 ? UINT64_C(1) << bits : zn_coarse_half_power(bits + 1);
}

#define PACK_SMALL(name, member) packed.name = (uint8_t)r->member;
#define PACK_TEXT(name, member) packed.name = (uint8_t)r->member.n;
#define PACK_COUNT(name, member) packed.name = byte_of_count(r->member);
#define PACK_MINUTE(name, member) packed.name = (int32_t)(r->member / ZN_COARSE_TIME_NS);
#define PACK_WHOLE(name, member) packed.name = r->member;
#define PACK(a, form, name, member) PACK_##form(name, member)

static size_t pack_coarse(const zn_record *r, uint8_t *to)
{
    packed_coarse packed = {.form = COARSE};
    uint8_t *at;
    ZN_COARSE_MEMBERS(PACK, )
    at = pack(to, &packed, sizeof packed);
    at = pack(at, r->name.p, r->name.n);
    return (size_t)(pack(at, r->fqdn.p, r->fqdn.n) - to);
}

#define UNPACK_SMALL(name, member) r->member = (__typeof__(r->member))packed.name;
#define UNPACK_TEXT(name, member) r->member.n = packed.name;
#define UNPACK_COUNT(name, member) r->member = count_of_byte(packed.name);
#define UNPACK_MINUTE(name, member) r->member = packed.name * ZN_COARSE_TIME_NS;
#define UNPACK_WHOLE(name, member) r->member = packed.name;
#define UNPACK(a, form, name, member) UNPACK_##form(name, member)

static void unpack_coarse(const uint8_t *from, zn_record *r)
{
    size_t side = ZN_RECORD_CORE + r->filled_after_core;
    packed_coarse packed;
    memcpy(&packed, from, sizeof packed);
    memset(r, 0, offsetof(zn_record, client));
    memset(&r->client, 0, side);
    memset(&r->server, 0, side);
    ZN_COARSE_MEMBERS(UNPACK, )
    r->coarse = true;
    r->name.p = from + sizeof packed;
    r->fqdn.p = r->name.p + r->name.n;
}

size_t zn_record_pack(const zn_record *r, uint8_t *to)
{
    size_t side = ZN_RECORD_CORE + r->filled_after_core;
    zn_record head;
    zn_span *text[TEXTS];
    uint8_t *at = to;
    if (r->coarse)
        return pack_coarse(r, to);
    memcpy(&head, r, offsetof(zn_record, client));
    list_texts(&head, text);
    at = pack(at, r, offsetof(zn_record, client));
    at = pack(at, &r->client, side);
    at = pack(at, &r->server, side);
    for (size_t i = 0; i < TEXTS; i++)
        at = pack(at, text[i]->p, text[i]->n);
    return (size_t)(at - to);
}

void zn_record_unpack(const uint8_t *from, zn_record *r)
{
    size_t before = r->filled_after_core, side;
    zn_span *text[TEXTS];
    if (from[0] == COARSE) {
        unpack_coarse(from, r);
        return;
    }
    memcpy(r, from, offsetof(zn_record, client));
    from += offsetof(zn_record, client);
    side = ZN_RECORD_CORE + r->filled_after_core;
    memcpy(&r->client, from, side);
    memcpy(&r->server, from + side, side);
    if (before > r->filled_after_core) {
        memset((uint8_t *)&r->client + side, 0, before - r->filled_after_core);
        memset((uint8_t *)&r->server + side, 0, before - r->filled_after_core);
    }
    from += 2 * side;
    list_texts(r, text);
    for (size_t i = 0; i < TEXTS; from += text[i++]->n)
        text[i]->p = from;
}

size_t zn_release_pack(const zn_release *r, uint8_t *to)
{
    uint8_t *at = pack(to, r, sizeof *r);
    return (size_t)(pack(at, r->name.p, r->name.n) - to);
}

void zn_release_unpack(const uint8_t *from, zn_release *r)
{
    memcpy(r, from, sizeof *r);
    r->name.p = from + sizeof *r;
}
