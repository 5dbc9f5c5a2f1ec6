/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "exposures.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct exposure {
    int64_t from_ns, until_ns;
    uint32_t user;
} exposure;

typedef struct history {
    exposure *at;
    uint32_t n, room;
} history;

struct exposures {
    uint32_t names;
    history *of;
};

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("soak: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

exposures *exposures_open(uint32_t names)
{
    exposures *all = must(malloc(sizeof *all));
    all->names = names;
    all->of = must(calloc(names, sizeof *all->of));
    return all;
}

void exposures_close(exposures *all)
{
    for (uint32_t name = 0; name < all->names; name++)
        free(all->of[name].at);
    free(all->of);
    free(all);
}

/* Makes room: forgets what is over, or takes more memory. */
static void make_room(history *h, int64_t forget_ns)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < h->n; i++)
        if (h->at[i].until_ns >= forget_ns)
            h->at[kept++] = h->at[i];
    h->n = kept;
    if (h->n < h->room - h->room / 4)
        return;
    h->room = h->room != 0 ? 2 * h->room : 32;
    h->at = must(realloc(h->at, h->room * sizeof *h->at));
}

void exposures_add(exposures *all, uint32_t name, uint32_t user, int64_t from_ns, int64_t until_ns,
                   int64_t forget_ns)
{
    history *h = all->of + name;
    if (h->n == h->room)
        make_room(h, forget_ns);
    h->at[h->n++] = (exposure){from_ns, until_ns, user};
}

uint32_t exposures_users(const exposures *all, uint32_t name, int64_t from_ns, int64_t until_ns,
                         bool sure)
{
    const history *h = all->of + name;
    uint64_t users = 0;
    for (uint32_t i = 0; i < h->n; i++) {
        const exposure *e = &h->at[i];
        if (e->from_ns <= until_ns && e->until_ns >= from_ns &&
            (!sure || e->from_ns == e->until_ns))
            users |= UINT64_C(1) << e->user;
    }
    return (uint32_t)__builtin_popcountll(users);
}
