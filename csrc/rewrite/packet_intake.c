/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that come: queues each in the delay lines of all outputs. */
#include "build/build_tcp_options.h"
#include "flow/flow_table.h"
#include "rewrite/emit_fragments.h"
#include "rewrite/emit_other.h"
#include "rewrite/emit_outer.h"
#include "rewrite/rewriter_state.h"

#define PACKET_SLOTS 2u /* most slots that a packet takes without the headers around it */
#define DONT_FRAGMENT 0x40

/* Returns true if an entry is a packet of TCP or UDP, and thus of a flow. */
static bool has_flow(const zn_held_packet *p)
{
    return p->proto == ZN_PROTO_TCP || p->proto == ZN_PROTO_UDP;
}

bool zn_rewriter_reserve(zn_rewriter *r, uint32_t n)
{
    bool layers = r->output[0].keep_layers; /* the same in all outputs */
    bool reserved = true;
    r->reserved = n * (PACKET_SLOTS + (layers ? ZN_HELD_OUTER_SLOTS : 0));
    for (unsigned i = 0; i < r->packet_outputs; i++)
        reserved &= zn_packet_hold_reserve(&r->output[i].hold, r->reserved);
    return reserved;
}

void zn_rewriter_fetch(const zn_rewriter *r, const zn_packet *p, uint32_t flow)
{
    zn_span ip = zn_packet_ip_headers(p);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_fetch_to_hold(&r->output[i].gate, flow);
    if (ZN_LIKELY(ip.n != 0)) { /* the IP headers of fragments are queued with the fragments */
        ZN_PREFETCH(ip.p); /* another thread may have decoded them */
        ZN_PREFETCH(ip.p + ip.n);
    }
}

/* Takes note where a packet's protocol says that its flow has no names. */
static void note_protocol(zn_rewriter *r, const zn_packet *p, uint32_t flow)
{
    zn_packet_plan *plan = zn_packet_gate_plan(&r->output[0].gate, flow);
    if (plan->names_known_ns != INT64_MAX ||
        !zn_nameless_flow_see(&plan->nameless, zn_flow_entry(r->flows, flow), p))
        return;
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_note(&r->output[i].gate, flow, r->clock->now_ns, true);
}

/* The field of DSCP and ECN of an IP header. */
static uint8_t tos_of(zn_span ip, bool v4)
{
    zn_cursor c = zn_cursor_over_span(ip, true);
    uint16_t word = zn_cursor_be16(&c);
    return (uint8_t)(v4 ? word : word >> 4);
}

static bool is_unfragmentable(zn_span ip)
{
    zn_cursor c = zn_cursor_over_span(ip, true);
    zn_cursor_skip(&c, 6);
    return (zn_cursor_u8(&c) & DONT_FRAGMENT) != 0;
}

static uint8_t ttl_class(uint8_t ttl)
{
    return ttl <= 64 ? 64 : ttl <= 128 ? 128 : 255;
}

/* Returns whether the TCP header that comes after `ip` was captured whole. */
static bool has_whole_header(const zn_packet *p, zn_span ip)
{
    zn_cursor c;
    if (p->tuple.proto != ZN_PROTO_TCP)
        return true;
    c = zn_cursor_over(ip.p + ip.n, 20u + p->options, true);
    zn_cursor_skip(&c, 12);
    return (uint32_t)(zn_cursor_u8(&c) >> 4) * 4u == 20u + p->options;
}

/* Returns why a packet, whatever its flow, does not leave; ZN_STAT_COUNT: it may. */
static zn_stat never_leaves(const zn_packet *p, zn_span ip)
{
    bool v4 = zn_addr_is_v4(&p->tuple.addr[0]);
    uint32_t transport = p->tuple.proto == ZN_PROTO_TCP ? 20u + p->options : 8u;
    if (zn_packet_is_local(&p->tuple))
        return ZN_STAT_PACKETS_DROPPED_LOCAL;
    if (p->fragment)
        return ZN_STAT_PACKETS_DROPPED_FRAGMENT;
    if (!has_whole_header(p, ip) || p->payload_len > UINT16_MAX - transport - (v4 ? 20u : 0u) ||
        v4 != zn_addr_is_v4(&p->tuple.addr[1]))
        return ZN_STAT_PACKETS_DROPPED_CUT;
    return ZN_STAT_COUNT;
}

