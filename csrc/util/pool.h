/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A few threads that share an engine's work: the one that calls, and those that the pool has made.
 *
 * A job is a number of tasks that may run at the same time, in any order, on any thread. Whoever
 * needs a job's end takes part in the work until then. Threads with nothing to do look for some
 * microseconds before they sleep, because the next task is mostly that near, but not where there
 * are fewer processors than threads.
 *
 * Signals go to the threads of the program, never to the pool's, but for that of a page that one of
 * them misses (SIGBUS). One thread at a time calls; a task may start jobs too, and wait for those
 * whose tasks wait for nothing.
 */
#ifndef ZN_UTIL_POOL_H
#define ZN_UTIL_POOL_H

#include "util/base.h"

#include <stdatomic.h>

#define ZN_POOL_MAX 64 /* threads, with the one that calls */

typedef struct zn_pool zn_pool;

typedef struct zn_job {
    void (*run)(void *of, uint32_t task); /* 0 <= task < tasks */
    void *of;
    /* The pool's. */
    uint32_t tasks, claimed;
    _Atomic uint32_t left; /* tasks that did not end yet */
    struct zn_job *next;
} zn_job;

/* A pool for `threads` (1 .. ZN_POOL_MAX), of which one is the caller's. 0, or a negative zn_err
 * with *err filled. */
int zn_pool_open(zn_pool **out, unsigned threads, zn_error *err);
/* Every job has ended; NULL is fine. In a process that was forked meanwhile, where the threads are
 * not, nothing is freed. */
void zn_pool_close(zn_pool *p);
/* Makes the threads, unless it was done: with the rights that the caller has now. Without them the
 * caller does all the work. 0, or -ZN_ERR_CAPACITY. */
int zn_pool_begin(zn_pool *p, zn_error *err);

/* Puts the job's tasks after those of others, or with `first` before them; *job stays where it is
 * until it has ended. A task may start its own job again. */
void zn_pool_start(zn_pool *p, zn_job *job, uint32_t tasks, bool first);
/* Works, on whatever waits to be done, until the job has ended. */
void zn_pool_finish(zn_pool *p, zn_job *job);

static inline bool zn_job_ended(const zn_job *job)
{
    return atomic_load_explicit(&job->left, memory_order_acquire) == 0;
}

/*
 * For what one task does, as against a whole job: `n = zn_pool_ended(p)`, look whether it is done,
 * and if not zn_pool_help(p, n), which runs a task that waits, or waits until one has ended since.
 */
uint32_t zn_pool_ended(const zn_pool *p);
void zn_pool_help(zn_pool *p, uint32_t ended);

#endif
