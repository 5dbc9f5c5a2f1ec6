# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Links pseudonyms of two epochs by the shape of their prefix tree.

Pseudonyms that keep prefixes have, in each epoch, one tree up to one swap at each branching point.
The best of all swaps is found by a dynamic programme over pairs of nodes of equal depth: the worth
of two nodes is the better of both ways to pair their children. With n clients that is O(n²) a
level. A leaf without a partner is worth nothing, so the search finds the largest common tree, or
with behaviour the common tree whose leaves are most alike.

Knowledge: the log; of the manifest, the number of bits that the pseudonyms keep. Below these bits
no tree is searched for: the leaves of two blocks are paired by behaviour alone.
"""

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from linking import similarity
from view import Guesses, Ints, Knowledge, View

BITS = 32
PRESENT = 1.0  # worth of a pair of leaves, added to their likeness
Matrix = npt.NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Level:
    """The nodes of a depth, and the children of each in the level below (the number of nodes
    there: none)."""

    left: Ints
    right: Ints


def levels(addresses: Ints, depth: int, bits: int = BITS) -> tuple[list[Level], Ints]:
    """Returns the levels of a tree down to `depth`, the root first, and the node there of each
    address."""
    nodes, leaf = np.unique(addresses >> (bits - depth), return_inverse=True)
    out = []
    for _ in range(depth):
        above, parent = np.unique(nodes >> 1, return_inverse=True)
        children = np.full((2, len(above)), len(nodes))
        children[nodes & 1, parent] = np.arange(len(nodes))
        out.append(Level(children[0], children[1]))
        nodes = above
    return out[::-1], leaf


def padded(values: Matrix) -> Matrix:
    """Returns the values with a row and a column of zeros for missing children."""
    return np.pad(values, ((0, 1), (0, 1)))


def ways(below: Matrix, one: Level, other: Level) -> tuple[Matrix, Matrix]:
    """Returns the worth of each pair of nodes with its children as they are, and swapped."""
    low = padded(below)
    straight = low[np.ix_(one.left, other.left)] + low[np.ix_(one.right, other.right)]
    swapped = low[np.ix_(one.left, other.right)] + low[np.ix_(one.right, other.left)]
    return straight, swapped


def best_pairs(
    one: list[Level], other: list[Level], leaves: Matrix, rng: np.random.Generator
) -> list[tuple[int, int]]:
    """Returns the pairs of nodes at the lowest depth that the best swaps bring together."""
    worth = [leaves]
    for a, b in zip(one[::-1], other[::-1], strict=True):
        if len(a.left) == leaves.shape[0] and len(b.left) == leaves.shape[1]:
            worth.append(worth[-1])  # no node branches: the pairs keep their worth
        else:
            worth.append(np.maximum(*ways(worth[-1], a, b)))
        leaves = worth[-1]
    u, v = np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64)
    for a, b, below in zip(one, other, worth[-2::-1], strict=True):
        low = padded(below)
        straight = low[a.left[u], b.left[v]] + low[a.right[u], b.right[v]]
        swapped = low[a.left[u], b.right[v]] + low[a.right[u], b.left[v]]
        swap = (swapped > straight) | ((swapped == straight) & (rng.random(len(u)) < 0.5))
        first, second = np.where(swap, b.right[v], b.left[v]), np.where(swap, b.left[v], b.right[v])
        u, v = np.concatenate([a.left[u], a.right[u]]), np.concatenate([first, second])
        both = (u < below.shape[0]) & (v < below.shape[1])
        u, v = u[both], v[both]
    return list(zip(u.tolist(), v.tolist(), strict=True))


def block_worth(alike: Matrix, mine: Ints, theirs: Ints) -> Matrix:
    """Returns the worth of pairs of blocks: the best partner in the second of each leaf of the
    first."""
    rows, columns = int(mine.max()) + 1, int(theirs.max()) + 1
    order = np.argsort(theirs, kind="stable")
    starts = np.searchsorted(theirs[order], np.arange(columns))
    best = np.maximum.reduceat(alike[:, order], starts, axis=1)
    out = np.zeros((rows, columns), dtype=np.float32)
    np.add.at(out, mine, best)
    return out


def pair_clients(
    alike: Matrix, mine: Ints, theirs: Ints, depth: int, rng: np.random.Generator
) -> Ints:
    """Returns for each address of `mine` the index of its partner in `theirs`, or -1.

    Down to `depth` the tree decides, below it the most similar address of the block.
    """
    partner = np.full(len(mine), -1)
    (one, block), (other, their_block) = levels(mine, depth), levels(theirs, depth)
    if (
        depth == BITS
        and len(np.unique(mine)) == len(mine)
        and len(np.unique(theirs)) == len(theirs)
    ):
        worth: Matrix = np.empty_like(alike)
        worth[np.ix_(block, their_block)] = alike
    else:
        worth = block_worth(alike, block, their_block)
    for u, v in best_pairs(one, other, worth, rng):
        rows, columns = np.flatnonzero(block == u), np.flatnonzero(their_block == v)
        columns = rng.permutation(columns)
        partner[rows] = columns[alike[np.ix_(rows, columns)].argmax(axis=1)]
    return partner


def tree(
    view: View,
    knowledge: Knowledge,
    rng: np.random.Generator,
    epoch: int,
    *,
    behaviour: bool,
    depth: int | None = None,
) -> Guesses:
    """Returns for each pair of the epoch a pair of the epoch before, by the tree down to `depth`.

    depth: number of bits to trust; None: the number in the manifest.
    """
    later, earlier, alike = similarity(view, knowledge, epoch)
    if not len(later) or not len(earlier):
        return Guesses(later[:0], later[:0])
    if behaviour:
        alike = alike + PRESENT
    else:
        alike = np.ones_like(alike)
        if not view.rotates:
            clients = view.groups[1]
            alike += clients[later][:, None] == clients[earlier][None, :]
    clients = view.groups[1]
    depth = view.kept if depth is None else depth
    partner = pair_clients(alike, clients[later], clients[earlier], depth, rng)
    # Addresses that the tree leaves over are joined by behaviour, and by chance without it.
    left = partner < 0
    partner[left] = (
        alike[left].argmax(axis=1)
        if behaviour
        else rng.integers(0, len(earlier), size=int(left.sum()))
    )
    return Guesses(later, earlier[partner])
