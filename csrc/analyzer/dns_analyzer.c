/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DNS on its port: the names of questions, over UDP and TCP. Over UDP the evidence that a client is
 * real is the response that matches its question. A response that matches no question so far is
 * kept for ZN_EARLY_ANSWER_NS, because taps may deliver a response before its question.
 */
#include "analyzer/message_sink.h"
#include "analyzer/parse_state.h"
#include "analyzer/service.h"
#include "proto/ascii.h"
#include "proto/dns.h"

#define EARLY_SLOTS 16384u /* a power of two: responses that are kept at a time */

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

/* A response that matched no question of its flow. */
typedef struct early_response {
    zn_id name;
    int64_t t_ns;
    int64_t opened_ns; /* zn_flow.first_ns: other flows may have had the number */
    uint32_t flow;     /* 0: the slot is free */
    uint16_t id, type;
    uint8_t sender; /* tuple index */
} early_response;

/* The slot of a response. The hash of the name is keyed, so a sender cannot choose the slot. */
static early_response *early_slot(const zn_packet_context *s, zn_id name, uint16_t id)
{
    uint64_t key = name.lo + s->flow * UINT64_C(0x9e3779b97f4a7c15) + id;
    return (early_response *)zn_analyzer_state(s) + ((key ^ key >> 32) & (EARLY_SLOTS - 1));
}

static void keep_response(const zn_packet_context *s, const zn_dns_question *q, zn_id name)
{
    *early_slot(s, name, q->id) = (early_response){.name = name,
                                                   .t_ns = s->p->t_ns,
                                                   .opened_ns = s->f->first_ns,
                                                   .flow = s->flow,
                                                   .id = q->id,
                                                   .type = q->type,
                                                   .sender = s->p->sender};
}

/* Returns true if the other side answered the question at most ZN_EARLY_ANSWER_NS ago. */
static bool was_answered(const zn_packet_context *s, const zn_name_entry *e)
{
    const early_response *early = early_slot(s, e->id, e->dns_id);
    int64_t since_ns = s->p->t_ns - early->t_ns;
    return early->flow == s->flow && early->opened_ns == s->f->first_ns &&
           early->sender != s->p->sender && early->id == e->dns_id && early->type == e->dns_type &&
           zn_id_equal(early->name, e->id) && since_ns <= ZN_EARLY_ANSWER_NS &&
           since_ns >= -ZN_EARLY_ANSWER_NS;
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
    if (e->state != ZN_ENTRY_PENDING || s->f->tuple.proto != ZN_PROTO_UDP || !was_answered(s, e))
        return;
    zn_names_addr(s);
    zn_names_confirmed(s, entry);
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
    ZN_STATE(s->f)->protocol = s->analyzer->id & 0x1fu;
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
    size_t bytes;
    zn_dns_question question;
    zn_parse result = zn_dns_tcp_question_parse(in->bytes, &question, &bytes);
    if (result == ZN_NEED_MORE) {
        zn_parse_expect(s, is_dns ? PARSE_MESSAGE : ZN_PARSE_BEGUN);
        return ZN_NEED_MORE;
    }
    if (!known && result == ZN_OTHER)
        return ZN_OTHER;
    *used = (uint32_t)bytes; /* also of a message that is not read */
    zn_parse_expect(s, PARSE_START);
    end_message(s, result, &question);
    if (result == ZN_DONE && in->bytes.n >= bytes)
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

/* Takes a response as the evidence that the client of a matching query is real. A response without
 * a waiting query is kept for a query that is captured later. */
static void match_answer(const zn_packet_context *s, const zn_dns_question *q, bool from_client)
{
    zn_names *names = s->names;
    zn_hostname host;
    zn_id id;
    if (q->name_odd ||
        zn_hostname_normalize((zn_span){q->name, q->name_bytes}, &host) == ZN_HOST_INVALID)
        return;
    id = zn_votes_id(names->votes, zn_names_kind(names, ZN_SOURCE_DNS), zn_hostname_span(&host));
    for (uint32_t entry = from_client ? 0 : ZN_FACTS(s->f)->names; entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next) {
        const zn_name_entry *e = zn_name_store_at(names->name_store, entry);
        if (e->state == ZN_ENTRY_PENDING && e->dns_id == q->id && e->dns_type == q->type &&
            zn_id_equal(e->id, id)) {
            zn_names_addr(s);
            zn_names_confirmed(s, entry);
            return;
        }
    }
    keep_response(s, q, id);
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
        ZN_STATE(s->f)->protocol = s->analyzer->id & 0x1fu;
        zn_service_question(&s->f->side[s->p->sender], &question);
        if (question.opcode != 0)
            break;
        if (!question.response && (from_client || asks_as_client(s)))
            read_question(s, &question);
        else if (question.response)
            match_answer(s, &question, from_client);
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

static int open_slots(void **state, uint32_t max_flows, zn_error *err)
{
    (void)max_flows;
    *state = zn_block_alloc(EARLY_SLOTS * sizeof(early_response));
    return *state != NULL ? 0 : zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for DNS responses");
}

static void close_slots(void *state)
{
    zn_block_free(state, EARLY_SLOTS * sizeof(early_response));
}

const zn_analyzer_functions zn_dns_functions = {
    .segment = segment,
    .lost = lost,
    .datagram = datagram,
    .open = open_slots,
    .close = close_slots,
};
