/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Rows that wait for other rows to be released with: a buffer of coded rows, cut into windows, and
 * the groups of each window (microdata/groups.h). The owner of a row writes its values.
 *
 * Time comes from the rows. With a delay, no row is in the buffer `delay_ns` or more after its own
 * time: a window closes before a row comes whose time would make it so, rows that are in no group
 * then wait for the next window while they may, and a row that comes too late for its own bound is
 * dropped. A clock that was wrong is set back, as in util/clock.h. Without a delay a window closes
 * by its rows alone and nothing waits for the next.
 *
 * Each row gets one fate. Results depend on the rows and their order alone.
 */
#ifndef ZN_ROWS_WINDOW_H
#define ZN_ROWS_WINDOW_H

#include "microdata/adaptive_l.h"
#include "microdata/groups.h"
#include "rows/once.h"

/* Fates of a row: X(NAME, "text"). All but the first two are kinds of suppression. */
#define ZN_ROW_FATES(X)                                                                            \
    X(RELEASED, "released")                                                                        \
    X(WAITS, "waits for the next window")                                                          \
    X(USERS, "fewer than k users")                                                                 \
    X(DIVERSITY, "not diverse")                                                                    \
    X(UNKNOWN, "a value that its hierarchy lacks")                                                 \
    X(LATE, "came after its delay was over")                                                       \
    X(ONCE, "a further row of a user")                                                             \
    X(END, "left over at the end")                                                                 \
    X(NO_ROOM, "no room to wait")                                                                  \
    X(GATE, "not diverse with others that are written the same")

typedef enum zn_row_fate {
#define ZN_ROW_FATE_ENUM(name, text) ZN_FATE_##name,
    ZN_ROW_FATES(ZN_ROW_FATE_ENUM)
#undef ZN_ROW_FATE_ENUM
        ZN_FATE_COUNT
} zn_row_fate;

/* Why a window closes. */
typedef enum zn_window_end {
    ZN_WINDOW_FULL,   /* as many rows as it may have */
    ZN_WINDOW_TIME,   /* the oldest row's time is over */
    ZN_WINDOW_IDLE,   /* nothing has come for a while */
    ZN_WINDOW_MEMORY, /* its owner has no more memory */
    ZN_WINDOW_CLOCK,  /* the clock was wrong */
    ZN_WINDOW_LAST,   /* the stream has ended */
    ZN_WINDOW_ENDS
} zn_window_end;

typedef struct zn_window zn_window;

/* The decided rows of a window, or of a group that leaves a sliding buffer. */
typedef struct zn_window_view {
    size_t n;                /* rows in the buffer */
    const uint8_t *fate;     /* of each, a zn_row_fate */
    const uint32_t *group;   /* of each that is released */
    const uint64_t *payload; /* of each, as it came */
    const uint64_t *user_lo, *user_hi;
    const zn_groups *groups; /* gives the nodes of a group */
    int64_t release_ns;      /* the time of this release */
} zn_window_view;

/* Takes the rows that leave; returns 0, or a negative zn_err with *err filled. */
typedef int (*zn_window_leave)(void *owner, const zn_window_view *view, zn_error *err);

typedef struct zn_window_config {
    zn_groups_config groups; /* rows_max, repair and strict are set by the window */
    size_t rows;             /* new rows of a window, at least groups.rule.k */
    int64_t delay_ns;        /* 0: no bound */
    bool sliding;
    bool with_user;
    uint32_t adapt_l; /* repairs aim at rule.l to this, by the first sensitive column; 0: rule.l */
    zn_adaptive_way adapt_way;
    int64_t once_ns; /* a user's further rows within it are dropped; 0: none is */
    uint32_t once_users;
    zn_window_leave leave;
    void *owner;
} zn_window_config;

typedef struct zn_window_row {
    int64_t t_ns;
    zn_id user; /* keyed hash; not read without users */
    const zn_node *quasi;
    const uint64_t *sensitive; /* keyed hashes */
    uint64_t payload;          /* its owner's */
} zn_window_row;

