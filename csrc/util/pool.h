/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Threads that share an engine's work: the caller's thread, and the threads that the pool makes.
 *
 * A job is a number of tasks, which may run at the same time, in any order, on any thread. A thread
 * that needs the end of a job runs waiting tasks until then. Idle threads look for tasks for some
 * microseconds before they sleep, because the next task mostly comes that soon; they sleep at once
 * if the system has fewer processors than busy threads.
 *
 * The pool's threads take no signals but SIGBUS, which comes to the thread that misses a page. One
 * thread at a time calls these functions. Tasks may call them too: they may start jobs, and wait
 * for jobs whose tasks wait for nothing.
 */
#ifndef ZN_UTIL_POOL_H
#define ZN_UTIL_POOL_H

#include "util/base.h"

#include <stdatomic.h>

#define ZN_POOL_MAX 64 /* threads, the caller's among them */

typedef struct zn_pool zn_pool;

typedef struct zn_job {
    void (*run)(void *of, uint32_t task); /* 0 <= task < tasks */
    void *of;
    /* The pool's own members, zero at first. */
    uint32_t tasks, claimed;
    _Atomic uint32_t left; /* tasks that have not ended yet */
    struct zn_job *next;
} zn_job;

/* Opens a pool for `threads` (1 .. ZN_POOL_MAX) threads, the caller's among them. others: threads
 * of the program that are busy beside it. Returns 0, or a negative zn_err with *err filled. */
int zn_pool_open(zn_pool **out, unsigned threads, unsigned others, zn_error *err);
/* Ends the threads and frees the pool, all of whose jobs have ended. NULL is fine. In a child
 * process, which the threads were not forked into, nothing is freed. */
void zn_pool_close(zn_pool *p);
/* Makes the threads, with the rights that the caller has now, unless they exist. If this function
 * was not called, or failed, the caller's thread runs all tasks. Returns 0, or -ZN_ERR_CAPACITY
 * with *err filled. */
int zn_pool_begin(zn_pool *p, zn_error *err);

/* Queues the tasks (>= 1) of a job behind the tasks of other jobs, or with `first` in front of
 * them. *job must not move until the job has ended. A task may start its own job again. */
void zn_pool_start(zn_pool *p, zn_job *job, uint32_t tasks, bool first);
/* Queues a job of one task, which may take long, for the threads that the pool made: the caller's
 * does not run it, also where it waits, and they take all other tasks first. One such job at a
 * time; needs zn_pool_begin. */
void zn_pool_start_aside(zn_pool *p, zn_job *job);
/* Runs waiting tasks, of any job, until this job has ended. */
void zn_pool_finish(zn_pool *p, zn_job *job);

static inline bool zn_job_ended(const zn_job *job)
{
    return atomic_load_explicit(&job->left, memory_order_acquire) == 0;
}

/*
 * Waiting for the result of one task: call `n = zn_pool_ended(p)`, look for the result, and if it
 * is not there zn_pool_help(p, n), which runs a waiting task, or waits until a task has ended since
 * n was read.
 */
uint32_t zn_pool_ended(const zn_pool *p);
void zn_pool_help(zn_pool *p, uint32_t ended);

#endif
