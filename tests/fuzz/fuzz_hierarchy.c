/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Hierarchies: no file breaks the reader, and what it reads is a tree whose leaves are found. The
 * first byte is the delimiter. */
#include "rows/hierarchy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_node(const zn_taxonomy *t, zn_node i)
{
    uint32_t levels = zn_taxonomy_levels(t), level = zn_taxonomy_level(t, i);
    zn_node parent = zn_taxonomy_parent(t, i);
    bool root = i + 1u == zn_taxonomy_nodes(t);
    require(level < levels && zn_taxonomy_leaves_below(t, i) >= 1);
    require(root ? parent == i : parent > i && zn_taxonomy_level(t, parent) == level + 1);
    require(zn_taxonomy_loss(t, i) >= 0 && zn_taxonomy_loss(t, i) <= 1);
    require(zn_taxonomy_ancestor(t, i, levels - 1) + 1u == zn_taxonomy_nodes(t));
    require((i < zn_taxonomy_leaves(t)) == (level == 0));
    if (level == 0)
        require(zn_taxonomy_find(t, zn_taxonomy_label(t, i)) == i);
}

static void check_pair(const zn_taxonomy *t, zn_node a, zn_node b)
{
    zn_node common = zn_taxonomy_common(t, a, b);
    uint32_t level = zn_taxonomy_level(t, common);
    require(common == zn_taxonomy_common(t, b, a));
    require(zn_taxonomy_ancestor(t, a, level) == common);
    require(zn_taxonomy_ancestor(t, b, level) == common);
    if (level > zn_taxonomy_level(t, a) && level > zn_taxonomy_level(t, b))
        require(zn_taxonomy_ancestor(t, a, level - 1) != zn_taxonomy_ancestor(t, b, level - 1));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t delimiter = size == 0 || data[0] >= 0x80 ? ';' : data[0];
    zn_span file = {data, size};
    zn_taxonomy_notes notes;
    zn_taxonomy *t;
    zn_error err = {0};
    if (size != 0)
        file = (zn_span){data + 1, size - 1};
    if (zn_hierarchy_read(&t, file, delimiter, &notes, &err) != 0) {
        require(t == NULL && err.msg[0] != '\0');
        return 0;
    }
    require(zn_taxonomy_loss(t, (zn_node)(zn_taxonomy_nodes(t) - 1)) ==
            (zn_taxonomy_leaves(t) == 1 ? 0 : 1));
    require(zn_taxonomy_leaves_below(t, (zn_node)(zn_taxonomy_nodes(t) - 1)) ==
            zn_taxonomy_leaves(t));
    for (uint32_t i = 0; i < zn_taxonomy_nodes(t); i++) {
        check_node(t, (zn_node)i);
        for (uint32_t j = i % 7; j < zn_taxonomy_nodes(t); j += 7)
            check_pair(t, (zn_node)i, (zn_node)j);
    }
    (void)zn_taxonomy_find(t, file);
    zn_taxonomy_close(t);
    return 0;
}
