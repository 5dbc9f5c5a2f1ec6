/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS on its port: the names of questions, over UDP and TCP. Over UDP the evidence that a client is
 * real is the response that matches its question.
 */
#include "analyzer/message_sink.h"
#include "analyzer/parse_state.h"
#include "proto/ascii.h"
#include "proto/dns.h"

#define DNS_LENGTH_BYTES 2u
#define DNS_MESSAGE_MIN 17u /* a header and the question for the root */

/* Over TCP. */
enum {
    PARSE_START = ZN_PARSE_OWN, /* a message starts */
    PARSE_MESSAGE               /* in the middle of one */
};

/* ---- questions ------------------------------------------------------------------------------- */

/* Counts a name that has no text form, or was not read. */
static void reject(const zn_packet_context *s)
{
    s->names->stats->n[s->analyzer->seen]++;
    zn_names_rejected(s, ZN_STAT_SUPPRESSED_INVALID);
}

static void observe(const zn_packet_context *s, const zn_dns_question *q)
{
    uint32_t entry = zn_names_observed(s, (zn_span){q->name, q->name_bytes});
    zn_name_entry *e;
    if (entry == 0)
        return;
    e = zn_name_store_at(s->names->name_store, entry);
    e->dns_id = q->id;
    e->dns_type = q->type;
}

static void read_question(const zn_packet_context *s, const zn_dns_question *q)
{
    if (q->name_odd)
        reject(s);
    else
        observe(s, q);
    if (q->more)
        reject(s);
}

/* ---- over TCP -------------------------------------------------------------------------------- */

static void end_message(const zn_packet_context *s, zn_parse state, const zn_dns_question *q)
{
    ZN_STATE(s->f)->protocol = s->analyzer->id & 0x3fu;
    if (state == ZN_DONE && q->opcode == 0 && !q->response)
        read_question(s, q);
    else if (state == ZN_MALFORMED)
        zn_names_rejected(s, ZN_STAT_SUPPRESSED_INVALID);
}

/* Reads the question of a message, which comes after its length (RFC 1035 4.2.2). */
static zn_parse segment(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    bool is_dns = ZN_STATE(f)->protocol == s->analyzer->id,
         known = is_dns && ZN_STATE(f)->parse != ZN_PARSE_SEARCH;
    zn_cursor c = zn_cursor_over_span(in->bytes, false);
    size_t length = zn_cursor_be16(&c), left = zn_cursor_left(&c);
    zn_dns_question question;
    zn_parse result = ZN_NEED_MORE;
    if (zn_cursor_ok(&c) && length < DNS_MESSAGE_MIN)
        result = ZN_OTHER;
    else if (zn_cursor_ok(&c))
        result = zn_dns_question_parse(zn_cursor_take(&c, left < length ? left : length),
                                       left >= length, &question);
    if (result == ZN_NEED_MORE) {
        zn_parse_expect(s, is_dns ? PARSE_MESSAGE : ZN_PARSE_BEGUN);
        return ZN_NEED_MORE;
    }
    if (!known && result == ZN_OTHER)
        return ZN_OTHER;
    *used = (uint32_t)(DNS_LENGTH_BYTES + length); /* also of a message that is not read */
    zn_parse_expect(s, PARSE_START);
    end_message(s, result, &question);
    if (result == ZN_DONE && left >= length)
        zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_DNS_TCP,
                                        .bytes = zn_ascii_part(in->bytes, 0, *used),
                                        .seq = in->seq});
    return ZN_DONE;
}

/* Gives up a message in progress, and waits for the start of another. */
static void lost(const zn_packet_context *s, zn_segment_end end)
{
    (void)end;
    if (zn_parse_state_of(s->f) != PARSE_START)
        zn_parse_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
    ZN_STATE(s->f)->parse = ZN_PARSE_SEARCH;
}

/* ---- over UDP -------------------------------------------------------------------------------- */

/* The response that matches a waiting query is the evidence that its client is real. */
static void match_answer(const zn_packet_context *s, const zn_dns_question *q)
{
    zn_names *names = s->names;
    zn_hostname host;
    zn_id id;
    if (q->name_odd ||
        zn_hostname_normalize((zn_span){q->name, q->name_bytes}, &host) == ZN_HOST_INVALID)
        return;
    id = zn_votes_id(names->votes, zn_names_kind(names, ZN_SOURCE_DNS), zn_hostname_span(&host));
    for (uint32_t entry = ZN_FACTS(s->f)->names; entry != 0;
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

/* Returns whether a query makes its sender the client. A flow may be joined between a query and its
 * answer, where a client asks from one port for long: the side whose first packet is a query is
 * then the client, unless the other side has asked. */
static bool asks_as_client(const zn_packet_context *s)
{
    const zn_flow *f = s->f;
    return f->tuple.port[f->client] == ZN_DNS_PORT && f->side[s->p->sender].packets == 1 &&
           zn_names_swap_client(s);
}

static bool datagram(const zn_packet_context *s)
{
    bool whole = zn_packet_payload_whole(s->p);
    bool from_client = s->p->sender == s->f->client;
    zn_dns_question question;
    switch (zn_dns_question_parse(s->p->payload, whole, &question)) {
    case ZN_DONE:
        ZN_STATE(s->f)->protocol = s->analyzer->id & 0x3fu;
        if (question.opcode != 0)
            break;
        if (!question.response && (from_client || asks_as_client(s)))
            read_question(s, &question);
        else if (!from_client && question.response)
            match_answer(s, &question);
        if (whole)
            zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_DNS, .bytes = s->p->payload});
        break;
    case ZN_NEED_MORE:
        if (from_client)
            zn_names_rejected(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
        break;
    case ZN_MALFORMED:
        if (from_client)
            zn_names_rejected(s, ZN_STAT_SUPPRESSED_INVALID);
        break;
    case ZN_OTHER:
        return false;
    }
    return true;
}

const zn_analyzer_functions zn_dns_functions = {
    .segment = segment,
    .lost = lost,
    .datagram = datagram,
};
