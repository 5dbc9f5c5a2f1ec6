/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/emit.h"

#include "analyzer/layer7.h"
#include "build/build_tcp_options.h"
#include "flow/flow_table.h"
#include "rewrite/emit_coarse.h"
#include "rewrite/emit_fragments.h"
#include "rewrite/emit_other.h"
#include "rewrite/emit_outer.h"
#include "rewrite/view_config.h"

#define PACKET_SLOTS 2u /* most slots that a packet takes without the headers around it */
#define EARLY_PART 8u   /* 1 / EARLY_PART of a full delay line leaves early at a time */
/* Bytes that wait to be taken when packets stop to leave: so many more than make the outputs full
 * that the packets of a batch mostly leave together. */
#define READY_BYTES_MAX (2 * ZN_OUTPUTS_BYTES)
/* Places in the delay line between the prefetch of a plan, or of a name, which the flow tells, and
 * their use. */
#define PLAN_AHEAD 12u
#define NAME_AHEAD 6u
#define PACKET_OUTPUTS (1u << ZN_OUTPUT_PACKETS | 1u << ZN_OUTPUT_PACKETS_NG)
#define PCAPNG_OUTPUTS                                                                             \
    (1u << ZN_OUTPUT_PACKETS_NG | 1u << ZN_OUTPUT_VIEW1_PACKETS_NG |                               \
     1u << ZN_OUTPUT_VIEW2_PACKETS_NG | 1u << ZN_OUTPUT_VIEW3_PACKETS_NG)
#define DONT_FRAGMENT 0x40
/* most bytes of a record without the payload: also padding, and the length that ends a block */
#define RECORD_BYTES                                                                               \
    (ZN_PACKET_FILE_PCAPNG_HEAD + ZN_BUILD_FRAME_MIN + ZN_BUILD_HEADERS_MAX +                      \
     ZN_BUILD_ENCAPSULATION_MAX + 8u)

bool zn_engine_has_packets(const zn_engine_config *config)
{
    return (config->outputs & PACKET_OUTPUTS) != 0;
}

/* What an output of packets shows, in the words of a view. */
static zn_packet_view view_of(const zn_engine_config *config, unsigned output)
{
    if (output != 0)
        return config->views[output - 1];
    return (zn_packet_view){.z = 1,
                            .payload = config->payload,
                            .server_addresses = config->server_addresses,
                            .fingerprints = config->fingerprints,
                            .times_ns = config->packet_times_ns,
                            .exact = config->exact};
}

/* Opens the keys of an output of packets. */
static int open_keys(zn_engine *e, const zn_engine_config *config, zn_packets *of, uint32_t z,
                     zn_error *err)
{
    zn_addr_choice choice = {.pseudonyms = config->pseudonyms,
                             .v4_block_bits = config->block_v4_bits,
                             .v6_block_bits = config->block_v6_bits,
                             .v4_user_bits = config->user_v4_bits,
                             .v6_user_bits = config->user_v6_bits,
                             .internal = e->roles.internal,
                             .internal_count = e->roles.internal_count};
    int rc = 0;
    of->keys = e->keys;
    if (z > config->z)
        rc = zn_engine_open_view_keys(e, config, z, &of->keys, err);
    return rc != 0 ? rc
                   : zn_packet_keys_open(&of->gate.keys, &choice, config->wide_addresses, of->keys,
                                         err);
}

static int open_images(zn_engine *e, zn_packets *of, const zn_packet_view *view, zn_error *err)
{
    if (view->payload == ZN_PACKET_PAYLOAD_CUT)
        return 0;
    of->images = (zn_packet_images){.policy = {view->fingerprints,
                                               view->payload == ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED,
                                               view->exact},
                                    .gate = &of->gate,
                                    .hold = &of->hold,
                                    .names = &e->names,
                                    .clock = &e->clock};
    return zn_packet_images_init(&of->images, err);
}

