/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/names.h"

#include "analyzer/attributes.h"
#include "analyzer/parse_state.h"
#include "analyzer/unread.h"

#define MAX_STREAMS 16384 /* flows whose first bytes are being put together */

int zn_names_init(zn_names *names, uint32_t max_flows, size_t datagram_bytes, zn_error *err)
{
    uint32_t streams = max_flows < MAX_STREAMS ? max_flows : MAX_STREAMS;
    int rc = zn_stream_pool_init(&names->streams, streams, err);
    return rc == 0 ? zn_slab_init(&names->datagrams, datagram_bytes, max_flows, err) : rc;
}

void zn_names_fini(zn_names *names)
{
    zn_slab_fini(&names->datagrams);
    zn_stream_pool_fini(&names->streams);
}

size_t zn_names_memory(const zn_names *names)
{
    return zn_slab_bytes(&names->datagrams) + zn_slab_bytes(&names->streams.streams) +
           (size_t)names->streams.streams.used_high * ZN_STREAM_MAX;
}

bool zn_names_has_stream(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    if (ZN_STATE(f)->stream == 0)
        ZN_STATE(f)->stream = zn_stream_take(&s->names->streams);
    if (ZN_STATE(f)->stream == 0)
        s->names->stats->n[ZN_STAT_STREAMS_FULL]++;
    return ZN_STATE(f)->stream != 0;
}

void zn_names_drop_stream(zn_names *names, zn_flow *f)
{
    if (ZN_STATE(f)->stream != 0)
        zn_stream_give(&names->streams, ZN_STATE(f)->stream);
    ZN_STATE(f)->stream = 0;
}

static zn_reading reading_of(zn_stat why)
{
    switch (why) {
    case ZN_STAT_SUPPRESSED_INCOMPLETE:
        return ZN_READ_TRUNCATED;
    case ZN_STAT_SUPPRESSED_INVALID:
    case ZN_STAT_SUPPRESSED_CONFLICT:
        return ZN_READ_INVALID;
    case ZN_STAT_SUPPRESSED_QUIC_VERSION:
    case ZN_STAT_SUPPRESSED_CAPACITY:
        return ZN_READ_NOT;
    default:
        return ZN_READ_WHOLE;
    }
}

/* Returns whether the flow's list has an equal entry already, which another one would add nothing
 * to. */
static bool is_listed(const zn_names *names, const zn_flow *f, const zn_name_entry *rejected)
{
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next) {
        const zn_name_entry *e = zn_name_store_at(names->name_store, entry);
        if (zn_id_equal(e->id, rejected->id) && e->source == rejected->source &&
            e->state == rejected->state && e->reading == rejected->reading)
            return true;
    }
    return false;
}

void zn_names_rejected(const zn_packet_context *s, zn_stat why)
{
    zn_names *names = s->names;
    zn_name_source source = s->analyzer->source;
    zn_name_entry rejected = {.source = (uint8_t)source,
                              .state = why == ZN_STAT_SUPPRESSED_INVALID ? ZN_ENTRY_INVALID
                                                                         : ZN_ENTRY_SUPPRESSED,
                              .reading = (uint8_t)reading_of(why)};
    uint32_t entry;
    names->stats->n[why]++;
    if (is_listed(names, s->f, &rejected))
        return;
    entry = zn_name_store_add(names->name_store, s->f, source);
    if (entry == 0) {
        s->f->names_dropped = true;
        return;
    }
    zn_name_store_observed(names->name_store, entry);
    zn_name_store_decided_now(names->name_store, entry);
    zn_name_store_at(names->name_store, entry)->state = rejected.state;
    zn_name_store_at(names->name_store, entry)->reading = rejected.reading;
}

void zn_names_missed(const zn_packet_context *s)
{
    s->f->names_dropped = true;
    ZN_FACTS(s->f)->missed = true;
}

