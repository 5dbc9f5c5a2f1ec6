/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/exchange_attributes.h"

#include "proto/sip.h"
#include "proto/stun.h"

/* A request or its response. */
typedef struct exchange {
    zn_attribute attribute;
    zn_exposing_message message;
    bool is_response;
    zn_span id, kind; /* equal in the request and the response */
} exchange;

static zn_parse read_stun(zn_span datagram, exchange *out)
{
    zn_stun_message stun;
    zn_parse result = zn_stun_read(datagram, &stun);
    *out = (exchange){ZN_ATTRIBUTE_STUN,
                      ZN_EXPOSES_STUN_REQUEST,
                      stun.type != ZN_STUN_REQUEST,
                      stun.transaction,
                      {NULL, 0}};
    return result == ZN_DONE && stun.type == ZN_STUN_INDICATION ? ZN_OTHER : result;
}

static zn_parse read_sip(zn_span datagram, exchange *out)
{
    zn_sip_message sip;
    zn_parse result = zn_sip_read(datagram, &sip);
    *out = (exchange){ZN_ATTRIBUTE_SIP, ZN_EXPOSES_CLIENT_TEXT, sip.is_response, sip.call_id,
                      sip.sequence};
    return result;
}

/* Reads a whole datagram. Returns ZN_DONE; ZN_OTHER if it is of no exchange; or ZN_MALFORMED with
 * the attribute in *out. */
static zn_parse read_exchange(const zn_packet_context *s, exchange *out)
{
    zn_parse result = ZN_OTHER;
    if (zn_packet_payload_whole(s->p))
        result = read_stun(s->p->payload, out);
    if (zn_packet_payload_whole(s->p) && result == ZN_OTHER)
        result = read_sip(s->p->payload, out);
    return result;
}

/* Returns a number by which a request and its response are compared: 16 bits of keyed hashes, and
 * never 0. */
static uint16_t reply_of(const zn_packet_context *s, const exchange *x)
{
    zn_vote_kind kind = (zn_vote_kind)(ZN_VOTE_ATTRIBUTE + x->attribute);
    zn_id id = zn_votes_id(s->names->votes, kind, x->id);
    zn_id what = zn_votes_id(s->names->votes, kind, x->kind);
    uint16_t reply = (uint16_t)(id.lo ^ what.lo >> 16);
    return reply != 0 ? reply : 1;
}

static void see_request(const zn_packet_context *s, const exchange *x)
{
    const zn_attributes *a = s->names->attributes;
    uint32_t before = a->first[s->flow];
    zn_attributes_see(s, x->message, s->p->payload);
    if (a->first[s->flow] != before)
        zn_name_store_at(s->names->name_store, a->first[s->flow])->reply = reply_of(s, x);
}

static void see_response(const zn_packet_context *s, const exchange *x)
{
    zn_name_store *name_store = s->names->name_store;
    uint16_t reply = reply_of(s, x);
    for (uint32_t entry = zn_attributes_first(s->names, s->flow); entry != 0;
         entry = zn_name_store_at(name_store, entry)->next) {
        const zn_name_entry *e = zn_name_store_at(name_store, entry);
        if (e->attribute == x->attribute && e->reply == reply)
            zn_attributes_confirm_entry(s, entry);
    }
}

void zn_exchange_attributes_read(const zn_packet_context *s)
{
    zn_packet_context with = *s;
    bool from_client = s->p->sender == s->f->client;
    exchange x;
    zn_parse result = read_exchange(s, &x);
    with.analyzer = NULL;
    if (result == ZN_MALFORMED && from_client)
        zn_attributes_malformed(s, x.attribute);
    if (result != ZN_DONE)
        return;
    if (from_client && !x.is_response)
        see_request(&with, &x);
    else if (!from_client && x.is_response && !zn_flow_client_plays_server(s->f))
        see_response(&with, &x);
}

void zn_exchange_attributes_note(const zn_packet_context *s)
{
    exchange x;
    if (read_exchange(s, &x) == ZN_DONE && x.is_response)
        zn_flow_note_server(s->f, s->f->client);
}
