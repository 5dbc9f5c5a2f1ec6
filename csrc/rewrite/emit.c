/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Packets that leave: finds the fate of each and builds it into the outputs. */
#include "analyzer/forget_flow.h"
#include "flow/flow_table.h"
#include "rewrite/emit_coarse.h"
#include "rewrite/emit_other.h"
#include "rewrite/rewriter_state.h"

#define EARLY_PART 8u /* 1 / EARLY_PART of a full delay line leaves early at a time */
/* Bytes of ready packets at which no more packets leave. The limit is so far above
 * ZN_OUTPUTS_BYTES that the packets of a batch mostly leave together. */
#define READY_BYTES_MAX (2 * ZN_OUTPUTS_BYTES)
/* Entries of the delay line between the prefetch of a plan, or of a name, and its use. */
#define PLAN_AHEAD 12u
#define NAME_AHEAD 6u
#define PCAPNG_OUTPUTS                                                                             \
    (1u << ZN_OUTPUT_PACKETS_NG | 1u << ZN_OUTPUT_VIEW1_PACKETS_NG |                               \
     1u << ZN_OUTPUT_VIEW2_PACKETS_NG | 1u << ZN_OUTPUT_VIEW3_PACKETS_NG)
/* most bytes of a record without the payload; includes padding and the length that ends a block */
#define RECORD_BYTES                                                                               \
    (ZN_PACKET_FILE_PCAPNG_HEAD + ZN_BUILD_FRAME_MIN + ZN_BUILD_HEADERS_MAX +                      \
     ZN_BUILD_ENCAPSULATION_MAX + 8u)

/* Fills in the headers of a frame, except for MAC addresses and options. Each field is assigned,
 * because a copy of the whole struct would wait for the cache lines that another processor wrote
 * last. */
static void fill_headers(const zn_packet_output *of, const zn_flow *f, const zn_packet_plan *plan,
                         const zn_delayed *p, zn_build_headers *h)
{
    unsigned from = p->sender, to = 1u - from;
    bool packet = p->kind == ZN_DELAYED_PACKET, fragment = p->kind == ZN_DELAYED_FRAGMENT;
    bool flow = packet || fragment;
    h->src = flow ? *zn_packet_gate_address(f, plan, from) : zn_other_address(of, p, 0);
    h->dst = flow ? *zn_packet_gate_address(f, plan, to) : zn_other_address(of, p, 1);
    h->src_port = flow ? plan->port[from] : 0;
    h->dst_port = flow ? plan->port[to] : 0;
    h->ip_id = packet ? p->packet.ip_id : 0;
    h->proto = p->proto;
    h->tos = p->tos;
    h->ttl = p->ttl;
    h->dont_fragment = p->dont_fragment;
    h->tcp_flags = packet ? p->packet.tcp_flags : 0;
    h->option_bytes = packet ? p->packet.option_bytes : 0;
    h->window = packet ? p->packet.window : 0;
    h->seq = packet ? p->packet.seq : 0;
    h->ack = packet ? p->packet.ack : 0;
    h->payload_bytes = p->payload_bytes;
    h->datagram_bytes = fragment ? p->fragment.datagram_bytes : 0;
    h->fragment_id = fragment ? p->fragment.id : 0;
    h->fragment_offset = fragment ? p->fragment.offset : 0;
    h->more_fragments = fragment && p->fragment.more;
}

/* Fills in the headers of a frame. Returns the number of their bytes. */
static uint32_t plan_headers(const zn_packet_output *of, const zn_flow *f,
                             const zn_packet_plan *plan, const zn_delayed *p,
                             zn_planned_frame *frame)
{
    fill_headers(of, f, plan, p, &frame->headers);
    frame->macs = (uint8_t)of->macs;
    frame->from_inside = p->kind == ZN_DELAYED_OTHER ? p->other.from_inside : p->sender == f->user;
    if (frame->headers.option_bytes != 0) /* copied, as the slots get other entries soon */
        memcpy(frame->options, zn_delay_line_options(&of->delay_line, p),
               frame->headers.option_bytes);
    if (plan->coarse)
        zn_coarsen_options(plan, p, frame->options, frame->headers.option_bytes);
    frame->has_outer = p->outer != 0 && !plan->hides_client; /* outer headers identify the user */
    if (frame->has_outer)
        zn_delay_line_outer(&of->delay_line, p, &frame->outer);
    return zn_planned_frame_headers(frame);
}

/* Writes the shown part of the payload of a packet that leaves, and sets its place in the frame. */
static void put_payload(zn_packet_output *of, const zn_packet_plan *plan, const zn_delayed *p,
                        zn_planned_frame *frame, uint8_t *payload)
{
    zn_packet_images *images = &of->images;
    zn_written_part written = {0, 0};
    if (images->wanted && !plan->coarse && p->kind == ZN_DELAYED_PACKET) {
        written = zn_packet_images_show(images, p, payload);
    } else if (images->wanted && !plan->coarse && p->kind == ZN_DELAYED_OTHER) {
        memset(payload, 0, p->payload_bytes);
        zn_show_other(of, p, &frame->headers.src, &frame->headers.dst, payload);
        written.end = p->payload_bytes;
    }
    frame->written_from = (uint16_t)written.from;
    frame->written_end = (uint16_t)written.end;
}