/* Returns the entry of a name in the flow's list, or 0. pending: the entry waits for evidence. */
static uint32_t find_entry(const zn_names *names, const zn_flow *f, zn_id id, bool pending)
{
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next) {
        const zn_name_entry *e = zn_name_store_at(names->name_store, entry);
        if (zn_id_equal(e->id, id) && (e->state == ZN_ENTRY_PENDING) == pending)
            return entry;
    }
    return 0;
}

/* The entry of a name that the flow voted for already, or 0. */
static uint32_t find_name(const zn_names *names, const zn_flow *f, zn_id id)
{
    return find_entry(names, f, id, false);
}

bool zn_names_has(const zn_names *names, const zn_flow *f, zn_name_source source, zn_span raw)
{
    zn_hostname host;
    zn_host_kind kind = zn_hostname_normalize(raw, &host);
    uint32_t entry = ZN_FACTS(f)->names;
    zn_id id;
    if (kind == ZN_HOST_EMPTY)
        return true;
    if (kind == ZN_HOST_INVALID || kind == ZN_HOST_ADDRESS)
        return false;
    id = zn_votes_id(names->votes, zn_names_kind(names, source), zn_hostname_span(&host));
    while (entry != 0 && !zn_id_equal(zn_name_store_at(names->name_store, entry)->id, id))
        entry = zn_name_store_at(names->name_store, entry)->next;
    return entry != 0;
}

/* Casts the vote of an entry whose name and evidence are both there. */
static void vote(const zn_packet_context *s, uint32_t entry)
{
    zn_names *names = s->names;
    zn_name_entry *e = zn_name_store_at(names->name_store, entry);
    zn_vote_kind kind = zn_names_kind(names, (zn_name_source)e->source);
    if (zn_votes_cast(names->votes, kind, s->p->t_ns, s->flow, entry)) {
        e->state = ZN_ENTRY_VOTED;
        zn_name_store_voted(names->name_store, entry);
        return;
    }
    e->state = ZN_ENTRY_SUPPRESSED;
    zn_name_store_decided_now(names->name_store, entry);
    zn_name_store_wipe_text(names->name_store, entry);
    names->stats->n[ZN_STAT_SUPPRESSED_CAPACITY]++;
}

static bool has_evidence(const zn_packet_context *s)
{
    if (!s->names->roles->established)
        return true;
    return (s->analyzer->source != ZN_SOURCE_DNS || s->f->tuple.proto == ZN_PROTO_TCP) &&
           s->f->client_acked;
}

/* Returns the counter of the reason why the name must not be released, by its properties and its
 * flow's properties; ZN_STAT_COUNT if there is no reason. */
static zn_stat forbidden(const zn_names *names, const zn_flow *f, zn_host_kind kind,
                         const zn_hostname *host)
{
    zn_stat listed;
    if (kind == ZN_HOST_INVALID)
        return ZN_STAT_SUPPRESSED_INVALID;
    if (kind == ZN_HOST_HOME && !names->roles->release_all)
        return ZN_STAT_SUPPRESSED_HOME_NAME;
    listed = zn_roles_list_refuses(names->roles, host);
    if (listed != ZN_STAT_COUNT)
        return listed;
    if (!zn_roles_may_vote(names->roles, f))
        return ZN_STAT_SUPPRESSED_OUTSIDE;
    return ZN_STAT_COUNT;
}

/* Takes an entry of a flow's full list for a name: the last entry that waits for the answer to a
 * repeated question, or else the entry that waits for an answer about this name. Answers to the
 * question of that entry do not count any more. Returns 0 if there is no such entry. */
static uint32_t take_repeated(const zn_packet_context *s, zn_id id)
{
    const zn_names *names = s->names;
    uint32_t taken = find_entry(names, s->f, id, true);
    for (uint32_t entry = ZN_FACTS(s->f)->names; entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next) {
        const zn_name_entry *e = zn_name_store_at(names->name_store, entry);
        if (e->state == ZN_ENTRY_PENDING && find_entry(names, s->f, e->id, true) != entry)
            taken = entry;
    }
    if (taken == 0)
        return 0;
    names->stats->n[ZN_STAT_NAMES_REPEATED]++;
    if (!zn_id_equal(zn_name_store_at(names->name_store, taken)->id, id))
        zn_name_store_observed(names->name_store, taken);
    zn_name_store_wipe_text(names->name_store, taken);
    zn_name_store_at(names->name_store, taken)->source = (uint8_t)s->analyzer->source;
    return taken;
}

