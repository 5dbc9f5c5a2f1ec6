/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/row_labels.h"

#include "analyzer/roles.h"
#include "anonymity/votes.h"
#include "release/labels.h"
#include "util/arena.h"

#define OF_NAMES (ZN_LEVEL_DOMAIN | ZN_LEVEL_CATEGORY)
#define OF_ADDRESSES (ZN_LEVEL_AS | ZN_LEVEL_COUNTRY)
#define VOTES 1 /* room in the queue of votes, of which only the identities are used */

_Static_assert(ZN_ADDR_TEXT_MAX <= ZN_HOSTNAME_MAX, "the text of an address fits a hostname");

struct zn_row_labels {
    zn_roles roles; /* the lists of names; nothing else is set */
    zn_votes votes; /* the identities */
    zn_labels labels;
    zn_levels *chains;
    zn_vote_kind kind;                    /* ZN_VOTE_NAME or ZN_VOTE_ADDR */
    zn_hostname text[ZN_ROW_LABELS_ROWS]; /* value, and after a release what may be written */
    zn_addr address[ZN_ROW_LABELS_ROWS];
    zn_observation exposed[ZN_ROW_LABELS_ROWS]; /* rows that are not refused, */
    uint8_t row[ZN_ROW_LABELS_ROWS];            /* and their indexes */
    zn_level_decision decisions[ZN_ROW_LABELS_ROWS];
    zn_row_labels_stats stats;
};

_Static_assert(ZN_ROW_LABELS_ROWS <= UINT8_MAX + 1, "an index of a row has 8 bits");

/* ---- opening ---- */

static int copy_never(zn_row_labels *l, const zn_row_labels_config *config, zn_error *err)
{
    int rc;
    if (config->never_count == 0)
        return 0;
    rc = zn_never_list_init(&l->roles.never, (uint32_t)config->never_count, err);
    for (size_t i = 0; rc == 0 && i < config->never_count; i++)
        zn_never_list_add(&l->roles.never, config->never[i]);
    return rc == 0 ? zn_labels_set_never(&l->labels, config->never, config->never_count, err) : rc;
}

static int open_labels(zn_row_labels *l, const zn_row_labels_config *config, zn_error *err)
{
    zn_labels_config labels = {.roles = &l->roles,
                               .votes = &l->votes,
                               .levels = config->levels,
                               .networks = config->networks,
                               .network_count = config->network_count};
    int rc = zn_name_lists_init(&l->roles.lists, config->suffixes, config->suffix_count,
                                config->categories, config->category_count, err);
    l->stats.ignored_categories = l->roles.lists.ignored_categories;
    if (rc == 0)
        rc = zn_votes_init(&l->votes, VOTES, err);
    if (rc == 0)
        rc = zn_labels_init(&l->labels, &labels, err);
    return rc == 0 ? copy_never(l, config, err) : rc;
}

static int open_chains(zn_row_labels *l, const zn_row_labels_table *t, zn_error *err)
{
    zn_levels_config levels =
        zn_levels_default_config(t->table, l->labels.count, t->config->z, t->config->window_ns);
    levels.max_votes = t->config->max_tuples / 4 + 1;
    levels.max_labels = t->config->max_attributes / 4 + 1;
    levels.parents = zn_labels_parents;
    levels.parents_of = &l->labels;
    return zn_levels_open(&l->chains, &levels, err);
}