/* Builds a packet into a text output. Returns the bytes of its headers. */
static uint32_t build_into(zn_rewriter *r, zn_packet_output *of, const zn_flow *f,
                           const zn_packet_plan *plan, const zn_delayed *p, int output)
{
    zn_text *text = &r->outputs->text[output];
    size_t most = RECORD_BYTES + p->payload_bytes;
    zn_planned_frame *frame;
    uint32_t headers;
    if (ZN_UNLIKELY(most > text->cap - text->n)) /* the text may move */
        zn_frame_builder_wait(&r->frame_builder);
    if (zn_text_reserve(text, most) == NULL)
        return 0;
    frame = zn_frame_builder_next(&r->frame_builder, r->writes_async);
    headers = plan_headers(of, f, plan, p, frame);
    frame->t_ns = p->t_ns - p->t_ns % of->times_ns;
    frame->cut = of->payload == ZN_PACKET_PAYLOAD_CUT;
    frame->pcapng = (PCAPNG_OUTPUTS & 1u << output) != 0;
    frame->at = (uint8_t *)text->bytes + text->n;
    put_payload(of, plan, p, frame, frame->at + zn_packet_file_head(frame->pcapng) + headers);
    text->n +=
        zn_packet_file_bytes(frame->pcapng, zn_planned_frame_record(frame, headers).captured);
    zn_frame_builder_put(&r->frame_builder, r->writes_async);
    r->outputs->lines[output]++;
    return headers;
}

/* Builds a packet that passed. */
static void build(zn_rewriter *r, zn_packet_output *of, const zn_flow *f,
                  const zn_packet_plan *plan, const zn_delayed *p)
{
    uint32_t headers = 0;
    for (unsigned left = of->outputs; left != 0; left &= left - 1)
        headers = build_into(r, of, f, plan, p, __builtin_ctz(left));
    of->stats->n[ZN_STAT_PACKETS_BYTES_KEPT] += headers;
    of->stats->n[ZN_STAT_PACKETS_BYTES_ZEROED] += p->payload_bytes;
}

/* Forgets what packet output keeps for a flow whose packets have left. */
static void forget(zn_rewriter *r, uint32_t flow)
{
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        zn_packet_output *of = &r->output[i];
        zn_packet_gate_forget(&of->gate, flow);
        if (of->images.wanted)
            zn_packet_images_forget(&of->images, flow);
    }
}

bool zn_rewriter_flow_closed(zn_rewriter *r, uint32_t flow)
{
    zn_packet_plan *plan = zn_packet_gate_plan(&r->output[0].gate, flow);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_close(&r->output[i].gate, flow);
    if (plan->held == 0) {
        forget(r, flow);
        return false;
    }
    plan->record_written = true;
    zn_flow_hold(r->flows);
    return true;
}

static bool leaves(zn_stat fate)
{
    return fate == ZN_STAT_PACKETS_PASSED || fate == ZN_STAT_PACKETS_MASKED;
}

/* Returns the fate of a packet at due_ns. main_fate is its fate in the main output, which holds for
 * all outputs if the packet does not leave; ZN_STAT_COUNT: this is the main output. */
static zn_stat fate_of(zn_packet_output *of, const zn_delayed *p, int64_t due_ns, zn_stat main_fate)
{
    zn_packet_gate *g = &of->gate;
    if (main_fate != ZN_STAT_COUNT && !leaves(main_fate))
        return main_fate;
    if (p->flow == 0)
        return (zn_stat)(p->kind == ZN_DELAYED_FRAGMENT ? p->fragment.why : p->other.why);
    if (g->coarse && p->proto == ZN_PROTO_TCP)
        zn_note_positions(zn_packet_gate_plan(g, p->flow), p);
    return zn_packet_gate_fate(g, p->flow, p->proto, due_ns);
}

/* Lets the oldest packet of an output leave with its fate at due_ns, which it returns. main_fate is
 * that of fate_of. */
static zn_stat emit_into(zn_rewriter *r, zn_packet_output *of, int64_t due_ns, zn_stat main_fate)
{
    const zn_delayed *p = zn_delay_line_first(&of->delay_line);
    uint32_t flow = p->flow;
    const zn_flow *f = flow == 0 ? NULL : zn_flow_entry(r->flows, flow);
    zn_packet_plan *plan = zn_packet_gate_plan(&of->gate, flow);
    const zn_delayed *built = p;
    zn_delayed coarse;
    zn_stat fate = fate_of(of, p, due_ns, main_fate);
    if (fate == ZN_STAT_PACKETS_MASKED && plan->coarse) {
        built = &coarse;
        if (!zn_coarsen_packet(f, plan, p, &coarse))
            fate = ZN_STAT_PACKETS_DROPPED_CUT;
    }
    of->stats->n[fate]++;
    if (leaves(fate))
        build(r, of, f, plan, built);
    if (of->images.wanted)
        zn_packet_images_left(&of->images, p);
    zn_delay_line_leave(&of->delay_line);
    plan->held -= flow != 0;
    return fate;
}

