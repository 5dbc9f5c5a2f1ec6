/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The tree is built level by level: the labels of a level are sorted, equal ones are a node, and
 * each node of the level below gets its parent. A node's number is therefore above its children's.
 */
#include "microdata/taxonomy.h"

#include "microdata/interval.h"
#include "util/arena.h"
#include "util/hash.h"

#include <stdlib.h>

#define TABLE_NODES_MAX 4096u /* lowest common nodes come from a table, of 2 bytes a pair */

typedef struct node {
    double loss;
    zn_span label;
    uint16_t leaves_below;
    zn_node parent;
    uint8_t level;
} node;

struct zn_taxonomy {
    uint32_t leaves, nodes, levels;
    node *node;
    uint8_t *bytes; /* of the labels */
    size_t byte_count;
    zn_node *ancestor; /* nodes x levels */
    zn_node *common;   /* nodes x nodes; NULL where there are too many */
    zn_node *bucket;   /* leaves by the hash of their values; NULL for numbers */
    uint32_t bucket_mask;
    zn_bucket_key key;
    zn_interval_width width; /* 0: values are texts */
    bool whole;
    int64_t first;
    uint32_t intervals; /* leaves of numbers; the one after them, if any, is the missing value's */
};

/* ---- building ---- */

/* A label and the line that it stands in. */
typedef struct entry {
    zn_span label;
    uint32_t line;
    uint32_t first; /* line of the first equal label; lines are numbered from 0 here */
} entry;

typedef struct builder {
    const zn_taxonomy_config *config;
    zn_taxonomy *t;
    entry *entries;         /* of one level */
    zn_node *below, *above; /* the node of each line at the last level, and at this one */
    uint32_t *node_line;    /* the first line of each node */
    uint32_t *children;     /* of each node */
} builder;

static int compare_spans(zn_span a, zn_span b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int order = n == 0 ? 0 : memcmp(a.p, b.p, n);
    if (order != 0)
        return order;
    return (a.n > b.n) - (a.n < b.n);
}

static int by_label(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    int order = compare_spans(a->label, b->label);
    return order != 0 ? order : (a->line > b->line) - (a->line < b->line);
}

static int by_first(const void *left, const void *right)
{
    const entry *a = left, *b = right;
    if (a->first != b->first)
        return a->first < b->first ? -1 : 1;
    return (a->line > b->line) - (a->line < b->line);
}

/* Sorts the labels of a level: equal ones stand together, in the order of the nodes. */
static void sort_level(const builder *b, uint32_t level)
{
    size_t lines = b->config->lines;
    for (size_t i = 0; i < lines; i++)
        b->entries[i] =
            (entry){b->config->labels[i * b->config->levels + level], (uint32_t)i, (uint32_t)i};
    qsort(b->entries, lines, sizeof *b->entries, by_label);
    for (size_t i = 1; i < lines; i++)
        if (zn_span_equal(b->entries[i].label, b->entries[i - 1].label))
            b->entries[i].first = b->entries[i - 1].first;
    if (b->config->in_order || b->config->width != 0)
        qsort(b->entries, lines, sizeof *b->entries, by_first);
}

static int too_many_nodes(zn_error *err)
{
    return zn_fail(err, ZN_ERR_CAPACITY, 0, "a hierarchy has at most %u nodes in all its levels",
                   ZN_TAXONOMY_NODES_MAX);
}

/* Makes the nodes of a sorted level, and notes the node of each line. */
static int make_nodes(const builder *b, uint32_t level, zn_error *err)
{
    zn_taxonomy *t = b->t;
    for (size_t i = 0; i < b->config->lines; i++) {
        const entry *e = &b->entries[i];
        if (e->first == e->line) {
            if (t->nodes == ZN_TAXONOMY_NODES_MAX)
                return too_many_nodes(err);
            b->node_line[t->nodes] = e->line;
            t->node[t->nodes].label = e->label;
            t->node[t->nodes].level = (uint8_t)level;
            t->nodes++;
        }
        b->above[e->line] = (zn_node)(t->nodes - 1);
    }
    return 0;
}

/* A value has one line. */
static int check_leaves(const builder *b, zn_error *err)
{
    uint32_t line = UINT32_MAX;
    for (size_t i = 0; i < b->config->lines; i++)
        if (b->entries[i].first != b->entries[i].line && b->entries[i].line < line)
            line = b->entries[i].line;
    if (line == UINT32_MAX)
        return 0;
    return zn_fail(err, ZN_ERR_FORMAT, 0, "line %u: its value has a line already", line + 1);
}

