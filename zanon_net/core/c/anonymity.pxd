# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/anonymity

cdef extern from "zanon/ztable.h" nogil:
    ctypedef struct zn_ztable:
        pass
    ctypedef struct zn_ztable_config:
        uint32_t z, keep, max_tuples, max_attributes, rebase_after
        int64_t window_ns, max_jump_ns
        bint reserve
    ctypedef struct zn_observation:
        int64_t t_ns
        uint64_t user
        zn_id attribute
    ctypedef enum zn_decision:
        ZN_RELEASE
        ZN_BELOW_Z
    ctypedef struct zn_ztable_stats:
        uint64_t observations, released, below_z, too_late, late, late_deep, no_room
        uint64_t clock_jumps, evicted, tuples, attributes
    zn_ztable_config zn_ztable_default_config(uint32_t z, int64_t window_ns)
    uint32_t ZN_ZTABLE_Z_MAX
    int64_t ZN_ZTABLE_WINDOW_MAX_NS
    uint32_t ZN_ZTABLE_TUPLES_MAX
    uint32_t ZN_ZTABLE_ATTRIBUTES_MAX
    int zn_ztable_fit_caps(zn_ztable_config *config, size_t n, zn_error *err)
    int zn_ztable_open(zn_ztable **out, const zn_ztable_config *config, zn_error *err)
    void zn_ztable_close(zn_ztable *t)
    ctypedef struct zn_columns:
        const int64_t *t_ns
        const uint64_t *user
        const uint64_t *attribute
        uint8_t domain
    zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o)
    void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n,
                                 uint8_t *decisions)
    ctypedef struct zn_ztable_cursor:
        pass
    size_t zn_ztable_export(const zn_ztable *t, zn_ztable_cursor *cursor, void *out, size_t cap)
    int zn_ztable_snapshot_config(const void *snapshot, size_t n, zn_ztable_config *config,
                                  zn_error *err)
    int zn_ztable_import(zn_ztable *t, const void *snapshot, size_t n, zn_error *err)
    void zn_ztable_observe_columns(zn_ztable *t, const zn_hash_key *key,
                                   const zn_columns *columns, size_t n, uint8_t *decisions)
    uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute)
    size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap)
    int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err)
    void zn_ztable_clear(zn_ztable *t)
    zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t)
    size_t zn_ztable_memory(const zn_ztable *t)
    const char *zn_ztable_check(const zn_ztable *t)


cdef extern from "anonymity/levels.h" nogil:
    enum: ZN_LEVELS_Z_MAX
    ctypedef struct zn_levels:
        pass
    ctypedef struct zn_exposures:
        const zn_observation *observations
        const uint8_t *flags
        size_t n
        void (*chain)(void *of, size_t i, zn_id *chain) noexcept
        uint32_t (*network)(void *of, size_t i) noexcept
        void *of
    ctypedef struct zn_level_decision:
        uint8_t decision, level
        uint16_t users
    ctypedef struct zn_levels_config:
        uint32_t z_max, max_votes, max_labels, max_per_network
        const zn_id *(*parents)(void *of, uint32_t level, zn_id label, uint32_t above,
                                const zn_id *one, size_t *count) noexcept
        void *parents_of
    ctypedef struct zn_level_stats:
        uint64_t published, peeks, withdrawn, evicted
        uint32_t labels, votes
    ctypedef struct zn_levels_stats:
        uint64_t paused, lacked_capacity
        uint64_t users[1001]
    zn_levels_config zn_levels_default_config(zn_ztable *table, uint32_t levels, uint32_t z,
                                              int64_t window_ns)
    int zn_levels_open(zn_levels **out, const zn_levels_config *config, zn_error *err)
    void zn_levels_close(zn_levels *l)
    void zn_levels_decide(zn_levels *l, const zn_exposures *exposures,
                          zn_level_decision *decisions)
    int zn_levels_set_z(zn_levels *l, uint32_t z, zn_error *err)
    void zn_levels_set_early_z(zn_levels *l, uint32_t z)
    zn_levels_stats zn_levels_get_stats(const zn_levels *l)
    zn_level_stats zn_levels_level_stats(const zn_levels *l, uint32_t level)
    size_t zn_levels_memory(const zn_levels *l)
    const char *zn_levels_check(const zn_levels *l)


cdef extern from "anonymity/level_counts.h" nogil:
    enum: ZN_LEVEL_STEPS
    ctypedef struct zn_level_shares:
        uint64_t exposures
        uint32_t steps
        uint64_t shared[60][3]
        double kept[60]
    uint32_t zn_level_step(uint32_t j)


cdef extern from "anonymity/popularity.h" nogil:
    enum: ZN_ZTABLE_BINS
    ctypedef struct zn_popularity_window:
        int64_t start_ns, end_ns
        uint64_t users
        uint64_t bins[1]
        c_bool whole
    ctypedef struct zn_popularity:
        zn_popularity_window *stored
        size_t stored_count
