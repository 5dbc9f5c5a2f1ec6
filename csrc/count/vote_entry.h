/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Entries of a log of votes: the steps that change a shard, in the form that a journal or a
 * checkpoint keeps. Equal entries on an equal snapshot give equal decisions.
 *
 * A message that counts is an entry as it is. The other entries begin with four letters:
 *
 *     ZNVU  message      a message of which the marks of clients count alone
 *     ZNVG  u64 session  decisions no longer wait for the session
 *     ZNVP               all expected probes are present, whatever sessions theirs replace
 */
#ifndef ZN_COUNT_VOTE_ENTRY_H
#define ZN_COUNT_VOTE_ENTRY_H

#include "util/text.h"

typedef enum zn_vote_entry_kind {
    ZN_ENTRY_COUNTED,
    ZN_ENTRY_UNCOUNTED,
    ZN_ENTRY_GONE,
    ZN_ENTRY_ALL_PRESENT,
    ZN_ENTRY_KINDS
} zn_vote_entry_kind;

typedef struct zn_vote_entry {
    zn_vote_entry_kind kind;
    zn_span message;  /* of COUNTED and UNCOUNTED; borrowed */
    uint64_t session; /* of GONE */
} zn_vote_entry;

/* Appends an entry. */
void zn_vote_entry_write(zn_text *out, const zn_vote_entry *entry);
/* Reads an entry, whose message is not checked. Returns 0, or -ZN_ERR_FORMAT with *err filled. */
int zn_vote_entry_read(zn_vote_entry *out, zn_span bytes, zn_error *err);

#endif
