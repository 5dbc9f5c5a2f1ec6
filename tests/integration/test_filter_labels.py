# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter --levels` with the levels of `run`: names and addresses leave as labels."""

import csv
import hashlib
import io
import json
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from support.cli import run_here
from support.engine import run
from support.filter import S
from support.level_sites import LEVELS, Site, expected, hellos, sites, visits
from support.packets import MINUTE

from zanon_net.audit import audit
from zanon_net.cli import main
from zanon_net.config.name_lists import PUBLIC

Captured = pytest.CaptureFixture[str]
Z, WINDOW = 3, 5 * MINUTE
Visit = tuple[int, int, int]
"""Time, user and number of the site."""


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def write_lists(lists: dict[str, Any], networks: str) -> None:
    """Writes the lists of `sites` as files."""
    names = [name.decode() for name, _skipped in lists["categories"]]
    public = [name.decode() for name, bits, _category in lists["suffixes"] if bits & PUBLIC]
    kinds = [
        f"{name.decode()}\t{names[category - 1]}\n"
        for name, _bits, category in lists["suffixes"]
        if category
    ]
    Path("rules.dat").write_text("\n".join(public) + "\n")
    Path("kinds.tsv").write_text("".join(kinds))
    Path("networks.tsv").write_text(networks)


OPTIONS = {
    "name": "--levels domain,category --suffixes rules.dat --categories kinds.tsv",
    "address": "--levels as,country --networks networks.tsv",
}


def rows_written(kind: str, rows: list[tuple[int, int, str]], *more: str) -> list[tuple[int, str]]:
    """Times and values of the rows that leave."""
    lines = "".join(f"{t},u{user},{value}\n" for t, user, value in rows)
    command = f"filter --time-unit ns --z {Z} --window {WINDOW // S}s --no-user -q"
    done = run_here(
        *command.split(),
        *OPTIONS[kind].split(),
        *more,
        stdin=b"time,user,attribute\n" + lines.encode(),
    )
    assert done.returncode == 0, done.stderr
    found = list(csv.reader(io.StringIO(done.stdout.decode())))
    return [(int(t), value) for t, value in found[1:]]


def world(seed: int) -> tuple[list[Site], list[Visit], dict[str, Any]]:
    rng = random.Random(seed)
    found, lists, networks = sites(rng)
    write_lists(lists, networks)
    made = [(t + 1000 * i, u, s) for i, (t, u, s) in enumerate(visits(rng, len(found), 700))]
    return found, made, lists


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("kind", OPTIONS)
def test_rows_leave_at_the_level_that_the_rule_chooses(kind: str, seed: int) -> None:
    found, made, _lists = world(seed)
    chains = [found[s].labels() if kind == "name" else found[s].places(u) for _t, u, s in made]
    rows = [(t, u, str(chain[0])) for (t, u, _s), chain in zip(made, chains, strict=True)]
    published = expected([(t, u) for t, u, _s in made], [tuple(c) for c in chains], WINDOW, Z)
    assert rows_written(kind, rows) == [(made[i][0], text) for i, text, _level in published]
    levels = Counter(level for _i, _text, level in published)
    assert min(levels[level] for level in range(3)) > 5
    assert len(published) < len(made) - 5


@pytest.mark.parametrize("seed", range(3))
def test_run_gives_the_same_labels(seed: int) -> None:
    found, made, lists = world(seed)
    frames = hellos([(t, u, found[s].name.encode()) for t, u, s in made])
    outcome = run(frames, z=Z, window_ns=WINDOW, levels=LEVELS[:2], established=False, **lists)
    of_run = [(o["t_ns"], o["name"]) for o in outcome.observations]
    assert len({name for _t, name in of_run}) > 5
    assert rows_written("name", [(t, u, found[s].name) for t, u, s in made]) == of_run


def lists_by_hand() -> None:
    Path("rules.dat").write_text("org\ntest\n")
    Path("kinds.tsv").write_text("a.org\tnews\nb.org\tnews\nc.org\tcdn\n")
    Path("networks.tsv").write_text("198.51.100.0/24\t64500\tIT\n2001:db8::/32\t64501\tIT\n")


def decided(kind: str, values: list[str], *more: str) -> tuple[list[str], dict[str, Any]]:
    """The values that leave, each exposed by a user of its own a second after the other, and the
    manifest."""
    lines = "".join(f"{t},u{t},{value}\n" for t, value in enumerate(values))
    words = f"filter --time-unit s --z {Z} --no-user --json".split()
    done = run_here(
        *words, *OPTIONS[kind].split(), *more, stdin=b"time,user,attribute\n" + lines.encode()
    )
    assert done.returncode == 0, done.stderr
    found = list(csv.reader(io.StringIO(done.stdout.decode())))
    return [value for _t, value in found[1:]], json.loads(done.stderr)


