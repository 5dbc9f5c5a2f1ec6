/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anonymity/votes.h"

#include "util/arena.h"

#include <stdlib.h>

static const uint8_t namespaces[] = {[ZN_VOTE_ADDR] = 'a',        [ZN_VOTE_NAME] = 'n',
                                     [ZN_VOTE_DNS_ADDR] = 'r',    [ZN_VOTE_DNS_NAME] = 'd',
                                     [ZN_VOTE_CERTIFICATE] = 'c', [ZN_VOTE_AGENT] = 'u',
                                     [ZN_VOTE_FINGERPRINT] = 'f',
#define ATTRIBUTE(a, ID, ...) [ZN_VOTE_ATTRIBUTE + ZN_ATTRIBUTE_##ID] = 0x80 + ZN_ATTRIBUTE_##ID,
                                     ZN_ATTRIBUTES(ATTRIBUTE, )
#undef ATTRIBUTE
};

int zn_votes_init(zn_votes *votes, size_t cap, zn_error *err)
{
    int rc = zn_hash_key_random(&votes->id_key, err);
    if (rc != 0)
        return rc;
    votes->in_order = true;
    votes->cap = cap;
    votes->at = zn_block_alloc(cap * sizeof *votes->at);
    if (votes->at == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a batch of %zu votes", cap);
    return 0;
}

void zn_votes_fini(zn_votes *votes)
{
    zn_block_free(votes->at, votes->cap * sizeof *votes->at);
    memset(votes, 0, sizeof *votes);
}

bool zn_votes_cast(zn_votes *votes, zn_vote_kind kind, int64_t t_ns, uint32_t flow, uint32_t entry)
{
    zn_vote *v;
    if (votes->n == votes->cap)
        return false;
    v = &votes->at[votes->n];
    v->t_ns = t_ns;
    v->order = (uint32_t)votes->n;
    v->flow = flow;
    v->entry = entry;
    v->kind = kind;
    if (votes->n != 0 && t_ns < votes->at[votes->n - 1].t_ns)
        votes->in_order = false;
    votes->n++;
    return true;
}

static int by_time(const void *left, const void *right)
{
    const zn_vote *a = left, *b = right;
    if (a->t_ns != b->t_ns)
        return a->t_ns < b->t_ns ? -1 : 1;
    return a->order < b->order ? -1 : 1;
}

void zn_votes_sort(zn_votes *votes)
{
    if (!votes->in_order)
        qsort(votes->at, votes->n, sizeof *votes->at, by_time);
    votes->in_order = true;
}

void zn_votes_clear(zn_votes *votes)
{
    votes->n = 0;
    votes->in_order = true;
}

void zn_votes_drop(zn_votes *votes, size_t n)
{
    votes->n -= n;
    memmove(votes->at, votes->at + n, votes->n * sizeof *votes->at);
    for (size_t i = 0; i < votes->n; i++)
        votes->at[i].order = (uint32_t)i;
}

uint8_t zn_votes_namespace(zn_vote_kind kind)
{
    return namespaces[kind];
}

zn_id zn_votes_id(const zn_votes *votes, zn_vote_kind kind, zn_span bytes)
{
    return zn_hash128(&votes->id_key, namespaces[kind], bytes.p, bytes.n);
}