/* Fills in the TCP header, under the constants of the flow. */
static void hold_tcp(const zn_packet_output *of, const zn_packet *p, const zn_packet_plan *plan,
                     zn_held_packet *held)
{
    const zn_packet_shift *shift = &plan->shift;
    unsigned from = p->sender, to = 1u - from;
    bool offset = of->tcp_timestamps == ZN_TCP_TIMESTAMPS_OFFSET;
    zn_build_tcp_options how = {.seq_shift = shift->seq[to],
                                .timestamps = of->tcp_timestamps != ZN_TCP_TIMESTAMPS_DROP,
                                .own_shift = offset ? shift->timestamp[from] : 0,
                                .echo_shift = offset ? shift->timestamp[to] : 0};
    held->seq = p->seq + shift->seq[from];
    held->ack = (p->tcp_flags & ZN_TCP_ACK) != 0 ? p->ack + shift->seq[to] : 0;
    held->window = p->window;
    held->tcp_flags = p->tcp_flags;
    held->option_bytes = p->options;
    if (held->slots == 2)
        (void)zn_build_tcp_options_put(zn_packet_tcp_options(p), &how,
                                       zn_packet_hold_options(&of->hold, held));
}

/* Fills in what the IP header says, and the same for all. */
static void hold_ip(const zn_packet_output *of, zn_span ip, bool v4, uint8_t ttl, zn_held_packet *held)
{
    held->due_ns = zn_packet_gate_due_after(&of->gate, of->gate.clock->now_ns);
    held->tos = tos_of(ip, v4);
    held->ttl = of->keep_ttl ? ttl : ttl_class(ttl);
    held->dont_fragment = v4 && is_unfragmentable(ip);
    held->tcp_flags = held->option_bytes = 0;
    held->before = ZN_HELD_NONE;
    held->fragment = held->more = false;
}

/* Fills in what is the same for all protocols. */
static void hold_packet(const zn_packet_output *of, const zn_packet *p, zn_span ip, zn_held_packet *held)
{
    hold_ip(of, ip, zn_addr_is_v4(&p->tuple.addr[0]), p->ttl, held);
    held->t_ns = p->t_ns;
    held->proto = (uint8_t)p->tuple.proto;
    held->payload_bytes = p->payload_len;
}

/* Remembers an entry that came while the clock was behind its time. */
static void note_undated(zn_packet_output *of, const zn_held_packet *held)
{
    if (held->t_ns > of->gate.clock->now_ns && !zn_packet_hold_has(&of->hold, of->undated))
        of->undated = held->at;
}

/* Sets when those of an output are due that came while the clock was behind their time: it will
 * be now_ns. */
static void set_due(zn_packet_output *of, int64_t now_ns)
{
    uint32_t place = of->undated;
    if (!zn_packet_hold_has(&of->hold, place)) /* it left early, others may be there */
        place = of->hold.first;
    while (zn_packet_hold_has(&of->hold, place)) {
        zn_held_packet *held = zn_packet_hold_at(&of->hold, place);
        int64_t due_ns =
            zn_packet_gate_due_after(&of->gate, held->t_ns < now_ns ? held->t_ns : now_ns);
        bool open = held->fragment ? held->flow == 0 : !has_flow(held);
        if (open && due_ns > held->due_ns)
            held->due_ns = due_ns;
        place += held->slots;
    }
    of->undated = ZN_HELD_NONE;
}

void zn_rewriter_time_moves(zn_rewriter *r, int64_t t_ns)
{
    int64_t now_ns;
    if (ZN_LIKELY(r->output[0].undated == ZN_HELD_NONE))
        return;
    now_ns = zn_clock_would_show(r->clock, t_ns);
    for (unsigned i = 0; i < r->packet_outputs && now_ns > r->clock->now_ns; i++)
        if (r->output[i].undated != ZN_HELD_NONE)
            set_due(&r->output[i], now_ns);
}

/* Adds the headers around a packet of the flow to its entry. */
static void hold_outer(zn_packet_output *of, const zn_packet *p, uint32_t flow, zn_held_packet *held)
{
    const zn_packet_gate *g = &of->gate;
    const zn_flow *f = zn_flow_entry(g->flows, flow);
    if (zn_flow_has_user(f))
        zn_hold_outer(of, p, zn_flow_user(g->flows, f),
                             zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns), held);
}

