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

bool zn_rewriter_reserve(zn_rewriter *r, uint32_t n)
{
    bool layers = r->output[0].keep_layers; /* the same in all outputs */
    bool reserved = true;
    r->reserved = n * (PACKET_SLOTS + (layers ? ZN_DELAYED_OUTER_SLOTS : 0));
    for (unsigned i = 0; i < r->packet_outputs; i++)
        reserved &= zn_delay_line_reserve(&r->output[i].delay_line, r->reserved);
    return reserved;
}

void zn_rewriter_fetch(const zn_rewriter *r, const zn_packet *p, uint32_t flow)
{
    zn_span ip = zn_packet_ip_headers(p);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_fetch_to_hold(&r->output[i].gate, flow);
    if (ZN_LIKELY(ip.n != 0)) { /* the IP headers of fragments are queued with the fragments */
        ZN_PREFETCH(ip.p);      /* another thread may have decoded them */
        ZN_PREFETCH(ip.p + ip.n);
    }
}

/* Notes that a flow has no names if the protocol of its packet says so. */
static void note_protocol(zn_rewriter *r, const zn_packet *p, uint32_t flow)
{
    zn_packet_plan *plan = zn_packet_gate_plan(&r->output[0].gate, flow);
    if (plan->names_known_ns != INT64_MAX ||
        !zn_nameless_flow_see(&plan->nameless, zn_flow_entry(r->flows, flow), p))
        return;
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_note(&r->output[i].gate, flow, r->clock->now_ns, true);
}

/* Returns the DSCP and ECN bits of an IP header. */
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

/* Returns true if the TCP header behind the IP headers `ip` was captured whole. */
static bool has_whole_header(const zn_packet *p, zn_span ip)
{
    zn_cursor c;
    if (p->tuple.proto != ZN_PROTO_TCP)
        return true;
    c = zn_cursor_over(ip.p + ip.n, 20u + p->options, true);
    zn_cursor_skip(&c, 12);
    return (uint32_t)(zn_cursor_u8(&c) >> 4) * 4u == 20u + p->options;
}

/* Returns the reason for which a packet of any flow does not leave; ZN_STAT_COUNT: it may leave. */
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

/* Fills in the TCP header with numbers shifted by the constants of the flow. */
static void delay_tcp(const zn_packet_output *of, const zn_packet *p, const zn_packet_plan *plan,
                      zn_delayed *entry)
{
    const zn_packet_shift *shift = &plan->shift;
    unsigned from = p->sender, to = 1u - from;
    bool offset = of->tcp_timestamps == ZN_TCP_TIMESTAMPS_OFFSET;
    zn_build_tcp_options how = {.seq_shift = shift->seq[to],
                                .timestamps = of->tcp_timestamps != ZN_TCP_TIMESTAMPS_DROP,
                                .own_shift = offset ? shift->timestamp[from] : 0,
                                .echo_shift = offset ? shift->timestamp[to] : 0};
    zn_delayed_packet *tcp = &entry->packet;
    tcp->seq = p->seq + shift->seq[from];
    tcp->ack = (p->tcp_flags & ZN_TCP_ACK) != 0 ? p->ack + shift->seq[to] : 0;
    tcp->window = p->window;
    tcp->tcp_flags = p->tcp_flags;
    tcp->option_bytes = p->options;
    if (entry->slots == 2)
        (void)zn_build_tcp_options_put(zn_packet_tcp_options(p), &how,
                                       zn_delay_line_options(&of->delay_line, entry));
}

/* Fills in the fields of the IP header that need no flow. */
static void delay_ip(const zn_packet_output *of, zn_span ip, bool v4, uint8_t ttl,
                     zn_delayed *entry)
{
    entry->due_ns = zn_packet_gate_due_after(&of->gate, of->gate.clock->now_ns);
    entry->tos = tos_of(ip, v4);
    entry->ttl = of->keep_ttl ? ttl : ttl_class(ttl);
    entry->dont_fragment = v4 && is_unfragmentable(ip);
    entry->before = ZN_DELAYED_NONE;
}

/* Fills in the fields that packets of all protocols have. */
static void delay_packet(const zn_packet_output *of, const zn_packet *p, zn_span ip,
                         zn_delayed *entry)
{
    delay_ip(of, ip, zn_addr_is_v4(&p->tuple.addr[0]), p->ttl, entry);
    entry->t_ns = p->t_ns;
    entry->proto = (uint8_t)p->tuple.proto;
    entry->payload_bytes = p->payload_len;
}

/* Remembers an entry that came while the clock was behind its time. */
static void note_undated(zn_packet_output *of, const zn_delayed *entry)
{
    if (entry->t_ns > of->gate.clock->now_ns && !zn_delay_line_has(&of->delay_line, of->undated))
        of->undated = entry->at;
}

/* Returns true if the due time of an entry may still change: it has no flow yet, or never has. */
static bool is_datable(const zn_delayed *entry)
{
    return entry->kind == ZN_DELAYED_FRAGMENT ? entry->flow == 0 : entry->kind == ZN_DELAYED_OTHER;
}

/* Sets the due time of entries that came while the clock was behind their time. The clock will be
 * at now_ns. */
static void set_due(zn_packet_output *of, int64_t now_ns)
{
    uint32_t place = of->undated;
    if (!zn_delay_line_has(&of->delay_line, place)) /* it left early, but others may be there */
        place = of->delay_line.first;
    while (zn_delay_line_has(&of->delay_line, place)) {
        zn_delayed *entry = zn_delay_line_at(&of->delay_line, place);
        int64_t due_ns =
            zn_packet_gate_due_after(&of->gate, entry->t_ns < now_ns ? entry->t_ns : now_ns);
        if (is_datable(entry) && due_ns > entry->due_ns)
            entry->due_ns = due_ns;
        place += entry->slots;
    }
    of->undated = ZN_DELAYED_NONE;
}

