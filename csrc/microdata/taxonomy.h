/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The generalization hierarchy of one column: a tree whose leaves are the column's values, all at
 * the same depth. Level 0 has the leaves, the last level has the root alone, and each node has one
 * parent, a level above it.
 *
 * Nodes are numbered by levels: the leaves first, by the bytes of their values (or in the order of
 * the lines they came from, for numbers), the root last. So a smaller number is the same everywhere
 * whatever the order of the lines.
 *
 * A taxonomy does not change once it is open: threads may share it.
 */
#ifndef ZN_MICRODATA_TAXONOMY_H
#define ZN_MICRODATA_TAXONOMY_H

#include "util/cursor.h"

typedef uint16_t zn_node;

#define ZN_TAXONOMY_NODES_MAX 65535u
#define ZN_TAXONOMY_LEVELS_MAX 64u
#define ZN_NODE_NONE ((zn_node)0xffff)

typedef struct zn_taxonomy zn_taxonomy;

typedef struct zn_taxonomy_config {
    const zn_span
        *labels;          /* lines x levels, line by line, each from its leaf to the root; copied */
    size_t lines, levels; /* at least 1 each */
    bool in_order;        /* leaves keep the order of the lines */
    /*
     * With width > 0 values are numbers: the leaf of v is line floor(v / width) - first, and the
     * outermost lines take all values beyond them. The last line, which has no value, is the line
     * of a missing value.
     */
    double width;
    int64_t first;
    bool whole; /* a number that is not whole has no leaf */
} zn_taxonomy_config;

/* Oddities of a hierarchy that are not errors. */
typedef struct zn_taxonomy_notes {
    uint32_t only_children; /* nodes between leaf and root with one child */
    size_t line;            /* of the first of them, from 1 */
} zn_taxonomy_notes;

/*
 * Returns 0; -ZN_ERR_FORMAT, with the line (from 1) in the message, for a value that comes twice, a
 * node with two parents, or a last level of more than one node; -ZN_ERR_CAPACITY for too many nodes
 * or levels, or when memory is out. *notes may be NULL. No message holds a value.
 */
int zn_taxonomy_open(zn_taxonomy **out, const zn_taxonomy_config *config, zn_taxonomy_notes *notes,
                     zn_error *err);
/* Frees; NULL is fine. */
void zn_taxonomy_close(zn_taxonomy *t);

uint32_t zn_taxonomy_leaves(const zn_taxonomy *t);
uint32_t zn_taxonomy_nodes(const zn_taxonomy *t);
uint32_t zn_taxonomy_levels(const zn_taxonomy *t);

/* Returns the leaf of a value, which is empty if the value is missing; ZN_NODE_NONE if the value
 * has no leaf. */
zn_node zn_taxonomy_find(const zn_taxonomy *t, zn_span value);
/* The ancestor at `level`, from the node's own up; the node itself below that. */
zn_node zn_taxonomy_ancestor(const zn_taxonomy *t, zn_node node, uint32_t level);
/* The lowest node that is both or has both below it. */
zn_node zn_taxonomy_common(const zn_taxonomy *t, zn_node a, zn_node b);

zn_node zn_taxonomy_parent(const zn_taxonomy *t, zn_node node); /* the root's is itself */
uint32_t zn_taxonomy_level(const zn_taxonomy *t, zn_node node);
uint32_t zn_taxonomy_leaves_below(const zn_taxonomy *t, zn_node node); /* a leaf's: 1 */
/* The text of a node; empty for a missing value. */
zn_span zn_taxonomy_label(const zn_taxonomy *t, zn_node node);
/* Returns the loss if the node replaces a leaf (NCP): (leaves below - 1) / (leaves - 1), 0 to 1. */
double zn_taxonomy_loss(const zn_taxonomy *t, zn_node node);

/* Bytes of memory in use. */
size_t zn_taxonomy_memory(const zn_taxonomy *t);

#endif
