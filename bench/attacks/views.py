# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""One set of flows as different logs.

zanon_net's logs are made by the command itself, from the capture. The others are derived from the
truth; the rule of each is its docstring. All of them are written when flows close, TCP apart from
UDP.
"""

import base64
import hashlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
from inference import withheld
from population import HOUR, INTERNAL, Flows, Ints, Population
from view import EXACT, HIDDEN, NOBODY, NOTHING, SIZES, Knowledge, OwnLogs, Rule, View

from zanon_net import CryptoPan

COMMAND = [sys.executable, "-m", "zanon_net"]
UDP_IDLE_NS = 200 * 10**9
COLUMNS = ["t_start_ns", "t_end_ns", "client", "name", "name_status", "epoch", *SIZES]


# --- derived ----------------------------------------------------------------------------------


def closing_order(flows: Flows) -> Ints:
    """Returns the indices of flows in the order of the lines of a log: TCP, then UDP, by their
    closing."""
    return np.lexsort((flows.end_ns, ~flows.tcp))


def derived(label: str, population: Population, client: Ints, rotates: bool) -> tuple[View, Ints]:
    """Returns a log in which everything but the client is unchanged, and the flow of each
    record."""
    flows = population.flows
    order = closing_order(flows)
    epoch = flows.start_ns[order] // HOUR
    exact = {field: getattr(flows, field)[order] for field in ("tcp", "start_ns", "end_ns", *SIZES)}
    coarse = np.zeros(len(flows), dtype=bool)
    view = View(
        label,
        epoch,
        client[order],
        flows.name[order],
        coarse=coarse,
        rotates=rotates,
        rule=Rule(),
        **exact,
    )
    return view, order


def raw(population: Population) -> tuple[View, Ints]:
    """Returns a log that hides nothing: addresses as they are."""
    clients = population.address[population.flows.user]
    return derived("raw", population, clients, rotates=False)


def plain_hash(population: Population) -> tuple[View, Ints]:
    """Returns a log whose client is the start of SHA-256 of its address, without key; no name is
    hidden."""
    return derived("plain hash", population, scrambled(population), rotates=False)


def scrambled(population: Population) -> Ints:
    """Returns a hash of the client's address for each flow."""
    hashes = [hashlib.sha256(int(a).to_bytes(4, "big")).digest() for a in population.address]
    table = np.array([int.from_bytes(digest[:4], "big") for digest in hashes])
    return table[population.flows.user]


def crypto_pan(population: Population) -> tuple[View, Ints]:
    """Returns a log whose client is Crypto-PAn of its address under one key; no name is hidden."""
    table = pan(population, b"one key").astype(np.int64)
    return derived("Crypto-PAn, one key", population, table[population.flows.user], rotates=False)


def tstat_like(population: Population) -> tuple[View, Ints]:
    """Returns a log with Crypto-PAn under one key for each hour; no name is hidden, as in Tstat's
    logs."""
    flows = population.flows
    hour = flows.start_ns // HOUR
    client = np.empty(len(flows), dtype=np.int64)
    for one in np.unique(hour).tolist():
        which = hour == one
        client[which] = pan(population, f"hour {one}".encode())[flows.user[which]]
    return derived("Tstat-like", population, client, rotates=True)


def alpha_mon_like(population: Population, z: int) -> tuple[View, Ints]:
    """Returns a log as alpha-MON's.

    A name below z is scrambled at its length, a client is scrambled under one key, and all else is
    exact.
    A name is below z if fewer than z users visit it in the hour.
    """
    view, flow = derived("alpha-MON-like", population, scrambled(population), rotates=False)
    names = len(population.hosts.names)
    asked = Knowledge(names, z, population.flows, OwnLogs(NOTHING, NOTHING, NOTHING))
    name = np.where(withheld(population.flows, asked)[flow], HIDDEN, view.name)
    letters = lengths(population)[view.name]
    return replace(view, name=name, letters=letters, rule=Rule(EXACT)), flow


def lengths(population: Population) -> Ints:
    """Returns the number of characters of each name."""
    return np.array([len(text) for text in population.hosts.names])


