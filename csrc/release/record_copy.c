/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/record_copy.h"

#include <string.h>

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
}

/* The texts of a record, in the order in which they are packed. */
static void list_texts(zn_record *r, zn_span *list[5])
{
    list[0] = &r->name;
    list[1] = &r->fqdn;
    list[2] = &r->certificate;
    list[3] = &r->user_agent;
    list[4] = &r->http_status;
}

static uint8_t *pack(uint8_t *to, const void *from, size_t n)
{
    if (n != 0)
        memcpy(to, from, n);
    return to + n;
}

size_t zn_record_pack(const zn_record *r, uint8_t *to)
{
    size_t side = ZN_RECORD_CORE + r->filled_after_core;
    zn_record head;
    zn_span *text[5];
    uint8_t *at = to;
    memcpy(&head, r, offsetof(zn_record, client));
    list_texts(&head, text);
    at = pack(at, r, offsetof(zn_record, client));
    at = pack(at, &r->client, side);
    at = pack(at, &r->server, side);
    for (size_t i = 0; i < 5; i++)
        at = pack(at, text[i]->p, text[i]->n);
    return (size_t)(at - to);
}

void zn_record_unpack(const uint8_t *from, zn_record *r)
{
    size_t before = r->filled_after_core, side;
    zn_span *text[5];
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
    for (size_t i = 0; i < 5; from += text[i++]->n)
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
