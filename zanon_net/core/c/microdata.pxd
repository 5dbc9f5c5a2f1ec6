# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/microdata

cdef extern from "microdata/diversity.h" nogil:
    ctypedef enum zn_diversity_kind:
        ZN_DIVERSITY_DISTINCT
        ZN_DIVERSITY_ENTROPY
        ZN_DIVERSITY_RECURSIVE
    ctypedef struct zn_class_rule:
        uint32_t k, l
        zn_diversity_kind kind
        double c, max_share, t


cdef extern from "microdata/interval.h" nogil:
    ctypedef struct zn_interval_width:
        uint64_t units
        int decimals
    int zn_interval_width_of(zn_interval_width *out, double width, zn_error *err)
    c_bool zn_interval_of(const zn_interval_width *width, c_bool whole, zn_span value,
                          int64_t *interval)


cdef extern from "microdata/taxonomy.h" nogil:
    ctypedef uint16_t zn_node
    zn_node ZN_NODE_NONE
    ctypedef struct zn_taxonomy:
        pass
    ctypedef struct zn_taxonomy_config:
        const zn_span *labels
        size_t lines, levels
        c_bool in_order
        double width
        int64_t first
        c_bool whole
    ctypedef struct zn_taxonomy_notes:
        uint32_t only_children
        size_t line
    int zn_taxonomy_open(zn_taxonomy **out, const zn_taxonomy_config *config,
                         zn_taxonomy_notes *notes, zn_error *err)
    void zn_taxonomy_close(zn_taxonomy *t)
    uint32_t zn_taxonomy_leaves(const zn_taxonomy *t)
    uint32_t zn_taxonomy_nodes(const zn_taxonomy *t)
    uint32_t zn_taxonomy_levels(const zn_taxonomy *t)
    zn_node zn_taxonomy_find(const zn_taxonomy *t, zn_span value)
    zn_node zn_taxonomy_ancestor(const zn_taxonomy *t, zn_node node, uint32_t level)
    zn_node zn_taxonomy_common(const zn_taxonomy *t, zn_node a, zn_node b)
    zn_node zn_taxonomy_parent(const zn_taxonomy *t, zn_node node)
    uint32_t zn_taxonomy_level(const zn_taxonomy *t, zn_node node)
    uint32_t zn_taxonomy_leaves_below(const zn_taxonomy *t, zn_node node)
    zn_span zn_taxonomy_label(const zn_taxonomy *t, zn_node node)
    double zn_taxonomy_loss(const zn_taxonomy *t, zn_node node)
    size_t zn_taxonomy_memory(const zn_taxonomy *t)


cdef extern from "microdata/groups.h" nogil:
    enum: ZN_GROUPS_COLUMNS_MAX
    uint32_t ZN_GROUP_NONE
    ctypedef struct zn_groups:
        pass
    ctypedef struct zn_groups_config:
        const zn_taxonomy **columns
        size_t column_count, sensitive_count
        zn_class_rule rule
        c_bool repair, strict
        uint32_t neighbours, growth
        double lambda_ "lambda"
        size_t rows_max, part_rows
    ctypedef struct zn_group_rows:
        size_t n
        const zn_node *quasi
        const uint64_t *sensitive
        const uint64_t *user
    ctypedef struct zn_groups_stats:
        uint64_t windows, groups, swaps, merges, pairs
    int zn_groups_open(zn_groups **out, const zn_groups_config *config, zn_error *err)
    void zn_groups_close(zn_groups *g)
    void zn_groups_window(zn_groups *g, const zn_group_rows *rows, uint32_t l)
    void zn_groups_oldest(zn_groups *g, const zn_group_rows *rows)
    void zn_groups_entropy(zn_groups *g, const zn_group_rows *rows, double *entropy,
                           uint32_t *values)
    size_t zn_groups_count(const zn_groups *g)
    const uint32_t *zn_groups_of(const zn_groups *g)
    const zn_node *zn_groups_nodes(const zn_groups *g, uint32_t group)
    zn_groups_stats zn_groups_get_stats(const zn_groups *g)
    size_t zn_groups_memory(const zn_groups *g)


cdef extern from "microdata/adaptive_l.h" nogil:
    double ZN_ADAPTIVE_ALPHA
    double ZN_ADAPTIVE_BAND
    uint32_t ZN_ADAPTIVE_DWELL
    ctypedef enum zn_adaptive_way:
        ZN_ADAPTIVE_UP
        ZN_ADAPTIVE_DOWN
    ctypedef struct zn_adaptive_l_config:
        uint32_t l_min, l_max, dwell
        zn_adaptive_way way
        double alpha, band
    ctypedef struct zn_adaptive_l:
        zn_adaptive_l_config config
    int zn_adaptive_l_init(zn_adaptive_l *a, const zn_adaptive_l_config *config, zn_error *err)
    uint32_t zn_adaptive_l_next(zn_adaptive_l *a, double entropy, uint32_t values)
