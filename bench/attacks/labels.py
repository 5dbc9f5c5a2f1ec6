# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Labels that `--levels` publishes, and the labels of two simpler rules, for the same visits.

Made-up users visit names for some hours. A name has eight servers, of which a user reaches one, so
addresses are rarer than names. `zanon-net run` publishes names, names of DNS, and addresses.
`zanon-net filter --levels chain` publishes the same visits as rows of two columns. The lists are
made up, too: some domains have no category, and an AS lies in two countries.

*Live* controls are the rules Naive and Cascade of tests/oracle/generalization.py, which isolate
users. *Dead* control: Naive with categories alone, a log in which nothing is finer.
"""

import json
import subprocess
import sys
import zlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import packets
import pyarrow as pa
import pyarrow.csv as pc
import pyarrow.parquet as pq
from differencing import uncovered
from population import HOUR, INTERNAL, ROUND_TRIP_NS, START_NS, Hosts, Ints, Population, Scale, make
from score import Exposures, Score, users_behind
from view import LabelLog
from views import COMMAND, as_numbers, fixed_key, run_command

sys.path.append(str(Path(__file__).resolve().parents[2] / "tests"))

from oracle.generalization import Cascade, Naive, World

Row = dict[str, Any]
Texts = Sequence[str | None]
Case = tuple[Exposures, LabelLog]
SERVERS = 8  # of each name
CATEGORIES, WITH_CATEGORY = 24, 20  # the domains of four numbers have no category
SUFFIXES = "example\nnet\nexample.com\n"
PARTS_OF_DOMAIN = {"example": 2, "net": 2, "com": 3}
SYSTEMS, COUNTRIES = 60, ("DE", "ES", "FR", "IT", "NL", "PL")
LEVELS = "domain,category,as,country"
HELLO_NS = ROUND_TRIP_NS + 1_000_000  # from the start of a flow to its name and its evidence
SMALL_BYTES = 1024
MOST = 8000  # lines of a control's log that are attacked
KNOWN = "the whole log, z, the window, the lists and the rule"


@dataclass(frozen=True, slots=True)
class LabelPlan:
    """The visits that are published: the population, its hours, and z."""

    kind: str
    scale: Scale
    first_hour: int
    hours: int
    z: int


WHOLE_LABELS = LabelPlan("usual", Scale(days=1), 10, 2, 20)
QUICK_LABELS = LabelPlan("usual", Scale(users=300, days=1), 8, 8, 10)


# ---- visits and lists ----------------------------------------------------------------------------


def visited(plan: LabelPlan) -> Population:
    """Returns the visits of the plan's hours. Each name is there once for each of its servers."""
    population = make(plan.kind, plan.scale, 1)
    hosts, flows = population.hosts, population.flows
    begin = START_NS + plan.first_hour * HOUR
    flows = flows.part((flows.start_ns >= begin) & (flows.start_ns < begin + plan.hours * HOUR))
    flows = replace(flows, name=flows.name * SERVERS + flows.user % SERVERS)
    columns = {field: np.repeat(getattr(hosts, field), SERVERS) for field in Hosts.__slots__}
    columns["address"] += (np.arange(len(columns["address"])) % SERVERS) << 14
    columns["names"] = columns["names"].tolist()
    return replace(population, hosts=Hosts(**columns), flows=flows)


def labels_of_name(name: str) -> tuple[str, str, str | None]:
    """Returns the name, its domain by SUFFIXES, and its category."""
    parts = name.split(".")
    domain = ".".join(parts[-PARTS_OF_DOMAIN[parts[-1]] :])
    number = zlib.crc32(domain.encode()) % CATEGORIES
    return name, f"*.{domain}", f"category:c{number}" if number < WITH_CATEGORY else None


def labels_of_addresses(addresses: Ints) -> list[tuple[str, str, str]]:
    """Returns each address, its AS and its country. The addresses of a /24 have the same labels."""
    return [
        (
            ".".join(map(str, address.to_bytes(4, "big"))),
            f"as:{64500 + block % SYSTEMS}",
            f"country:{COUNTRIES[(block + block // SYSTEMS % 2) % len(COUNTRIES)]}",
        )
        for address, block in zip(addresses.tolist(), (addresses >> 8).tolist(), strict=True)
    ]


