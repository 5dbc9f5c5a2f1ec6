/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Membership of probes in one shard: which probes are expected, joining, present, gone, refused,
 * abandoned, or replaced by a new session of the same probe.
 *
 * A probe sends its messages under a session, a number of 64 bits. A probe whose clock was set back
 * continues under a new session, whose first message says that it replaces the previous session.
 * Decisions wait for the sessions that are present.
 */
#ifndef ZN_COUNT_MEMBERSHIP_H
#define ZN_COUNT_MEMBERSHIP_H

#include "count/vote_message.h"
#include "util/text.h"

typedef enum zn_session_state {
    ZN_SESSION_JOINING, /* its watermark is too far behind the decided time */
    ZN_SESSION_PRESENT, /* decisions wait for it until its watermark is ZN_VOTE_WATERMARK_END */
    ZN_SESSION_GONE     /* decisions continue without it */
} zn_session_state;

typedef struct zn_session {
    uint64_t id, sequence; /* sequence: number of the last message that was taken */
    int64_t watermark_ns;  /* largest watermark so far */
    int64_t gone_epoch;    /* marks of clients up to this epoch may be missing while it is away */
    zn_session_state state;
    bool continued; /* true if the last message said that a new session replaces this one */
} zn_session;

/* The ids that were added last. The oldest id makes space for a new one. */
typedef struct zn_session_set {
    uint64_t *id; /* ring of max ids */
    uint32_t first, n, max;
} zn_session_set;

typedef struct zn_membership {
    zn_session *session; /* max sessions */
    size_t n;
    uint32_t max;
    uint64_t joined;          /* sessions that ever joined */
    uint64_t replacing;       /* of these, sessions that replace a previous session */
    bool begun;               /* true since none of the expected probes was missing */
    zn_session_set refused;   /* sessions of other rules: no message of them counts */
    zn_session_set abandoned; /* sessions with a gap: no message behind the gap counts */
} zn_membership;

/* Standing of a message before a shard takes it. */
typedef enum zn_standing {
    ZN_STANDING_NEXT,           /* the session's next message, or the first one of a session */
    ZN_STANDING_DUPLICATE,      /* it was taken before */
    ZN_STANDING_GAP,            /* messages between the last one and this one are missing */
    ZN_STANDING_OTHER_SETTINGS, /* made with another z, window or rotation */
    ZN_STANDING_OTHER_RULES,    /* its probe counts users by other rules, or has another key */
    ZN_STANDING_REFUSED,        /* a message of its session had other rules before */
    ZN_STANDING_ABANDONED       /* a message of its session is missing for good */
} zn_standing;

/* ---- sets of sessions ---- */

bool zn_session_set_has(const zn_session_set *set, uint64_t id);
/* Adds a session; an id that is in the set keeps its place. */
void zn_session_set_add(zn_session_set *set, uint64_t id);

/* ---- sessions ---- */

/* Makes space for `max` sessions; *m is zero. Returns 0, or -ZN_ERR_CAPACITY with *err filled;
 * zn_membership_fini accepts what is left. */
int zn_membership_init(zn_membership *m, uint32_t max, zn_error *err);
void zn_membership_fini(zn_membership *m);
/* Returns the session, NULL if it is unknown. */
zn_session *zn_membership_find(const zn_membership *m, uint64_t id);
/*
 * Enters a session with its first message. If there is no space, a session is forgotten that has
 * ended or else has been away longest, and *lost_epoch is its gone_epoch. Returns NULL if decisions
 * wait for all sessions.
 */
zn_session *zn_membership_enter(zn_membership *m, const zn_vote_header *h, int64_t *lost_epoch);
/*
 * Notes a message that was taken. The session becomes present when it is at most max_lag_ns behind
 * the decided time. Until it has caught up, its marks of clients up to `epoch` may be missing.
 * Returns true if its gone_epoch was set.
 */
bool zn_membership_advance(zn_session *session, const zn_vote_header *h, int64_t decided_ns,
                           int64_t max_lag_ns, int64_t epoch);
/* Marks a session as gone, with marks of clients missing up to `epoch`. Returns true if it was not
 * gone before and had not ended. */
bool zn_membership_leave(zn_session *session, int64_t epoch);

/* ---- what follows for the shard ---- */

/* Returns true if decisions wait for the session. */
bool zn_session_is_awaited(const zn_session *session);
/* Returns the time by which a session is behind the decided time, in ns; 0 if decisions wait for
 * it, or if everything is decided. */
int64_t zn_session_lag(const zn_session *session, int64_t decided_ns);
/* Returns the smallest watermark of the sessions that are present, at least decided_ns. */
int64_t zn_membership_watermark(const zn_membership *m, int64_t decided_ns);
/* Returns the latest watermark of the other present sessions, or now_ns if that is later and not 0;
 * -1 if there is no such time. */
int64_t zn_membership_latest(const zn_membership *m, uint64_t except, int64_t now_ns);
/* Returns the last epoch of which marks may be missing until sessions return. */
int64_t zn_membership_gone_epoch(const zn_membership *m);
/* Returns the number of expected probes that have not joined. A session that replaces a previous
 * one is no further probe. */
uint64_t zn_membership_missing(const zn_membership *m, uint32_t expected);
/* Returns true since the first call at which none of the expected probes was missing. */
bool zn_membership_begin(zn_membership *m, uint32_t expected);
/* Counts sessions as probes of their own until none of the expected probes is missing. */
void zn_membership_expect_no_more(zn_membership *m, uint32_t expected);
/* Returns the standing of a message by its session and sequence alone. last: sequence of the
 * session's last message, or 0 for an unknown session. */
zn_standing zn_membership_standing(const zn_membership *m, const zn_vote_header *h, uint64_t last);

/* ---- codec ---- */

/* Appends the sessions, counts and abandoned sessions; refused ones are refused again. */
void zn_membership_put(const zn_membership *m, zn_text *out);
/* Reads what zn_membership_put wrote into an empty membership; false if it is damaged. */
bool zn_membership_read(zn_membership *m, zn_cursor *c);

#endif
