/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Clocks of a counter's probes: which sessions are silent, which stay behind the decided time, and
 * which have a slow clock. The caller passes every time, in ns of one clock that only grows. The
 * findings become entries of a log (count/vote_entry.h), because decisions depend on no clock.
 *
 * A watch looks at all shards of a counter. It knows the sessions that sent a message lately, and
 * the sessions that decisions wait for.
 */
#ifndef ZN_COUNT_PROBE_WATCH_H
#define ZN_COUNT_PROBE_WATCH_H

#include "count/vote_shard.h"

typedef struct zn_watched {
    uint64_t id;
    int64_t heard_ns;      /* time of the last message */
    int64_t late_since_ns; /* first look at which it was late; -1: it is not late */
    int64_t slow_since_ns; /* first look at which its clock was slow; -1: it is not slow */
    int64_t lag_ns;        /* largest lag in the last look; 0: none */
    int64_t watermark_ns;  /* smallest watermark in a shard that waits for it; -1: none waits */
    bool known;            /* true if a shard knew it at the last look */
    bool held;             /* true if messages of it wait outside of the shards */
    bool speaks;           /* sent a message although the newest session joined long ago */
    bool away;             /* silent, and kept only because it speaks */
} zn_watched;

typedef struct zn_probe_watch {
    zn_watched *probe; /* sorted by id */
    size_t n, cap;
    int64_t timeout_ns; /* silence after which a session is gone */
    int64_t joined_ns;  /* time at which the newest session joined */
} zn_probe_watch;

void zn_probe_watch_init(zn_probe_watch *w, int64_t timeout_ns, int64_t now_ns);
void zn_probe_watch_fini(zn_probe_watch *w);
/* Returns the session, NULL if the watch does not know it. */
zn_watched *zn_probe_watch_find(const zn_probe_watch *w, uint64_t id);
/* Notes a message of a session. joins: true for the first message of a session. Returns false when
 * memory is out. */
bool zn_probe_watch_hear(zn_probe_watch *w, uint64_t id, int64_t now_ns, bool joins);
/* Removes a session; false if the watch does not know it, or it is away. */
bool zn_probe_watch_remove(zn_probe_watch *w, uint64_t id);

/*
 * Looks at the shards of the counter. Watches the sessions that decisions wait for, and the `held`
 * sessions, from now on. Returns false when memory is out.
 */
bool zn_probe_watch_look(zn_probe_watch *w, const zn_vote_shard *const *shard, size_t shards,
                         const uint64_t *held, size_t n, int64_t now_ns);
/* Removes the sessions that have been silent for the timeout. Of these, writes the sessions that
 * decisions waited for at the last look, or that were held, to `gone`, which has space for w->n
 * ids. Returns their number. */
size_t zn_probe_watch_take_silent(zn_probe_watch *w, int64_t now_ns, uint64_t *gone);
/* Notes the sessions whose watermark is before limit_ns, a time of the wall clock. If all are, they
 * read captures, and none is noted. */
void zn_probe_watch_note_slow(zn_probe_watch *w, int64_t limit_ns, int64_t now_ns);
/* Notes the sessions that send and are behind the decided time. */
void zn_probe_watch_note_late(zn_probe_watch *w, int64_t now_ns);
/* Forgets the sessions that no shard knew at the last look, and that were not held. */
void zn_probe_watch_forget_unknown(zn_probe_watch *w);
/* Returns true if at least `expected` sessions are probes of their own: they send long after the
 * newest session joined, or they ended in all shards and no new session follows. */
bool zn_probe_watch_all_present(const zn_probe_watch *w, const zn_vote_shard *const *shard,
                                size_t shards, uint32_t expected);

#endif
