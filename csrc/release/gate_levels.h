/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Generalization in the gate of a standalone engine: votes that fail at the z-table go on to the
 * labels of their name or address (anonymity/levels.h).
 */
#ifndef ZN_RELEASE_GATE_LEVELS_H
#define ZN_RELEASE_GATE_LEVELS_H

#include "anonymity/levels.h"
#include "release/gate.h"
#include "release/labels.h"

struct zn_gate_levels {
    zn_labels labels;
    zn_levels *levels;
    uint8_t *flags;               /* ZN_EXPOSURE_ bits of the observations of a batch */
    zn_level_decision *decisions; /* on the observations of a batch */
    size_t cap;                   /* of the two arrays */
    size_t at;                    /* first observation that is being decided */
};

typedef struct zn_gate_levels_config {
    zn_labels_config labels;
    uint32_t z_max;      /* largest z of the run */
    uint32_t max_tuples; /* of the z-table; each level has a quarter of the caps */
    uint32_t max_attributes;
} zn_gate_levels_config;

/* Opens the levels of a gate that is open and has no votes, and sets g->levels.
 * zn_gate_levels_close follows in any case. Returns 0, or a negative zn_err with *err filled. */
int zn_gate_levels_open(zn_gate *g, const zn_gate_levels_config *config, zn_error *err);
void zn_gate_levels_close(zn_gate *g);
/* Writes the domain and the category above the name of a vote; a label that the name lacks is
 * {0, 0}. */
void zn_gate_levels_of_name(const zn_gate *g, const zn_vote *v, zn_id *labels);
/* Decides the observations of the batch from `at` to `end`, in g->levels->decisions. */
void zn_gate_levels_decide(zn_gate *g, size_t at, size_t end);
/* Publishes the label of a vote's name or server address. level: from the decision, above 0. */
void zn_gate_levels_publish(zn_gate *g, const zn_vote *v, uint32_t level);
/* Notes that a record shows a name or address, which at least z users share, without a vote. */
void zn_gate_levels_show(const zn_gate *g, zn_vote_kind kind, zn_span value);
/* Returns the bytes of memory in use. */
size_t zn_gate_levels_memory(const zn_gate *g);

#endif