uint32_t zn_names_observed(const zn_packet_context *s, zn_span raw)
{
    zn_names *names = s->names;
    zn_name_source source = s->analyzer->source;
    zn_hostname host;
    zn_host_kind kind = zn_hostname_normalize(raw, &host);
    zn_stat why;
    zn_id id;
    uint32_t entry;
    zn_unread_message_read(s->f);
    if (kind == ZN_HOST_EMPTY || kind == ZN_HOST_ADDRESS) {
        names->stats
            ->n[kind == ZN_HOST_EMPTY ? ZN_STAT_HELLOS_WITHOUT_NAME : ZN_STAT_NAMES_ADDRESS]++;
        return 0;
    }
    names->stats->n[s->analyzer->seen]++;
    why = forbidden(names, s->f, kind, &host);
    if (why != ZN_STAT_COUNT) {
        zn_names_rejected(s, why);
        return 0;
    }
    id = zn_votes_id(names->votes, zn_names_kind(names, source), zn_hostname_span(&host));
    entry = s->f->tuple.proto == ZN_PROTO_TCP ? find_entry(names, s->f, id, true) : 0;
    if (entry != 0 || find_name(names, s->f, id) != 0) {
        names->stats->n[ZN_STAT_NAMES_REPEATED]++; /* over TCP the evidence is the flow's */
        return 0;
    }
    entry = zn_name_store_add(names->name_store, s->f, source);
    if (entry != 0)
        zn_name_store_observed(names->name_store, entry);
    else
        entry = take_repeated(s, id);
    if (entry == 0 || !zn_name_store_keep_text(names->name_store, entry, &host)) {
        names->stats->n[ZN_STAT_NAMES_FULL]++;
        names->stats->n[ZN_STAT_SUPPRESSED_CAPACITY]++;
        s->f->names_dropped = true;
        if (entry != 0) {
            zn_name_store_at(names->name_store, entry)->state = ZN_ENTRY_SUPPRESSED;
            zn_name_store_decided_now(names->name_store, entry);
        }
        return 0;
    }
    zn_name_store_at(names->name_store, entry)->id = id;
    if (has_evidence(s)) {
        zn_names_addr(s);
        vote(s, entry);
    } else if (names->name_store->times != NULL) {
        (void)zn_votes_cast(names->votes, ZN_VOTE_PEEK, s->p->t_ns, s->flow, entry);
    }
    return entry;
}

void zn_names_observed_again(const zn_packet_context *s, zn_span raw)
{
    zn_name_source source = s->analyzer->source;
    zn_name_store *name_store = s->names->name_store;
    zn_hostname host;
    zn_id id = {0};
    zn_host_kind kind = zn_hostname_normalize(raw, &host);
    if (kind == ZN_HOST_EMPTY || kind == ZN_HOST_ADDRESS)
        return;
    if (kind != ZN_HOST_INVALID)
        id = zn_votes_id(s->names->votes, zn_names_kind(s->names, source), zn_hostname_span(&host));
    s->names->stats->n[s->analyzer->seen]++;
    for (uint32_t entry = ZN_FACTS(s->f)->names; entry != 0;
         entry = zn_name_store_at(name_store, entry)->next) {
        zn_name_entry *e = zn_name_store_at(name_store, entry);
        if (e->source == source && zn_id_equal(e->id, id)) {
            s->names->stats->n[ZN_STAT_NAMES_REPEATED]++;
            return;
        }
        if (e->source == source && e->state == ZN_ENTRY_PENDING) { /* neither name counts */
            zn_name_store_wipe_text(name_store, entry);
            e->state = ZN_ENTRY_SUPPRESSED;
            zn_name_store_decided_now(name_store, entry);
            s->names->stats->n[ZN_STAT_SUPPRESSED_CONFLICT]++;
        }
    }
    zn_names_rejected(s, ZN_STAT_SUPPRESSED_CONFLICT);
}