def test_names_are_counted_in_one_form() -> None:
    lists_by_hand()
    written, manifest = decided("name", ["www.A.org", "www.a.org.", "www.a.org:443", "x.a.org"])
    assert written == ["www.a.org"]
    assert manifest["decisions"]["observations"] == 4
    assert manifest["levels"]["published"] == {"name": 1, "domain": 0, "category": 0}


def test_addresses_are_counted_in_one_form() -> None:
    lists_by_hand()
    same = ["2001:DB8::1", "2001:db8:0::1", "2001:db8::0:1"]
    written, _manifest = decided("address", same)
    assert written == ["2001:db8::1"]
    others = ["198.51.100.1", "::ffff:198.51.100.2", "198.51.100.3", "2001:db8::2", "127.0.0.1"]
    written, manifest = decided("address", others)
    assert written == ["as:64500"]
    assert manifest["decisions"]["suppressed"]["invalid"] == 1
    country = ["198.51.100.1", "198.51.100.2", "2001:db8::2"]
    assert decided("address", country)[0] == ["country:IT"]


def test_no_value_is_taken_for_a_label() -> None:
    """A text that is no name is suppressed, however many users have it."""
    lists_by_hand()
    texts = ["*.a.org", "category:news", "country:IT", "192.0.2.1", "two words", "printer.local"]
    written, manifest = decided(
        "name", [*(text for text in texts for _ in range(5)), "", "y.a.org"]
    )
    assert written == []
    suppressed = manifest["decisions"]["suppressed"]
    assert (suppressed["invalid"], suppressed["home"], suppressed["below_z"]) == (25, 5, 1)
    assert manifest["rows"]["no_attribute"] == 1
    assert manifest["decisions"]["observations"] == 31
    assert decided("address", ["as:64500"] * 4 + ["198.51.100.1"])[0] == []


LISTED: dict[str, tuple[str, list[str], str]] = {
    "never": ("--never list", ["*.b.org"], "never"),
    "skip": ("--skip list", ["*.b.org"], "skipped"),
    "skip a category": ("--skip category:news", ["*.c.org"], "skipped"),
    "only": ("--only list", ["*.a.org"], "not_listed"),
}


@pytest.mark.parametrize("case", LISTED)
def test_listed_names_cast_no_vote_and_are_no_label(case: str) -> None:
    lists_by_hand()
    Path("list").write_text("a.org\n")
    options, expected_, reason = LISTED[case]
    other = "c.org" if "category" in options else "b.org"
    values = [f"n{i}.{domain}" for domain in ("a.org", other) for i in range(3)]
    written, manifest = decided("name", values, *options.split())
    assert written == expected_
    assert manifest["decisions"]["suppressed"][reason] == 3
    assert "a.org" not in json.dumps(manifest)


def test_a_domain_below_which_a_name_is_never_shown_is_no_label() -> None:
    lists_by_hand()
    Path("list").write_text("secret.a.org\n")
    values = ["x.secret.a.org", *(f"n{i}.a.org" for i in range(3))]
    written, _manifest = decided("name", values, "--never", "list")
    assert written == ["category:news"]


def test_the_manifest_has_the_lists_and_no_label() -> None:
    lists_by_hand()
    values = [f"n{i}.a.org" for i in range(4)] + [f"n{i}.b.org" for i in range(2)]
    written, manifest = decided("name", values)
    assert written == ["*.a.org", "*.a.org"]
    configuration = manifest["configuration"]
    assert configuration["levels"] == ["domain", "category"]
    for name, path, rows in (("suffixes", "rules.dat", 2), ("categories", "kinds.tsv", 3)):
        shown = configuration[name] if name == "suffixes" else configuration[name][0]
        digest = hashlib.sha256(Path(path).read_bytes()).hexdigest()
        assert shown == {"name": path, "rows": rows, "sha256": digest}
    levels = manifest["levels"]
    assert levels["published"] == {"name": 0, "domain": 2, "category": 0}
    assert [table["level"] for table in levels["tables"]] == ["name", "domain", "category"]
    assert levels["users_behind"] == {"smallest": 3, "median": 3}
    assert not [word for word in ("a.org", "news") if word in json.dumps(manifest)]
    _written, manifest = decided("address", ["198.51.100.1"])
    assert manifest["configuration"]["levels"] == ["as", "country"]
    [networks] = manifest["configuration"]["networks"]
    assert (networks["name"], networks["rows"]) == ("networks.tsv", 2)
    assert manifest["levels"]["published"] == {"address": 0, "as": 0, "country": 0}


