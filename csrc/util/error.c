/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

const char *zn_version(void)
{
    return ZN_VERSION;
}

int zn_config_read(void *own, size_t own_bytes, const void *given, const char *config,
                   zn_error *err)
{
    size_t size;
    memcpy(&size, given, sizeof size);
    if (size < sizeof size || size > own_bytes)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "the size of a %s is %zu, not up to %zu: begin with its default", config,
                       size, own_bytes);
    memcpy(own, given, size);
    memcpy(own, &own_bytes, sizeof own_bytes);
    return 0;
}

#ifdef ZN_DEBUG
void zn_assert_failed(const char *what, const char *file, int line)
{
    fprintf(stderr, "zanon_net: assertion failed: %s (%s:%d)\n", what, file, line);
    abort();
}
#endif
