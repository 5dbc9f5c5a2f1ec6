/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/row_gate.h"

#include "analyzer/hostname.h"
#include "crypto/row_pseudonym.h"
#include "util/arena.h"
#include "util/clock.h"

/* Namespaces of hashes: the text "17" and the number 17 are two attributes, but one user. */
enum { DOMAIN_USER = 'u', DOMAIN_TEXT = 't', DOMAIN_JSON = 'j', DOMAIN_SKIPPED = 's' };

_Static_assert(ZN_ROW_BATCH <= ZN_CLOCK_REBASE_AFTER, "a batch sees at most one clock step");
_Static_assert(ZN_ROW_BATCH <= UINT8_MAX + 1, "a row of a batch has a number of 8 bits");
_Static_assert(ZN_ROW_BATCH <= ZN_LADDER_ROWS, "a ladder has room for a batch");
_Static_assert(ZN_ROW_BATCH <= ZN_ROW_LABELS_ROWS, "labels have room for a batch");

struct zn_row_gate {
    bool keep_suppressed;
    zn_ztable *table;
    zn_row_pseudonym *pseudonym; /* NULL without users */
    zn_row_ladder *ladder;       /* NULL: rows have one attribute */
    zn_row_labels *labels;       /* NULL: the attribute is written as it is */
    zn_value *more;              /* with a ladder: what each row has after its first attribute */
    size_t more_count, pass_count;
    zn_popularity popularity;
    zn_hash_key key;
    zn_never_list never;
    zn_row_gate_skipped skipped;
    uint64_t skipped_answers[ZN_NO_ROOM + 1]; /* of the table, by zn_decision */
    uint64_t jumps; /* steps of the table's clock that the keys have followed */
    zn_id users[ZN_ROW_BATCH];
    zn_observation asked[ZN_ROW_BATCH];
    size_t asked_count;
    uint8_t asked_row[ZN_ROW_BATCH]; /* row of each observation */
    bool is_skipped[ZN_ROW_BATCH];   /* whether an observation only moves the clock */
    uint8_t decisions[ZN_ROW_BATCH]; /* on the observations */
    uint8_t answers[ZN_ROW_BATCH];   /* of the rows */
    zn_gated_row gated[ZN_ROW_BATCH];
    size_t count;
};

static int open_ladder(zn_row_gate *g, const zn_row_gate_config *config,
                       const zn_ztable_config *config_of_table, zn_error *err)
{
    zn_row_ladder_table table = {g->table, config_of_table};
    int rc = zn_row_ladder_open(&g->ladder, &config->ladder, &table, err);
    if (rc != 0)
        return rc;
    g->pass_count = config->pass_count;
    g->more_count = zn_row_ladder_columns(g->ladder) - 1 + config->pass_count;
    g->more = zn_heap_alloc(ZN_ROW_BATCH * g->more_count * sizeof *g->more + 1);
    if (g->more == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    return 0;
}

static int open_labels(zn_row_gate *g, const zn_row_gate_config *config,
                       const zn_ztable_config *config_of_table, zn_error *err)
{
    zn_row_labels_table table = {g->table, config_of_table};
    zn_row_labels_config labels = config->labels;
    labels.never = config->never;
    labels.never_count = config->never_count;
    return zn_row_labels_open(&g->labels, &labels, &table, err);
}

static int copy_never(zn_row_gate *g, const zn_row_gate_config *config, zn_error *err)
{
    int rc = zn_never_list_init(&g->never, (uint32_t)config->never_count, err);
    for (size_t i = 0; rc == 0 && i < config->never_count; i++)
        zn_never_list_add(&g->never, config->never[i]);
    return rc;
}

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
    if (rc == 0 && config->never_count != 0)
        rc = copy_never(g, config, err);
    if (rc == 0)
        rc = zn_ztable_open(&g->table, &table, err);
    if (rc == 0 && config->ladder.column_count != 0)
        rc = open_ladder(g, config, &table, err);
    else if (rc == 0 && config->labels.levels != 0)
        rc = open_labels(g, config, &table, err);
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
    zn_row_ladder_close(g->ladder);
    zn_row_labels_close(g->labels);
    zn_ztable_close(g->table);
    zn_row_pseudonym_close(g->pseudonym);
    zn_popularity_fini(&g->popularity);
    zn_never_list_fini(&g->never);
    zn_heap_free(g->more);
    zn_block_clear(g, sizeof *g);
    zn_block_free(g, sizeof *g);
}

bool zn_row_gate_find(zn_row_gate *g, size_t i, const zn_row *row, size_t *which)
{
    bool found = zn_row_ladder_find(g->ladder, i, &row->value[ZN_ROW_ATTRIBUTE], which);
    *which += ZN_ROW_ATTRIBUTE;
    return found;
}

