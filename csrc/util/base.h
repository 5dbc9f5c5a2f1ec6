/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The base of every module: fixed-width types, the two kinds of result and the error value.
 *
 * Packet data is never an error: parsers answer with a zn_parse and the caller counts the reason.
 * A zn_err speaks about us: files, memory, configuration. The function that knows what went wrong
 * fills the zn_error with a message a person can act on; everybody above only passes it on. A
 * message never contains a hostname or a client address.
 */
#ifndef ZN_UTIL_BASE_H
#define ZN_UTIL_BASE_H

#include "zanon/ztable.h"

#if !defined(__SIZEOF_INT128__) || SIZE_MAX < UINT64_MAX
#error "zanon_net needs a 64-bit processor: sizes, hashes and times are 64 and 128 bits wide"
#endif

/* The end of a parser. Spans it returns borrow its input. */
typedef enum zn_parse {
    ZN_DONE,      /* complete: the result is valid */
    ZN_NEED_MORE, /* well-formed so far; bytes are missing */
    ZN_MALFORMED, /* this protocol, but an inner length or value lies */
    ZN_OTHER      /* not this protocol */
} zn_parse;

/* Fills *err (may be NULL) and returns -code, so that `return zn_fail(...)` reads as one step. */
int zn_fail(zn_error *err, zn_err code, int os_errno, const char *format, ...)
    __attribute__((format(printf, 4, 5)));

/*
 * Reads a config that a program filled, whose first member is its size as the program knows it,
 * into *own of own_bytes, where the defaults stand for members that the program does not know.
 * `config` names it in messages. 0, or -ZN_ERR_CONFIG.
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
