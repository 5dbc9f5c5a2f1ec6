/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/clients.h"

int zn_clients_init(zn_clients *c, uint32_t max_clients, zn_error *err)
{
    int rc = zn_addr_set_init(&c->set[0], max_clients, err);
    if (rc == 0)
        rc = zn_addr_set_init(&c->set[1], max_clients, err);
    c->set[1].key = c->set[0].key;
    return rc;
}

void zn_clients_fini(zn_clients *c)
{
    zn_addr_set_fini(&c->set[0]);
    zn_addr_set_fini(&c->set[1]);
}

size_t zn_clients_memory(const zn_clients *c)
{
    return zn_addr_set_memory(&c->set[0]) + zn_addr_set_memory(&c->set[1]);
}

void zn_clients_next_epoch(zn_clients *c, int64_t epoch)
{
    zn_addr_set older = c->set[1];
    c->set[1] = c->set[0];
    c->set[0] = older;
    zn_addr_set_clear(&c->set[0]);
    c->since[1] = c->since[0];
    c->since[0] = c->epoch = epoch;
}

void zn_clients_rebase(zn_clients *c, int64_t epoch)
{
    if (epoch < c->epoch) {
        zn_addr_set_add_all(&c->set[0], &c->set[1]);
        c->set[0].full |= epoch < c->since[1];
        c->since[0] = epoch;
    }
    c->epoch = epoch;
}

void zn_clients_begin_anew(zn_clients *c, int64_t epoch)
{
    zn_addr_set_add_all(&c->set[1], &c->set[0]);
    zn_addr_set_clear(&c->set[0]);
    c->since[0] = c->since[1] = c->epoch = epoch;
}