/* Makes the nodes of the previous level children of the nodes of this level. */
static int join_level(const builder *b, uint32_t level, zn_error *err)
{
    for (size_t i = 0; i < b->config->lines; i++) {
        node *child = &b->t->node[b->below[i]];
        if (child->parent == ZN_NODE_NONE) {
            child->parent = b->above[i];
            b->children[b->above[i]]++;
        } else if (child->parent != b->above[i]) {
            return zn_fail(err, ZN_ERR_FORMAT, 0,
                           "line %zu: column %u groups what column %u has in one group already",
                           i + 1, level + 1, level);
        }
    }
    return 0;
}

/* The last level is one node. */
static int check_root(const builder *b, zn_error *err)
{
    for (size_t i = 1; i < b->config->lines; i++)
        if (b->above[i] != b->above[0])
            return zn_fail(err, ZN_ERR_FORMAT, 0,
                           "line %zu: its last column is not that of the first line; all lines end "
                           "in one value, such as *",
                           i + 1);
    return 0;
}

static int build_levels(builder *b, zn_error *err)
{
    zn_taxonomy *t = b->t;
    for (uint32_t level = 0; level < t->levels; level++) {
        zn_node *swap = b->below;
        uint32_t from = t->nodes;
        int rc;
        b->below = b->above;
        b->above = swap;
        sort_level(b, level);
        rc = level == 0 ? check_leaves(b, err) : 0;
        if (rc == 0)
            rc = make_nodes(b, level, err);
        for (uint32_t i = from; i < t->nodes; i++)
            t->node[i].parent = ZN_NODE_NONE;
        if (rc == 0 && level != 0)
            rc = join_level(b, level, err);
        if (rc != 0)
            return rc;
        if (level == 0)
            t->leaves = t->nodes;
    }
    t->node[t->nodes - 1].parent = (zn_node)(t->nodes - 1);
    return check_root(b, err);
}

/* Nodes from the leaves' parents to the root's children that have one child. */
static void note_only_children(const builder *b, zn_taxonomy_notes *notes)
{
    const zn_taxonomy *t = b->t;
    if (notes == NULL)
        return;
    *notes = (zn_taxonomy_notes){0, 0};
    for (uint32_t i = t->leaves; i + 1 < t->nodes; i++) {
        if (b->children[i] != 1 || t->node[i].label.n == 0)
            continue;
        if (notes->only_children == 0 || b->node_line[i] + 1 < notes->line)
            notes->line = (size_t)b->node_line[i] + 1;
        notes->only_children++;
    }
}

/* ---- what is derived from the tree ---- */

static void count_leaves(zn_taxonomy *t)
{
    for (uint32_t i = 0; i < t->nodes; i++) {
        node *n = &t->node[i];
        if (n->level == 0)
            n->leaves_below = 1;
        n->loss = t->leaves == 1 ? 0 : (n->leaves_below - 1.0) / (t->leaves - 1.0);
        if (n->parent != i)
            t->node[n->parent].leaves_below =
                (uint16_t)(t->node[n->parent].leaves_below + n->leaves_below);
    }
}

