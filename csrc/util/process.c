/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/process.h"

#ifdef __linux__
#include <sys/prctl.h>
#endif

bool zn_process_set(int option, unsigned long value)
{
#ifdef __linux__
    return prctl(option, value, 0UL, 0UL, 0UL) == 0;
#else
    (void)option;
    (void)value;
    return false;
#endif
}
