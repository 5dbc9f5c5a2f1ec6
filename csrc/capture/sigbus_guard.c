/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The handler runs on the thread that touched the page. It only makes system calls and reads and
 * writes atomics.
 */
#include "capture/sigbus_guard.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

static struct guard {
    _Atomic bool taken;
    _Atomic uintptr_t start, end; /* end 0: nothing is guarded */
    _Atomic bool hit;
} guards[ZN_MAP_GUARDS];

static struct sigaction before;
static bool installed;
static uintptr_t page_bytes;

/* Maps zeros from the page on, up to the end of the range: all of that would be missing. */
static bool put_zeros(struct guard *g, uintptr_t address, uintptr_t end)
{
    uintptr_t page = address & ~(page_bytes - 1);
    atomic_store(&g->hit, true);
    return mmap((void *)page, end - page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1,
                0) != MAP_FAILED;
}

static bool put_zeros_at(uintptr_t address)
{
    for (size_t i = 0; i < ZN_MAP_GUARDS; i++) {
        struct guard *g = &guards[i];
        uintptr_t start = atomic_load(&g->start), end = atomic_load(&g->end);
        /* If the start is equal before and after the end is read, start and end belong to one
         * range. */
        if (address >= start && address < end && atomic_load(&g->start) == start)
            return put_zeros(g, address, end);
    }
    return false;
}

/* Acts as if there were no handler here. */
static void pass_on(int number, siginfo_t *info, void *context)
{
    bool sent = info->si_code <= 0; /* by a program, not for a missing page */
    if ((before.sa_flags & SA_SIGINFO) != 0)
        before.sa_sigaction(number, info, context);
    else if (before.sa_handler != SIG_DFL && before.sa_handler != SIG_IGN)
        before.sa_handler(number);
    else if (!sent || before.sa_handler == SIG_DFL) {
        (void)signal(SIGBUS, SIG_DFL); /* the page is touched again, which ends the process */
        if (sent)
            (void)raise(SIGBUS);
    }
}

static void on_missing_page(int number, siginfo_t *info, void *context)
{
    int saved = errno;
    bool filled = info->si_code > 0 && put_zeros_at((uintptr_t)info->si_addr);
    errno = saved;
    if (!filled)
        pass_on(number, info, context);
}

static void install(void)
{
    struct sigaction ours = {.sa_sigaction = on_missing_page, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    (void)sigemptyset(&ours.sa_mask);
    page_bytes = (uintptr_t)sysconf(_SC_PAGESIZE);
    installed = sigaction(SIGBUS, NULL, &before) == 0 && sigaction(SIGBUS, &ours, NULL) == 0;
}

static bool is_installed(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct sigaction now;
    return pthread_once(&once, install) == 0 && installed && sigaction(SIGBUS, NULL, &now) == 0 &&
           (now.sa_flags & SA_SIGINFO) != 0 && now.sa_sigaction == on_missing_page;
}

/* Returns true when this thread blocks the signal: the kernel would end the process. */
static bool is_blocked(void)
{
    sigset_t blocked;
    return pthread_sigmask(SIG_BLOCK, NULL, &blocked) != 0 || sigismember(&blocked, SIGBUS) != 0;
}

int zn_sigbus_guard_add(const uint8_t *start, size_t bytes)
{
    if (!is_installed() || is_blocked())
        return -1;
    for (int i = 0; i < ZN_MAP_GUARDS; i++) {
        struct guard *g = &guards[i];
        if (atomic_exchange(&g->taken, true))
            continue;
        atomic_store(&g->hit, false);
        atomic_store(&g->start, (uintptr_t)start);
        atomic_store(&g->end, (uintptr_t)start + bytes);
        return i;
    }
    return -1;
}

void zn_sigbus_guard_remove(int guard)
{
    if (guard < 0)
        return;
    atomic_store(&guards[guard].end, 0);
    atomic_store(&guards[guard].taken, false);
}

bool zn_sigbus_guard_hit(int guard)
{
    return atomic_load_explicit(&guards[guard].hit, memory_order_acquire);
}