def test_blank_rows_and_a_summary(capsys: Captured) -> None:
    lists_by_hand()
    lines = "".join(f'{{"time":{t},"user":{t},"host":"n{t}.a.org"}}\n' for t in range(3))
    Path("rows.jsonl").write_text(lines + '{"time":3,"user":3,"host":null}\n')
    words = [
        "filter",
        "--time-unit",
        "s",
        "--z",
        "3",
        "--attribute",
        "host",
        "--suppressed",
        "blank",
    ]
    assert main([*words, *OPTIONS["name"].split(), "--no-user", "rows.jsonl"]) == 0
    out, err = capsys.readouterr()
    assert [json.loads(line)["host"] for line in out.splitlines()] == [None, None, "*.a.org", None]
    assert "1  domain" in err
    assert "z users stand behind each label" in " ".join(err.split())


def test_settings_from_a_file(capsys: Captured) -> None:
    lists_by_hand()
    Path("settings").mkdir()
    Path("rules.dat").rename("settings/rules.dat")
    Path("settings/filter.toml").write_text(
        '[filter]\nlevels = ["domain"]\nsuffixes = "rules.dat"\nz = 3\ntime_unit = "s"\n'
    )
    lines = "".join(f"{t},u{t},n{t}.a.org\n" for t in range(3))
    Path("rows.csv").write_text("time,user,attribute\n" + lines)
    assert main(["filter", "-q", "--config", "settings/filter.toml", "--no-user", "rows.csv"]) == 0
    assert capsys.readouterr().out.splitlines() == ["time,attribute", "2,*.a.org"]


def test_an_audit_takes_labels_for_suppressed_names(tmp_path: Path) -> None:
    lists_by_hand()
    values = [f"n{i}.a.org" for i in range(9)] + ["www.b.org"] * 5
    lines = "".join(f"{t},u{t},{value}\n" for t, value in enumerate(values))
    words = f"filter --time-unit s --z {Z} --json".split()
    done = run_here(
        *words, *OPTIONS["name"].split(), stdin=b"time,user,attribute\n" + lines.encode()
    )
    folder = tmp_path / "shared"
    folder.mkdir()
    (folder / "a.csv").write_bytes(done.stdout)
    (folder / "manifest.json").write_bytes(done.stderr)
    facts = audit(folder, purpose="internal").facts
    assert (facts["records"], facts["records_with_a_name"], facts["names"]) == (10, 3, 1)


BAD = {
    "--levels domain,as": "--levels: domain and category are of names, as and country of addresses",
    "--levels domain,domain": "--levels: domain is named twice",
    "--levels category": "--levels: category needs --categories FILE",
    "--levels country": "--levels: country needs --networks FILE",
    "--levels domain --suffixes none.dat": "--suffixes: cannot read none.dat",
    "--levels domain --suffixes rules.dat --networks networks.tsv": "--networks: are not used",
    "--levels domain --suffixes rules.dat --attribute a,b": "--levels: domain is for one attribute",
    "--levels domain --suffixes rules.dat --z 1001": "--levels: z and z_max must be at most 1,000",
    "--levels domain --suffixes rules.dat --hierarchy a=b": "--hierarchy: is for rows that leave",
    "--levels domain --suffixes rules.dat --popularity p": "--popularity: counts users of one",
    "--levels domain --suffixes rules.dat --preset zeek-dns": "--levels: --preset zeek-dns fixes",
    "--suffixes rules.dat": "--suffixes: are not used; add --levels domain",
    "--only rules.dat": "--only: is for --levels domain and --levels category",
    "--levels as --networks networks.tsv --skip rules.dat": "--skip: is for --levels domain",
    "--levels as --networks networks.tsv": "as does not fit: no value of --attribute is an address",
}


@pytest.mark.parametrize("options", BAD)
def test_options_that_do_not_fit_end_it_with_one_line(options: str, capsys: Captured) -> None:
    lists_by_hand()
    Path("rows.csv").write_text("time,user,attribute,a,b\n1,u,a.org,x,y\n")
    code = main(["filter", "rows.csv", "--time-unit", "s", *options.split()])
    err = capsys.readouterr().err
    assert BAD[options] in err
    assert err.count("\n") == 1
    assert code == (1 if "none.dat" in options else 2)
