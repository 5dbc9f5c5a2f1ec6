/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/pool.h"

#include "util/arena.h"

#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#define SPINS 6000 /* how often a thread looks at a counter before it sleeps: for some 80 us */

struct zn_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, end; /* signalled when a task waits; when one has ended */
    zn_job *first, *last;     /* jobs whose tasks are not all taken */
    zn_job *aside;            /* job that only the pool's threads take, or NULL */
    _Atomic uint32_t waiting; /* tasks that no thread has taken yet */
    _Atomic uint32_t ended;   /* tasks so far; wraps */
    _Atomic unsigned waiters; /* threads that sleep until a task has ended */
    unsigned sleepers;        /* threads of the pool that sleep until a task waits */
    unsigned spins;
    bool closing;
    unsigned wanted, made;
    pid_t process; /* the process that made the threads */
    pthread_t threads[ZN_POOL_MAX];
};

static inline void pause_briefly(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Takes the job that is only for the pool's threads, or NULL. The caller holds the lock. */
static zn_job *take_aside(zn_pool *p)
{
    zn_job *job = p->aside;
    if (job == NULL)
        return NULL;
    p->aside = NULL;
    atomic_fetch_sub(&p->waiting, 1);
    return job;
}

/* Takes a waiting task and returns its job, or NULL. The caller holds the lock. */
static zn_job *take(zn_pool *p, uint32_t *task)
{
    zn_job *job = p->first;
    if (job == NULL)
        return NULL;
    *task = job->claimed++;
    if (job->claimed == job->tasks)
        p->first = job->next;
    atomic_fetch_sub(&p->waiting, 1);
    return job;
}

static void run(zn_pool *p, zn_job *job, uint32_t task)
{
    job->run(job->of, task);
    atomic_fetch_sub_explicit(&job->left, 1, memory_order_release);
    atomic_fetch_add(&p->ended, 1); /* the job may be gone by now */
    if (atomic_load(&p->waiters) != 0) {
        (void)pthread_mutex_lock(&p->lock);
        (void)pthread_cond_broadcast(&p->end);
        (void)pthread_mutex_unlock(&p->lock);
    }
}

static void look_for_tasks(const zn_pool *p)
{
    for (unsigned i = 0; i < p->spins && atomic_load(&p->waiting) == 0; i++)
        pause_briefly();
}

static void *work(void *of)
{
    zn_pool *p = of;
    (void)pthread_mutex_lock(&p->lock);
    while (!p->closing || p->aside != NULL) {
        uint32_t task = 0;
        zn_job *job = take(p, &task);
        if (job == NULL)
            job = take_aside(p);
        if (job == NULL) {
            (void)pthread_mutex_unlock(&p->lock);
            look_for_tasks(p);
            (void)pthread_mutex_lock(&p->lock);
            p->sleepers++;
            while (p->first == NULL && p->aside == NULL && !p->closing)
                (void)pthread_cond_wait(&p->work, &p->lock);
            p->sleepers--;
            continue;
        }
        (void)pthread_mutex_unlock(&p->lock);
        run(p, job, task);
        (void)pthread_mutex_lock(&p->lock);
    }
    (void)pthread_mutex_unlock(&p->lock);
    return NULL;
}

/* Blocks all signals in the threads, as they are for the program's own. Not SIGBUS, though: it
 * comes to the thread that touches a missing page, and would end the process if that blocked it
 * (capture/sigbus_guard.h). */
int zn_pool_begin(zn_pool *p, zn_error *err)
{
    sigset_t all, before;
    int failed = 0;
    if (p->made == p->wanted)
        return 0;
    p->process = getpid();
    (void)sigfillset(&all);
    (void)sigdelset(&all, SIGBUS);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (failed == 0 && p->made < p->wanted) {
        failed = pthread_create(&p->threads[p->made], NULL, work, p);
        p->made += failed == 0;
    }
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed == 0)
        return 0;
    return zn_fail(err, ZN_ERR_CAPACITY, failed, "the system gave no thread for a worker: %s",
                   strerror(failed));
}

