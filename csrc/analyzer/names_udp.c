/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/names_internal.h"

/* The response that matches a waiting query is the evidence that its client is real. */
static void found_answer(const zn_packet_context *s, const zn_dns_question *q)
{
    zn_names *names = s->names;
    zn_hostname host;
    zn_id id;
    if (q->name_odd ||
        zn_hostname_normalize((zn_span){q->name, q->name_bytes}, &host) == ZN_HOST_INVALID)
        return;
    id = zn_votes_id(names->votes, ZN_VOTE_NAME, zn_hostname_span(&host));
    for (uint32_t entry = s->f->names; entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next) {
        const zn_name_entry *e = zn_name_store_at(names->name_store, entry);
        if (e->state == ZN_ENTRY_PENDING && e->dns_id == q->id && e->dns_type == q->type &&
            zn_id_equal(e->id, id)) {
            zn_names_addr(s);
            zn_names_confirmed(s, entry);
            return;
        }
    }
}

bool zn_names_may_be_answer(const zn_packet *p)
{
    return p->tuple.proto == ZN_PROTO_UDP && p->tuple.port[p->sender] == ZN_DNS_PORT;
}

/* A flow joined between a query and its answer, by a client that asks from one port for long: the
 * side whose first packet is a query is the client, where the other has asked nothing. */
static bool asks_as_client(const zn_packet_context *s)
{
    const zn_flow *f = s->f;
    return f->tuple.port[f->client] == ZN_DNS_PORT && f->side[s->p->sender].packets == 1 &&
           zn_names_swap_client(s);
}

/* False when the datagram is no DNS message. */
static bool see_dns(const zn_packet_context *s)
{
    bool whole = zn_packet_payload_whole(s->p);
    bool from_client = s->p->sender == s->f->client;
    zn_dns_question question;
    switch (zn_dns_question_parse(s->p->payload, whole, &question)) {
    case ZN_DONE:
        s->f->protocol = ZN_PROTOCOL_DNS;
        if (question.opcode != 0)
            break;
        if (!question.response && (from_client || asks_as_client(s)))
            zn_names_question(s, &question);
        else if (!from_client && question.response)
            found_answer(s, &question);
        break;
    case ZN_NEED_MORE:
        if (from_client)
            zn_names_rejected(s->names, s->f, ZN_SOURCE_DNS, ZN_STAT_SUPPRESSED_INCOMPLETE);
        break;
    case ZN_MALFORMED:
        if (from_client)
            zn_names_rejected(s->names, s->f, ZN_SOURCE_DNS, ZN_STAT_SUPPRESSED_INVALID);
        break;
    case ZN_OTHER:
        return false;
    }
    return true;
}

bool zn_names_open_datagram(const zn_packet_context *s, uint8_t protocol, zn_name_source source)
{
    s->f->protocol = protocol & 0x3fu;
    s->f->datagram = zn_slab_take(&s->names->datagrams);
    if (s->f->datagram != 0)
        return true;
    s->names->stats->n[ZN_STAT_DATAGRAMS_FULL]++;
    zn_names_rejected(s->names, s->f, source, ZN_STAT_SUPPRESSED_CAPACITY);
    return false;
}

void zn_names_udp_unsupported(const zn_packet_context *s)
{
    if (s->p->sender == s->f->client &&
        (zn_names_quic_may_answer(s) || zn_names_dtls_may_answer(s)))
        zn_flow_note_server(s->f, s->f->client);
}

void zn_names_udp_disregard(const zn_packet_context *s)
{
    if (s->f->protocol == ZN_PROTOCOL_QUIC || s->f->protocol == ZN_PROTOCOL_QUIC_BOTH_WAYS)
        zn_names_quic_disregard(s);
    else
        zn_names_udp_unsupported(s);
}

void zn_names_udp(const zn_packet_context *s)
{
    const zn_tuple *tuple = &s->p->tuple;
    switch (s->f->protocol) {
    case ZN_PROTOCOL_QUIC:
    case ZN_PROTOCOL_QUIC_BOTH_WAYS:
        zn_names_quic(s);
        return;
    case ZN_PROTOCOL_DTLS:
        zn_names_dtls(s);
        return;
    default:
        break;
    }
    if ((tuple->port[0] == ZN_DNS_PORT || tuple->port[1] == ZN_DNS_PORT) && see_dns(s))
        return;
    if (s->f->protocol == ZN_PROTOCOL_UNKNOWN && !zn_names_quic_begins(s) &&
        !zn_names_dtls_begins(s))
        zn_names_udp_unsupported(s);
}

void zn_names_udp_closed(zn_names *names, zn_flow *f)
{
    if (f->datagram == 0)
        return;
    if (f->protocol == ZN_PROTOCOL_DTLS)
        zn_names_dtls_closed(names, f);
    else
        zn_names_quic_closed(names, f);
    zn_names_drop_stream(names, f);
}

void zn_names_forget(zn_names *names, zn_flow *f)
{
    const zn_quic_facts *quic = zn_names_quic_facts(names, f);
    if (f->tuple.proto != ZN_PROTO_UDP || f->datagram == 0)
        return;
    if (quic != NULL)
        zn_name_store_forget_secondary(names->name_store, quic->agent);
    zn_slab_give(&names->datagrams, f->datagram);
    f->datagram = 0;
}
