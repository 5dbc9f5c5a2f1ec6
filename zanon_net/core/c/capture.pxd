# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/capture

cdef extern from "zanon/zanon.h" nogil:
    uint32_t ZN_FRAME_MAX
    ctypedef struct zn_frame:
        const uint8_t *data
        int64_t t_ns
        uint32_t captured, wire, link_type


cdef extern from "capture/capture.h" nogil:
    ctypedef struct zn_capture:
        pass
    int zn_capture_open_path(zn_capture **out, const char *path, zn_error *err)
    int zn_capture_open_again(zn_capture **out, zn_error *err)
    int zn_capture_open_fd(zn_capture **out, int fd, zn_span start, const char *name,
                           zn_error *err)
    int zn_capture_open_memory(zn_capture **out, const uint8_t *data, size_t n, zn_error *err)
    void zn_capture_set_unpacked(zn_capture *c)
    bint zn_capture_may_wait(const zn_capture *c)
    void zn_capture_close(zn_capture *c)
    int zn_capture_next(zn_capture *c, zn_frame *frames, int max, zn_error *err)
    int zn_capture_peek(zn_capture *c, int64_t *t_ns, zn_error *err)
    const char *zn_capture_format(const zn_capture *c)
    uint64_t zn_capture_bytes_read(const zn_capture *c)
    uint64_t zn_capture_bytes_total(const zn_capture *c)
    const char *zn_capture_warning(const zn_capture *c)
    bint zn_capture_saw_end(const zn_capture *c)


cdef extern from "capture/filter.h" nogil:
    ctypedef struct zn_filter:
        pass
    int zn_filter_open(zn_filter **out, const char *expression, zn_error *err)
    void zn_filter_close(zn_filter *f)
    bint zn_filter_pass(zn_filter *f, const zn_frame *frame)


cdef extern from "capture/live_group.h" nogil:
    unsigned ZN_LIVE_MAX
    unsigned ZN_LIVE_RINGS
    ctypedef struct zn_live_config:
        const char *interface
        const char *filter
        uint32_t snaplen, ring_bytes
        bint promiscuous
    ctypedef struct zn_live_counts:
        uint64_t frames, bytes, received, dropped
    ctypedef struct zn_live_group:
        pass
    int zn_live_group_open(zn_live_group **out, zn_error *err)
    void zn_live_group_close(zn_live_group *g)
    int zn_live_group_add(zn_live_group *g, const zn_live_config *config, unsigned rings,
                          zn_error *err)
    int zn_live_group_reopen(zn_live_group *g, size_t i, const zn_live_config *config,
                             zn_error *err)
    int zn_live_group_next(zn_live_group *g, const zn_frame **frames, int wait_ms, zn_error *err)
    void zn_live_group_keep(zn_live_group *g, unsigned part, unsigned parts)
    void zn_live_group_stop(zn_live_group *g)
    bint zn_live_group_gone(const zn_live_group *g, size_t i)
    size_t zn_live_group_size(const zn_live_group *g)
    zn_live_counts zn_live_group_counts(zn_live_group *g, size_t i)
    uint32_t zn_live_group_link_type(const zn_live_group *g, size_t i)
    const char *zn_live_group_warning(const zn_live_group *g, size_t i)
