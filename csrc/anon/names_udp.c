/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anon/names_internal.h"

#define DNS_PORT 53
#define QUIC_V1 1
#define QUIC_V2 UINT32_C(0x6b3343cf)   /* RFC 9369 */
#define QUIC_DRAFTS UINT32_C(0xff0000) /* first three bytes of draft versions */

static zn_span name_of(const zn_dns_question *q)
{
    return (zn_span){q->name, q->name_bytes};
}

static void found_question(const zn_sighting *s, const zn_dns_question *q)
{
    uint32_t entry;
    zn_name_entry *e;
    if (q->name_odd) {
        s->names->stats->n[ZN_STAT_NAMES_DNS]++;
        zn_names_refused(s->names, s->f, ZN_SOURCE_DNS, ZN_STAT_SUPPRESSED_INVALID);
        return;
    }
    entry = zn_names_found(s, ZN_SOURCE_DNS, name_of(q));
    if (entry == 0)
        return;
    e = zn_book_at(s->names->book, entry);
    e->dns_id = q->id;
    e->dns_type = q->type;
}

/* The response that matches a waiting query is the evidence that its client is real. */
static void found_answer(const zn_sighting *s, const zn_dns_question *q)
{
    zn_names *names = s->names;
    zn_hostname host;
    zn_id id;
    if (q->name_odd || zn_hostname_normalize(name_of(q), &host) == ZN_HOST_INVALID)
        return;
    id = zn_gate_name_id(names->gate, &host);
    for (uint32_t entry = s->f->names; entry != 0; entry = zn_book_at(names->book, entry)->next) {
        const zn_name_entry *e = zn_book_at(names->book, entry);
        if (e->state == ZN_ENTRY_PENDING && e->dns_id == q->id && e->dns_type == q->type &&
            zn_id_equal(e->id, id)) {
            zn_names_addr(s);
            zn_names_confirmed(s, entry);
            return;
        }
    }
}

static void see_dns(const zn_sighting *s)
{
    bool whole = zn_packet_payload_whole(s->p);
    bool from_client = s->p->sender == s->f->client;
    zn_dns_question question;
    switch (zn_dns_question_parse(s->p->payload, whole, &question)) {
    case ZN_DONE:
        s->f->protocol = ZN_PROTOCOL_DNS;
        if (question.opcode != 0)
            break;
        if (from_client && !question.response)
            found_question(s, &question);
        else if (!from_client && question.response)
            found_answer(s, &question);
        break;
    case ZN_NEED_MORE:
        if (from_client)
            zn_names_refused(s->names, s->f, ZN_SOURCE_DNS, ZN_STAT_SUPPRESSED_INCOMPLETE);
        break;
    case ZN_MALFORMED:
        if (from_client)
            zn_names_refused(s->names, s->f, ZN_SOURCE_DNS, ZN_STAT_SUPPRESSED_INVALID);
        break;
    case ZN_OTHER:
        break;
    }
}

/* A long header of a known version (RFC 9000 17.2): some hello is in there. */
static bool is_quic(zn_span payload)
{
    zn_cursor c = zn_cursor_over_span(payload, true);
    uint8_t first = zn_cursor_u8(&c);
    uint32_t version = zn_cursor_be32(&c);
    if (!zn_cursor_ok(&c) || (first & 0xc0) != 0xc0)
        return false;
    return version == QUIC_V1 || version == QUIC_V2 || version >> 8 == QUIC_DRAFTS;
}

void zn_names_udp(const zn_sighting *s)
{
    const zn_tuple *tuple = &s->p->tuple;
    if (tuple->port[0] == DNS_PORT || tuple->port[1] == DNS_PORT) {
        see_dns(s);
    } else if (s->f->protocol == ZN_PROTOCOL_UNKNOWN && is_quic(s->p->payload)) {
        s->f->protocol = ZN_PROTOCOL_QUIC;
        zn_names_refused(s->names, s->f, ZN_SOURCE_QUIC, ZN_STAT_SUPPRESSED_QUIC);
    }
}
