/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/row_gate.h"

#include "crypto/row_pseudonym.h"
#include "util/arena.h"
#include "util/clock.h"

/* Namespaces of hashes: the text "17" and the number 17 are two attributes, but one user. */
enum { DOMAIN_USER = 'u', DOMAIN_TEXT = 't', DOMAIN_JSON = 'j' };

_Static_assert(ZN_ROW_BATCH <= ZN_CLOCK_REBASE_AFTER, "a batch sees at most one clock step");

struct zn_row_gate {
    bool keep_suppressed;
    zn_ztable *table;
    zn_row_pseudonym *pseudonym; /* NULL without users */
    zn_popularity popularity;
    zn_hash_key key;
    uint64_t jumps; /* steps of the table's clock that the keys have followed */
    zn_id users[ZN_ROW_BATCH];
    zn_observation asked[ZN_ROW_BATCH];
    uint8_t answers[ZN_ROW_BATCH];
    zn_gated_row gated[ZN_ROW_BATCH];
    size_t count;
};

int zn_row_gate_open(zn_row_gate **out, const zn_row_gate_config *config, zn_error *err)
{
    zn_ztable_config table = zn_ztable_default_config(config->z, config->window_ns);
    zn_row_gate *g = zn_block_alloc(sizeof *g);
    zn_key_scope scope = {
        .rotate_ns = config->rotate_ns, .z = config->z, .window_ns = config->window_ns};
    int rc;
    *out = NULL;
    if (g == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    table.keep = config->z; /* the z most recent users decide exactly */
    table.max_tuples = config->max_tuples;
    table.max_attributes = config->max_attributes;
    g->keep_suppressed = config->keep_suppressed;
    rc = zn_hash_key_random(&g->key, err);
    if (rc == 0)
        rc = zn_ztable_open(&g->table, &table, err);
    if (rc == 0 && config->with_user)
        rc = zn_row_pseudonym_open(&g->pseudonym, &scope, config->key_file, err);
    if (rc == 0 && config->popularity)
        rc = zn_popularity_init(&g->popularity, &table, err);
    if (rc != 0)
        zn_row_gate_close(g);
    else
        *out = g;
    return rc;
}

void zn_row_gate_close(zn_row_gate *g)
{
    if (g == NULL)
        return;
    zn_ztable_close(g->table);
    zn_row_pseudonym_close(g->pseudonym);
    zn_popularity_fini(&g->popularity);
    zn_block_clear(g, sizeof *g);
    zn_block_free(g, sizeof *g);
}

static void ask(zn_row_gate *g, const zn_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const zn_value *user = &rows[i].value[ZN_ROW_USER];
        const zn_value *attribute = &rows[i].value[ZN_ROW_ATTRIBUTE];
        uint8_t domain = attribute->kind == ZN_VALUE_TEXT ? DOMAIN_TEXT : DOMAIN_JSON;
        g->users[i] = zn_hash128(&g->key, DOMAIN_USER, user->text.p, user->text.n);
        g->asked[i].t_ns = rows[i].t_ns;
        g->asked[i].user = g->users[i].lo;
        g->asked[i].attribute = zn_hash128(&g->key, domain, attribute->text.p, attribute->text.n);
    }
    zn_ztable_observe_batch(g->table, g->asked, n, g->answers);
}

/*
 * Has the keys follow when the table's clock was set back. That may have happened in the middle of
 * the batch, but every row before was rejected: the whole batch belongs to the new time, from its
 * earliest row on.
 */
static int follow_clock(zn_row_gate *g, const zn_row *rows, size_t n, zn_error *err)
{
    uint64_t jumps = zn_ztable_get_stats(g->table).clock_jumps;
    int64_t first_ns = INT64_MAX;
    if (jumps == g->jumps)
        return 0;
    g->jumps = jumps;
    for (size_t i = 0; i < n; i++)
        if (rows[i].t_ns < first_ns)
            first_ns = rows[i].t_ns;
    return g->pseudonym == NULL ? 0 : zn_row_pseudonym_rebase(g->pseudonym, first_ns, err);
}

static int count_popularity(zn_row_gate *g, size_t n, zn_error *err)
{
    int rc = 0;
    for (size_t i = 0; i < n && rc == 0; i++) {
        if (zn_popularity_reach(&g->popularity, g->asked[i].t_ns))
            rc = zn_popularity_store(&g->popularity, err);
        zn_popularity_see(&g->popularity, &g->asked[i]);
    }
    return rc;
}

/* Fills the gated row of a row that may be written: the only place that hands an attribute on. */
static int let_out(zn_row_gate *g, const zn_row *row, size_t i, zn_error *err)
{
    static const zn_value nothing = {{NULL, 0}, ZN_VALUE_NONE};
    zn_row_pseudonym_of who = {row->t_ns, g->users[i], row->value[ZN_ROW_USER].text};
    zn_gated_row *out = &g->gated[g->count];
    bool released = g->answers[i] == ZN_RELEASE;
    if (!released && !g->keep_suppressed)
        return 0;
    out->t_ns = row->t_ns;
    out->attribute = released ? row->value[ZN_ROW_ATTRIBUTE] : nothing;
    out->pass = &row->value[ZN_ROW_PASS];
    if (g->pseudonym != NULL) {
        int rc = zn_row_pseudonym_make(g->pseudonym, &who, out->pseudonym, err);
        if (rc != 0)
            return rc;
    }
    g->count++;
    return 0;
}

int zn_row_gate_decide(zn_row_gate *g, const zn_row *rows, size_t n, zn_error *err)
{
    int rc;
    ZN_ASSERT(n <= ZN_ROW_BATCH);
    g->count = 0;
    ask(g, rows, n);
    rc = follow_clock(g, rows, n, err);
    if (rc == 0)
        rc = count_popularity(g, n, err);
    for (size_t i = 0; i < n && rc == 0; i++)
        rc = let_out(g, &rows[i], i, err);
    if (rc != 0)
        g->count = 0;
    return rc;
}

const zn_gated_row *zn_row_gate_decided(const zn_row_gate *g, size_t *count)
{
    *count = g->count;
    return g->gated;
}

int zn_row_gate_finish(zn_row_gate *g, zn_error *err)
{
    zn_popularity_finish(&g->popularity);
    return g->popularity.due ? zn_popularity_store(&g->popularity, err) : 0;
}

zn_popularity *zn_row_gate_popularity(zn_row_gate *g)
{
    return &g->popularity;
}

zn_ztable_stats zn_row_gate_stats(const zn_row_gate *g)
{
    return zn_ztable_get_stats(g->table);
}

size_t zn_row_gate_memory(const zn_row_gate *g)
{
    return zn_ztable_memory(g->table) + zn_popularity_memory(&g->popularity);
}
