/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Marks of a z-table's attributes, for anonymity/levels. The mark of an attribute is the time of
 * its last publication, in slices of a seventh of the window. An attribute is marked from its
 * publication for a window and up to one slice more.
 *
 * A mark takes 4 bits of the attribute: the slice's number modulo 15, plus 1. The time of the
 * attribute's newest user gives the number back. When an attribute is touched, a mark older than 7
 * slices is deleted, so a mark is at most 7 slices older than the newest user. A publication needs
 * a user of its window, so a mark is at most 7 slices newer than the newest user. These are 15
 * slices.
 *
 * An attribute may be freed while its mark lasts. The owner of the marks then keeps the mark, and
 * gives it back when the attribute comes again.
 */
#ifndef ZN_ANONYMITY_ZTABLE_MARKS_H
#define ZN_ANONYMITY_ZTABLE_MARKS_H

#include "zanon/ztable.h"

#define ZN_MARK_SLICES 7 /* of a window */
#define ZN_SLICE_NONE INT64_MIN

/* Functions of the owner of the marks. Identities have the bits that the table stores. */
typedef struct zn_zmarks {
    void *of; /* first argument of the functions; NULL: the table has no marks */
    /* Keeps a mark. Returns false if there is no room. */
    bool (*keep)(void *of, zn_id attribute, int64_t slice);
    /* Returns the slice of a mark that was kept, or ZN_SLICE_NONE. */
    int64_t (*find)(void *of, zn_id attribute);
    /* Deletes all marks that are kept, because the clock is rebased. */
    void (*forget)(void *of);
} zn_zmarks;

/* An answer of zn_ztable_observe_marked is a zn_decision and these bits. */
enum {
    ZN_ANSWER_DECISION = 7,
    /* The attribute is published, and it was not marked. An attribute also counts as published, at
     * the clock, if a late observation is below z and z users share the attribute at the clock. */
    ZN_ANSWER_FIRST = 8,
    ZN_ANSWER_MARKED = 16,  /* the attribute is below z, and it is marked */
    ZN_ANSWER_REBASED = 32, /* the clock is rebased by this observation */
    ZN_ANSWER_LOST = 64,    /* a mark was lost, because it could not be kept */
    ZN_ANSWER_LATE = 128    /* late by the clock, or decided with early_z */
};

/* Returns the length of a slice in ns, for a window in ns. */
static inline int64_t zn_mark_slice_ns(int64_t window_ns)
{
    return (window_ns + ZN_MARK_SLICES - 1) / ZN_MARK_SLICES;
}

/* Turns marks on in a table without observations. *marks is copied. */
void zn_ztable_set_marks(zn_ztable *t, const zn_zmarks *marks);
/*
 * Stores n observations in their order as zn_ztable_observe_batch does, marks the attributes that
 * are published, and writes the answers. early_z: if above z, the observations are decided by it
 * and count as late.
 */
void zn_ztable_observe_marked(zn_ztable *t, const zn_observation *o, size_t n, uint32_t early_z,
                              uint8_t *answers);
/* Marks an attribute that has users, because it is published at t_ns without an observation.
 * Returns ZN_ANSWER_FIRST or 0. */
uint8_t zn_ztable_mark(zn_ztable *t, zn_id attribute, int64_t t_ns);

#endif