/* Opens an output of packets: 0 is the main one. */
static int open_output(zn_engine *e, const zn_engine_config *config, unsigned output, zn_error *err)
{
    zn_packets *of = &e->packets[output];
    zn_packet_view view = view_of(config, output);
    int rc;
    of->outputs = output == 0 ? config->outputs & PACKET_OUTPUTS
                              : zn_view_config_outputs_of(config, output - 1);
    of->stats = output == 0 ? &e->stats : &of->own_stats;
    of->gate = (zn_packet_gate){.policy = &e->policy,
                                .flows = e->flows,
                                .name_store = &e->name_store,
                                .stats = of->stats,
                                .clock = &e->clock,
                                .hold_ns = config->hold_ns,
                                .server_addresses = view.server_addresses,
                                .exact = view.exact,
                                .coarse = output == 0 && config->coarse_suppressed,
                                .least_z = view.z,
                                .bit = (uint8_t)(1u << output),
                                .main = output == 0 ? NULL : &e->packets[0].gate};
    of->payload = view.payload;
    of->macs = config->macs;
    of->tcp_timestamps = config->tcp_timestamps;
    of->keep_ttl = config->keep_ttl;
    of->keep_layers = config->keep_encapsulation;
    of->times_ns = view.times_ns;
    of->undated = ZN_HELD_NONE;
    e->packets_count = output + 1;
    rc = open_keys(e, config, of, view.z, err);
    if (rc == 0)
        rc = zn_packet_gate_init(&of->gate, config->max_flows + ZN_FLOW_SPARE, err);
    if (rc == 0)
        rc = zn_packet_hold_init(&of->hold, config->hold_bytes, err);
    return rc == 0 ? open_images(e, of, &view, err) : rc;
}

/* Has the images of all outputs get the messages that analyzers read. */
static void listen(zn_engine *e)
{
    zn_packet_images *last = &e->packets[0].images;
    if (!last->wanted) /* then views have none either */
        return;
    zn_packet_images_listen(last);
    for (unsigned i = 1; i < e->packets_count; i++)
        if (e->packets[i].images.wanted)
            last = last->next = &e->packets[i].images;
}

/* ---- decisions of the gate ------------------------------------------------------------------- */

static void addr_decided(void *of, const zn_vote *v, uint8_t released_in)
{
    const zn_engine *e = of;
    for (unsigned i = 0; i < e->packets_count; i++) {
        const zn_packet_gate *g = &e->packets[i].gate;
        zn_packet_plan *plan = zn_packet_gate_plan(g, v->flow);
        plan->addr_ns = v->t_ns;
        plan->addr_released = (released_in & g->bit) != 0;
    }
}

static void peek_answered(void *of, const zn_vote *v, uint8_t shared_in)
{
    zn_engine *e = of;
    if (v->kind == ZN_VOTE_PEEK) {
        e->name_store.times[v->entry].shared_in = shared_in;
        return;
    }
    for (unsigned i = 0; i < e->packets_count; i++) {
        const zn_packet_gate *g = &e->packets[i].gate;
        zn_packet_gate_plan(g, v->flow)->addr_shared = (shared_in & g->bit) != 0;
    }
}

/* Returns the outputs that may show an attribute of `users` users: a view may need more than z. */
static uint8_t outputs_of_release(void *of, uint64_t users, uint32_t z)
{
    const zn_engine *e = of;
    uint8_t in = 0;
    for (unsigned i = 0; i < e->packets_count; i++) {
        const zn_packet_gate *g = &e->packets[i].gate;
        in |= g->least_z <= z || users >= g->least_z ? g->bit : 0;
    }
    return in;
}

static void server_was_client(void *of, uint32_t flow, int64_t from_ns)
{
    zn_engine *e = of;
    for (unsigned i = 0; i < e->packets_count; i++)
        zn_packet_gate_withhold(&e->packets[i].gate, flow, from_ns);
}

