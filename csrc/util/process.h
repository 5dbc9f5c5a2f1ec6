/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Attributes of the process that Python's standard library cannot set. */
#ifndef ZN_UTIL_PROCESS_H
#define ZN_UTIL_PROCESS_H

#include "util/base.h"

/* Sets an attribute by prctl(2). Returns false if the system refuses, or is not Linux. */
bool zn_process_set(int option, unsigned long value);

#endif
