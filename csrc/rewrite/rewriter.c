/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "flow/flow_table.h"
#include "rewrite/rewriter_state.h"
#include "util/arena.h"

/* ---- decisions of the gate ------------------------------------------------------------------- */

static void addr_decided(void *of, const zn_vote *v, uint8_t released_in)
{
    const zn_rewriter *r = of;
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        const zn_packet_gate *g = &r->output[i].gate;
        zn_packet_plan *plan = zn_packet_gate_plan(g, v->flow);
        plan->addr_ns = v->t_ns;
        plan->addr_released = (released_in & g->bit) != 0;
    }
}

static void peek_answered(void *of, const zn_vote *v, uint8_t shared_in)
{
    const zn_rewriter *r = of;
    if (v->kind == ZN_VOTE_PEEK) {
        r->names->name_store->times[v->entry].shared_in = shared_in;
        return;
    }
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        const zn_packet_gate *g = &r->output[i].gate;
        zn_packet_gate_plan(g, v->flow)->addr_shared = (shared_in & g->bit) != 0;
    }
}

static uint8_t outputs_of_release(void *of, uint64_t users, uint32_t z)
{
    const zn_rewriter *r = of;
    uint8_t in = 0;
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        const zn_packet_gate *g = &r->output[i].gate;
        in |= g->least_z <= z || users >= g->least_z ? g->bit : 0;
    }
    return in;
}

static void server_was_client(void *of, uint32_t flow, int64_t from_ns)
{
    zn_rewriter *r = of;
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_withhold(&r->output[i].gate, flow, from_ns);
}

