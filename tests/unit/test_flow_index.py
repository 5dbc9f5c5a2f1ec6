# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The flow table's index against an array: a driver puts flows in and takes them out in random
order, with hashes that choose a few buckets only, and lets the index grow in between."""

from pathlib import Path

import pytest
from c_help import BASE, CSRC, SANITIZE, compile_c, run

pytestmark = [pytest.mark.source]

DRIVER = """
#include "state/flow_internal.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state;

static uint32_t below(uint32_t n)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(state >> 33) % n;
}

/* A packet of flow `number`, in one of `buckets` until the index grows, then in one of five times
 * as many; with one of three tags. */
static void make_packet(zn_packet *p, uint32_t number, uint32_t buckets)
{
    memset(p, 0, sizeof *p);
    memcpy(&p->tuple, &number, sizeof number);
    p->tuple.proto = ZN_PROTO_UDP;
    p->hash = number * 7u % buckets | (uint64_t)(number % 5) << 13 | (uint64_t)(number % 3) << 48;
}

static void fail(const char *what, uint32_t number)
{
    fprintf(stderr, "%s: %u\\n", what, number);
    exit(1);
}

static void compare(zn_flow_table *t, const uint32_t *flow, uint32_t numbers, uint32_t buckets)
{
    uint32_t held = 0;
    for (uint32_t n = 0; n < numbers; n++) {
        zn_packet p;
        make_packet(&p, n, buckets);
        held += flow[n] != 0;
        if (zn_flow_find(t, &p) != flow[n])
            fail("another flow is found", n);
        if (flow[n] != 0 && !(zn_flow_at(t, flow[n])->indexed && zn_flow_index_has(t, flow[n])))
            fail("a flow is not in the index", n);
    }
    if (!zn_flow_index_adds_up(t, held))
        fail("the index does not add up", held);
}

/* seed, numbers, buckets, steps: half of them lets the numbers come, half lets them go. */
int main(int argc, char **argv)
{
    uint32_t numbers, buckets, steps, *flow, most = 0;
    zn_stats stats = {0};
    zn_flow_table *t;
    zn_error err;
    if (argc != 5 || zn_flow_table_open(&t, 60000, 0, &stats, &err) != 0)
        return 2;
    state = (uint64_t)atoi(argv[1]);
    numbers = (uint32_t)atoi(argv[2]);
    buckets = (uint32_t)atoi(argv[3]);
    steps = (uint32_t)atoi(argv[4]);
    flow = calloc(numbers, sizeof *flow);
    for (uint32_t step = 1; step <= steps; step++) {
        uint32_t n = below(numbers);
        bool comes = below(8) < (step % 4096 < 2048 ? 6 : 2);
        zn_packet p;
        make_packet(&p, n, buckets);
        if (comes && flow[n] == 0) {
            flow[n] = zn_slab_take_zeroed(&t->flows);
            zn_flow_at(t, flow[n])->tuple = p.tuple;
            zn_flow_index_add(t, flow[n], p.hash);
        } else if (!comes && flow[n] != 0) {
            zn_flow_index_remove(t, flow[n]);
            zn_flow_free(t, flow[n]);
            flow[n] = 0;
        }
        most = t->overflow.live > most ? t->overflow.live : most;
        if (step == steps / 2) {
            compare(t, flow, numbers, buckets);
            zn_flow_index_grow(t);
        }
        if (step % 500 == 0 || step == steps / 2)
            compare(t, flow, numbers, buckets);
    }
    for (uint32_t n = 0; n < numbers; n++)
        if (flow[n] != 0)
            zn_flow_index_remove(t, flow[n]);
    printf("%u %u\\n", most, t->overflow.live);
    zn_flow_table_close(t);
    free(flow);
    return 0;
}
"""


@pytest.fixture(scope="module")
def driver(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("flow_index")
    source = folder / "driver.c"
    source.write_text(DRIVER)
    state = [*(CSRC / "state").glob("flow*.c"), *(CSRC / "state").glob("tcp*.c")]
    return compile_c(folder / "driver", [source, *state, *BASE], *SANITIZE)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("numbers", "buckets"), [(40, 1), (600, 1), (600, 7), (3000, 200)])
def test_the_flows_put_in_are_found_and_no_others(
    driver: Path, numbers: int, buckets: int, seed: int
) -> None:
    """Chains of up to 60 buckets, of 8 and of 2; when all flows are gone no overflow is left."""
    most, left = map(int, run([driver, str(seed), str(numbers), str(buckets), "12000"]).split())
    assert left == 0 < most <= numbers // 10