void zn_names_confirmed(const zn_packet_context *s, uint32_t entry)
{
    zn_name_entry *e = zn_name_store_at(s->names->name_store, entry);
    if (e->state != ZN_ENTRY_PENDING)
        return;
    if (find_name(s->names, s->f, e->id) == 0) {
        vote(s, entry);
        return;
    }
    /* Another query of this flow for the same name was answered before: one vote. Released or not,
     * this entry adds nothing, and must not make the record look as if it hid something else. */
    s->names->stats->n[ZN_STAT_NAMES_REPEATED]++;
    zn_name_store_wipe_text(s->names->name_store, entry);
    e->state = ZN_ENTRY_REPEATED;
}

void zn_names_client_proven(const zn_packet_context *s, uint32_t entry)
{
    s->f->client_acked = true;
    zn_names_addr(s);
    if (entry != 0)
        zn_names_confirmed(s, entry);
}

/* The namespace of the flow's server address. The handshake of a TCP flow comes before its first
 * message: its server is taken for what its port says. */
static zn_vote_kind addr_kind(const zn_packet_context *s)
{
    const zn_tuple *tuple = &s->f->tuple;
    bool dns = s->analyzer != NULL && s->analyzer->source == ZN_SOURCE_DNS &&
               ZN_STATE(s->f)->protocol == s->analyzer->id; /* not in a request of HTTP */
    dns |= tuple->proto == ZN_PROTO_TCP && tuple->port[1 - s->f->client] == ZN_DNS_PORT;
    return dns && s->names->roles->dns_votes != ZN_DNS_VOTES_ALL ? ZN_VOTE_DNS_ADDR : ZN_VOTE_ADDR;
}

void zn_names_addr(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    if (ZN_STATE(f)->addr_vote != ZN_ADDR_PENDING)
        return;
    ZN_STATE(f)->addr_vote = ZN_ADDR_SUPPRESSED;
    if (zn_roles_may_vote(s->names->roles, f) &&
        zn_votes_cast(s->names->votes, addr_kind(s), s->p->t_ns, s->flow, 0))
        ZN_STATE(f)->addr_vote = ZN_ADDR_VOTED;
}

/* Returns true if the client's side has shown to be a client's. A packet from outside towards an
 * internal host shows this only together with another packet, and over TCP only with an ACK. */
static bool client_acted(const zn_flow *f)
{
    const zn_flow_side *client = &f->side[f->client], *server = &f->side[1 - f->client];
    bool from_outside = !f->internal[f->client] && f->internal[1 - f->client];
    if (client->packets == 0 || !from_outside)
        return client->packets != 0;
    return (client->packets > 1 || server->packets != 0) &&
           (f->tuple.proto != ZN_PROTO_TCP || client->acks != 0);
}

void zn_names_mark_client(const zn_packet_context *s)
{
    if (client_acted(s->f))
        ZN_FACTS(s->f)->client_marked =
            zn_votes_cast(s->names->votes, ZN_VOTE_CLIENT, s->p->t_ns, s->flow, 0);
}

bool zn_names_client_is_final(const zn_flow *f)
{
    return ZN_FACTS(f)->names != 0 || f->names_dropped || ZN_STATE(f)->addr_vote != ZN_ADDR_PENDING;
}

bool zn_names_swap_client(const zn_packet_context *s)
{
    zn_addr known_as[2];
    if (zn_names_client_is_final(s->f) || zn_attributes_first(s->names, s->flow) != 0)
        return false; /* its votes would be the other side's */
    zn_flow_swap_client(s->f);
    if (s->p->tuple.proto != ZN_PROTO_TCP) /* the other side sent first: the opening was not seen */
        ZN_FACTS(s->f)->client_bytes = ZN_CLIENT_UNREAD;
    zn_roles_place(s->names->roles, s->names->flows, s->f, s->p, known_as);
    zn_names_mark_client(s);
    return zn_flow_has_user(s->f);
}