def write_lists(population: Population, folder: Path) -> list[str]:
    """Writes the lists; returns the options that name them."""
    named = {labels_of_name(name)[1:] for name in population.hosts.names}
    placed = {
        (address.rpartition(".")[0], number, country)
        for address, number, country in labels_of_addresses(population.hosts.address)
    }
    texts = {
        "suffixes": SUFFIXES,
        "categories": "".join(
            f"{domain[2:]}\t{kind.partition(':')[2]}\n" for domain, kind in named if kind
        ),
        "networks": "".join(
            f"{start}.0/24\t{number[3:]}\t{country.partition(':')[2]}\n"
            for start, number, country in placed
        ),
    }
    options = ["--levels", LEVELS]
    for name, text in texts.items():
        path = folder / f"{name}.txt"
        path.write_text(text)
        options += [f"--{name}", str(path)]
    return options


def numbered(values: Sequence[Texts]) -> tuple[Ints, dict[str, int]]:
    """Returns the numbers of each value's labels, and the number of each text. 0 is no label."""
    numbers: dict[str, int] = {}
    chains = [
        [0 if text is None else numbers.setdefault(text, len(numbers) + 1) for text in texts]
        for texts in values
    ]
    return np.array(chains), numbers


# ---- what is published ---------------------------------------------------------------------------


def log_of(truth: Exposures, times: Ints, texts: Sequence[str], numbers: dict[str, int]) -> Case:
    """Returns the exposures with the log of these texts, each of an exposure at its time."""
    order = np.argsort(times, kind="stable")
    log = LabelLog(times[order], np.array([numbers[text] for text in texts])[order])
    place = np.minimum(np.searchsorted(truth.time_ns, log.time_ns), len(truth.time_ns) - 1)
    labels = truth.chains[truth.value[place]]
    right = (truth.time_ns[place] == log.time_ns) & (labels == log.label[:, None]).any(axis=1)
    if not right.all():
        raise RuntimeError(f"{int((~right).sum())} labels are of no exposure")
    return truth, log


