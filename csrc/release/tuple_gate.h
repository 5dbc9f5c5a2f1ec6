/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Gate of whole rows, which counts each class again from the bytes that will be written, and
 * decides which rows may leave. If the grouping of the rows was wrong, rows are lost, but no user
 * is exposed.
 *
 * A class has the rows whose written quasi-identifiers are equal. The gate knows values by keyed
 * hashes of 128 bits. With a largest distance (t), distances are measured to all rows that will be
 * written: classes are dropped until every class that is left is close enough.
 */
#ifndef ZN_RELEASE_TUPLE_GATE_H
#define ZN_RELEASE_TUPLE_GATE_H

#include "microdata/diversity.h"
#include "util/cursor.h"

#define ZN_TUPLE_SENSITIVE_MAX 16u

typedef struct zn_tuple_gate zn_tuple_gate;

/* Returns 0, or a negative zn_err with *err filled and *out NULL. */
int zn_tuple_gate_open(zn_tuple_gate **out, const zn_class_rule *rule, size_t sensitive_count,
                       zn_error *err);
/* Wipes and frees a gate; NULL is fine. */
void zn_tuple_gate_close(zn_tuple_gate *g);

/* The identity of a value as it is written. p NULL: a missing value. */
zn_id zn_tuple_gate_value(const zn_tuple_gate *g, zn_span written);
/* Returns the identity of a user. Equal bytes have equal identities. */
zn_id zn_tuple_gate_user(const zn_tuple_gate *g, zn_span user);

/*
 * Adds a row that would be written: the identities of its quasi-identifiers (or of one span that
 * covers them all), of its sensitive values, and of its user; NULL: a user of its own. Returns 0 or
 * -ZN_ERR_CAPACITY.
 */
int zn_tuple_gate_add(zn_tuple_gate *g, const zn_id *quasi, size_t quasi_count,
                      const zn_id *sensitive, const zn_id *user, zn_error *err);

/*
 * Decides the rows added since the last call and forgets them: faults[i], for as many as were
 * added, is ZN_CLASS_GOOD for a row that may be written. Returns 0 or -ZN_ERR_CAPACITY; then none
 * may.
 */
int zn_tuple_gate_decide(zn_tuple_gate *g, uint8_t *faults, zn_error *err);

size_t zn_tuple_gate_memory(const zn_tuple_gate *g);

#endif