int zn_engine_open_packets(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    int rc;
    if (!zn_engine_has_packets(config))
        return 0;
    zn_packet_decoder_want_packets(&e->decoder, config->keep_encapsulation);
    rc = zn_name_store_keep_times(&e->name_store, &e->clock, err);
    for (unsigned i = 0; i <= config->view_count && rc == 0; i++)
        rc = open_output(e, config, i, err);
    if (rc == 0)
        listen(e);
    e->tap = (zn_gate_tap){.of = e,
                           .addr_decided = addr_decided,
                           .peek_answered = peek_answered,
                           .server_was_client = server_was_client};
    if (e->packets_count > 1)
        e->tap.outputs_of_release = outputs_of_release;
    e->gate.tap = &e->tap;
    return rc;
}

void zn_engine_close_packets(zn_engine *e)
{
    zn_frame_builder_fini(&e->frame_builder);
    for (unsigned i = 0; i < e->packets_count; i++) {
        zn_packets *of = &e->packets[i];
        zn_packet_images_fini(&of->images);
        zn_packet_hold_fini(&of->hold);
        zn_packet_gate_fini(&of->gate);
        if (of->keys != e->keys)
            zn_keys_close(of->keys);
    }
}

int zn_engine_rebase_packets(zn_engine *e, int64_t t_ns, zn_error *err)
{
    int rc = 0;
    for (unsigned i = 0; i < e->packets_count && rc == 0; i++) {
        zn_packets *of = &e->packets[i];
        if (of->keys != e->keys)
            rc = zn_keys_rebase(of->keys, t_ns, err);
        zn_packet_keys_rebase(of->gate.keys);
    }
    return rc;
}

/* ---- what comes ------------------------------------------------------------------------------ */

/* Returns whether a packet is of TCP or UDP, and thus of a flow. */
static bool has_flow(const zn_held_packet *p)
{
    return p->proto == ZN_PROTO_TCP || p->proto == ZN_PROTO_UDP;
}

/* With z = 1, asks whether the server's address may be shown even if no vote for it is cast: a
 * client's address may not. */
static void peek_server(zn_engine *e, const zn_tuple *tuple, uint32_t flow, int64_t t_ns)
{
    bool dns = tuple->port[0] == ZN_DNS_PORT || tuple->port[1] == ZN_DNS_PORT;
    if (e->roles.release_all)
        (void)zn_votes_cast(&e->votes,
                            dns && e->roles.dns_votes != ZN_DNS_VOTES_ALL ? ZN_VOTE_DNS_ADDR_PEEK
                                                                          : ZN_VOTE_ADDR_PEEK,
                            t_ns, flow, 0);
}

void zn_engine_plan_flow(zn_engine *e, uint32_t flow)
{
    const zn_flow *f = zn_flow_entry(e->flows, flow);
    int64_t epoch = zn_flow_epoch(e->flows, f, e->roles.rotate_ns);
    for (unsigned i = 0; i < e->packets_count; i++)
        zn_packet_gate_open(&e->packets[i].gate, flow, epoch);
    peek_server(e, &f->tuple, flow, f->first_ns);
}

void zn_engine_replan_flow(zn_engine *e, uint32_t flow, int64_t t_ns)
{
    const zn_flow *f = zn_flow_entry(e->flows, flow);
    int64_t epoch = zn_flow_epoch(e->flows, f, e->roles.rotate_ns);
    for (unsigned i = 0; i < e->packets_count; i++)
        zn_packet_gate_reopen(&e->packets[i].gate, flow, epoch);
    peek_server(e, &f->tuple, flow, t_ns);
}

void zn_engine_note_names(zn_engine *e, uint32_t flow, const zn_flow *f)
{
    bool all_read = zn_names_all_read(f);
    for (unsigned i = 0; i < e->packets_count; i++)
        zn_packet_gate_note(&e->packets[i].gate, flow, e->clock.now_ns, all_read);
}

