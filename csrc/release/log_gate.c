/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A batch has at most ZN_ROW_BATCH observations, as in release/row_gate. release/log_pending reads
 * the roles of a row when the row is taken, and writes its cells when the row is decided.
 */
#include "release/log_gate.h"

#include "analyzer/roles.h"
#include "crypto/keys.h"
#include "release/clients.h"
#include "release/log_pending.h"
#include "release/row_gate.h"
#include "util/arena.h"

#define MINUTE_NS (60 * ZN_NS_PER_S)
#define OBSERVATIONS_MAX (ZN_LOG_ITEMS_MAX + 1) /* of a row */

struct zn_log_gate {
    zn_log_rules rules;
    zn_net *internal;
    bool keep_suppressed;
    uint8_t user_v4_bits, user_v6_bits;
    int64_t rotate_ns;
    zn_ztable *table;
    zn_addr_plan plan;
    zn_keys *keys; /* NULL without users */
    zn_clients clients;
    zn_hash_key key;
    uint64_t jumps; /* steps of the table's clock that the keys have followed */
    zn_log_pending pending[ZN_ROW_BATCH];
    size_t rows, observations_max; /* of the batch */
    zn_observation asked[ZN_ROW_BATCH];
    uint8_t *answer_of[ZN_ROW_BATCH]; /* the place of each observation's reason */
    uint8_t answers[ZN_ROW_BATCH];
    size_t asked_count;
    uint64_t client_hash[ZN_ROW_BATCH];
    zn_addr real[2 * ZN_ROW_BATCH], coded[2 * ZN_ROW_BATCH];
    zn_log_end *coded_of[2 * ZN_ROW_BATCH];
    zn_gated_log gated[ZN_ROW_BATCH];
    size_t count;
    zn_log_gate_stats stats;
};

/* ---- opening ---- */