def cases_of_run(population: Population, folder: Path, z: int) -> Iterator[tuple[str, Case]]:
    """Yields the names, the names of DNS and the addresses that `zanon-net run` publishes.

    A record has the server, and the time of its flow's start.
    """
    hosts, flows, out = population.hosts, population.flows, folder / "out"
    packets.write(population, folder / "visits.pcap")
    options = ["--z", str(z), "--window", "1h", "--internal", INTERNAL, "--columns", "core,levels"]
    options += ["--format", "parquet", "--format", "observations"]
    options += write_lists(population, folder)
    options += ["--key-file", str(fixed_key(folder / "run.key", population.seed))]
    run_command([str(folder / "visits.pcap")], out, options)
    with (out / "observations.jsonl").open() as lines:
        observed = [json.loads(line) for line in lines]
    chains, numbers = numbered([labels_of_name(name) for name in hosts.names[::SERVERS]])
    for what, tcp in (("names", True), ("names of DNS", False)):
        which = np.flatnonzero(flows.tcp == tcp)
        times = flows.start_ns[which] + HELLO_NS if tcp else flows.end_ns[which]
        truth = Exposures.of(times, flows.user[which], flows.name[which] // SERVERS, chains)
        seen = [line for line in observed if (line["name_source"] != "dns") == tcp]
        times = np.array([line["t_ns"] for line in seen])
        yield what, log_of(truth, times, [line["name"] for line in seen], numbers)
    columns = ["t_start_ns", "server", "server_label"]
    records = pq.read_table(out / "flows" / "tcp.parquet", columns=columns)
    servers = [
        label if server is None else server
        for server, label in zip(*(records[name].to_pylist() for name in columns[1:]), strict=True)
    ]
    shown = np.flatnonzero([server is not None for server in servers])
    addresses, value = np.unique(hosts.address[flows.name[flows.tcp]], return_inverse=True)
    chains, numbers = numbered(labels_of_addresses(addresses))
    times = flows.start_ns[flows.tcp] + HELLO_NS
    truth = Exposures.of(times, flows.user[flows.tcp], value, chains)
    times = as_numbers(records["t_start_ns"])[shown] + HELLO_NS
    yield "addresses", log_of(truth, times, [servers[i] for i in shown], numbers)


def case_of_filter(population: Population, folder: Path, z: int) -> Case:
    """Returns the rows of a name and a size that `zanon-net filter --levels chain` writes."""
    flows = population.flows.part(population.flows.tcp)
    size = np.ceil(np.log2(flows.c_bytes)).astype(np.int64)
    pairs, value = np.unique(flows.name // SERVERS * 64 + size, return_inverse=True)
    names = [
        labels_of_name(population.hosts.names[pair // 64 * SERVERS]) for pair in pairs.tolist()
    ]
    sizes = [str(1 << pair % 64) for pair in pairs.tolist()]
    columns = {
        "name": [(name, domain, kind or "category:none", "*") for name, domain, kind in names],
        "size": [(text, "small" if int(text) <= SMALL_BYTES else "large", "*") for text in sizes],
    }
    rows, source = folder / "out.csv", folder / "rows.csv"
    options = ["--time-unit", "ns", "--no-user", "--json", "--z", str(z), "--window", "1h"]
    options += ["--attribute", ",".join(columns), "--levels", "chain"]
    for name, lines in columns.items():
        path = folder / f"{name}.csv"
        path.write_text("".join(f"{';'.join(line)}\n" for line in dict.fromkeys(lines)))
        options += ["--hierarchy", f"{name}={path}"]
    texts = [f"{a[0]},{b[0]}" for a, b in zip(*columns.values(), strict=True)]
    visits = zip(flows.start_ns.tolist(), flows.user.tolist(), value.tolist(), strict=True)
    source.write_text(
        "time,user,name,size\n" + "".join(f"{t},u{u},{texts[v]}\n" for t, u, v in visits)
    )
    command = [*COMMAND, "filter", *options, str(source)]
    with rows.open("wb") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"filter: {done.stderr.strip()}")
    manifest = json.loads(done.stderr[done.stderr.index("{") :])
    steps = [step["levels"] for step in manifest["levels"]["steps"]]
    chains, numbers = numbered(
        [[f"{a[i]},{b[j]}" for i, j in steps] for a, b in zip(*columns.values(), strict=True)]
    )
    truth = Exposures.of(flows.start_ns, flows.user, value, chains)
    kinds = pc.ConvertOptions(column_types=dict.fromkeys(columns, pa.string()))
    table = pc.read_csv(rows, convert_options=kinds)
    shown = [
        f"{a},{b}" for a, b in zip(*(table[name].to_pylist() for name in columns), strict=True)
    ]
    return log_of(truth, table["time"].to_numpy(), shown, numbers)


def by_rule(make_rule: Callable[[World, int], Naive], truth: Exposures, z: int) -> LabelLog:
    """Returns what a simpler rule publishes of these exposures."""
    rule, chains = make_rule(World([], []), HOUR), [tuple(row) for row in truth.chains.tolist()]
    visits = zip(truth.time_ns.tolist(), truth.user.tolist(), truth.value.tolist(), strict=True)
    published = [
        (t, chains[value][level])
        for t, user, value in visits
        if (level := rule.observe(t, user, chains[value], z)) is not None
    ]
    return LabelLog(*np.array(published).T)


# ---- the attack ----------------------------------------------------------------------------------


def attack_labels(plan: LabelPlan, folder: Path) -> Iterator[Row]:
    """Yields the rows of labels: of the commands, and of the controls."""
    population = visited(plan)
    cases = dict(cases_of_run(population, folder, plan.z))
    cases["rows"] = case_of_filter(population, folder, plan.z)

    def row(view: str, what: str, case: Case) -> Row:
        """Attacks a log of labels."""
        truth, log = case
        every = 1 if view == "ours" else 1 + len(log.label) // MOST
        left = uncovered(log, truth.chains, HOUR, every)
        groups = users_behind(truth, log, left, plan.z, HOUR)
        score = Score(int((groups < plan.z).sum()), len(groups), 0.0)
        where = {"population": plan.kind, "view": view, "attack": f"labels of {what}"}
        smallest = int(groups.min()) if len(groups) else 0
        return where | {"knowledge": KNOWN, "z": plan.z} | score.as_json() | {"smallest": smallest}

    for what, case in cases.items():
        yield row("ours", what, case)
    for what in ("names", "addresses", "rows"):
        truth = cases[what][0]
        for rule in (Naive, Cascade):
            found = row(rule.__name__.lower(), what, (truth, by_rule(rule, truth, plan.z)))
            yield found | {"control": "live", "held": found["hits"] > 0}
    truth = cases["names"][0]
    alone = replace(truth, chains=truth.chains * [0, 0, 1])
    found = row("categories alone", "names", (alone, by_rule(Naive, alone, plan.z)))
    yield found | {"control": "dead", "held": found["hits"] == 0 < found["trials"]}