/* Has a packet of TCP or UDP wait. */
static void hold_of_flow(zn_packet_output *of, const zn_packet *p, uint32_t flow, zn_span ip)
{
    zn_packet_plan *plan = zn_packet_gate_plan(&of->gate, flow);
    uint32_t image = of->images.wanted ? zn_packet_images_come(&of->images, flow, p) : 0;
    zn_held_packet *held = zn_packet_hold_add(&of->hold, p->options != 0);
    hold_packet(of, p, ip, held);
    held->flow = flow;
    held->image = image;
    held->sender = p->sender;
    held->ip_id = held->dont_fragment || !zn_addr_is_v4(&p->tuple.addr[0])
                      ? 0
                      : zn_packet_id(&plan->shift, p->ip_id);
    if (p->tuple.proto == ZN_PROTO_TCP)
        hold_tcp(of, p, plan, held);
    if (of->keep_layers && p->encapsulations != 0)
        hold_outer(of, p, flow, held);
    if (plan->held != 0)
        held->before = plan->last_held;
    plan->held++;
    plan->last_held = held->at;
}

/* Has a packet of another protocol wait. Returns why it does not, or ZN_STAT_COUNT. */
static zn_stat hold_of_none(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p, zn_span ip)
{
    zn_held_packet *held = zn_packet_hold_add(&of->hold, true);
    zn_stat why;
    hold_packet(of, p, ip, held);
    why = zn_hold_other(r, of, p, held);
    if (why != ZN_STAT_COUNT && of == &r->output[0]) {
        zn_packet_hold_drop_last(&of->hold);
        return why;
    }
    note_undated(of, held);
    if (why != ZN_STAT_COUNT) { /* a view's own keys failed, and the packet has its place there */
        held->flow = 0;
        held->fragment = true;
        held->why = (uint16_t)why;
        return ZN_STAT_COUNT;
    }
    if (held->flow != 0)
        zn_packet_gate_plan(&of->gate, held->flow)->held++;
    if (!of->keep_layers || p->encapsulations == 0)
        return why;
    if (held->flow != 0)
        hold_outer(of, p, held->flow, held);
    else
        zn_hold_outer(of, p, zn_other_user(p, held), zn_other_epoch(of, p),
                             held);
    return why;
}

void zn_rewriter_take_fragment(zn_rewriter *r, const zn_fragment_frame *frame)
{
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        zn_packet_output *of = &r->output[i];
        zn_held_packet *held = zn_packet_hold_add(&of->hold, false);
        hold_ip(of, frame->ip, !frame->v6, frame->ttl, held);
        held->t_ns = frame->t_ns;
        zn_chain_fragment(of, frame, held);
        of->stats->n[ZN_STAT_PACKETS_STRIPPED] += frame->has_layers;
        note_undated(of, held);
    }
}

/* Takes note of a packet that does not wait. */
static void pass_over(zn_packet_output *of, const zn_packet *p, uint32_t flow)
{
    if (of->images.wanted && flow != 0 && p->tuple.proto == ZN_PROTO_UDP)
        zn_packet_images_pass(&of->images, flow, p);
}

/* Has a packet of the flow (0: of none) wait for an output. `why`: why it does not for the main
 * one; ZN_STAT_COUNT: it does, or this is the main one. Returns why it does not. */
static zn_stat hold(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p, uint32_t flow,
                    zn_stat why)
{
    zn_span ip = zn_packet_ip_headers(p);
    bool other = !zn_packet_is_of_flow(p);
    if (ip.n == 0) { /* each of its fragments has a fate, and it has none */
        zn_bind_fragments(of, p, other ? 0 : flow);
        pass_over(of, p, flow);
        return ZN_STAT_COUNT;
    }
    if (why == ZN_STAT_COUNT)
        why = flow == 0 && !other ? ZN_STAT_PACKETS_DROPPED_NO_FLOW : never_leaves(p, ip);
    if (why == ZN_STAT_COUNT && other)
        why = hold_of_none(r, of, p, ip);
    else if (why == ZN_STAT_COUNT)
        hold_of_flow(of, p, flow, ip);
    else
        pass_over(of, p, flow);
    if (why != ZN_STAT_COUNT)
        of->stats->n[why]++;
    return why;
}

void zn_rewriter_take_packet(zn_rewriter *r, const zn_packet *p, uint32_t flow)
{
    zn_stat why;
    if (flow != 0 && p->tuple.proto == ZN_PROTO_TCP)
        note_protocol(r, p, flow);
    why = hold(r, &r->output[0], p, flow, ZN_STAT_COUNT);
    for (unsigned i = 1; i < r->packet_outputs; i++)
        (void)hold(r, &r->output[i], p, flow, why);
}