bool zn_names_opens_late(const zn_packet_context *s)
{
    return s->f->internal[s->p->sender] && s->f->side[s->p->sender].packets == 1 &&
           s->p->t_ns - s->f->first_ns <= ZN_EARLY_ANSWER_NS && zn_names_swap_client(s);
}

/* Returns whether this packet leaves no doubt which side is the client and, where the policy asks
 * for it, that it is real. Taking a client for a server would make its address an attribute. */
static bool client_is_known(const zn_names *names, const zn_flow *f, const zn_packet *p)
{
    if (names->roles->established)
        return f->client_acked;
    return (p->tuple.proto == ZN_PROTO_TCP && !f->midstream) ||
           zn_addr_is_group(&f->tuple.addr[1 - f->client]); /* no client has such an address */
}

void zn_names_check_evidence(const zn_packet_context *s)
{
    zn_flow *f = s->f;
    if (!client_is_known(s->names, f, s->p))
        return;
    zn_names_addr(s);
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0;
         entry = zn_name_store_at(s->names->name_store, entry)->next)
        zn_names_confirmed(s, entry);
    if (ZN_UNLIKELY(s->names->attributes != NULL) && f->tuple.proto == ZN_PROTO_TCP)
        zn_attributes_confirm(s);
}

void zn_names_closed(zn_names *names, const zn_flow *f)
{
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next) {
        zn_name_entry *e = zn_name_store_at(names->name_store, entry);
        if (e->state == ZN_ENTRY_SUPPRESSED || e->state == ZN_ENTRY_INVALID)
            zn_name_store_withheld_by(names->name_store, entry, f->closed_ns);
        if (e->state != ZN_ENTRY_PENDING)
            continue;
        zn_name_store_wipe_text(names->name_store, entry);
        if (find_name(names, f, e->id) != 0) {
            e->state = ZN_ENTRY_REPEATED;
            names->stats->n[ZN_STAT_NAMES_REPEATED]++;
            continue;
        }
        zn_name_store_decided(names->name_store, entry, f->closed_ns);
        e->state = ZN_ENTRY_UNCONFIRMED;
        names->stats->n[ZN_STAT_SUPPRESSED_UNCONFIRMED]++;
    }
}

bool zn_names_all_read(const zn_flow *f)
{
    if (f->tuple.proto != ZN_PROTO_TCP)
        return ZN_STATE(f)->protocol == 0 || ZN_STATE(f)->parse == ZN_PARSE_OFF;
    return zn_parse_state_of(f) == ZN_PARSE_OFF || zn_parse_state_of(f) >= ZN_PARSE_BETWEEN;
}

zn_stat zn_names_status(const zn_names *names, const zn_flow *f)
{
    static const zn_stat statuses[] = {[ZN_READ_WHOLE] = ZN_STAT_STATUS_READABLE,
                                       [ZN_READ_TRUNCATED] = ZN_STAT_STATUS_TRUNCATED,
                                       [ZN_READ_INVALID] = ZN_STAT_STATUS_INVALID,
                                       [ZN_READ_NOT] = ZN_STAT_STATUS_UNSUPPORTED};
    zn_reading best = ZN_READ_NOT;
    if (ZN_FACTS(f)->ech_offered)
        return ZN_STAT_STATUS_ECH;
    if (ZN_FACTS(f)->names == 0 && ZN_FACTS(f)->missed)
        return ZN_STAT_STATUS_TRUNCATED;
    if (zn_unread(f))
        return ZN_STAT_STATUS_UNREAD;
    if (ZN_FACTS(f)->names == 0)
        return f->names_dropped ? ZN_STAT_STATUS_UNSUPPORTED : ZN_STAT_STATUS_NONE;
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next)
        if (zn_name_store_at(names->name_store, entry)->reading < best)
            best = (zn_reading)zn_name_store_at(names->name_store, entry)->reading;
    return statuses[best];
}
