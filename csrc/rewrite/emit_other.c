/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/emit_other.h"

#include "build/build_icmp.h"
#include "flow/flow_table.h"
#include "packet/tuple.h"

#define ICMP_BYTES_MAX 1280u /* of a message; the rest of a longer message is zeros */

static bool is_icmp(uint32_t proto, bool v4)
{
    return proto == (v4 ? ZN_ICMP_V4_PROTOCOL : ZN_ICMP_V6_PROTOCOL);
}

/* Returns true if the message never leaves its network: router and neighbour discovery, multicast
 * listeners, and other messages that name hosts to their neighbours. */
static bool is_local_icmp(const zn_icmp *icmp)
{
    if (icmp->v6)
        return icmp->type >= 130;
    return icmp->type == 9 || icmp->type == 10 || icmp->type == 17 || icmp->type == 18;
}

/* Returns true if a message goes back to the sender of a request or of a quoted packet. */
static bool is_answer(const zn_icmp *icmp)
{
    return icmp->kind == ZN_ICMP_ERROR ||
           (icmp->kind == ZN_ICMP_ECHO && icmp->type == (icmp->v6 ? 129 : 0));
}

/* Returns the open flow whose packet an ICMP error quotes; 0: none. *sender is the side that sent
 * the quoted packet, which is the receiver of the error. A closed flow does not count, because it
 * may be freed before the error leaves. A quote from a flow of other hosts is forged. */
static uint32_t quoted_flow(const zn_rewriter *r, const zn_icmp *icmp, const zn_addr *receiver,
                            uint8_t *sender)
{
    const zn_icmp_quote *q = &icmp->quote;
    zn_packet quoted = {0};
    zn_addr_words src, dst;
    uint32_t flow, proto = q->kind == ZN_ICMP_QUOTED_TCP ? ZN_PROTO_TCP : ZN_PROTO_UDP;
    if (icmp->kind != ZN_ICMP_ERROR ||
        (q->kind != ZN_ICMP_QUOTED_TCP && q->kind != ZN_ICMP_QUOTED_UDP) ||
        !zn_addr_equal(&q->src, receiver))
        return 0;
    memcpy(&src, q->src.byte, sizeof src);
    memcpy(&dst, q->dst.byte, sizeof dst);
    zn_packet_set_tuple(&quoted, src, dst, (uint32_t)q->port[0] << 16 | q->port[1], proto,
                        r->flow_key);
    *sender = quoted.sender;
    flow = zn_flow_find(r->flows, &quoted);
    return flow != 0 && zn_flow_entry(r->flows, flow)->end == ZN_FLOW_OPEN ? flow : 0;
}

/* Finds the internal ends, and the user among them. Without an internal end the user is the sender,
 * or with `answers` the receiver. Returns false if there is no user. */
static bool place_ends(const zn_rewriter *r, const zn_addr real[2], bool answers, bool internal[2],
                       unsigned *user)
{
    const zn_roles *roles = r->policy->roles;
    for (unsigned i = 0; i < 2; i++)
        internal[i] = zn_packet_address_is_internal(roles, &real[i]);
    *user = internal[0] ? 0 : internal[1] || answers;
    return internal[0] || internal[1] || !roles->internal_is_set;
}

int64_t zn_other_epoch(const zn_packet_output *of, const zn_packet *p)
{
    const zn_clock *clock = of->gate.clock;
    return zn_keys_epoch(of->keys, clock->started ? clock->now_ns : p->t_ns);
}

const zn_addr *zn_other_user(const zn_packet *p, const zn_delayed_other *other)
{
    return &p->tuple.addr[other->from_inside ? p->sender : 1u - p->sender];
}

/* Makes the addresses with which a packet between these ends leaves, under the keys of its time. */
static bool make_addresses(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p,
                           const zn_addr real[2], const bool internal[2], unsigned user,
                           zn_addr out[2])
{
    zn_packet_keys *keys = of->gate.keys;
    zn_addr cut =
        zn_addr_cut(&real[user], r->policy->roles->user_v4_bits, r->policy->roles->user_v6_bits);
    bool linkable = of->gate.server_addresses == ZN_SERVER_ADDRESSES_LINKABLE;
    int64_t epoch = zn_other_epoch(of, p);
    int rc = zn_keys_enter(of->keys, epoch) ? zn_packet_keys_enter(keys, epoch) : -ZN_ERR_CRYPTO;
    for (unsigned i = 0; i < 2 && rc == 0; i++) {
        if (zn_packet_address_is_open(&real[i]))
            out[i] = real[i];
        else if (internal[i] || i == user)
            rc = zn_packet_keys_client(keys, &real[i], internal[i], &out[i]);
        else
            rc = zn_packet_keys_pair(keys, linkable ? NULL : &cut, &real[i], &out[i]);
    }
    return rc == 0;
}

/* Returns the replacement of the identifier of an echo between these ends. */
static uint16_t echo_id(const zn_packet_output *of, const zn_packet *p, uint16_t id)
{
    uint64_t words[6] = {0};
    zn_packet_shift shift;
    for (unsigned i = 0; i < 2; i++)
        memcpy(&words[2 * i], &p->tuple.addr[i], sizeof(zn_addr));
    words[4] = p->tuple.proto;
    zn_packet_keys_shift(of->gate.keys, words, &shift);
    return zn_packet_id(&shift, id);
}