/* Takes note where a packet's protocol says that its flow has no names. */
static void note_protocol(zn_engine *e, const zn_packet *p, uint32_t flow)
{
    zn_packet_plan *plan = zn_packet_gate_plan(&e->packets[0].gate, flow);
    if (plan->names_known_ns != INT64_MAX ||
        !zn_nameless_flow_see(&plan->nameless, zn_flow_entry(e->flows, flow), p))
        return;
    for (unsigned i = 0; i < e->packets_count; i++)
        zn_packet_gate_note(&e->packets[i].gate, flow, e->clock.now_ns, true);
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
static void hold_tcp(const zn_packets *of, const zn_packet *p, const zn_packet_plan *plan,
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
static void hold_ip(const zn_packets *of, zn_span ip, bool v4, uint8_t ttl, zn_held_packet *held)
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
static void hold_packet(const zn_packets *of, const zn_packet *p, zn_span ip, zn_held_packet *held)
{
    hold_ip(of, ip, zn_addr_is_v4(&p->tuple.addr[0]), p->ttl, held);
    held->t_ns = p->t_ns;
    held->proto = (uint8_t)p->tuple.proto;
    held->payload_bytes = p->payload_len;
}

/* Remembers an entry that came while the clock was behind its time. */
static void note_undated(zn_packets *of, const zn_held_packet *held)
{
    if (held->t_ns > of->gate.clock->now_ns && !zn_packet_hold_has(&of->hold, of->undated))
        of->undated = held->at;
}

/* Sets when those of an output are due that came while the clock was behind their time: it will
 * be now_ns. */
static void set_due(zn_packets *of, int64_t now_ns)
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

void zn_engine_set_due(zn_engine *e, int64_t t_ns)
{
    int64_t now_ns = zn_clock_would_show(&e->clock, t_ns);
    for (unsigned i = 0; i < e->packets_count && now_ns > e->clock.now_ns; i++)
        if (e->packets[i].undated != ZN_HELD_NONE)
            set_due(&e->packets[i], now_ns);
}

/* Adds the headers around a packet of the flow to its entry. */
static void hold_outer(zn_packets *of, const zn_packet *p, uint32_t flow, zn_held_packet *held)
{
    const zn_packet_gate *g = &of->gate;
    const zn_flow *f = zn_flow_entry(g->flows, flow);
    if (zn_flow_has_user(f))
        zn_engine_hold_outer(of, p, zn_flow_user(g->flows, f),
                             zn_flow_epoch(g->flows, f, g->policy->roles->rotate_ns), held);
}

/* Has a packet of TCP or UDP wait. */
static void hold_of_flow(zn_packets *of, const zn_packet *p, uint32_t flow, zn_span ip)
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
static zn_stat hold_of_none(const zn_engine *e, zn_packets *of, const zn_packet *p, zn_span ip)
{
    zn_held_packet *held = zn_packet_hold_add(&of->hold, true);
    zn_stat why;
    hold_packet(of, p, ip, held);
    why = zn_engine_hold_other(e, of, p, held);
    if (why != ZN_STAT_COUNT && of == &e->packets[0]) {
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
        zn_engine_hold_outer(of, p, zn_engine_other_user(p, held), zn_engine_other_epoch(of, p),
                             held);
    return why;
}

void zn_engine_hold_fragment(zn_engine *e, const zn_fragment_frame *frame)
{
    for (unsigned i = 0; i < e->packets_count; i++) {
        zn_packets *of = &e->packets[i];
        zn_held_packet *held = zn_packet_hold_add(&of->hold, false);
        hold_ip(of, frame->ip, !frame->v6, frame->ttl, held);
        held->t_ns = frame->t_ns;
        zn_engine_chain_fragment(of, frame, held);
        of->stats->n[ZN_STAT_PACKETS_STRIPPED] += frame->has_layers;
        note_undated(of, held);
    }
}

/* Takes note of a packet that does not wait. */
static void pass_over(zn_packets *of, const zn_packet *p, uint32_t flow)
{
    if (of->images.wanted && flow != 0 && p->tuple.proto == ZN_PROTO_UDP)
        zn_packet_images_pass(&of->images, flow, p);
}

/* Has a packet of the flow (0: of none) wait for an output. `why`: why it does not for the main
 * one; ZN_STAT_COUNT: it does, or this is the main one. Returns why it does not. */
static zn_stat hold(const zn_engine *e, zn_packets *of, const zn_packet *p, uint32_t flow,
                    zn_stat why)
{
    zn_span ip = zn_packet_ip_headers(p);
    bool other = !zn_packet_is_of_flow(p);
    if (ip.n == 0) { /* each of its fragments has a fate, and it has none */
        zn_engine_bind_fragments(of, p, other ? 0 : flow);
        pass_over(of, p, flow);
        return ZN_STAT_COUNT;
    }
    if (why == ZN_STAT_COUNT)
        why = flow == 0 && !other ? ZN_STAT_PACKETS_DROPPED_NO_FLOW : never_leaves(p, ip);
    if (why == ZN_STAT_COUNT && other)
        why = hold_of_none(e, of, p, ip);
    else if (why == ZN_STAT_COUNT)
        hold_of_flow(of, p, flow, ip);
    else
        pass_over(of, p, flow);
    if (why != ZN_STAT_COUNT)
        of->stats->n[why]++;
    return why;
}

void zn_engine_hold_packet(zn_engine *e, const zn_packet *p, uint32_t flow)
{
    zn_stat why;
    if (flow != 0 && p->tuple.proto == ZN_PROTO_TCP)
        note_protocol(e, p, flow);
    why = hold(e, &e->packets[0], p, flow, ZN_STAT_COUNT);
    for (unsigned i = 1; i < e->packets_count; i++)
        (void)hold(e, &e->packets[i], p, flow, why);
}

/* ---- what leaves ----------------------------------------------------------------------------- */

/* Fills in the headers of a frame, but for MAC addresses and options. Field by field: to copy them
 * as one would wait until the other processor, which wrote the frame before, has given its memory
 * back. */
static void fill_headers(const zn_packets *of, const zn_flow *f, const zn_packet_plan *plan,
                         const zn_held_packet *p, zn_build_headers *h)
{
    unsigned from = p->sender, to = 1u - from;
    bool flow = has_flow(p), fragment = flow && p->fragment;
    h->src = flow ? *zn_packet_gate_address(f, plan, from) : zn_engine_other_address(of, p, 0);
    h->dst = flow ? *zn_packet_gate_address(f, plan, to) : zn_engine_other_address(of, p, 1);
    h->src_port = flow ? plan->port[from] : 0;
    h->dst_port = flow ? plan->port[to] : 0;
    h->ip_id = flow ? p->ip_id : 0;
    h->proto = p->proto;
    h->tos = p->tos;
    h->ttl = p->ttl;
    h->dont_fragment = p->dont_fragment;
    h->tcp_flags = flow ? p->tcp_flags : 0;
    h->option_bytes = flow ? p->option_bytes : 0;
    h->window = flow ? p->window : 0;
    h->seq = flow ? p->seq : 0;
    h->ack = flow ? p->ack : 0;
    h->payload_bytes = p->payload_bytes;
    h->datagram_bytes = fragment ? p->datagram_bytes : 0;
    h->fragment_id = fragment ? p->long_id : 0;
    h->fragment_offset = fragment ? p->offset : 0;
    h->more_fragments = fragment && p->more;
}

/* Fills in the headers of a frame. Returns how many bytes they have. */
static uint32_t plan_headers(const zn_packets *of, const zn_flow *f, const zn_packet_plan *plan,
                             const zn_held_packet *p, zn_planned_frame *frame)
{
    fill_headers(of, f, plan, p, &frame->headers);
    frame->macs = (uint8_t)of->macs;
    frame->from_inside = has_flow(p) ? p->sender == f->user : p->from_inside;
    if (p->option_bytes != 0) /* the delay line has other packets there soon */
        memcpy(frame->options, zn_packet_hold_options(&of->hold, p), p->option_bytes);
    if (plan->coarse)
        zn_engine_coarsen_options(plan, p, frame->options);
    frame->has_outer = p->outer != 0;
    if (frame->has_outer)
        zn_packet_hold_outer(&of->hold, p, &frame->outer);
    return zn_planned_frame_headers(frame);
}

/* Writes what is shown of the payload of a packet that leaves, and says what part that is. */
static void put_payload(zn_packets *of, const zn_packet_plan *plan, const zn_held_packet *p,
                        zn_planned_frame *frame, uint8_t *payload)
{
    zn_packet_images *images = &of->images;
    zn_written_part written = {0, 0};
    if (images->wanted && !p->fragment && !plan->coarse) {
        if (has_flow(p)) {
            written = zn_packet_images_show(images, p, payload);
        } else {
            memset(payload, 0, p->payload_bytes);
            zn_engine_show_other(of, p, &frame->headers.src, &frame->headers.dst, payload);
            written.end = p->payload_bytes;
        }
    }
    frame->written_from = (uint16_t)written.from;
    frame->written_end = (uint16_t)written.end;
}

/* Builds a packet into one output. Returns the bytes of its headers. */
static uint32_t build_into(zn_engine *e, zn_packets *of, const zn_flow *f,
                           const zn_packet_plan *plan, const zn_held_packet *p, int output)
{
    zn_text *text = &e->outputs.text[output];
    size_t most = RECORD_BYTES + p->payload_bytes;
    zn_planned_frame *frame;
    uint32_t headers;
    if (ZN_UNLIKELY(most > text->cap - text->n)) /* the text may move */
        zn_frame_builder_wait(&e->frame_builder);
    if (zn_text_reserve(text, most) == NULL)
        return 0;
    frame = zn_frame_builder_next(&e->frame_builder, e->writes_async);
    headers = plan_headers(of, f, plan, p, frame);
    frame->t_ns = p->t_ns - p->t_ns % of->times_ns;
    frame->cut = of->payload == ZN_PACKET_PAYLOAD_CUT;
    frame->pcapng = (PCAPNG_OUTPUTS & 1u << output) != 0;
    frame->at = (uint8_t *)text->bytes + text->n;
    put_payload(of, plan, p, frame, frame->at + zn_packet_file_head(frame->pcapng) + headers);
    text->n +=
        zn_packet_file_bytes(frame->pcapng, zn_planned_frame_record(frame, headers).captured);
    zn_frame_builder_put(&e->frame_builder, e->writes_async);
    e->outputs.lines[output]++;
    return headers;
}

/* Builds a packet that passed. */
static void build(zn_engine *e, zn_packets *of, const zn_flow *f, const zn_packet_plan *plan,
                  const zn_held_packet *p)
{
    uint32_t headers = 0;
    for (unsigned left = of->outputs; left != 0; left &= left - 1)
        headers = build_into(e, of, f, plan, p, __builtin_ctz(left));
    of->stats->n[ZN_STAT_PACKETS_BYTES_KEPT] += headers;
    of->stats->n[ZN_STAT_PACKETS_BYTES_ZEROED] += p->payload_bytes;
}

void zn_engine_forget_flow(zn_engine *e, uint32_t flow)
{
    zn_flow *f = zn_flow_entry(e->flows, flow);
    for (unsigned i = 0; i < e->packets_count; i++) {
        zn_packets *of = &e->packets[i];
        zn_packet_gate_forget(&of->gate, flow);
        if (of->images.wanted)
            zn_packet_images_forget(&of->images, flow);
    }
    zn_analyzers_forget(&e->names, f);
    zn_layer7_forget(&e->names, f);
    zn_dn_hunter_forget(&e->dn_hunter, f);
    zn_name_store_forget(&e->name_store, f);
    zn_flow_emitted(e->flows, flow);
}

bool zn_engine_flow_is_held(zn_engine *e, uint32_t flow)
{
    zn_packet_plan *plan = zn_packet_gate_plan(&e->packets[0].gate, flow);
    for (unsigned i = 0; i < e->packets_count; i++)
        zn_packet_gate_close(&e->packets[i].gate, flow);
    if (plan->held == 0)
        return false;
    plan->record_written = true;
    zn_flow_hold(e->flows);
    return true;
}

static bool leaves(zn_stat fate)
{
    return fate == ZN_STAT_PACKETS_PASSED || fate == ZN_STAT_PACKETS_MASKED;
}

/* Returns the fate that a packet has at due_ns. main_fate: that in the main output, which decides
 * where it does not leave; ZN_STAT_COUNT: this is the main one. */
static zn_stat fate_of(zn_packets *of, const zn_held_packet *p, int64_t due_ns, zn_stat main_fate)
{
    zn_packet_gate *g = &of->gate;
    if (main_fate != ZN_STAT_COUNT && !leaves(main_fate))
        return main_fate;
    if (p->flow == 0)
        return p->fragment ? (zn_stat)p->why : ZN_STAT_PACKETS_PASSED;
    if (g->coarse && p->proto == ZN_PROTO_TCP)
        zn_engine_note_positions(zn_packet_gate_plan(g, p->flow), p);
    return zn_packet_gate_fate(g, p->flow, p->proto, due_ns);
}

/* Has the oldest packet of an output leave, with the fate that it has at due_ns, which it returns.
 * main_fate: see fate_of. */
static zn_stat emit_into(zn_engine *e, zn_packets *of, int64_t due_ns, zn_stat main_fate)
{
    const zn_held_packet *p = zn_packet_hold_first(&of->hold);
    uint32_t flow = p->flow;
    const zn_flow *f = flow == 0 ? NULL : zn_flow_entry(e->flows, flow);
    zn_packet_plan *plan = zn_packet_gate_plan(&of->gate, flow);
    const zn_held_packet *built = p;
    zn_held_packet coarse;
    zn_stat fate = fate_of(of, p, due_ns, main_fate);
    if (fate == ZN_STAT_PACKETS_MASKED && plan->coarse) {
        built = &coarse;
        if (!zn_engine_coarsen(f, plan, p, &coarse))
            fate = ZN_STAT_PACKETS_DROPPED_CUT;
    }
    of->stats->n[fate]++;
    if (leaves(fate))
        build(e, of, f, plan, built);
    if (of->images.wanted)
        zn_packet_images_left(&of->images, p);
    zn_packet_hold_leave(&of->hold);
    plan->held -= flow != 0;
    return fate;
}

/* Has the oldest packet leave, in all outputs: `p` of the main one, and those of views at the same
 * place. */
static void emit_first(zn_engine *e, const zn_held_packet *p, int64_t due_ns)
{
    uint32_t flow = p->flow;
    zn_packet_plan *plan = zn_packet_gate_plan(&e->packets[0].gate, flow);
    zn_stat fate = emit_into(e, &e->packets[0], due_ns, ZN_STAT_COUNT);
    for (unsigned i = 1; i < e->packets_count; i++)
        (void)emit_into(e, &e->packets[i], due_ns, fate);
    if (flow != 0 && plan->held == 0 && plan->record_written) {
        plan->record_written = false;
        zn_flow_unhold(e->flows);
        zn_engine_forget_flow(e, flow);
    }
}

/* Up to which places in the delay line what packets need when they leave was fetched. */
typedef struct fetched {
    uint32_t plans, names;
} fetched;

static void fetch_plan(const zn_engine *e, uint32_t flow)
{
    const zn_flow *f = zn_flow_entry(e->flows, flow);
    for (unsigned i = 0; i < e->packets_count; i++)
        zn_packet_gate_fetch_to_leave(&e->packets[i].gate, flow);
    ZN_PREFETCH(f);
    ZN_PREFETCH(ZN_FACTS(f));
}

static void fetch_name(const zn_engine *e, uint32_t flow)
{
    uint32_t name = ZN_FACTS(zn_flow_entry(e->flows, flow))->names;
    if (name == 0)
        return;
    ZN_PREFETCH(zn_name_store_at(&e->name_store, name));
    ZN_PREFETCH(&e->name_store.times[name]);
}

/* Fetches what the next packets need when they leave. */
static void fetch_to_emit(const zn_engine *e, fetched *up_to)
{
    const zn_packet_hold *hold = &e->packets[0].hold;
    while (up_to->plans != hold->end && up_to->plans - hold->first < PLAN_AHEAD) {
        const zn_held_packet *p = zn_packet_hold_at(hold, up_to->plans);
        if (p->flow != 0)
            fetch_plan(e, p->flow);
        up_to->plans += p->slots;
    }
    while (up_to->names != up_to->plans && up_to->names - hold->first < NAME_AHEAD) {
        const zn_held_packet *p = zn_packet_hold_at(hold, up_to->names);
        if (p->flow != 0)
            fetch_name(e, p->flow);
        up_to->names += p->slots;
    }
}

/* Bytes of packets that wait to be taken. */
static size_t ready_bytes(const zn_engine *e)
{
    const zn_text *text = &e->outputs.text[ZN_OUTPUT_PACKETS];
    size_t bytes = 0;
    for (unsigned i = 0; i < 2 * e->packets_count; i++)
        bytes += text[i].n;
    return bytes;
}

bool zn_engine_packets_full(const zn_engine *e)
{
    return ready_bytes(e) >= ZN_OUTPUTS_BYTES;
}

void zn_engine_emit(zn_engine *e, int64_t now_ns, bool all)
{
    const zn_packet_hold *hold = &e->packets[0].hold;
    const zn_held_packet *p;
    fetched up_to = {hold->first, hold->first};
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_WRITE);
    for (unsigned i = 0; i < e->packets_count; i++) {
        const zn_packets *of = &e->packets[i];
        of->stats->n[ZN_STAT_PACKETS_EPOCHS] = zn_packet_keys_epochs(of->gate.keys);
    }
    while ((p = zn_packet_hold_first(hold)) != NULL &&
           (p->due_ns < now_ns || now_ns == INT64_MAX)) {
        if (!all && ready_bytes(e) >= READY_BYTES_MAX) {
            e->waiting = true;
            return;
        }
        fetch_to_emit(e, &up_to);
        emit_first(e, p, p->due_ns);
    }
}

/* The most slots that a group's packets take. */
static uint32_t group_slots(const zn_packets *of)
{
    return (PACKET_SLOTS + (of->keep_layers ? ZN_HELD_OUTER_SLOTS : 0)) * ZN_DECODER_GROUP;
}

bool zn_engine_hold_reserve(zn_engine *e)
{
    bool reserved = true;
    for (unsigned i = 0; i < e->packets_count; i++)
        reserved &= zn_packet_hold_reserve(&e->packets[i].hold, group_slots(&e->packets[i]));
    return reserved;
}

void zn_engine_emit_early(zn_engine *e)
{
    const zn_packet_hold *hold = &e->packets[0].hold;
    uint32_t part = hold->size / EARLY_PART, group = group_slots(&e->packets[0]);
    uint32_t until = hold->first + (part > group ? part : group);
    const zn_held_packet *p;
    while ((p = zn_packet_hold_first(hold)) != NULL && (int32_t)(p->at - until) < 0) {
        int64_t due_ns = p->due_ns < e->clock.now_ns ? p->due_ns : e->clock.now_ns;
        for (unsigned i = 0; i < e->packets_count; i++)
            e->packets[i].stats->n[ZN_STAT_PACKETS_HOLD_EARLY]++;
        emit_first(e, p, due_ns);
    }
}
