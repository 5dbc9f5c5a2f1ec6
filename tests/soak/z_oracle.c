/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "z_oracle.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NEVER INT64_MIN

/* The times at which one user exposed one attribute, sorted, each once. */
typedef struct history {
    int64_t *t_ns;
    uint32_t n, room;
} history;

struct z_oracle {
    uint32_t users, attributes;
    history *past;   /* of each user of each attribute */
    int64_t *newest; /* its last time, by itself because that is mostly the answer */
};

static void *must(void *memory)
{
    if (memory == NULL) {
        fputs("soak: out of memory\n", stderr);
        exit(2);
    }
    return memory;
}

z_oracle *z_oracle_open(uint32_t users, uint32_t attributes)
{
    size_t cells = (size_t)users * attributes;
    z_oracle *o = must(malloc(sizeof *o));
    o->users = users;
    o->attributes = attributes;
    o->past = must(calloc(cells, sizeof *o->past));
    o->newest = must(malloc(cells * sizeof *o->newest));
    for (size_t i = 0; i < cells; i++)
        o->newest[i] = NEVER;
    return o;
}

void z_oracle_close(z_oracle *o)
{
    for (size_t i = 0; i < (size_t)o->users * o->attributes; i++)
        free(o->past[i].t_ns);
    free(o->past);
    free(o->newest);
    free(o);
}

/* Number of times of a history that are before t_ns. */
static uint32_t before(const history *h, int64_t t_ns)
{
    uint32_t low = 0, high = h->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (h->t_ns[middle] < t_ns)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void z_oracle_add(z_oracle *o, int64_t t_ns, uint32_t user, uint32_t attribute)
{
    size_t cell = (size_t)attribute * o->users + user;
    history *h = o->past + cell;
    uint32_t at = t_ns > o->newest[cell] ? h->n : before(h, t_ns);
    if (at < h->n && h->t_ns[at] == t_ns)
        return;
    if (h->n == h->room) {
        h->room = h->room != 0 ? 2 * h->room : 4;
        h->t_ns = must(realloc(h->t_ns, h->room * sizeof *h->t_ns));
    }
    memmove(h->t_ns + at + 1, h->t_ns + at, (h->n - at) * sizeof *h->t_ns);
    h->t_ns[at] = t_ns;
    h->n++;
    if (t_ns > o->newest[cell])
        o->newest[cell] = t_ns;
}

/* Whether one user of one attribute exposed it in [from_ns, to_ns]. */
static bool exposed(const z_oracle *o, size_t cell, int64_t from_ns, int64_t to_ns)
{
    const history *h = o->past + cell;
    uint32_t at;
    if (o->newest[cell] <= to_ns)
        return o->newest[cell] >= from_ns && h->n != 0;
    at = before(h, from_ns);
    return at < h->n && h->t_ns[at] <= to_ns;
}

uint32_t z_oracle_users(const z_oracle *o, uint32_t attribute, int64_t from_ns, int64_t to_ns,
                        uint32_t enough)
{
    size_t first = (size_t)attribute * o->users;
    uint32_t found = 0;
    for (uint32_t i = 0; i < o->users && found < enough; i++)
        found += exposed(o, first + i, from_ns, to_ns);
    return found;
}