def pan(population: Population, secret: bytes) -> npt.NDArray[np.uint32]:
    """Each user's pseudonym under a key made of these bytes."""
    secret += population.seed.to_bytes(8, "big")
    return CryptoPan(hashlib.sha256(secret).digest()).anonymize_v4(
        population.address.astype(np.uint32)
    )


DERIVED: dict[str, Callable[[Population, int], tuple[View, Ints]]] = {
    "raw": lambda population, _z: raw(population),
    "hash": lambda population, _z: plain_hash(population),
    "crypto-pan": lambda population, _z: crypto_pan(population),
    "tstat": lambda population, _z: tstat_like(population),
    "alpha-mon": alpha_mon_like,
}


# --- ours -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Ours:
    """A log of the command: its label, its options, and whether the pools are named one by one."""

    label: str
    options: tuple[str, ...] = ()
    pools: bool = False
    kept: int | None = None  # leading bits that pseudonyms keep; None: of the internal network

    def needs(self) -> set[str]:
        """Returns the options that it uses."""
        return {text for text in self.options if text.startswith("--")}


OURS = {
    "default": Ours("ours, default (partner)"),
    "internal": Ours("ours, internal", ("--for", "internal")),
    "client": Ours("ours, partner, --coarse-client pseudonym", ("--coarse-client", "pseudonym")),
    "public": Ours("ours, public", ("--for", "public"), kept=0),
    "pools": Ours("ours, pools named one by one", pools=True),
    "pan": Ours("ours, --pseudonyms crypto-pan", ("--pseudonyms", "crypto-pan"), kept=32),
}


@cache
def known_options() -> str:
    """Returns the text of `run --help-all`."""
    command = [*COMMAND, "run", "--help-all"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return done.stdout


def missing(ours: Ours) -> list[str]:
    """Returns the options that this build does not have."""
    return sorted(option for option in ours.needs() if f"{option} " not in known_options() + " ")


def run_command(sources: list[str], out: Path, options: list[str]) -> None:
    """Runs `zanon-net run`; raises RuntimeError with its error text."""
    command = [*COMMAND, "run", *sources, "--out", str(out), "-q", *options]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command[2:])}: {done.stderr.strip()}")


def make_ours(
    ours: Ours, population: Population, capture: tuple[Path, int], out: Path, z: int
) -> tuple[View, Ints]:
    """Runs the command on a capture, which begins at some time, reads its output and finds the
    flows."""
    view = read_ours(ours, population, capture, out, z)
    first = int(np.searchsorted(population.flows.start_ns, capture[1]))
    found = find_flows(view, population.flows.part(slice(first, None)))
    return view, np.where(found >= 0, found + first, -1)


def read_ours(
    ours: Ours, population: Population, capture: tuple[Path, int], out: Path, z: int
) -> View:
    """Runs the command on a capture, which begins at some time, and reads its output."""
    networks = ",".join(population.pools()) if ours.pools else INTERNAL
    options = ["--z", str(z), "--window", "1h", "--internal", networks, "--format", "parquet"]
    options += ["--key-file", str(fixed_key(out.with_suffix(".key"), population.seed))]
    run_command([str(capture[0])], out, [*options, "--columns", "core", *ours.options])
    manifest = json.loads((out / "manifest.json").read_text("utf-8"))
    view = read_view(ours, population, out, manifest["configuration"])
    shutil.rmtree(out)
    return view


def fixed_key(path: Path, seed: int) -> Path:
    """Returns a key file for a seed, so that equal runs give equal figures; no attack reads it."""
    key = base64.b64encode(hashlib.sha256(f"key {seed}".encode()).digest())
    path.touch(mode=0o600)
    path.write_bytes(key + b"\n")
    return path