void zn_rewriter_time_moves(zn_rewriter *r, int64_t t_ns)
{
    int64_t now_ns;
    if (ZN_LIKELY(r->output[0].undated == ZN_DELAYED_NONE))
        return;
    now_ns = zn_clock_would_show(r->clock, t_ns);
    for (unsigned i = 0; i < r->packet_outputs && now_ns > r->clock->now_ns; i++)
        if (r->output[i].undated != ZN_DELAYED_NONE)
            set_due(&r->output[i], now_ns);
}

/* Adds the outer headers of a packet of the flow to its entry. */
static void delay_outer(zn_packet_output *of, const zn_packet *p, uint32_t flow, zn_delayed *entry)
{
    const zn_packet_gate *g = &of->gate;
    const zn_flow *f = zn_flow_entry(g->flows, flow);
    if (zn_flow_has_user(f))
        zn_delay_outer(of, p, zn_flow_user(g->flows, f),
                       zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns), entry);
}

/* Queues a packet of TCP or UDP. */
static void delay_of_flow(zn_packet_output *of, const zn_packet *p, uint32_t flow, zn_span ip)
{
    zn_packet_plan *plan = zn_packet_gate_plan(&of->gate, flow);
    uint32_t image = of->images.wanted ? zn_packet_images_come(&of->images, flow, p) : 0;
    zn_delayed *entry = zn_delay_line_add(&of->delay_line, p->options != 0 ? 2 : 1);
    delay_packet(of, p, ip, entry);
    entry->kind = ZN_DELAYED_PACKET;
    entry->flow = flow;
    entry->image = image;
    entry->sender = p->sender;
    entry->packet = (zn_delayed_packet){.ip_id = 0};
    if (!entry->dont_fragment && zn_addr_is_v4(&p->tuple.addr[0]))
        entry->packet.ip_id = zn_packet_id(&plan->shift, p->ip_id);
    if (p->tuple.proto == ZN_PROTO_TCP)
        delay_tcp(of, p, plan, entry);
    if (of->keep_layers && p->encapsulations != 0)
        delay_outer(of, p, flow, entry);
    if (plan->held != 0)
        entry->before = plan->last_held;
    plan->held++;
    plan->last_held = entry->at;
}

/* Queues a packet of another protocol. Returns the reason for which it does not leave, or
 * ZN_STAT_COUNT. */
static zn_stat delay_other(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p,
                           zn_span ip)
{
    zn_delayed *entry = zn_delay_line_add(&of->delay_line, 2);
    zn_stat why;
    delay_packet(of, p, ip, entry);
    why = zn_delay_other(r, of, p, entry);
    if (why != ZN_STAT_COUNT && of == &r->output[0]) {
        zn_delay_line_drop_last(&of->delay_line);
        return why;
    }
    note_undated(of, entry);
    if (why != ZN_STAT_COUNT) { /* the keys of a view failed, but the packet has its place there */
        entry->flow = 0;
        entry->other.why = (uint16_t)why;
        return ZN_STAT_COUNT;
    }
    if (entry->flow != 0)
        zn_packet_gate_plan(&of->gate, entry->flow)->held++;
    if (!of->keep_layers || p->encapsulations == 0)
        return why;
    if (entry->flow != 0)
        delay_outer(of, p, entry->flow, entry);
    else
        zn_delay_outer(of, p, zn_other_user(p, &entry->other), zn_other_epoch(of, p), entry);
    return why;
}

void zn_rewriter_take_fragment(zn_rewriter *r, const zn_fragment_frame *frame)
{
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        zn_packet_output *of = &r->output[i];
        zn_delayed *entry = zn_delay_line_add(&of->delay_line, 1);
        delay_ip(of, frame->ip, !frame->v6, frame->ttl, entry);
        entry->t_ns = frame->t_ns;
        zn_chain_fragment(of, frame, entry);
        of->stats->n[ZN_STAT_PACKETS_STRIPPED] += frame->has_layers;
        note_undated(of, entry);
    }
}

/* Notes a packet that is not queued. */
static void pass_over(zn_packet_output *of, const zn_packet *p, uint32_t flow)
{
    if (of->images.wanted && flow != 0 && p->tuple.proto == ZN_PROTO_UDP)
        zn_packet_images_pass(&of->images, flow, p);
}

/* Queues a packet of the flow (0: no flow) for an output. `why` is the reason for which the main
 * output does not queue it; ZN_STAT_COUNT: the main output queues it, or this is the main output.
 * Returns the reason for which this output does not queue it, or ZN_STAT_COUNT. */
static zn_stat take_packet(const zn_rewriter *r, zn_packet_output *of, const zn_packet *p,
                           uint32_t flow, zn_stat why)
{
    zn_span ip = zn_packet_ip_headers(p);
    bool other = !zn_packet_is_of_flow(p);
    if (ip.n == 0) { /* reassembled: each of its fragments has a fate instead */
        zn_bind_fragments(of, p, other ? 0 : flow);
        pass_over(of, p, flow);
        return ZN_STAT_COUNT;
    }
    if (why == ZN_STAT_COUNT)
        why = flow == 0 && !other ? ZN_STAT_PACKETS_DROPPED_NO_FLOW : never_leaves(p, ip);
    if (why == ZN_STAT_COUNT && other)
        why = delay_other(r, of, p, ip);
    else if (why == ZN_STAT_COUNT)
        delay_of_flow(of, p, flow, ip);
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
    why = take_packet(r, &r->output[0], p, flow, ZN_STAT_COUNT);
    for (unsigned i = 1; i < r->packet_outputs; i++)
        (void)take_packet(r, &r->output[i], p, flow, why);
}