static void ask_steps(zn_row_gate *g, const zn_row *rows, size_t n)
{
    zn_row_ladder_decide(g->ladder, rows, g->users, n);
    for (size_t i = 0; i < n; i++)
        g->answers[i] = zn_row_ladder_released(g->ladder, i) ? ZN_RELEASE : ZN_BELOW_Z;
}

/* Returns true, and counts the row, if its attribute is missing or must never be released. */
static bool skips(zn_row_gate *g, const zn_value *attribute)
{
    zn_hostname name;
    if (attribute->kind == ZN_VALUE_NONE || attribute->text.n == 0) {
        g->skipped.rows[ZN_ROW_EMPTY]++;
        return true;
    }
    if (g->never.members == 0)
        return false;
    (void)zn_hostname_normalize(attribute->text, &name);
    if (!zn_never_list_has(&g->never, &name))
        return false;
    g->skipped.rows[ZN_ROW_NEVER]++;
    return true;
}

/*
 * Fills the next observation. A skipped row that leaves with a pseudonym has one attribute of its
 * own, so that the table's clock, and with it the keys, follow its time as that of any other row.
 */
static void add_observation(zn_row_gate *g, const zn_row *row, size_t i, bool is_skipped)
{
    const zn_value *attribute = &row->value[ZN_ROW_ATTRIBUTE];
    uint8_t domain = attribute->kind == ZN_VALUE_TEXT ? DOMAIN_TEXT : DOMAIN_JSON;
    zn_observation *o = &g->asked[g->asked_count];
    o->t_ns = row->t_ns;
    o->user = g->users[i].lo;
    o->attribute = is_skipped ? zn_hash128(&g->key, DOMAIN_SKIPPED, NULL, 0)
                              : zn_hash128(&g->key, domain, attribute->text.p, attribute->text.n);
    g->is_skipped[g->asked_count] = is_skipped;
    g->asked_row[g->asked_count++] = (uint8_t)i;
}

static void hash_users(zn_row_gate *g, const zn_row *rows, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const zn_value *user = &rows[i].value[ZN_ROW_USER];
        g->users[i] = zn_hash128(&g->key, DOMAIN_USER, user->text.p, user->text.n);
    }
}