/* Lets the oldest packet leave all outputs: p is its entry in the main output, and the views have
 * their entries at the same place. */
static void emit_first(zn_rewriter *r, const zn_delayed *p, int64_t due_ns)
{
    uint32_t flow = p->flow;
    zn_packet_plan *plan = zn_packet_gate_plan(&r->output[0].gate, flow);
    zn_stat fate = emit_into(r, &r->output[0], due_ns, ZN_STAT_COUNT);
    for (unsigned i = 1; i < r->packet_outputs; i++)
        (void)emit_into(r, &r->output[i], due_ns, fate);
    if (flow != 0 && plan->held == 0 && plan->record_written) {
        plan->record_written = false;
        zn_flow_unhold(r->flows);
        forget(r, flow);
        zn_forget_flow(r->names, r->dn_hunter, flow);
    }
}

/* Places in the delay line up to which plans and names were prefetched. */
typedef struct fetched {
    uint32_t plans, names;
} fetched;

static void fetch_plan(const zn_rewriter *r, uint32_t flow)
{
    const zn_flow *f = zn_flow_entry(r->flows, flow);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_fetch_to_leave(&r->output[i].gate, flow);
    ZN_PREFETCH(f);
    ZN_PREFETCH(ZN_FACTS(f));
}

static void fetch_name(const zn_rewriter *r, uint32_t flow)
{
    uint32_t name = ZN_FACTS(zn_flow_entry(r->flows, flow))->names;
    if (name == 0)
        return;
    ZN_PREFETCH(zn_name_store_at(r->names->name_store, name));
    ZN_PREFETCH(&r->names->name_store->times[name]);
}

/* Prefetches the memory with which the next packets leave. */
static void fetch_to_emit(const zn_rewriter *r, fetched *up_to)
{
    const zn_delay_line *line = &r->output[0].delay_line;
    while (up_to->plans != line->end && up_to->plans - line->first < PLAN_AHEAD) {
        const zn_delayed *p = zn_delay_line_at(line, up_to->plans);
        if (p->flow != 0)
            fetch_plan(r, p->flow);
        up_to->plans += p->slots;
    }
    while (up_to->names != up_to->plans && up_to->names - line->first < NAME_AHEAD) {
        const zn_delayed *p = zn_delay_line_at(line, up_to->names);
        if (p->flow != 0)
            fetch_name(r, p->flow);
        up_to->names += p->slots;
    }
}

/* Returns the bytes of packets that the program has not taken yet. */
static size_t ready_bytes(const zn_rewriter *r)
{
    const zn_text *text = &r->outputs->text[ZN_OUTPUT_PACKETS];
    size_t bytes = 0;
    for (unsigned i = 0; i < 2 * r->packet_outputs; i++)
        bytes += text[i].n;
    return bytes;
}

bool zn_rewriter_is_full(const zn_rewriter *r)
{
    return ready_bytes(r) >= ZN_OUTPUTS_BYTES;
}

bool zn_rewriter_emit(zn_rewriter *r, int64_t now_ns, bool all)
{
    const zn_delay_line *line = &r->output[0].delay_line;
    const zn_delayed *p;
    fetched up_to = {line->first, line->first};
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        const zn_packet_output *of = &r->output[i];
        of->stats->n[ZN_STAT_PACKETS_EPOCHS] = zn_packet_keys_epochs(of->gate.keys);
    }
    while ((p = zn_delay_line_first(line)) != NULL && (p->due_ns < now_ns || now_ns == INT64_MAX)) {
        if (!all && ready_bytes(r) >= READY_BYTES_MAX)
            return true;
        fetch_to_emit(r, &up_to);
        emit_first(r, p, p->due_ns);
    }
    return false;
}

void zn_rewriter_emit_early(zn_rewriter *r)
{
    const zn_delay_line *line = &r->output[0].delay_line;
    uint32_t part = line->size / EARLY_PART;
    uint32_t until = line->first + (part > r->reserved ? part : r->reserved);
    const zn_delayed *p;
    while ((p = zn_delay_line_first(line)) != NULL && (int32_t)(p->at - until) < 0) {
        int64_t due_ns = p->due_ns < r->clock->now_ns ? p->due_ns : r->clock->now_ns;
        for (unsigned i = 0; i < r->packet_outputs; i++)
            r->output[i].stats->n[ZN_STAT_PACKETS_HOLD_EARLY]++;
        emit_first(r, p, due_ns);
    }
}

void zn_rewriter_write_async(zn_rewriter *r)
{
    r->writes_async = true;
}

void zn_rewriter_wait(zn_rewriter *r)
{
    zn_frame_builder_wait(&r->frame_builder);
    r->writes_async = false;
}
