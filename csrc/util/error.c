/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

int zn_fail(zn_error *err, zn_err code, int os_errno, const char *format, ...)
{
    if (err != NULL) {
        va_list args;
        err->code = code;
        err->os_errno = os_errno;
        va_start(args, format);
        (void)vsnprintf(err->msg, sizeof err->msg, format, args);
        va_end(args);
    }
    return -(int)code;
}

#ifdef ZN_DEBUG
void zn_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "zanon_net: assertion failed: %s (%s:%d)\n", what, file, line);
    abort();
}
#endif
