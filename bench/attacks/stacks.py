# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Made-up devices: values that each user's host puts into headers, whatever the user does.

Hosts are as careless as any that were ever found. Numbers, ids, ports and clocks of a host continue
from one epoch to the next, tickets come again, and half of the QUIC clients keep their connection
ID. So everything that packets hide of them is hidden of every host. Only the stack of a host is
drawn from shares, because a rare stack identifies its user. Most hosts have one of four layouts of
options and a common MSS. One host in twenty has a rare MSS, as behind tunnels, and one in twenty a
ClientHello of its own.
"""

from dataclasses import dataclass

import numpy as np
from population import Floats, Ints

# (share, TTL, window, options of a SYN: M is the MSS, T timestamps, W window scale, S SACK, 0 end)
LAYOUTS = (
    (0.45, 128, 64_240, "MNWNNSNNT"),
    (0.30, 64, 65_535, "MSTNWNNNN"),
    (0.20, 64, 65_535, "MNWNNTS00"),
    (0.05, 255, 32_768, "MSTNNNNNN"),
)
LENGTHS = {"M": 4, "N": 1, "W": 3, "S": 2, "T": 10, "0": 1}
OPTION_BYTES = 24
MSS, MSS_SHARES = (1460, 1452, 1440, 1412, 1400, 1380), (0.72, 0.12, 0.05, 0.04, 0.05, 0.02)
SCALES = (6, 7, 8, 9)
RARE_MSS, OWN_HELLO, LOW_PORTS = 0.05, 0.05, 0.1
HELLOS = 40  # common ClientHellos
SKEW_PPM = 30.0  # standard deviation of clocks (Kohno 2005 found tens)


@dataclass(frozen=True, slots=True)
class Stacks:
    """Devices, one entry a user.

    layout: into LAYOUTS. hello: number of the ClientHello. first_port, ports: the range that ports
    of the host cycle through. isn, ip_id, port, clock: its counters at the beginning. skew: of its
    clock. keeps_id: true if its QUIC connections share a connection ID.
    """

    layout: Ints
    ttl: Ints
    window: Ints
    mss: Ints
    scale: Ints
    hello: Ints
    first_port: Ints
    ports: Ints
    isn: Ints
    ip_id: Ints
    port: Ints
    clock: Ints
    skew: Floats
    keeps_id: Ints


def make_stacks(rng: np.random.Generator, users: int) -> Stacks:
    """Draws the hosts of `users` users."""
    shares = np.array([layout[0] for layout in LAYOUTS])
    layout = rng.choice(len(LAYOUTS), size=users, p=shares)
    mss = rng.choice(MSS, size=users, p=MSS_SHARES)
    mss = np.where(rng.random(users) < RARE_MSS, rng.integers(1200, 1460, size=users), mss)
    weights = np.arange(1, HELLOS + 1) ** -1.0
    hello = rng.choice(HELLOS, size=users, p=weights / weights.sum())
    hello = np.where(rng.random(users) < OWN_HELLO, HELLOS + np.arange(users), hello)
    low = rng.random(users) < LOW_PORTS
    first_port = np.where(low, 1024, np.where(layout == 0, 49_152, 32_768))
    ports = np.where(low, 64_512, np.where(layout == 0, 16_384, 28_232))
    return Stacks(
        layout,
        np.array([row[1] for row in LAYOUTS])[layout] - rng.integers(0, 4, size=users),
        np.array([row[2] for row in LAYOUTS])[layout],
        mss,
        rng.choice(SCALES, size=users, p=(0.1, 0.3, 0.5, 0.1)),
        hello,
        first_port,
        ports,
        rng.integers(0, 1 << 32, size=users),
        rng.integers(0, 1 << 16, size=users),
        rng.integers(0, 1 << 16, size=users),
        rng.integers(0, 1 << 32, size=users),
        rng.normal(0, SKEW_PPM * 1e-6, size=users),
        rng.integers(0, 2, size=users),
    )


def syn_options(stacks: Stacks) -> tuple[Ints, Ints]:
    """Returns the options of each user's SYN, without times, and where the time is among them."""
    rows = np.ones((len(stacks.layout), OPTION_BYTES), dtype=np.uint8)
    at = np.zeros(len(rows), dtype=np.int64)
    for i, (*_, order) in enumerate(LAYOUTS):
        which = np.flatnonzero(stacks.layout == i)
        place = 0
        for letter in order:
            if letter == "M":
                rows[which, place : place + 2] = (2, 4)
                rows[which, place + 2] = stacks.mss[which] >> 8
                rows[which, place + 3] = stacks.mss[which] & 255
            elif letter == "W":
                rows[which, place : place + 2] = (3, 3)
                rows[which, place + 2] = stacks.scale[which]
            elif letter == "S":
                rows[which, place : place + 2] = (4, 2)
            elif letter == "T":
                rows[which, place : place + 2] = (8, 10)
                rows[which, place + 2 : place + 10] = 0
                at[which] = place + 2
            elif letter == "0":
                rows[which, place] = 0
            place += LENGTHS[letter]
        assert place <= OPTION_BYTES, order
    return rows, at