static void ask(zn_row_gate *g, const zn_row *rows, size_t n)
{
    hash_users(g, rows, n);
    if (g->ladder != NULL) {
        ask_steps(g, rows, n);
        return;
    }
    if (g->labels != NULL) {
        zn_row_labels_decide(g->labels, rows, g->users, n, g->answers);
        return;
    }
    g->asked_count = 0;
    for (size_t i = 0; i < n; i++) {
        const zn_value *user = &rows[i].value[ZN_ROW_USER];
        bool leaves = g->pseudonym != NULL && g->keep_suppressed && user->text.n != 0;
        bool is_skipped = skips(g, &rows[i].value[ZN_ROW_ATTRIBUTE]);
        g->answers[i] = ZN_BELOW_Z;
        if (!is_skipped || leaves)
            add_observation(g, &rows[i], i, is_skipped);
    }
    zn_ztable_observe_batch(g->table, g->asked, g->asked_count, g->decisions);
    for (size_t i = 0; i < g->asked_count; i++)
        if (g->is_skipped[i])
            g->skipped_answers[g->decisions[i]]++;
        else
            g->answers[g->asked_row[i]] = g->decisions[i];
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

static int count_popularity(zn_row_gate *g, zn_error *err)
{
    int rc = 0;
    if (g->popularity.table == NULL)
        return 0;
    for (size_t i = 0; i < g->asked_count && rc == 0; i++) {
        if (g->is_skipped[i])
            continue;
        if (zn_popularity_reach(&g->popularity, g->asked[i].t_ns))
            rc = zn_popularity_store(&g->popularity, err);
        zn_popularity_see(&g->popularity, &g->asked[i]);
    }
    return rc;
}

/* Fills the attributes of a gated row, generalized or empty, and the columns that are passed on. */
static void generalize(zn_row_gate *g, const zn_row *row, size_t i, zn_gated_row *out)
{
    static const zn_value nothing = {{NULL, 0}, ZN_VALUE_NONE};
    zn_value *more = &g->more[g->count * g->more_count];
    size_t columns = zn_row_ladder_columns(g->ladder);
    bool released = g->answers[i] == ZN_RELEASE;
    out->pass = more;
    out->attribute = released ? zn_row_ladder_value(g->ladder, i, 0) : nothing;
    for (size_t j = 1; j < columns; j++)
        *more++ = released ? zn_row_ladder_value(g->ladder, i, j) : nothing;
    for (size_t j = 0; j < g->pass_count; j++)
        *more++ = row->value[ZN_ROW_ATTRIBUTE + columns + j];
}

/* Returns the attribute of a released row without a ladder. */
static zn_value released_value(const zn_row_gate *g, const zn_row *row, size_t i)
{
    return g->labels != NULL ? zn_row_labels_value(g->labels, i) : row->value[ZN_ROW_ATTRIBUTE];
}

/* Fills the gated row of a row that may be written: the only place that hands an attribute on. */
static int let_out(zn_row_gate *g, const zn_row *row, size_t i, zn_error *err)
{
    static const zn_value nothing = {{NULL, 0}, ZN_VALUE_NONE};
    zn_row_pseudonym_of who = {row->t_ns, g->users[i], row->value[ZN_ROW_USER].text};
    zn_gated_row *out = &g->gated[g->count];
    bool released = g->answers[i] == ZN_RELEASE;
    if (!released && (!g->keep_suppressed || who.user.n == 0))
        return 0;
    out->place = i;
    out->t_ns = row->t_ns;
    if (g->ladder != NULL) {
        generalize(g, row, i, out);
    } else {
        out->attribute = released ? released_value(g, row, i) : nothing;
        out->pass = &row->value[ZN_ROW_PASS];
    }
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
        rc = count_popularity(g, err);
    for (size_t i = 0; g->pseudonym != NULL && i < n; i++)
        if (g->answers[i] == ZN_RELEASE || g->keep_suppressed)
            zn_row_pseudonym_expect(g->pseudonym, g->users[i]);
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

/* Replaces the decisions of the z-table by those on whole chains, by zn_decision. */
static void set_answers(zn_ztable_stats *stats, const uint64_t *answers)
{
    stats->released = answers[ZN_RELEASE];
    stats->below_z = answers[ZN_BELOW_Z];
    stats->too_late = answers[ZN_TOO_LATE];
    stats->late_deep = answers[ZN_LATE_DEEP];
    stats->no_room = answers[ZN_NO_ROOM];
}

zn_ztable_stats zn_row_gate_stats(const zn_row_gate *g)
{
    zn_ztable_stats stats = zn_ztable_get_stats(g->table);
    zn_row_gate_skipped skipped = zn_row_gate_get_skipped(g);
    stats.released -= g->skipped_answers[ZN_RELEASE];
    stats.below_z -= g->skipped_answers[ZN_BELOW_Z];
    stats.too_late -= g->skipped_answers[ZN_TOO_LATE];
    stats.late_deep -= g->skipped_answers[ZN_LATE_DEEP];
    stats.no_room -= g->skipped_answers[ZN_NO_ROOM];
    for (size_t i = 0; i <= ZN_NO_ROOM; i++)
        stats.observations -= g->skipped_answers[i];
    for (size_t i = ZN_ROW_EMPTY + 1; i < ZN_ROW_REFUSALS; i++)
        stats.observations += skipped.rows[i];
    if (g->ladder != NULL)
        set_answers(&stats, zn_row_ladder_get_stats(g->ladder)->answers);
    if (g->labels != NULL)
        set_answers(&stats, zn_row_labels_get_stats(g->labels)->answers);
    return stats;
}

zn_row_gate_skipped zn_row_gate_get_skipped(const zn_row_gate *g)
{
    zn_row_gate_skipped skipped = g->skipped;
    if (g->labels != NULL)
        memcpy(skipped.rows, zn_row_labels_get_stats(g->labels)->refused, sizeof skipped.rows);
    return skipped;
}

const zn_row_ladder_stats *zn_row_gate_ladder_stats(const zn_row_gate *g)
{
    return g->ladder == NULL ? NULL : zn_row_ladder_get_stats(g->ladder);
}

const zn_row_labels *zn_row_gate_labels(const zn_row_gate *g)
{
    return g->labels;
}

const zn_levels *zn_row_gate_levels(const zn_row_gate *g)
{
    if (g->labels != NULL)
        return zn_row_labels_levels(g->labels);
    return g->ladder == NULL ? NULL : zn_row_ladder_levels(g->ladder);
}

size_t zn_row_gate_memory(const zn_row_gate *g)
{
    size_t bytes = zn_ztable_memory(g->table) + zn_popularity_memory(&g->popularity);
    if (g->labels != NULL)
        bytes += zn_row_labels_memory(g->labels);
    return g->ladder == NULL ? bytes : bytes + zn_row_ladder_memory(g->ladder);
}
