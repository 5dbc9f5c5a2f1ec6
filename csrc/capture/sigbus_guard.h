/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Guards mapped files that become shorter while they are read. The kernel ends a process that
 * touches a page which no longer exists (SIGBUS). In a guarded range such a page, and all pages
 * after it, read as zeros instead, and the guard records this. A reader checks the guard before it
 * relies on the bytes that it read.
 *
 * The first guard installs a handler of SIGBUS for the whole process. The handler stays, and passes
 * signals for other addresses on to the handler that was there before. If another handler was
 * installed later, or the thread blocks the signal, zn_sigbus_guard_add guards nothing and returns
 * so. If a program does this while a range is guarded, or reads the range on a thread that blocks
 * the signal, a missing page ends the process.
 */
#ifndef ZN_CAPTURE_SIGBUS_GUARD_H
#define ZN_CAPTURE_SIGBUS_GUARD_H

#include "util/base.h"

#define ZN_MAP_GUARDS 64 /* ranges guarded at a time */

/* Guards [start, start + bytes), whole pages. Returns a guard, or -1 when that is not possible. Any
 * thread may call it. */
int zn_sigbus_guard_add(const uint8_t *start, size_t bytes);
/* Removes a guard. Call it before the range is unmapped. -1 is fine. */
void zn_sigbus_guard_remove(int guard);
/* Returns whether a page of the range was missing. */
bool zn_sigbus_guard_hit(int guard);

#endif