/* Buckets of delays: 16 for each power of two nanoseconds. */
#define ZN_DELAY_BUCKETS 1024
#define ZN_WINDOW_L_MAX 256

/* Statistics of all released rows. Groups are groups of microdata/groups.h. */
typedef struct zn_window_stats {
    uint64_t rows;
    uint64_t fates[ZN_FATE_COUNT]; /* rows; WAITS: how often one waited */
    uint64_t windows[ZN_WINDOW_ENDS];
    uint64_t clock_jumps;
    uint64_t groups, swaps, merges;
    uint64_t users_min;                 /* smallest number of users of a group; 0: no group */
    double loss[ZN_GROUPS_COLUMNS_MAX]; /* sums over rows */
    uint64_t distinct_min[ZN_GROUPS_COLUMNS_MAX], distinct_sum[ZN_GROUPS_COLUMNS_MAX];
    double entropy_min[ZN_GROUPS_COLUMNS_MAX], entropy_sum[ZN_GROUPS_COLUMNS_MAX]; /* bits */
    double share_max[ZN_GROUPS_COLUMNS_MAX];
    double delay_sum; /* ns */
    int64_t delay_max;
    uint64_t delays[ZN_DELAY_BUCKETS];
    uint64_t l_windows[ZN_WINDOW_L_MAX]; /* at which l repairs aimed */
} zn_window_stats;

/* Returns 0; -ZN_ERR_CONFIG for numbers that do not go together, or -ZN_ERR_CAPACITY; *out is NULL
 * then. */
int zn_window_open(zn_window **out, const zn_window_config *config, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_window_close(zn_window *w);

/*
 * Takes a row; windows that it closes leave before. Returns 0, or what `leave` returned: the row
 * is not in the buffer then. *fate is WAITS where the row is in the buffer now, or was in it and
 * has left, else the reason for which it was dropped, which is counted.
 */
int zn_window_take(zn_window *w, const zn_window_row *row, zn_row_fate *fate, zn_error *err);
/* Counts a row that its owner drops for `fate`; its time counts. As zn_window_take. */
int zn_window_drop(zn_window *w, int64_t t_ns, zn_row_fate fate, zn_error *err);
/* Moves the stream's time on to t_ns without a row. As zn_window_take. */
int zn_window_advance(zn_window *w, int64_t t_ns, zn_error *err);
/* Closes the window now, for IDLE, MEMORY or LAST; no rows: nothing happens. As zn_window_take. */
int zn_window_end_now(zn_window *w, zn_window_end why, zn_error *err);

/* Counts n rows that were released as stopped by the gate. */
void zn_window_count_stopped(zn_window *w, uint64_t n);

/* The owner's values of the rows in the buffer, in order, to be read and changed. */
uint64_t *zn_window_payloads(zn_window *w, size_t *n);
/* When the oldest row's time is over: a row of that time closes the window. INT64_MAX: never. */
int64_t zn_window_deadline(const zn_window *w);

const zn_window_stats *zn_window_get_stats(const zn_window *w);
/* The delay in ns that the share `p` of the rows released does not exceed, to 7 %. */
int64_t zn_window_delay_quantile(const zn_window *w, double p);
size_t zn_window_memory(const zn_window *w);

/* A fate's name, as in "ZN_FATE_name", and its text. */
const char *zn_row_fate_name(zn_row_fate fate);
const char *zn_row_fate_text(zn_row_fate fate);

/*
 * Appends all that the window holds, to go on from there: rows, clock, counters, users of `once`.
 * It is as secret as the rows. zn_window_load takes it into a window that was opened with the same
 * settings and has taken nothing; -ZN_ERR_FORMAT for other bytes.
 */
void zn_window_save(const zn_window *w, zn_text *out);
int zn_window_load(zn_window *w, zn_span saved, zn_error *err);

#endif
