# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/util

cdef extern from "util/base.h" nogil:
    ctypedef enum zn_parse:
        ZN_DONE
        ZN_NEED_MORE
        ZN_MALFORMED
        ZN_OTHER
    ctypedef enum zn_err:
        ZN_ERR_OK
        ZN_ERR_CONFIG
        ZN_ERR_IO
        ZN_ERR_FORMAT
        ZN_ERR_CAPACITY
        ZN_ERR_CRYPTO
    ctypedef struct zn_error:
        zn_err code
        int os_errno
        char msg[256]


cdef extern from "util/arena.h" nogil:
    void zn_alloc_fail_after(uint64_t n)


cdef extern from "util/attributes.h" nogil:
    enum: ZN_ATTRIBUTE_COUNT
    const char *zn_attribute_word(unsigned attribute)


cdef extern from "util/pool.h" nogil:
    unsigned ZN_POOL_MAX
    ctypedef struct zn_job:
        void (*run)(void *of, uint32_t task) noexcept
        void *of


cdef extern from "util/cursor.h" nogil:
    ctypedef struct zn_span:
        const uint8_t *p
        size_t n

    ctypedef struct zn_cursor:
        pass
    zn_cursor zn_cursor_over_span(zn_span s, bint whole)
    size_t zn_cursor_left(const zn_cursor *c)
    size_t zn_span_offset(zn_span s, zn_span borrowed)


cdef extern from "util/addr.h" nogil:
    ctypedef struct zn_addr:
        uint8_t byte[16]
    ctypedef struct zn_net:
        zn_addr prefix
        uint32_t bits


cdef extern from "util/hash.h" nogil:
    ctypedef struct zn_hash_key:
        pass
    ctypedef struct zn_id:
        uint64_t lo, hi
    int zn_hash_key_random(zn_hash_key *key, zn_error *err)
    uint64_t zn_hash64(const zn_hash_key *key, const void *data, size_t n)
    zn_id zn_hash128(const zn_hash_key *key, uint8_t domain, const void *data, size_t n)


cdef extern from "util/process.h" nogil:
    bint zn_process_set(int option, unsigned long value)


cdef extern from "util/stats.h" nogil:
    ctypedef enum zn_stat:
        ZN_STAT_FRAGMENTS
        ZN_STAT_COUNT
    ctypedef struct zn_stats:
        uint64_t n[1]
    ctypedef struct zn_stat_info:
        const char *name
        const char *group
        const char *text
        const char *old_name
    zn_stat_info zn_stat_describe(size_t i)


cdef extern from "util/hash.h" nogil:
    ctypedef struct zn_bucket_key:
        uint64_t word[8]


cdef extern from "util/text.h" nogil:
    ctypedef struct zn_text:
        char *bytes
        size_t n
        c_bool failed
    void zn_text_fini(zn_text *t)


cdef extern from "util/timestamp.h" nogil:
    ctypedef enum zn_time_unit:
        ZN_TIME_ISO
    ctypedef struct zn_timestamp:
        int64_t t_ns
        c_bool has_offset
    bint zn_timestamp_parse(zn_span text, zn_time_unit unit, zn_timestamp *out)
    const char *zn_timestamp_problem(zn_span text, zn_time_unit unit)
    void zn_timestamp_put(zn_text *out, int64_t t_ns, zn_time_unit unit)