int zn_pool_open(zn_pool **out, unsigned threads, unsigned others, zn_error *err)
{
    long processors = sysconf(_SC_NPROCESSORS_ONLN);
    zn_pool *p;
    *out = NULL;
    if (threads < 1 || threads > ZN_POOL_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "workers must be from 1 to %d", ZN_POOL_MAX);
    p = zn_heap_alloc(sizeof *p);
    if (p == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for workers");
    (void)pthread_mutex_init(&p->lock, NULL);
    (void)pthread_cond_init(&p->work, NULL);
    (void)pthread_cond_init(&p->end, NULL);
    p->spins = processors >= (long)threads + (long)others ? SPINS : 0;
    p->wanted = threads - 1;
    *out = p;
    return 0;
}

void zn_pool_close(zn_pool *p)
{
    if (p == NULL || (p->made != 0 && p->process != getpid()))
        return;
    (void)pthread_mutex_lock(&p->lock);
    p->closing = true;
    (void)pthread_cond_broadcast(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
    for (unsigned i = 0; i < p->made; i++)
        (void)pthread_join(p->threads[i], NULL);
    (void)pthread_cond_destroy(&p->end);
    (void)pthread_cond_destroy(&p->work);
    (void)pthread_mutex_destroy(&p->lock);
    zn_heap_free(p);
}

void zn_pool_start(zn_pool *p, zn_job *job, uint32_t tasks, bool first)
{
    ZN_ASSERT(tasks != 0);
    atomic_fetch_add_explicit(&job->left, tasks, memory_order_relaxed);
    (void)pthread_mutex_lock(&p->lock);
    job->tasks = tasks;
    job->claimed = 0;
    job->next = first ? p->first : NULL;
    if (p->first == NULL)
        p->first = p->last = job;
    else if (first)
        p->first = job;
    else
        p->last = p->last->next = job;
    atomic_fetch_add(&p->waiting, tasks);
    if (p->sleepers != 0)
        (void)pthread_cond_broadcast(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
}

void zn_pool_start_aside(zn_pool *p, zn_job *job)
{
    atomic_fetch_add_explicit(&job->left, 1, memory_order_relaxed);
    (void)pthread_mutex_lock(&p->lock);
    ZN_ASSERT(p->aside == NULL);
    p->aside = job;
    atomic_fetch_add(&p->waiting, 1);
    if (p->sleepers != 0)
        (void)pthread_cond_signal(&p->work);
    (void)pthread_mutex_unlock(&p->lock);
}

uint32_t zn_pool_ended(const zn_pool *p)
{
    return atomic_load(&p->ended);
}

/* Waits until a task has ended since `ended`. */
static void await(zn_pool *p, uint32_t ended)
{
    for (unsigned i = 0; i < p->spins; i++) {
        if (atomic_load(&p->ended) != ended)
            return;
        pause_briefly();
    }
    (void)pthread_mutex_lock(&p->lock);
    atomic_fetch_add(&p->waiters, 1);
    while (atomic_load(&p->ended) == ended)
        (void)pthread_cond_wait(&p->end, &p->lock);
    atomic_fetch_sub(&p->waiters, 1);
    (void)pthread_mutex_unlock(&p->lock);
}

void zn_pool_help(zn_pool *p, uint32_t ended)
{
    uint32_t task;
    zn_job *job;
    (void)pthread_mutex_lock(&p->lock);
    job = take(p, &task);
    (void)pthread_mutex_unlock(&p->lock);
    if (job != NULL)
        run(p, job, task);
    else
        await(p, ended);
}

void zn_pool_finish(zn_pool *p, zn_job *job)
{
    while (true) {
        uint32_t ended = zn_pool_ended(p);
        if (zn_job_ended(job))
            return;
        zn_pool_help(p, ended);
    }
}