/* The labels belong to the taxonomy from here on. */
static int copy_labels(zn_taxonomy *t, zn_error *err)
{
    uint8_t *at;
    t->byte_count = 1;
    for (uint32_t i = 0; i < t->nodes; i++)
        t->byte_count += t->node[i].label.n;
    t->bytes = at = zn_heap_alloc(t->byte_count);
    if (at == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy's labels");
    for (uint32_t i = 0; i < t->nodes; i++) {
        zn_span *label = &t->node[i].label;
        if (label->n != 0)
            memcpy(at, label->p, label->n);
        label->p = at;
        at += label->n;
    }
    return 0;
}

static int fill_ancestors(zn_taxonomy *t, zn_error *err)
{
    t->ancestor = zn_heap_alloc((size_t)t->nodes * t->levels * sizeof *t->ancestor);
    if (t->ancestor == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy's levels");
    for (uint32_t i = 0; i < t->nodes; i++) {
        zn_node *row = &t->ancestor[(size_t)i * t->levels], at = (zn_node)i;
        for (uint32_t level = 0; level < t->levels; level++) {
            if (level > t->node[i].level)
                at = t->node[at].parent;
            row[level] = at;
        }
    }
    return 0;
}

/* From the root down: the pair of a node and one with a larger number has its lowest common node
 * from the smaller one's parent, or from both parents where their levels are the same. */
static int fill_common(zn_taxonomy *t, zn_error *err)
{
    size_t n = t->nodes;
    if (n > TABLE_NODES_MAX)
        return 0;
    t->common = zn_block_alloc(n * n * sizeof *t->common);
    if (t->common == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy's pairs of nodes");
    for (size_t a = n; a-- != 0;) {
        t->common[a * n + a] = (zn_node)a;
        for (size_t b = a + 1; b < n; b++) {
            bool level = t->node[a].level == t->node[b].level;
            size_t up = level ? t->node[b].parent : b;
            zn_node found = t->common[t->node[a].parent * n + up];
            t->common[a * n + b] = t->common[b * n + a] = found;
        }
    }
    return 0;
}

/* A quick hash: the values in the table are the owner's, and others can only look some up. */
static uint32_t bucket_of(const zn_taxonomy *t, zn_span value)
{
    uint64_t hash = t->key.word[0] ^ value.n, word;
    for (; value.n >= sizeof word; value.n -= sizeof word, value.p += sizeof word) {
        memcpy(&word, value.p, sizeof word);
        hash = zn_fold(hash ^ word, t->key.word[1]);
    }
    word = 0;
    if (value.n != 0)
        memcpy(&word, value.p, value.n);
    return (uint32_t)zn_fold(hash ^ word, t->key.word[2]) & t->bucket_mask;
}

static int fill_buckets(zn_taxonomy *t, zn_error *err)
{
    uint32_t buckets = 4;
    int rc = zn_bucket_key_random(&t->key, err);
    if (rc != 0)
        return rc;
    while (buckets < 4 * t->leaves)
        buckets *= 2;
    t->bucket = zn_heap_alloc(buckets * sizeof *t->bucket);
    if (t->bucket == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy's values");
    memset(t->bucket, 0xff, buckets * sizeof *t->bucket); /* ZN_NODE_NONE */
    t->bucket_mask = buckets - 1;
    for (uint32_t i = 0; i < t->leaves; i++) {
        uint32_t at = bucket_of(t, t->node[i].label);
        while (t->bucket[at] != ZN_NODE_NONE)
            at = (at + 1) & t->bucket_mask;
        t->bucket[at] = (zn_node)i;
    }
    return 0;
}

static int set_width(zn_taxonomy *t, const zn_taxonomy_config *config, zn_error *err)
{
    t->whole = config->whole;
    t->first = config->first;
    t->intervals = t->leaves;
    if (t->leaves > 1 && config->labels[(config->lines - 1) * config->levels].n == 0)
        t->intervals--;
    return zn_interval_width_of(&t->width, config->width, err);
}

static int check_config(const zn_taxonomy_config *config, zn_error *err)
{
    if (config->lines == 0 || config->levels == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "the hierarchy is empty");
    if (config->levels > ZN_TAXONOMY_LEVELS_MAX)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "a hierarchy has at most %u levels",
                       ZN_TAXONOMY_LEVELS_MAX);
    if (config->lines > ZN_TAXONOMY_NODES_MAX)
        return too_many_nodes(err);
    return 0;
}

static int build(zn_taxonomy *t, const zn_taxonomy_config *config, zn_taxonomy_notes *notes,
                 zn_error *err)
{
    size_t most = config->lines * config->levels;
    builder b = {.config = config, .t = t};
    int rc = -ZN_ERR_CAPACITY;
    if (most > ZN_TAXONOMY_NODES_MAX)
        most = ZN_TAXONOMY_NODES_MAX;
    t->levels = (uint32_t)config->levels;
    t->node = zn_heap_alloc(most * sizeof *t->node);
    b.entries = zn_heap_alloc(config->lines * sizeof *b.entries);
    b.below = zn_heap_alloc(config->lines * sizeof *b.below);
    b.above = zn_heap_alloc(config->lines * sizeof *b.above);
    b.node_line = zn_heap_alloc(most * sizeof *b.node_line);
    b.children = zn_heap_alloc(most * sizeof *b.children);
    if (t->node == NULL || b.entries == NULL || b.below == NULL || b.above == NULL ||
        b.node_line == NULL || b.children == NULL)
        (void)zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy");
    else
        rc = build_levels(&b, err);
    if (rc == 0)
        note_only_children(&b, notes);
    zn_heap_free(b.entries);
    zn_heap_free(b.below);
    zn_heap_free(b.above);
    zn_heap_free(b.node_line);
    zn_heap_free(b.children);
    return rc;
}

int zn_taxonomy_open(zn_taxonomy **out, const zn_taxonomy_config *config, zn_taxonomy_notes *notes,
                     zn_error *err)
{
    zn_taxonomy *t;
    int rc = check_config(config, err);
    *out = NULL;
    if (rc != 0)
        return rc;
    t = zn_heap_alloc(sizeof *t);
    if (t == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a hierarchy");
    rc = build(t, config, notes, err);
    if (rc == 0)
        count_leaves(t);
    if (rc == 0)
        rc = copy_labels(t, err);
    if (rc == 0)
        rc = fill_ancestors(t, err);
    if (rc == 0)
        rc = fill_common(t, err);
    if (rc == 0)
        rc = config->width != 0 ? set_width(t, config, err) : fill_buckets(t, err);
    if (rc != 0)
        zn_taxonomy_close(t);
    else
        *out = t;
    return rc;
}

void zn_taxonomy_close(zn_taxonomy *t)
{
    if (t == NULL)
        return;
    zn_heap_free(t->node);
    zn_heap_free(t->bytes);
    zn_heap_free(t->ancestor);
    zn_heap_free(t->bucket);
    if (t->common != NULL)
        zn_block_free(t->common, (size_t)t->nodes * t->nodes * sizeof *t->common);
    zn_heap_free(t);
}

/* ---- questions ---- */

static zn_node find_number(const zn_taxonomy *t, zn_span value)
{
    int64_t interval;
    uint64_t from_first;
    if (value.n == 0)
        return t->intervals < t->leaves ? (zn_node)t->intervals : ZN_NODE_NONE;
    if (!zn_interval_of(&t->width, t->whole, value, &interval))
        return ZN_NODE_NONE;
    if (interval <= t->first)
        return 0;
    from_first = (uint64_t)interval - (uint64_t)t->first;
    return (zn_node)(from_first < t->intervals ? from_first : t->intervals - 1);
}

zn_node zn_taxonomy_find(const zn_taxonomy *t, zn_span value)
{
    uint32_t at;
    if (t->width.units != 0)
        return find_number(t, value);
    for (at = bucket_of(t, value); t->bucket[at] != ZN_NODE_NONE; at = (at + 1) & t->bucket_mask)
        if (zn_span_equal(t->node[t->bucket[at]].label, value))
            return t->bucket[at];
    return ZN_NODE_NONE;
}

uint32_t zn_taxonomy_leaves(const zn_taxonomy *t)
{
    return t->leaves;
}

uint32_t zn_taxonomy_nodes(const zn_taxonomy *t)
{
    return t->nodes;
}

uint32_t zn_taxonomy_levels(const zn_taxonomy *t)
{
    return t->levels;
}

zn_node zn_taxonomy_ancestor(const zn_taxonomy *t, zn_node at, uint32_t level)
{
    ZN_ASSERT(at < t->nodes && level < t->levels);
    return t->ancestor[(size_t)at * t->levels + level];
}

zn_node zn_taxonomy_common(const zn_taxonomy *t, zn_node a, zn_node b)
{
    ZN_ASSERT(a < t->nodes && b < t->nodes);
    if (t->common != NULL)
        return t->common[(size_t)a * t->nodes + b];
    while (a != b) { /* a parent has a larger number */
        if (a < b)
            a = t->node[a].parent;
        else
            b = t->node[b].parent;
    }
    return a;
}

zn_node zn_taxonomy_parent(const zn_taxonomy *t, zn_node at)
{
    return t->node[at].parent;
}

uint32_t zn_taxonomy_level(const zn_taxonomy *t, zn_node at)
{
    return t->node[at].level;
}

uint32_t zn_taxonomy_leaves_below(const zn_taxonomy *t, zn_node at)
{
    return t->node[at].leaves_below;
}

zn_span zn_taxonomy_label(const zn_taxonomy *t, zn_node at)
{
    return t->node[at].label;
}

double zn_taxonomy_loss(const zn_taxonomy *t, zn_node at)
{
    return t->node[at].loss;
}

size_t zn_taxonomy_memory(const zn_taxonomy *t)
{
    size_t nodes = t->nodes;
    size_t bytes = sizeof *t + t->byte_count + nodes * (sizeof *t->node + t->levels * 2);
    if (t->common != NULL)
        bytes += nodes * nodes * sizeof *t->common;
    return t->bucket == NULL ? bytes : bytes + (t->bucket_mask + 1) * sizeof *t->bucket;
}
