/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/vote_clients.h"

int zn_vote_clients_init(zn_vote_clients *c, uint32_t max_clients, int64_t rotate_ns, zn_error *err)
{
    int rc = zn_addr_set_init(&c->set[0], max_clients, err);
    if (rc == 0)
        rc = zn_addr_set_init(&c->set[1], max_clients, err);
    c->rotate_ns = rotate_ns;
    c->lost_epoch = c->gone_epoch = ZN_VOTE_EPOCH_NONE;
    return rc;
}

void zn_vote_clients_fini(zn_vote_clients *c)
{
    zn_addr_set_fini(&c->set[0]);
    zn_addr_set_fini(&c->set[1]);
}

int64_t zn_vote_clients_epoch(const zn_vote_clients *c, int64_t t_ns)
{
    return c->rotate_ns == 0 ? 0 : t_ns / c->rotate_ns;
}

/* Returns the half of a hash that the sets compare. An address is taken for a client if a client
 * shares this half. */
static uint64_t member_of(zn_id id)
{
    return id.lo != 0 ? id.lo : 1;
}

/* Forgets the set that no vote of this epoch or a later epoch refers to. */
static void move_to(zn_vote_clients *c, int64_t epoch)
{
    zn_addr_set older = c->set[1];
    if (epoch <= c->epoch)
        return;
    c->set[1] = c->set[0];
    c->set[0] = older;
    zn_addr_set_clear(&c->set[0]);
    c->last_epoch = c->epoch;
    c->epoch = epoch;
}

void zn_vote_clients_add(zn_vote_clients *c, zn_id id, int64_t t_ns)
{
    int64_t epoch = zn_vote_clients_epoch(c, t_ns);
    move_to(c, epoch);
    if (epoch == c->epoch)
        zn_addr_set_add_hash(&c->set[0], member_of(id));
    else if (epoch >= c->last_epoch) /* between the two epochs: it counts for the last epoch */
        zn_addr_set_add_hash(&c->set[1], member_of(id));
}

bool zn_vote_clients_have(zn_vote_clients *c, zn_id id, int64_t t_ns)
{
    int64_t epoch = zn_vote_clients_epoch(c, t_ns);
    move_to(c, epoch);
    if (epoch < c->epoch || epoch - 1 <= c->lost_epoch || epoch - 1 <= c->gone_epoch)
        return true;
    return c->set[0].full || c->set[1].full || zn_addr_set_has_hash(&c->set[0], member_of(id)) ||
           zn_addr_set_has_hash(&c->set[1], member_of(id));
}