int zn_row_labels_open(zn_row_labels **out, const zn_row_labels_config *config,
                       const zn_row_labels_table *table, zn_error *err)
{
    bool of_names = (config->levels & ~(unsigned)OF_NAMES) == 0;
    zn_row_labels *l;
    int rc;
    *out = NULL;
    if (config->levels == 0 || (!of_names && (config->levels & ~(unsigned)OF_ADDRESSES) != 0))
        return zn_fail(err, ZN_ERR_CONFIG, 0, "levels are all of names or all of addresses");
    l = zn_block_alloc(sizeof *l);
    if (l == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of rows");
    l->kind = of_names ? ZN_VOTE_NAME : ZN_VOTE_ADDR;
    l->roles.release_all = table->config->z == 1;
    rc = open_labels(l, config, err);
    if (rc == 0)
        rc = open_chains(l, table, err);
    if (rc != 0)
        zn_row_labels_close(l);
    else
        *out = l;
    return rc;
}

void zn_row_labels_close(zn_row_labels *l)
{
    if (l == NULL)
        return;
    zn_levels_close(l->chains);
    zn_labels_fini(&l->labels);
    zn_votes_fini(&l->votes);
    zn_name_lists_fini(&l->roles.lists);
    zn_never_list_fini(&l->roles.never);
    zn_block_clear(l, sizeof *l);
    zn_block_free(l, sizeof *l);
}

/* ---- a batch ---- */

static zn_row_refusal refusal_of_name(const zn_row_labels *l, zn_host_kind kind,
                                      const zn_hostname *name)
{
    if (kind == ZN_HOST_HOME && !l->roles.release_all)
        return ZN_ROW_HOME;
    if (kind != ZN_HOST_NAME && kind != ZN_HOST_HOME)
        return ZN_ROW_INVALID;
    switch (zn_roles_list_refuses(&l->roles, name)) {
    case ZN_STAT_SUPPRESSED_NEVER_LIST:
        return ZN_ROW_NEVER;
    case ZN_STAT_SUPPRESSED_NOT_LISTED:
        return ZN_ROW_NOT_LISTED;
    case ZN_STAT_SUPPRESSED_SKIPPED:
        return ZN_ROW_SKIPPED;
    default:
        return ZN_ROW_ASKED;
    }
}

/* Reads the value of row i, and sets its identity. */
static zn_row_refusal read_value(zn_row_labels *l, size_t i, const zn_value *value, zn_id *id)
{
    zn_hostname *text = &l->text[i];
    zn_row_refusal refusal;
    if (value->kind == ZN_VALUE_NONE || value->text.n == 0)
        return ZN_ROW_EMPTY;
    if (l->kind == ZN_VOTE_ADDR) {
        if (!zn_addr_parse(value->text, &l->address[i]) || zn_addr_is_special(&l->address[i]))
            return ZN_ROW_INVALID;
        *id = zn_votes_id(&l->votes, l->kind, zn_addr_span(&l->address[i]));
        return ZN_ROW_ASKED;
    }
    refusal = refusal_of_name(l, zn_hostname_normalize(value->text, text), text);
    if (refusal == ZN_ROW_ASKED)
        *id = zn_votes_id(&l->votes, l->kind, zn_hostname_span(text));
    return refusal;
}

/* Writes the labels above the value of exposed row i. */
static void write_chain(void *of, size_t i, zn_id *chain)
{
    const zn_row_labels *l = of;
    size_t row = l->row[i];
    if (l->kind == ZN_VOTE_ADDR)
        zn_labels_of_address(&l->labels, l->kind, &l->address[row], chain);
    else
        zn_labels_of_name(&l->labels, l->kind, zn_hostname_span(&l->text[row]), chain);
}

/* Puts the text that may be written in place of the value of exposed row i. */
static void write_text(zn_row_labels *l, size_t i)
{
    size_t row = l->row[i], level = l->decisions[i].level;
    zn_hostname *text = &l->text[row];
    zn_hostname name = *text;
    if (l->kind == ZN_VOTE_NAME && level != 0)
        (void)zn_labels_text(&l->labels, l->labels.name_level[level], l->exposed[i].attribute,
                             zn_hostname_span(&name), text);
    else if (l->kind == ZN_VOTE_ADDR && level != 0)
        zn_labels_server_text(&l->labels, l->labels.server_level[level], &l->address[row], text);
    else if (l->kind == ZN_VOTE_ADDR)
        text->n = (uint8_t)zn_addr_text(&l->address[row], (char *)text->text);
}

void zn_row_labels_decide(zn_row_labels *l, const zn_row *rows, const zn_id *users, size_t n,
                          uint8_t *answers)
{
    zn_exposures batch = {.observations = l->exposed, .chain = write_chain, .of = l};
    ZN_ASSERT(n <= ZN_ROW_LABELS_ROWS);
    for (size_t i = 0; i < n; i++) {
        zn_observation *o = &l->exposed[batch.n];
        zn_row_refusal refusal = read_value(l, i, &rows[i].value[ZN_ROW_ATTRIBUTE], &o->attribute);
        l->stats.refused[refusal]++;
        answers[i] = ZN_BELOW_Z;
        if (refusal != ZN_ROW_ASKED)
            continue;
        o->t_ns = rows[i].t_ns;
        o->user = users[i].lo;
        l->row[batch.n++] = (uint8_t)i;
    }
    zn_levels_decide(l->chains, &batch, l->decisions);
    for (size_t i = 0; i < batch.n; i++) {
        answers[l->row[i]] = l->decisions[i].decision;
        l->stats.answers[l->decisions[i].decision]++;
        if (l->decisions[i].decision == ZN_RELEASE)
            write_text(l, i);
    }
}

zn_value zn_row_labels_value(const zn_row_labels *l, size_t i)
{
    return (zn_value){zn_hostname_span(&l->text[i]), ZN_VALUE_TEXT};
}

/* ---- results ---- */

const zn_row_labels_stats *zn_row_labels_get_stats(const zn_row_labels *l)
{
    return &l->stats;
}

const zn_levels *zn_row_labels_levels(const zn_row_labels *l)
{
    return l->chains;
}

size_t zn_row_labels_memory(const zn_row_labels *l)
{
    const zn_name_lists *lists = &l->roles.lists;
    return sizeof *l + zn_labels_memory(&l->labels) + zn_levels_memory(l->chains) +
           lists->slot_bytes + lists->category_bytes + lists->text_bytes;
}
