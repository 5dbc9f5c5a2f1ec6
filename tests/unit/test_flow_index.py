# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The flow table's index against an array: a driver puts flows in and takes them out in random
order, with hashes that choose a few buckets only, and lets the index grow in between."""

from pathlib import Path

import pytest
from support.c_build import BASE, CSRC, SANITIZE, compile_c, run

pytestmark = [pytest.mark.source]

DRIVER = """
#include "flow/flow_index.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

/* A packet of flow `number`, in one of `buckets` before the index grows, in one of five times as
 * many afterwards; with one of three tags. */
static void make_packet(zn_packet *p, uint32_t number, uint32_t buckets)
{
    memset(p, 0, sizeof *p);
    memcpy(&p->tuple, &number, sizeof number);
    p->tuple.proto = ZN_PROTO_UDP;
    p->hash = number % buckets | (uint64_t)(number / buckets % 5) << 13;
    p->hash |= (uint64_t)(number % 3) << 48;
}

static void fail(const char *what, uint32_t number)
{
    fprintf(stderr, "%s: %u\\n", what, number);
    exit(1);
}

static void compare(const zn_flow_index *x, const uint32_t *flow, uint32_t numbers,
                    uint32_t buckets)
{
    uint32_t held = 0;
    for (uint32_t n = 0; n < numbers; n++) {
        zn_packet p;
        make_packet(&p, n, buckets);
        held += flow[n] != 0;
        if (zn_flow_index_find(x, &p.tuple, p.hash) != flow[n])
            fail("another flow is found", n);
        if (flow[n] != 0 && !(x->entries[flow[n] - 1].indexed && zn_flow_index_has(x, flow[n])))
            fail("a flow is not in the index", n);
    }
    if (!zn_flow_index_adds_up(x, held))
        fail("the index does not add up", held);
}

static void add(zn_flow_index *x, zn_slab *flows, uint32_t *flow, uint32_t number,
                uint32_t buckets)
{
    zn_packet p;
    make_packet(&p, number, buckets);
    *flow = zn_slab_take(flows);
    if (*flow == 0)
        fail("there is no room", number);
    x->entries[*flow - 1].tuple = p.tuple;
    zn_flow_index_add(x, *flow, p.hash);
}

static void drop(zn_flow_index *x, zn_slab *flows, uint32_t *flow)
{
    zn_flow_index_remove(x, *flow);
    zn_slab_give(flows, *flow);
    *flow = 0;
}

/* seed, numbers, buckets, steps, room: the flows of all numbers are put in; then half of the steps
 * lets them go, half lets them come; halfway the index grows. In a table for `room` flows. Prints
 * the most overflow buckets, how many there were at the end, and whether the index became
 * larger. */
int main(int argc, char **argv)
{
    uint32_t numbers, buckets, steps, room, *flow, most;
    uint64_t before;
    zn_slab flows;
    zn_flow_index x = {0};
    zn_error err;
    room = argc == 6 ? (uint32_t)atoi(argv[5]) : 0;
    if (zn_slab_init(&flows, sizeof(zn_flow), room, &err) != 0 ||
        zn_flow_index_init(&x, (zn_flow *)(void *)flows.base, room, &err) != 0)
        return 2;
    before = x.bucket_mask;
    state = (uint64_t)atoi(argv[1]);
    numbers = (uint32_t)atoi(argv[2]);
    buckets = (uint32_t)atoi(argv[3]);
    steps = (uint32_t)atoi(argv[4]);
    flow = calloc(numbers, sizeof *flow);
    for (uint32_t n = 0; n < numbers; n++)
        add(&x, &flows, &flow[n], n, buckets);
    most = x.overflow.live;
    for (uint32_t step = 1; step <= steps; step++) {
        uint32_t n = below(numbers);
        bool comes = below(8) < (step % 4096 < 2048 ? 2 : 6);
        if (comes && flow[n] == 0)
            add(&x, &flows, &flow[n], n, buckets);
        else if (!comes && flow[n] != 0)
            drop(&x, &flows, &flow[n]);
        most = x.overflow.live > most ? x.overflow.live : most;
        if (step == steps / 2) {
            compare(&x, flow, numbers, buckets);
            zn_flow_index_grow(&x);
        }
        if (step % 500 == 0 || step == steps / 2)
            compare(&x, flow, numbers, buckets);
    }
    for (uint32_t n = 0; n < numbers; n++)
        if (flow[n] != 0)
            drop(&x, &flows, &flow[n]);
    printf("%u %u %d\\n", most, x.overflow.live, x.bucket_mask != before);
    zn_flow_index_fini(&x);
    zn_slab_fini(&flows);
    free(flow);
    return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flow_index")
    source = folder / "driver.c"
    source.write_text(DRIVER)
    index = CSRC / "flow" / "flow_index.c"
    return compile_c(folder / "driver", [source, index, *BASE], "-O1", *SANITIZE)


def results(driver: Path, *arguments: int) -> list[int]:
    return [int(word) for word in run([driver, *map(str, arguments)]).split()]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("numbers", "buckets"), [(40, 1), (600, 1), (600, 7), (3000, 200)])
def test_the_flows_put_in_are_found_and_no_others(
    driver: Path, numbers: int, buckets: int, seed: int
) -> None:
    """Chains of up to 60 buckets, of 9 and of 2; when all flows are gone no overflow is left."""
    most, left, grew = results(driver, seed, numbers, buckets, 12000, 1 << 20)
    assert left == 0 < most <= numbers // 10
    assert grew


@pytest.mark.parametrize("numbers", [100, 1000, 1009])
def test_there_is_room_for_all_flows_in_one_chain(driver: Path, numbers: int) -> None:
    most, left, grew = results(driver, 1, numbers, 1, 4000, numbers)
    assert left == 0
    assert most == (numbers - 1) // 10
    assert not grew  # small indexes have all their buckets from the start
