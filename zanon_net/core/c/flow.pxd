# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/flow

cdef extern from "flow/reassembly.h" nogil:
    ctypedef struct zn_stream_pool:
        pass
    ctypedef enum zn_stream_result:
        ZN_STREAM_GREW
    int zn_stream_pool_init(zn_stream_pool *pool, uint32_t cap, zn_error *err)
    void zn_stream_pool_fini(zn_stream_pool *pool)
    uint32_t zn_stream_take(zn_stream_pool *pool)
    zn_stream_result zn_stream_add(zn_stream_pool *pool, uint32_t stream, uint32_t offset,
                                   zn_span piece)
    zn_span zn_stream_start(const zn_stream_pool *pool, uint32_t stream)
    void zn_stream_consume(zn_stream_pool *pool, uint32_t stream, uint32_t n)
    uint32_t zn_stream_first(const zn_stream_pool *pool, uint32_t stream)
    bint zn_stream_has_hole(const zn_stream_pool *pool, uint32_t stream)