def read_view(ours: Ours, population: Population, out: Path, said: dict) -> View:
    """Returns the records of both Parquet files, and the rule that the manifest states."""
    tables = [
        pq.read_table(out / "flows" / f"{name}.parquet", columns=COLUMNS) for name in ("tcp", "udp")
    ]
    tcp = np.repeat([True, False], [len(table) for table in tables])
    table = pa.concat_tables(tables).combine_chunks()
    name = indices(table["name"], {text: i for i, text in enumerate(population.hosts.names)})
    numbers = {field: as_numbers(table[column]) for field, column in FIELDS.items()}
    status = pc.is_in(table["name_status"].cast(pa.string()), pa.array(["none", "released"]))
    kept = ours.kept if ours.kept is not None else int(INTERNAL.split("/")[1])
    return View(
        ours.label,
        client=indices(table["client"], None),
        name=name,
        tcp=tcp,
        coarse=~status.to_numpy(zero_copy_only=False),
        rotates=True,
        kept=22 if ours.pools else kept,
        rule=stated_rule(said),
        **numbers,
    )


FIELDS = {"start_ns": "t_start_ns", "end_ns": "t_end_ns", "epoch": "epoch"} | {
    size: size for size in SIZES
}


def stated_rule(said: dict) -> Rule:
    """Returns the manifest's rule for a record's measurements."""
    values = {
        key: value
        for part in said.values()
        if isinstance(part, dict)
        for key, value in part.items()
    } | said
    steps = str(values.get("coarse_steps", "sqrt2"))
    times = values.get("times", "exact")
    return Rule(
        steps,
        closing=values.get("coarse_end", "floored") == "none",
        time_ns=1 if times in ("exact", None) else 60 * 10**9,
        digits=str(values.get("sizes", "exact")) == "2",
        order=str(values.get("order", "closing")),
    )


def as_numbers(column: pa.ChunkedArray) -> Ints:
    """Returns a column of times or numbers; missing ones are 0."""
    if not pa.types.is_integer(column.type):
        column = column.cast(pa.int64())
    return pc.fill_null(column, 0).to_numpy().astype(np.int64)


def indices(column: pa.ChunkedArray, table: dict[str, int] | None) -> Ints:
    """Returns a column of texts as numbers: by the table, or as IPv4 addresses; -1 for other
    texts."""
    coded = column.combine_chunks()
    if not pa.types.is_dictionary(coded.type):
        coded = coded.dictionary_encode()
    texts = coded.dictionary.to_pylist()
    if table is None:
        values = [address_number(text) for text in texts]
    else:
        values = [table[text] for text in texts]
    return np.array([*values, -1])[pc.fill_null(coded.indices, len(texts)).to_numpy()]


def address_number(text: str) -> int:
    """Returns an IPv4 address in dots as a number."""
    a, b, c, d = map(int, text.split("."))
    return a << 24 | b << 16 | c << 8 | d


# --- the flow of each record ---------------------------------------------------------------------


def find_flows(view: View, flows: Flows) -> Ints:
    """Returns the flow of each record, for the scorer alone; -1 if it is ambiguous.

    A start is exact or it is rounded. An exact start is one flow's alone. For all other records,
    users are found first: a record may be of any flow that the log's rule makes look so, and each
    pair of epoch and client has the user of most such flows. Records that look alike are given to
    that user's flows one by one. The assignment among them does not matter, because an attacker
    cannot distinguish them.
    """
    found = np.full(len(view), -1)
    exact = ~view.coarse & (view.rule.time_ns == 1)
    place = np.searchsorted(flows.start_ns, view.start_ns[exact])
    place = np.minimum(place, len(flows) - 1)
    found[exact] = np.where(flows.start_ns[place] == view.start_ns[exact], place, -1)
    user = pair_users(view, flows, found)
    taken = np.zeros(len(flows), dtype=bool)
    taken[found[found >= 0]] = True
    for coarse in (False, True):
        records = np.flatnonzero((found < 0) & (view.coarse == coarse) & (view.tcp | ~view.coarse))
        free = np.flatnonzero(~taken & (flows.tcp | (not coarse)))
        if not len(records) or not len(free):
            continue
        theirs = looks(view, flows, free, coarse)
        ours = shown(view, records, coarse)
        with_user = view.client[records] != NOBODY
        for shows_user in (True, False):
            part = with_user == shows_user
            key_a, key_b = list(ours), list(theirs)
            if shows_user:
                key_a.append(user[view.groups[2][records]])
                key_b.append(flows.user[free])
            still = ~taken[free]
            match = pair_up([k[part] for k in key_a], [k[still] for k in key_b])
            hit = match >= 0
            found[records[part][hit]] = free[still][match[hit]]
            taken[free[still][match[hit]]] = True
    return found