/* Binds an error to the flow whose packet it quotes. The error gets the fate of the flow, and the
 * flow's pseudonyms for addresses that both have. */
static void bind_to_flow(const zn_rewriter *r, const zn_icmp *icmp, const zn_addr real[2],
                         zn_delayed *entry)
{
    const zn_flow *f;
    entry->flow = quoted_flow(r, icmp, &real[1], &entry->other.quoted_sender);
    if (entry->flow == 0)
        return;
    f = zn_flow_entry(r->flows, entry->flow);
    for (unsigned i = 0; i < 2; i++)
        for (unsigned end = 0; end < 2; end++)
            if (zn_addr_equal(&real[i], &f->tuple.addr[end]))
                entry->other.end[i] = (uint8_t)(1u + end);
}

/* Returns true if a message without a flow is an error about a packet of some flow, or about a
 * packet that cannot be read. The name of that flow may be withheld. */
static bool is_about_unknown(const zn_icmp *icmp)
{
    return icmp->kind == ZN_ICMP_ERROR && icmp->quote.kind != ZN_ICMP_QUOTED_ECHO &&
           icmp->quote.kind != ZN_ICMP_QUOTED_IP;
}

zn_stat zn_delay_other(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p,
                       zn_delayed *entry)
{
    const zn_addr real[2] = {p->tuple.addr[p->sender], p->tuple.addr[1u - p->sender]};
    bool v4 = zn_addr_is_v4(&real[0]), message = is_icmp(p->tuple.proto, v4), internal[2];
    unsigned user;
    zn_icmp icmp = {0};
    entry->kind = ZN_DELAYED_OTHER;
    entry->flow = entry->image = 0;
    entry->other = (zn_delayed_other){.why = ZN_STAT_PACKETS_PASSED};
    if (message && zn_icmp_parse(p->payload, !v4, &icmp) != ZN_DONE)
        return ZN_STAT_PACKETS_DROPPED_CUT;
    if (message && is_local_icmp(&icmp))
        return ZN_STAT_PACKETS_DROPPED_LOCAL;
    if (!place_ends(r, real, message && is_answer(&icmp), internal, &user))
        return ZN_STAT_PACKETS_DROPPED_NO_USER;
    entry->other.from_inside = user == 0;
    if (!make_addresses(r, of, p, real, internal, user,
                        zn_delay_line_addresses(&of->delay_line, entry)))
        return ZN_STAT_PACKETS_DROPPED_CAPACITY;
    if (!message)
        return ZN_STAT_COUNT;
    if (icmp.kind == ZN_ICMP_ECHO)
        entry->other.echo_id = echo_id(of, p, icmp.id);
    bind_to_flow(r, &icmp, real, entry);
    if (entry->flow == 0 && is_about_unknown(&icmp))
        return ZN_STAT_PACKETS_DROPPED_NO_FLOW;
    if (of->images.wanted)
        entry->image = zn_packet_images_keep(&of->images, ZN_MESSAGE_ICMP,
                                             zn_span_first(p->payload, ICMP_BYTES_MAX));
    return ZN_STAT_COUNT;
}

zn_addr zn_other_address(const zn_packet_output *of, const zn_delayed *p, unsigned end)
{
    const zn_packet_gate *g = &of->gate;
    if (p->flow == 0 || p->other.end[end] == 0)
        return zn_delay_line_addresses(&of->delay_line, p)[end];
    return *zn_packet_gate_address(zn_flow_entry(g->flows, p->flow),
                                   zn_packet_gate_plan(g, p->flow), p->other.end[end] - 1u);
}

/* Returns the replacements of the quoted fields of the flow's packet. */
static zn_build_icmp_quote quote_of(const zn_packet_output *of, const zn_delayed *p,
                                    const zn_icmp_quote *q)
{
    const zn_packet_gate *g = &of->gate;
    const zn_flow *f = zn_flow_entry(g->flows, p->flow);
    const zn_packet_plan *plan = zn_packet_gate_plan(g, p->flow);
    unsigned from = p->other.quoted_sender, to = 1u - from;
    zn_build_icmp_quote quote = {.src = *zn_packet_gate_address(f, plan, from),
                                 .dst = *zn_packet_gate_address(f, plan, to),
                                 .hops = q->hops <= 64    ? 64
                                         : q->hops <= 128 ? 128
                                                          : 255,
                                 .service = q->service,
                                 .port = {plan->port[from], plan->port[to]}};
    if (!q->dont_fragment)
        quote.id = zn_packet_id(&plan->shift, q->id);
    if (q->kind == ZN_ICMP_QUOTED_TCP)
        quote.sequence = q->sequence + plan->shift.seq[from];
    return quote;
}

void zn_show_other(zn_packet_output *of, const zn_delayed *p, const zn_addr *src,
                   const zn_addr *dst, uint8_t *payload)
{
    zn_span raw = zn_packet_images_raw(&of->images, p->image);
    zn_build_icmp_choice choice = {
        .src = *src, .dst = *dst, .wire = p->payload_bytes, .echo_id = p->other.echo_id};
    zn_build_icmp_quote quote;
    zn_icmp icmp;
    if (raw.n == 0 || zn_icmp_parse(raw, !zn_addr_is_v4(src), &icmp) != ZN_DONE)
        return;
    if (p->flow != 0) {
        quote = quote_of(of, p, &icmp.quote);
        choice.quote = &quote;
    }
    zn_build_icmp(&icmp, raw.n, &choice, payload);
}