static int copy_internal(zn_log_gate *g, const zn_log_gate_config *config, zn_error *err)
{
    size_t count = config->internal_count;
    const zn_net *nets = config->internal;
    g->rules.internal_is_set = nets != NULL;
    if (nets == NULL)
        nets = zn_roles_private_nets(&count);
    g->internal = zn_heap_alloc(count * sizeof *nets + 1);
    if (g->internal == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the internal networks");
    memcpy(g->internal, nets, count * sizeof *nets);
    g->rules.internal = g->internal;
    g->rules.internal_count = count;
    return 0;
}

static int copy_never(zn_log_gate *g, const zn_log_gate_config *config, zn_error *err)
{
    int rc = zn_never_list_init(&g->rules.never, (uint32_t)config->never_count, err);
    for (size_t i = 0; rc == 0 && i < config->never_count; i++)
        zn_never_list_add(&g->rules.never, config->never[i]);
    return rc;
}

static int open_keys(zn_log_gate *g, const zn_log_gate_config *config, zn_error *err)
{
    zn_addr_choice choice = {.pseudonyms = ZN_PSEUDONYMS_NETWORKS,
                             .v4_user_bits = config->user_v4_bits,
                             .v6_user_bits = config->user_v6_bits,
                             .internal = g->internal,
                             .internal_count = g->rules.internal_count};
    zn_key_scope scope = {
        .rotate_ns = config->rotate_ns, .z = config->z, .window_ns = config->window_ns};
    int rc = zn_addr_plan_init(&g->plan, &choice, err);
    return rc == 0 ? zn_keys_open(&g->keys, &scope, &g->plan, config->key_file, err) : rc;
}

static void fill_rules(zn_log_gate *g, const zn_log_gate_config *config)
{
    g->rules.unit = config->unit;
    g->rules.release_all = config->z == 1;
    g->rules.established = config->established;
    g->rules.has_evidence = config->has_evidence;
    g->rules.server_decides = config->server_decides;
    g->keep_suppressed = config->keep_suppressed;
    g->user_v4_bits = config->user_v4_bits;
    g->user_v6_bits = config->user_v6_bits;
    g->rotate_ns = config->rotate_ns;
}

int zn_log_gate_open(zn_log_gate **out, const zn_log_gate_config *config, zn_error *err)
{
    zn_ztable_config table = zn_ztable_default_config(config->z, config->window_ns);
    zn_log_gate *g = zn_block_alloc(sizeof *g);
    int rc;
    *out = NULL;
    if (g == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    table.keep = config->z; /* the z most recent users decide exactly */
    table.max_tuples = config->max_tuples;
    table.max_attributes = config->max_attributes;
    fill_rules(g, config);
    rc = zn_hash_key_random(&g->key, err);
    if (rc == 0)
        rc = copy_internal(g, config, err);
    if (rc == 0)
        rc = copy_never(g, config, err);
    if (rc == 0)
        rc = zn_ztable_open(&g->table, &table, err);
    if (rc == 0)
        rc = zn_clients_init(&g->clients, config->max_attributes, err);
    if (rc == 0 && config->with_user)
        rc = open_keys(g, config, err);
    if (rc != 0)
        zn_log_gate_close(g);
    else
        *out = g;
    return rc;
}

void zn_log_gate_close(zn_log_gate *g)
{
    if (g == NULL)
        return;
    zn_ztable_close(g->table);
    zn_keys_close(g->keys);
    zn_addr_plan_fini(&g->plan);
    zn_clients_fini(&g->clients);
    zn_never_list_fini(&g->rules.never);
    zn_heap_free(g->internal);
    zn_block_clear(g, sizeof *g);
    zn_block_free(g, sizeof *g);
}

/* ---- the batch ---- */

zn_row_fault zn_log_gate_take(zn_log_gate *g, const zn_log_row *row, int64_t *t_ns)
{
    zn_log_pending *p = &g->pending[g->rows];
    zn_row_fault fault;
    ZN_ASSERT(!zn_log_gate_is_full(g));
    g->count = 0;
    zn_log_pending_begin(p, row);
    fault = zn_log_pending_read(&g->rules, p);
    if (fault != ZN_FAULT_GOOD)
        return fault;
    *t_ns = p->t_ns;
    g->rows++;
    g->observations_max += p->items + 1;
    return ZN_FAULT_GOOD;
}

bool zn_log_gate_is_full(const zn_log_gate *g)
{
    return g->observations_max + OBSERVATIONS_MAX > ZN_ROW_BATCH || g->rows == ZN_ROW_BATCH;
}

static int64_t epoch_of(const zn_log_gate *g, int64_t t_ns)
{
    return g->keys != NULL ? zn_keys_epoch(g->keys, t_ns) : t_ns / g->rotate_ns;
}

static bool has_client(const zn_log_pending *p)
{
    return p->client.known && p->directed;
}

/* Adds the clients of the batch to the set of clients, because none of them is a server whose
 * address is released. */
static void add_clients(zn_log_gate *g)
{
    for (size_t i = 0; i < g->rows; i++) {
        const zn_log_pending *p = &g->pending[i];
        if (!has_client(p))
            continue;
        g->client_hash[i] = zn_clients_hash(&g->clients, &p->client.address);
        zn_clients_prefetch_add(&g->clients, g->client_hash[i]);
    }
    for (size_t i = 0; i < g->rows; i++) {
        const zn_log_pending *p = &g->pending[i];
        int64_t epoch = epoch_of(g, p->t_ns);
        if (!has_client(p))
            continue;
        if (epoch > g->clients.epoch)
            zn_clients_next_epoch(&g->clients, epoch);
        zn_clients_add(&g->clients, g->client_hash[i]);
    }
}

static uint64_t user_of(const zn_log_gate *g, const zn_log_end *client)
{
    static const zn_addr special; /* all special addresses are one user */
    zn_addr user =
        client->special ? special : zn_addr_cut(&client->address, g->user_v4_bits, g->user_v6_bits);
    uint64_t words[2];
    memcpy(words, user.byte, sizeof words);
    return zn_hash_words(&g->key, words, 2);
}

static void ask(zn_log_gate *g, const zn_observation *o, uint8_t *reason)
{
    g->asked[g->asked_count] = *o;
    g->answer_of[g->asked_count++] = reason;
}

/* Asks for the server's address, unless a pseudonym has to replace it. */
static void ask_server(zn_log_gate *g, zn_log_pending *p, zn_observation *o)
{
    zn_log_end *server = &p->server;
    uint8_t domain = p->dns ? ZN_LOG_IN_DNS_SERVERS : ZN_LOG_IN_SERVERS;
    p->server_reason = ZN_LOG_NO_ATTRIBUTE;
    if (!server->known || server->special)
        return;
    server->linked = server->internal ||
                     zn_clients_have(&g->clients, zn_clients_hash(&g->clients, &server->address));
    if (server->linked)
        return;
    o->attribute = zn_hash128(&g->key, domain, server->address.byte, sizeof server->address.byte);
    ask(g, o, &p->server_reason);
}

static void ask_row(zn_log_gate *g, zn_log_pending *p)
{
    zn_observation o = {.t_ns = p->t_ns};
    p->server_reason = p->reason;
    if (p->reason != ZN_LOG_RELEASED)
        return;
    o.user = user_of(g, &p->client);
    for (size_t i = 0; i < p->items; i++) {
        zn_log_item *item = &p->item[i];
        if (item->reason != ZN_LOG_RELEASED)
            continue;
        o.attribute = zn_hash128(&g->key, item->domain, item->text.p, item->text.n);
        ask(g, &o, &item->reason);
    }
    ask_server(g, p, &o);
}

/* Looks the values of the batch up. The table's answers become their reasons. */
static void ask_all(zn_log_gate *g)
{
    g->asked_count = 0;
    for (size_t i = 0; i < g->rows; i++)
        ask_row(g, &g->pending[i]);
    zn_ztable_observe_batch(g->table, g->asked, g->asked_count, g->answers);
    for (size_t i = 0; i < g->asked_count; i++)
        *g->answer_of[i] = g->rules.release_all ? ZN_LOG_RELEASED : g->answers[i];
}

/* Has the keys follow when the table's clock was set back; release/row_gate.c says why. */
static int follow_clock(zn_log_gate *g, zn_error *err)
{
    uint64_t jumps = zn_ztable_get_stats(g->table).clock_jumps;
    int64_t first_ns = INT64_MAX;
    int rc = 0;
    if (jumps == g->jumps)
        return 0;
    g->jumps = jumps;
    for (size_t i = 0; i < g->rows; i++)
        if (g->pending[i].t_ns < first_ns)
            first_ns = g->pending[i].t_ns;
    if (g->keys != NULL)
        rc = zn_keys_rebase(g->keys, first_ns, err);
    zn_clients_rebase(&g->clients, epoch_of(g, first_ns));
    return rc;
}

/* Decides a row by the decisions on its values. */
static void decide_row(zn_log_gate *g, zn_log_pending *p)
{
    for (size_t i = 0; i < p->names && p->reason == ZN_LOG_RELEASED; i++)
        p->reason = p->item[i].reason;
    if (g->rules.server_decides && p->reason == ZN_LOG_RELEASED)
        p->reason = p->server_reason;
    p->exact = p->reason == ZN_LOG_RELEASED || g->rules.release_all;
    for (size_t i = 0; i < p->items && p->reason != ZN_LOG_RELEASED; i++)
        if (p->item[i].reason == ZN_LOG_RELEASED)
            p->item[i].reason = p->reason;
    g->stats.rows[p->reason]++;
}

static int make_pseudonyms(zn_log_gate *g, int64_t epoch, size_t n, zn_error *err)
{
    int rc = n == 0 ? 0 : zn_keys_pseudonyms(g->keys, epoch, g->real, g->coded, n);
    if (rc != 0)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not make a pseudonym");
    for (size_t i = 0; i < n; i++)
        g->coded_of[i]->n = zn_addr_text(&g->coded[i], g->coded_of[i]->text);
    return 0;
}

/* Makes the pseudonyms of the ends of exact rows, one call for each epoch. */
static int code_ends(zn_log_gate *g, zn_error *err)
{
    size_t n = 0;
    int64_t epoch = 0;
    int rc = 0;
    for (size_t i = 0; i < g->rows && rc == 0; i++) {
        zn_log_pending *p = &g->pending[i];
        zn_log_end *ends[] = {&p->client, &p->server};
        p->client.linked = g->keys != NULL && p->client.known && !p->client.special;
        p->server.linked = p->server.linked && g->keys != NULL;
        if (!p->exact)
            continue;
        if (n != 0 && epoch_of(g, p->t_ns) != epoch) {
            rc = make_pseudonyms(g, epoch, n, err);
            n = 0;
        }
        epoch = epoch_of(g, p->t_ns);
        for (unsigned end = 0; end < 2; end++)
            if (ends[end]->linked) {
                g->real[n] = ends[end]->address;
                g->coded_of[n++] = ends[end];
            }
    }
    return rc != 0 || g->keys == NULL ? rc : make_pseudonyms(g, epoch, n, err);
}

/* Fills the gated rows of the rows that may be written: the only place that hands values on. */
static void let_out(zn_log_gate *g)
{
    for (size_t i = 0; i < g->rows; i++) {
        zn_log_pending *p = &g->pending[i];
        bool emitted = p->exact || (g->keep_suppressed && p->reason != ZN_LOG_OUTSIDE);
        if (!emitted)
            continue;
        zn_log_pending_disclose(p, g->rules.unit);
        g->gated[g->count++] =
            (zn_gated_log){p->row.cells, p->row.count, p->t_ns / MINUTE_NS, !p->exact};
    }
}

int zn_log_gate_decide(zn_log_gate *g, zn_error *err)
{
    int rc;
    g->count = 0;
    add_clients(g);
    ask_all(g);
    rc = follow_clock(g, err);
    for (size_t i = 0; i < g->rows && rc == 0; i++)
        decide_row(g, &g->pending[i]);
    if (rc == 0)
        rc = code_ends(g, err);
    if (rc == 0)
        let_out(g);
    g->rows = g->observations_max = 0;
    return rc;
}

const zn_gated_log *zn_log_gate_decided(const zn_log_gate *g, size_t *count)
{
    *count = g->count;
    return g->gated;
}

/* ---- results ---- */

zn_log_gate_stats zn_log_gate_get_stats(const zn_log_gate *g)
{
    return g->stats;
}

zn_ztable_stats zn_log_gate_table_stats(const zn_log_gate *g)
{
    zn_ztable_stats stats = zn_ztable_get_stats(g->table);
    const uint64_t *rows = g->stats.rows;
    stats.observations = 0;
    for (size_t i = 0; i < ZN_LOG_REASON_COUNT; i++)
        stats.observations += i == ZN_LOG_NO_ATTRIBUTE ? 0 : rows[i];
    stats.released = rows[ZN_LOG_RELEASED];
    stats.below_z = rows[ZN_LOG_BELOW_Z];
    stats.too_late = rows[ZN_LOG_TOO_LATE];
    stats.late_deep = rows[ZN_LOG_LATE_DEEP];
    stats.no_room = rows[ZN_LOG_NO_ROOM];
    return stats;
}

size_t zn_log_gate_memory(const zn_log_gate *g)
{
    return zn_ztable_memory(g->table) + zn_clients_memory(&g->clients) + sizeof *g;
}

const char *zn_log_reason_name(zn_log_reason reason)
{
    static const char *const names[] = {
#define ZN_LOG_REASON_NAME(name, text) #name,
        ZN_LOG_REASONS(ZN_LOG_REASON_NAME)
#undef ZN_LOG_REASON_NAME
    };
    return names[reason];
}

const char *zn_log_reason_text(zn_log_reason reason)
{
    static const char *const texts[] = {
#define ZN_LOG_REASON_TEXT(name, text) text,
        ZN_LOG_REASONS(ZN_LOG_REASON_TEXT)
#undef ZN_LOG_REASON_TEXT
    };
    return texts[reason];
}