/* Returns the tap of a rewriter whose outputs are open. Without views, all outputs need z users. */
static zn_gate_tap make_tap(zn_rewriter *r)
{
    return (zn_gate_tap){.of = r,
                         .addr_decided = addr_decided,
                         .peek_answered = peek_answered,
                         .outputs_of_release = r->packet_outputs > 1 ? outputs_of_release : NULL,
                         .server_was_client = server_was_client};
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Opens keys for a view, which differ from the keys of the engine only by their z. */
static int open_view_keys(const zn_rewriter_tables *tables, const zn_engine_config *config,
                          uint32_t z, zn_keys **out, zn_error *err)
{
    zn_key_scope scope = {.rotate_ns = config->rotate_ns, .z = z, .window_ns = config->window_ns};
    int rc = zn_key_digest((const char *)tables->key_settings.p, tables->key_settings.n,
                           scope.digest, err);
    return rc == 0 ? zn_keys_open(out, &scope, NULL, config->key_file, err) : rc;
}

static int open_keys(const zn_rewriter_tables *tables, const zn_engine_config *config,
                     zn_packet_output *of, uint32_t z, zn_error *err)
{
    const zn_roles *roles = tables->policy->roles;
    zn_addr_choice choice = {.pseudonyms = config->pseudonyms,
                             .v4_block_bits = config->block_v4_bits,
                             .v6_block_bits = config->block_v6_bits,
                             .v4_user_bits = config->user_v4_bits,
                             .v6_user_bits = config->user_v6_bits,
                             .internal = roles->internal,
                             .internal_count = roles->internal_count};
    int rc = 0;
    of->keys = tables->keys;
    if (z > config->z)
        rc = open_view_keys(tables, config, z, &of->keys, err);
    return rc != 0 ? rc
                   : zn_packet_keys_open(&of->gate.keys, &choice, config->wide_addresses, of->keys,
                                         err);
}

static int open_images(const zn_rewriter_tables *tables, zn_packet_output *of,
                       const zn_packet_view *view, zn_error *err)
{
    if (view->payload == ZN_PACKET_PAYLOAD_CUT)
        return 0;
    of->images = (zn_packet_images){.policy = {view->fingerprints,
                                               view->payload == ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED,
                                               view->exact},
                                    .gate = &of->gate,
                                    .delay_line = &of->delay_line,
                                    .names = tables->names,
                                    .clock = tables->clock};
    return zn_packet_images_init(&of->images, err);
}

/* Opens an output of packets: 0 is the main output. */
static int open_output(zn_rewriter *r, const zn_engine_config *config,
                       const zn_rewriter_tables *tables, unsigned output, zn_error *err)
{
    zn_packet_output *of = &r->output[output];
    zn_packet_view view = zn_packet_config_view(config, output);
    int rc;
    of->outputs = zn_packet_config_outputs_of(config, output);
    of->stats = output == 0 ? tables->stats : &of->own_stats;
    of->gate = (zn_packet_gate){.policy = tables->policy,
                                .flows = tables->flows,
                                .name_store = tables->names->name_store,
                                .stats = of->stats,
                                .clock = tables->clock,
                                .hold_ns = config->hold_ns,
                                .server_addresses = view.server_addresses,
                                .exact = view.exact,
                                .coarse = output == 0 && config->coarse_suppressed,
                                .least_z = view.z,
                                .bit = (uint8_t)(1u << output),
                                .main = output == 0 ? NULL : &r->output[0].gate};
    of->payload = view.payload;
    of->macs = config->macs;
    of->tcp_timestamps = config->tcp_timestamps;
    of->keep_ttl = config->keep_ttl;
    of->keep_layers = config->keep_encapsulation;
    of->times_ns = view.times_ns;
    of->undated = ZN_DELAYED_NONE;
    r->packet_outputs = output + 1;
    rc = open_keys(tables, config, of, view.z, err);
    if (rc == 0)
        rc = zn_packet_gate_init(&of->gate, config->max_flows + ZN_FLOW_SPARE, err);
    if (rc == 0)
        rc = zn_delay_line_init(&of->delay_line, config->hold_bytes, err);
    return rc == 0 ? open_images(tables, of, &view, err) : rc;
}

/* Passes the messages that analyzers read to the images of all outputs. */
static void listen(zn_rewriter *r)
{
    zn_packet_images *last = &r->output[0].images;
    if (!last->wanted) /* then no view has images either */
        return;
    zn_packet_images_listen(last);
    for (unsigned i = 1; i < r->packet_outputs; i++)
        if (r->output[i].images.wanted)
            last = last->next = &r->output[i].images;
}

int zn_rewriter_open(zn_rewriter **out, const zn_engine_config *config,
                     const zn_rewriter_tables *tables, zn_error *err)
{
    zn_rewriter *r = zn_block_alloc(sizeof *r);
    int rc;
    *out = NULL;
    if (r == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for packets");
    r->policy = tables->policy;
    r->clock = tables->clock;
    r->keys = tables->keys;
    r->flows = tables->flows;
    r->flow_key = tables->flow_key;
    r->names = tables->names;
    r->dn_hunter = tables->dn_hunter;
    r->outputs = tables->outputs;
    rc = zn_name_store_keep_times(r->names->name_store, r->clock, err);
    for (unsigned i = 0; i <= config->view_count && rc == 0; i++)
        rc = open_output(r, config, tables, i, err);
    if (rc != 0) {
        zn_rewriter_close(r);
        return rc;
    }
    listen(r);
    r->tap = make_tap(r);
    *out = r;
    return 0;
}

void zn_rewriter_close(zn_rewriter *r)
{
    if (r == NULL)
        return;
    zn_frame_builder_fini(&r->frame_builder);
    for (unsigned i = 0; i < r->packet_outputs; i++) {
        zn_packet_output *of = &r->output[i];
        zn_packet_images_fini(&of->images);
        zn_delay_line_fini(&of->delay_line);
        zn_packet_gate_fini(&of->gate);
        if (of->keys != r->keys)
            zn_keys_close(of->keys);
    }
    zn_wipe(r, sizeof *r);
    zn_block_free(r, sizeof *r);
}

int zn_rewriter_use_pool(zn_rewriter *r, zn_pool *pool, zn_error *err)
{
    return zn_frame_builder_init(&r->frame_builder, pool, err);
}

int zn_rewriter_rebase(zn_rewriter *r, int64_t t_ns, zn_error *err)
{
    int rc = 0;
    for (unsigned i = 0; i < r->packet_outputs && rc == 0; i++) {
        zn_packet_output *of = &r->output[i];
        if (of->keys != r->keys)
            rc = zn_keys_rebase(of->keys, t_ns, err);
        zn_packet_keys_rebase(of->gate.keys);
    }
    return rc;
}

const zn_gate_tap *zn_rewriter_tap(const zn_rewriter *r)
{
    return &r->tap;
}

/* ---- flows ----------------------------------------------------------------------------------- */

/* With z = 1, asks the gate whether the server's address may be shown, because no vote for the
 * address may come. The address of a client may not be shown. */
static void peek_server(zn_rewriter *r, const zn_tuple *tuple, uint32_t flow, int64_t t_ns)
{
    const zn_roles *roles = r->policy->roles;
    bool dns = tuple->port[0] == ZN_DNS_PORT || tuple->port[1] == ZN_DNS_PORT;
    bool apart = dns && roles->dns_votes != ZN_DNS_VOTES_ALL;
    if (roles->release_all)
        (void)zn_votes_cast(r->names->votes, apart ? ZN_VOTE_DNS_ADDR_PEEK : ZN_VOTE_ADDR_PEEK,
                            t_ns, flow, 0);
}

void zn_rewriter_flow_opened(zn_rewriter *r, uint32_t flow)
{
    const zn_flow *f = zn_flow_entry(r->flows, flow);
    int64_t epoch = zn_flow_epoch(r->flows, f, r->policy->roles->rotate_ns);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_open(&r->output[i].gate, flow, epoch);
    peek_server(r, &f->tuple, flow, f->first_ns);
}

void zn_rewriter_client_changed(zn_rewriter *r, uint32_t flow, int64_t t_ns)
{
    const zn_flow *f = zn_flow_entry(r->flows, flow);
    int64_t epoch = zn_flow_epoch(r->flows, f, r->policy->roles->rotate_ns);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_reopen(&r->output[i].gate, flow, epoch);
    peek_server(r, &f->tuple, flow, t_ns);
}

void zn_rewriter_names_read(zn_rewriter *r, uint32_t flow, const zn_flow *f)
{
    bool all_read = zn_names_all_read(f);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        zn_packet_gate_note(&r->output[i].gate, flow, r->clock->now_ns, all_read);
}

/* ---- figures --------------------------------------------------------------------------------- */

void zn_rewriter_blocks(const zn_rewriter *r, zn_text *out)
{
    zn_packet_keys_blocks(r->output[0].gate.keys, out);
}

size_t zn_rewriter_delayed_bytes_max(const zn_rewriter *r)
{
    return (size_t)r->output[0].delay_line.most * sizeof(zn_delay_slot);
}

const zn_stats *zn_rewriter_view_stats(const zn_rewriter *r, unsigned view)
{
    ZN_ASSERT(view + 1 < r->packet_outputs);
    return r->output[view + 1].stats;
}

size_t zn_rewriter_memory(const zn_rewriter *r)
{
    size_t bytes = sizeof *r + zn_frame_builder_memory(&r->frame_builder);
    for (unsigned i = 0; i < r->packet_outputs; i++)
        bytes += zn_delay_line_memory(&r->output[i].delay_line) +
                 zn_packet_gate_memory(&r->output[i].gate) +
                 zn_packet_images_memory(&r->output[i].images);
    return bytes;
}
