/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rows/release_list.h"

#include "util/arena.h"

/* Has a block take `bytes` bytes; false when memory is out. */
static bool reach(void **block, size_t *size, size_t bytes)
{
    size_t larger = *size == 0 ? (size_t)1 << 16 : *size;
    void *grown;
    if (bytes <= *size)
        return true;
    while (larger < bytes)
        larger *= 2;
    grown = zn_block_alloc(larger);
    if (grown == NULL)
        return false;
    if (*size != 0)
        memcpy(grown, *block, *size);
    zn_block_clear(*block, *size);
    zn_block_free(*block, *size);
    *block = grown;
    *size = larger;
    return true;
}

static bool has_room(zn_release_list *list, size_t rows)
{
    size_t n = list->n + rows;
    void *number = list->number, *user = list->user, *release = list->release;
    void *nodes = list->nodes, *release_ns = list->release_ns;
    bool fits = reach(&number, &list->number_bytes, n * sizeof *list->number) &&
                reach(&user, &list->user_bytes, n * sizeof *list->user) &&
                reach(&release, &list->release_bytes, n * sizeof *list->release) &&
                reach(&nodes, &list->nodes_bytes, n * list->quasi_count * sizeof(zn_node)) &&
                reach(&release_ns, &list->release_ns_bytes,
                      (list->releases + 1) * sizeof *list->release_ns);
    list->number = number;
    list->user = user;
    list->release = release;
    list->nodes = nodes;
    list->release_ns = release_ns;
    return fits;
}

static int add_release(void *owner, const zn_window_view *view, zn_error *err)
{
    zn_release_list *list = owner;
    bool any = false;
    if (!has_room(list, view->n))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the rows of a release");
    for (size_t i = 0; i < view->n; i++) {
        size_t to = list->n;
        if (view->fate[i] != ZN_FATE_RELEASED)
            continue;
        list->number[to] = view->payload[i];
        list->user[to] = view->user_lo[i];
        list->release[to] = (uint32_t)list->releases;
        memcpy(list->nodes + to * list->quasi_count, zn_groups_nodes(view->groups, view->group[i]),
               list->quasi_count * sizeof(zn_node));
        list->n++;
        any = true;
    }
    if (any)
        list->release_ns[list->releases++] = view->release_ns;
    return 0;
}

int zn_release_list_open(zn_release_list *list, const zn_window_config *config, zn_error *err)
{
    zn_window_config own = *config;
    own.leave = add_release;
    own.owner = list;
    list->quasi_count = config->groups.column_count;
    list->sensitive_count = config->groups.sensitive_count;
    return zn_window_open(&list->window, &own, err);
}

static void close_block(void *block, size_t bytes)
{
    if (block == NULL)
        return;
    zn_block_clear(block, bytes);
    zn_block_free(block, bytes);
}

void zn_release_list_fini(zn_release_list *list)
{
    zn_window_close(list->window);
    close_block(list->number, list->number_bytes);
    close_block(list->user, list->user_bytes);
    close_block(list->release, list->release_bytes);
    close_block(list->nodes, list->nodes_bytes);
    close_block(list->release_ns, list->release_ns_bytes);
    memset(list, 0, sizeof *list);
}

/* Codes row i; false where a value is unknown. */
static bool code_row(const zn_release_list *list, const zn_coded_rows *rows, size_t i,
                     zn_node *quasi, uint64_t *sensitive)
{
    for (size_t j = 0; j < list->quasi_count; j++) {
        if (rows->quasi[j][i] < 0)
            return false;
        quasi[j] = (zn_node)rows->quasi[j][i];
    }
    for (size_t j = 0; j < list->sensitive_count; j++)
        sensitive[j] = rows->sensitive[j][i];
    return true;
}

int zn_release_list_take(zn_release_list *list, const zn_coded_rows *rows, zn_error *err)
{
    zn_node quasi[ZN_GROUPS_COLUMNS_MAX];
    uint64_t sensitive[ZN_GROUPS_COLUMNS_MAX];
    zn_window_row row = {.quasi = quasi, .sensitive = sensitive};
    zn_row_fate fate;
    int rc = 0;
    for (size_t i = 0; i < rows->n && rc == 0; i++) {
        row.t_ns = rows->t_ns[i];
        row.payload = rows->first_number + i;
        if (rows->user != NULL)
            row.user.lo = rows->user[i];
        if (code_row(list, rows, i, quasi, sensitive))
            rc = zn_window_take(list->window, &row, &fate, err);
        else
            rc = zn_window_drop(list->window, row.t_ns, ZN_FATE_UNKNOWN, err);
    }
    return rc;
}
