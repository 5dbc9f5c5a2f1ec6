/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What flows have beside their entries: each for those that need it, which are few, and as many as
 * there can be flows, so that there is always room.
 */
#include "flow/flow_internal.h"

/* The flow's zn_flow_cold, made where it has none. */
static zn_flow_cold *cold_at(zn_flow_table *t, zn_flow *f)
{
    if (f->cold == 0)
        f->cold = zn_slab_take(&t->besides);
    return zn_slab_at(&t->besides, f->cold);
}

/* NULL: none. */
static const zn_flow_cold *cold_of(const zn_flow_table *t, const zn_flow *f)
{
    return ZN_LIKELY(f->cold == 0) ? NULL : zn_slab_at(&t->besides, f->cold);
}

zn_flow_retransmission_pair *zn_flow_retransmissions_at(zn_flow_table *t, zn_flow *f)
{
    if (f->retransmissions == 0)
        f->retransmissions = zn_slab_take(&t->resents);
    return zn_slab_at(&t->resents, f->retransmissions);
}

const zn_flow_retransmissions *zn_flow_retransmissions_of(const zn_flow_table *t, const zn_flow *f,
                                                          unsigned side)
{
    const zn_flow_retransmission_pair *resents;
    if (ZN_LIKELY(f->retransmissions == 0))
        return NULL;
    resents = zn_slab_at(&t->resents, f->retransmissions);
    return &resents->side[side];
}

void zn_flow_drop_gaps(zn_flow_table *t, zn_flow *f)
{
    zn_flow_retransmission_pair *resents = zn_flow_retransmissions_at(t, f);
    for (unsigned i = 0; i < 2; i++) {
        if (resents->side[i].gaps != 0)
            zn_slab_give(&t->gaps, resents->side[i].gaps);
        resents->side[i].gaps = 0;
    }
}

void zn_flow_free_cold(zn_flow_table *t, zn_flow *f)
{
    if (f->retransmissions != 0)
        zn_slab_give(&t->resents, f->retransmissions);
    if (f->cold != 0)
        zn_slab_give(&t->besides, f->cold);
    f->retransmissions = f->cold = 0;
}

void zn_flow_set_user(zn_flow_table *t, zn_flow *f, const zn_addr *user)
{
    f->user_outside = user != NULL;
    if (user != NULL)
        cold_at(t, f)->user = *user;
}

const zn_addr *zn_flow_user(const zn_flow_table *t, const zn_flow *f)
{
    return f->user_outside ? &cold_of(t, f)->user : &f->tuple.addr[f->user];
}

void zn_flow_set_pseudonym(zn_flow_table *t, zn_flow *f, unsigned end, const zn_addr *pseudonym)
{
    *(end == f->opener ? &f->pseudonym : &cold_at(t, f)->pseudonym) = *pseudonym;
}

zn_addr zn_flow_pseudonym(const zn_flow_table *t, const zn_flow *f, unsigned end)
{
    const zn_flow_cold *cold = cold_of(t, f);
    if (end == f->opener)
        return f->pseudonym;
    return cold != NULL ? cold->pseudonym : (zn_addr){{0}};
}

void zn_flow_set_epoch(zn_flow_table *t, zn_flow *f, int64_t epoch, int64_t rotate_ns)
{
    if (ZN_UNLIKELY(epoch != f->first_ns / rotate_ns))
        memcpy(cold_at(t, f)->epoch, &epoch, sizeof epoch);
}

int64_t zn_flow_epoch(const zn_flow_table *t, const zn_flow *f, int64_t rotate_ns)
{
    const zn_flow_cold *cold = cold_of(t, f);
    int64_t later = 0;
    if (ZN_UNLIKELY(cold != NULL))
        memcpy(&later, cold->epoch, sizeof later);
    return later != 0 ? later : f->first_ns / rotate_ns;
}

void zn_flow_set_resolution(zn_flow_table *t, zn_flow *f, uint32_t resolution)
{
    if (resolution != 0 || f->cold != 0)
        cold_at(t, f)->resolution = resolution;
}

uint32_t zn_flow_resolution(const zn_flow_table *t, const zn_flow *f)
{
    const zn_flow_cold *cold = cold_of(t, f);
    return cold == NULL ? 0 : cold->resolution;
}