def looks(view: View, flows: Flows, which: Ints, coarse: bool) -> list[Ints]:
    """Returns the values of the log for these flows."""
    columns = (view.rule.coarse if coarse else view.rule.named)(flows, which)
    name = np.full(len(which), HIDDEN) if coarse else flows.name[which]
    # Sizes of DNS follow from the name; sizes of TCP distinguish records.
    return [columns["start_ns"], name, flows.tcp[which], *(columns[size] for size in SIZES)]


def shown(view: View, records: Ints, coarse: bool) -> list[Ints]:
    """Returns the values of the log in these records."""
    name = np.full(len(records), HIDDEN) if coarse else view.name[records]
    return [
        view.start_ns[records],
        name,
        view.tcp[records],
        *(getattr(view, size)[records] for size in SIZES),
    ]


def keys_of(*sides: list[Ints]) -> list[Ints]:
    """Returns one number for each row of columns, equal on all sides for equal rows."""
    joined = [np.concatenate(columns) for columns in zip(*sides, strict=True)]
    number = np.zeros(len(joined[0]), dtype=np.int64)
    for column in joined:
        values, inverse = np.unique(column, return_inverse=True)
        number = np.unique(number * len(values) + inverse, return_inverse=True)[1]
    return np.split(number, np.cumsum([len(side[0]) for side in sides])[:-1])


def pair_up(records: list[Ints], flows: list[Ints]) -> Ints:
    """Returns for each record a flow with an equal row, each flow once; -1 if there are too few."""
    left, right = keys_of(records, flows)
    order, places = np.argsort(left, kind="stable"), np.argsort(right, kind="stable")
    a, b = left[order], right[places]
    nth = np.arange(len(a)) - np.searchsorted(a, a)
    at = np.searchsorted(b, a) + nth
    ok = at < len(b)
    ok[ok] = b[at[ok]] == a[ok]
    match = np.full(len(a), -1)
    match[order[ok]] = places[at[ok]]
    return match


def pair_users(view: View, flows: Flows, found: Ints) -> Ints:
    """Returns the user of each (epoch, client) pair, by the flows that its records may be of."""
    epochs, _, of = view.groups
    users = int(flows.user.max()) + 1
    votes = [of[(found >= 0) & (of >= 0)] * users + flows.user[found[(found >= 0) & (of >= 0)]]]
    unknown = np.ones(len(epochs), dtype=bool)
    unknown[votes[0] // users] = False
    for coarse in (False, True):
        # A coarse record of DNS has the minute in which its flow is dropped, which is left out.
        which = (found < 0) & (of >= 0) & (view.coarse == coarse) & (view.tcp | (not coarse))
        records = np.flatnonzero(which & unknown[np.maximum(of, 0)])
        every = np.flatnonzero(flows.tcp | (not coarse))
        if len(records):
            votes.append(possible(view, flows, (records, every), of, coarse, users))
    key, count = np.unique(np.concatenate(votes), return_counts=True)
    order = np.argsort(count, kind="stable")
    user = np.full(len(epochs), -1)
    user[key[order] // users] = key[order] % users
    return user


def possible(
    view: View, flows: Flows, both: tuple[Ints, Ints], of: Ints, coarse: bool, users: int
) -> Ints:
    """Returns a vote (pair, user) of each record for each flow that it may be of."""
    records, every = both
    left, right = keys_of(shown(view, records, coarse), looks(view, flows, every, coarse))
    order = np.argsort(right, kind="stable")
    sorted_keys = right[order]
    low, high = np.searchsorted(sorted_keys, left), np.searchsorted(sorted_keys, left, "right")
    count = high - low
    count[count > 200] = 0  # has next to no information
    row = np.repeat(np.arange(len(left)), count)
    nth = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    candidate = every[order[low[row] + nth]]
    same_epoch = flows.start_ns[candidate] // HOUR == view.epoch[records[row]]
    row, candidate = row[same_epoch], candidate[same_epoch]
    return of[records[row]] * users + flows.user[candidate]
