/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of every module: fixed-width types, the two kinds of result, and errors.
 *
 * Packet data is never an error: a parser answers with a zn_parse, and its caller counts the
 * reason. A zn_err is about files, memory and configuration. The function where something goes
 * wrong fills the zn_error with a message that a person can act on; its callers pass it on. No
 * message contains a hostname or a client address.
 */
#ifndef ZN_UTIL_BASE_H
#define ZN_UTIL_BASE_H

#include "zanon/ztable.h"

#if !defined(__SIZEOF_INT128__) || SIZE_MAX < UINT64_MAX
#error "zanon_net needs a 64-bit processor: sizes, hashes and times are 64 and 128 bits wide"
#endif

typedef unsigned __int128 zn_u128;

/* The result of a parser. Spans that a parser sets borrow its input. */
typedef enum zn_parse {
    ZN_DONE,      /* complete: the result is valid */
    ZN_NEED_MORE, /* well-formed so far; bytes are missing */
    ZN_MALFORMED, /* this protocol, but an inner length or value is not possible */
    ZN_OTHER      /* not this protocol */
} zn_parse;

/* Fills *err (may be NULL) with the error and its message, as printf would write it. Returns -code,
 * so that `return zn_fail(...)` is one step. */
int zn_fail(zn_error *err, zn_err code, int os_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Copies a config that a program filled into *own, a struct of own_bytes. The first member of
 * *given is its size as the program was compiled; members beyond it keep the defaults that *own
 * holds. `config` is the struct's name, for messages. Returns 0, or -ZN_ERR_CONFIG for a size that
 * is not possible.
 */
int zn_config_read(void *own, size_t own_bytes, const void *given, const char *config,
                   zn_error *err);

#ifdef ZN_DEBUG
void zn_assert_failed(const char *what, const char *file, int line) __attribute__((noreturn));
#define ZN_ASSERT(x) ((x) ? (void)0 : zn_assert_failed(#x, __FILE__, __LINE__))
#else
#define ZN_ASSERT(x) ((void)0)
#endif

#define ZN_LIKELY(x) __builtin_expect(!!(x), 1)
#define ZN_UNLIKELY(x) __builtin_expect(!!(x), 0)
#define ZN_PREFETCH(p) __builtin_prefetch((p), 0, 3)
#define ZN_PREFETCH_WRITE(p) __builtin_prefetch((p), 1, 3)

#define ZN_CACHE_LINE ((size_t)64)

#define ZN_NS_PER_MS INT64_C(1000000)

#endif
