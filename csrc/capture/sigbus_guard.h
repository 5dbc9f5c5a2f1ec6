/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Mapped files that become shorter while they are read. The kernel ends a process that touches a
 * page which is no longer there (SIGBUS). In a guarded range such a page, and all after it, read
 * as zeros instead, and the guard remembers it: whoever reads asks before what was read is
 * believed.
 *
 * The first guard installs a handler of SIGBUS for the whole process, which stays and passes on
 * what is not for it to whoever had one before. Where another was installed later, or the thread
 * blocks the signal, nothing is guarded: zn_sigbus_guard_add says so. Who does either while a range
 * is guarded, or reads it on a thread that blocks the signal, has what happened before: a missing
 * page ends the process.
 */
#ifndef ZN_CAPTURE_SIGBUS_GUARD_H
#define ZN_CAPTURE_SIGBUS_GUARD_H

#include "util/base.h"

#define ZN_MAP_GUARDS 64 /* at a time */

/* Guards [start, start + bytes), whole pages: a guard, or -1 when that is not possible. Any
 * thread. */
int zn_sigbus_guard_add(const uint8_t *start, size_t bytes);
/* Before the range is unmapped. -1 is fine. */
void zn_sigbus_guard_remove(int guard);
/* A page of the range was missing. */
bool zn_sigbus_guard_hit(int guard);

#endif
