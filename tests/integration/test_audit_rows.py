# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit of rows of `filter` with the raw rows: each broken promise is found, and no other."""

import gzip
import json
import random
import shutil
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zstandard
from support.audit_rows import Manifest, Released, filtered
from support.cli import Captured, run_main
from support.filter import run_filter

from zanon_net.errors import ConfigError

START = 1_715_677_200  # 09:00 UTC
Z, WINDOW = 5, 600
NAMES = ("--time", "t", "--user", "who", "--attribute", "site", "--window", "10m")
Line = tuple[int, str, str, str]


def lines(count: int = 800, seed: int = 3) -> list[Line]:
    """Rows of 60 users in some windows: a few equal times, late rows and rows without a site."""
    rng = random.Random(seed)
    found = []
    for at in range(count):
        t = START + 4 * (at - at % 3 // 2) - (rng.randrange(300) if at % 50 == 7 else 0)
        site = f"site{int(rng.paretovariate(0.7))}.example" if at % 40 else ""
        found.append((t, f"user-{rng.randrange(60)}@mail", site, str(rng.randrange(3))))
    return found


def iso(t: int) -> str:
    return datetime.fromtimestamp(t, UTC).isoformat().replace("+00:00", "Z")


def as_csv(rows: list[Line]) -> str:
    return "t,who,site,place\n" + "".join(f"{iso(t)},{u},{s},{p}\n" for t, u, s, p in rows)


def as_json(rows: list[Line]) -> str:
    return "".join(
        json.dumps({"t": iso(t), "who": u, "site": s or None, "place": p}) + "\n"
        for t, u, s, p in rows
    )


def checks(released: Released, **options: Any) -> set[str]:
    return {one.check for one in released.findings(**options)}


# ---- no false alarm -----------------------------------------------------------------------------


@pytest.mark.family(7)
@pytest.mark.parametrize("to", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("z", [1, 2, 5, 20])
def test_an_untouched_release_raises_no_alarm(tmp_path: Path, z: int, form: str, to: str) -> None:
    raw = tmp_path / "raw"
    raw.write_text((as_csv if form == "csv" else as_json)(lines(seed=z)))
    options: list[object] = ["--suppressed", "blank"] if z % 2 else []
    released = filtered(tmp_path, [raw], *NAMES, "--z", z, "--to", to, *options, to=to)
    assert released.findings() == []
    assert released.manifest["rows"]["written"] > 300
    assert released.manifest["decisions"]["late"] > 0


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.ZstdCompressor().compress])
def test_several_packed_files_are_one_stream(
    tmp_path: Path, pack: Callable[[bytes], bytes]
) -> None:
    rows = lines()
    parts = [tmp_path / name for name in ("monday", "tuesday")]
    for path, half in zip(parts, (rows[:400], rows[400:]), strict=True):
        path.write_bytes(pack(as_csv(half).encode()))
    released = filtered(tmp_path, parts, *NAMES, "--z", Z, "--pass", "place", to="csv")
    assert released.findings() == []
    released.file.with_suffix(".csv.gz").write_bytes(gzip.compress(released.file.read_bytes()))
    (released.folder / "shared.csv").unlink()
    assert released.findings() == []


def test_a_header_that_is_a_setting_is_in_the_manifest(tmp_path: Path) -> None:
    raw = tmp_path / "raw"
    raw.write_text(as_csv(lines()).partition("\n")[2].replace(",", "\t"))
    named = ("--header", "t\twho\tsite\tplace", "--delimiter", "tab")
    released = filtered(tmp_path, [raw], *NAMES, "--z", Z, *named, to="csv")
    assert released.findings() == []


def test_a_key_file_makes_late_rows_comparable(tmp_path: Path, key_file: str) -> None:
    raw = tmp_path / "raw"
    raw.write_text(as_csv(lines()))
    released = filtered(tmp_path, [raw], *NAMES, "--z", Z, "--key-file", key_file, to="csv")
    assert released.findings() == []


# ---- seeded violations --------------------------------------------------------------------------


@pytest.fixture(scope="module")
def untouched(tmp_path_factory: pytest.TempPathFactory) -> Released:
    folder = tmp_path_factory.mktemp("untouched")
    raw = folder / "raw.csv"
    rows = sorted(lines(), key=lambda row: row[0])
    raw.write_text(as_csv(rows))
    made = filtered(folder, [raw], *NAMES, "--z", Z, to="csv")
    assert made.findings() == []
    return made


@pytest.fixture
def released(untouched: Released, tmp_path: Path) -> Released:
    """A copy, which the test changes."""
    [raw] = untouched.raw
    shutil.copytree(untouched.folder, tmp_path / "release")
    return Released(tmp_path / "release", [Path(shutil.copy(raw, tmp_path))])


def rows_of(released: Released) -> list[list[str]]:
    return [line.split(",") for line in released.file.read_text().splitlines()]


def write(released: Released, rows: list[list[str]], *, is_counted: bool = True) -> None:
    """Writes the rows, and their numbers into the manifest."""
    before = len(rows_of(released))
    released.file.write_text("".join(",".join(row) + "\n" for row in rows))

    def follow(manifest: Manifest) -> None:
        more = len(rows) - before
        manifest["rows"]["written"] += more
        manifest["decisions"]["released"] += more
        manifest["decisions"]["suppressed"]["below_z"] -= more

    if is_counted:
        released.edit_manifest(follow)


def rare_row(released: Released) -> list[str]:
    """A raw row of the only user of a site, in the form of the release."""
    raw = [line.split(",") for line in released.raw[0].read_text().splitlines()[1:]]
    count = Counter(row[2] for row in raw)
    t, _user, site, _place = next(row for row in raw if row[2] and count[row[2]] == 1)
    return [t, "0123456789abcdef" * 2, site]


def _below_z(released: Released) -> None:
    rows = rows_of(released)
    write(released, [*rows, rare_row(released)])


def _twice(released: Released) -> None:
    rows = rows_of(released)
    write(released, [*rows[:9], rows[8], *rows[9:]])


def _other_time(released: Released) -> None:
    rows = rows_of(released)
    rows[8][0] = iso(START + 100 * WINDOW)
    write(released, rows)


def _user_in_the_attribute(released: Released) -> None:
    rows = rows_of(released)
    rows[8][2] = "user-7@mail"
    write(released, rows)


def _user_in_its_own_column(released: Released) -> None:
    rows = rows_of(released)
    rows[8][1] = "user-7@mail"
    write(released, rows)


def of_two_users(released: Released) -> tuple[list[list[str]], int]:
    """The rows of a release, and the place of the second of two rows of two users in an epoch."""
    rows = rows_of(released)
    at = next(at for at in range(9, len(rows)) if rows[at][1] != rows[8][1])
    return rows, at


def _two_users_of_one_pseudonym(released: Released) -> None:
    rows, at = of_two_users(released)
    rows[at][1] = rows[8][1]
    write(released, rows)


def _two_pseudonyms_of_one_user(released: Released) -> None:
    rows = rows_of(released)
    again = Counter(row[1] for row in rows)
    next(row for row in rows if again[row[1]] > 1)[1] = "0123456789abcdef" * 2
    write(released, rows)


def _pseudonym_of_two_epochs(released: Released) -> None:
    rows = rows_of(released)
    rows[-1][1] = rows[1][1]
    write(released, rows)


def _number(part: str, name: str, more: int) -> Callable[[Released], None]:
    def change(manifest: Manifest) -> None:
        manifest[part][name] += more

    return lambda released: released.edit_manifest(change)


def _cut(released: Released) -> None:
    released.file.write_bytes(released.file.read_bytes()[:-9])


def _without_last_feed(released: Released) -> None:
    released.file.write_bytes(released.file.read_bytes()[:-1])


def _extra_column(released: Released) -> None:
    rows = rows_of(released)
    write(released, [[*row, "note" if at == 0 else "x"] for at, row in enumerate(rows)])


def _extra_column_of_users(released: Released) -> None:
    rows = rows_of(released)
    write(released, [[*row, "note" if at == 0 else "user-7@mail"] for at, row in enumerate(rows)])


def _extra_cell_with_a_hidden_site(released: Released) -> None:
    rows = rows_of(released)
    rows[8].append(rare_row(released)[2])
    write(released, rows)


def _blank(released: Released) -> None:
    rows = rows_of(released)
    rows[8][2] = ""
    write(released, rows)


def _blank_line(released: Released) -> None:
    released.file.write_text(released.file.read_text().replace("\n", "\n\n", 2))


def _rows_left_out(released: Released) -> None:
    rows = rows_of(released)
    write(released, rows[:20] + rows[90:])


def _edge_of_the_window(released: Released) -> None:
    """A row leaves a nanosecond after the last time at which it could."""
    rows = rows_of(released)
    rows[8][0] = rows[8][0].replace("Z", ".000000001Z")
    write(released, rows)


def _other_order(released: Released) -> None:
    write(released, [[row[1], row[0], row[2]] for row in rows_of(released)])


def _file_with_a_user(released: Released) -> None:
    (released.folder / "notes.txt").write_text("ask user-7@mail about it\n")


def _file_with_a_packed_site(released: Released) -> None:
    site = rare_row(released)[2].encode()
    (released.folder / "notes.txt").write_text(f"url=%{site[:1].hex()}{site[1:].decode()}\n")


def _user_in_the_manifest(released: Released) -> None:
    released.edit_manifest(lambda manifest: manifest.update(comment="for user-7@mail"))


SEEDED: dict[Callable[[Released], None], set[str]] = {
    _below_z: {"names", "hidden"},
    _twice: {"names"},
    _other_time: {"names"},
    _user_in_the_attribute: {"names", "addresses"},
    _user_in_its_own_column: {"format", "addresses"},
    _two_users_of_one_pseudonym: {"pseudonyms"},
    _two_pseudonyms_of_one_user: {"pseudonyms"},
    _pseudonym_of_two_epochs: {"pseudonyms"},
    _cut: {"format", "names"},
    _without_last_feed: {"format"},
    _extra_column: {"format"},
    _extra_column_of_users: {"format", "addresses"},
    _extra_cell_with_a_hidden_site: {"format", "hidden"},
    _blank: {"format", "sums"},
    _blank_line: {"format", "sums"},
    _rows_left_out: {"sums"},
    _edge_of_the_window: {"names"},
    _other_order: {"format"},
    _file_with_a_user: {"addresses"},
    _file_with_a_packed_site: {"hidden"},
    _user_in_the_manifest: {"addresses"},
    **{
        _number(part, name, more): {"sums"}
        for part, name, more in (
            ("rows", "read", 1),
            ("rows", "written", -1),
            ("rows", "no_attribute", 1),
            ("decisions", "observations", -1),
            ("decisions", "released", 1),
        )
    },
}


@pytest.mark.parametrize("edit", SEEDED)
def test_a_seeded_violation_is_found(edit: Callable[[Released], None], released: Released) -> None:
    edit(released)
    assert checks(released) >= SEEDED[edit]


@pytest.mark.family(6)
@pytest.mark.parametrize("edit", SEEDED)
def test_the_command_names_the_check_and_no_data(
    edit: Callable[[Released], None], released: Released, capfd: Captured
) -> None:
    edit(released)
    own = [arg for name in SEEDED[edit] for arg in ("--check", name)]
    assert run_main("audit", released.folder, "--raw", released.raw[0], *own) == 3
    shown = capfd.readouterr().out
    assert "broken" in shown
    assert "user-7" not in shown
    assert rare_row(released)[2] not in shown


def test_a_label_below_z_in_parquet_is_found(tmp_path: Path) -> None:
    raw = tmp_path / "raw.csv"
    raw.write_text(as_csv(lines()))
    released = filtered(tmp_path, [raw], *NAMES, "--z", Z, "--to", "parquet", to="parquet")
    table = pq.read_table(released.file)
    sites = table.column("site").to_pylist()
    sites[7] = "user-7@mail"
    pq.write_table(table.set_column(2, "site", pa.array(sites)), released.file)
    assert checks(released) >= {"names", "addresses"}


def test_a_name_never_to_release_is_found(tmp_path: Path) -> None:
    raw, never = tmp_path / "raw.csv", tmp_path / "never.txt"
    raw.write_text(as_csv(lines()))
    never.write_text("site1.example\n")
    released = filtered(tmp_path, [raw], *NAMES, "--z", Z, "--never", never, to="csv")
    assert released.findings(never=["site1.example"]) == []
    with pytest.raises(ConfigError, match="2 suffixes, and the run had 1"):
        released.findings(never=["site1.example", "site2.example"])
    assert checks(released, never=["site2.example"]) >= {"reasons", "sums"}


def test_the_details_have_the_texts_and_the_page_has_the_checks(released: Released) -> None:
    _below_z(released)
    details, page = released.folder.parent / "details.jsonl", released.folder.parent / "page.html"
    table = released.folder.parent / "audit.json"
    files = ("--details", details, "--html", page, "--json", table)
    assert run_main("audit", released.folder, "--raw", released.raw[0], "-q", *files) == 3
    site = rare_row(released)[2]
    assert site in details.read_text()
    assert site not in page.read_text() + table.read_text()
    found = {one["check"] for one in json.loads(table.read_text())["violations"]}
    assert {"names", "hidden"} <= found
    assert all(name in page.read_text() for name in found)


# ---- what has no check --------------------------------------------------------------------------


def test_rows_that_only_the_run_could_read_leave_values_unproven(released: Released) -> None:
    lines_ = released.raw[0].read_text().splitlines(keepends=True)
    lines_[40] = "x" + lines_[40]
    released.raw[0].write_text("".join(lines_))
    names = [one for one in released.findings() if one.check == "names"]
    assert not any(one.proven for one in names)


def _preset(manifest: Manifest) -> None:
    manifest["configuration"]["preset"] = "zeek-dns"


def _levels(manifest: Manifest) -> None:
    manifest["configuration"]["levels"] = ["domain"]


def _parquet(manifest: Manifest) -> None:
    manifest["configuration"]["format"] = "parquet"


def _old_header(manifest: Manifest) -> None:
    manifest["configuration"]["header"] = True


def _damaged(manifest: Manifest) -> None:
    manifest["rows"] = None


def _other_column(manifest: Manifest) -> None:
    manifest["configuration"]["user"] = "nobody"


def _other_day(manifest: Manifest) -> None:
    for name in ("first_ns", "last_ns"):
        manifest["time_range"][name] += 86_400 * 10**9


REFUSED: dict[Callable[[Manifest], None], tuple[int, str]] = {
    _preset: (1, "made with --preset"),
    _levels: (1, "made with --levels"),
    _parquet: (1, "made with Parquet as input"),
    _old_header: (1, "repeat the run"),
    _damaged: (1, "damaged"),
    _other_column: (2, "has not each column of the run once"),
    _other_day: (2, "cover 0.0% of the release's time"),
}


@pytest.mark.parametrize("change", REFUSED)
def test_what_has_no_check_is_one_line(
    released: Released, capfd: Captured, change: Callable[[Manifest], None]
) -> None:
    released.edit_manifest(change)
    code, text = REFUSED[change]
    assert run_main("audit", released.folder, "--raw", released.raw[0], "--check", "names") == code
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert text in error


def test_raw_rows_in_the_folder_of_the_release_are_refused(
    released: Released, capfd: Captured
) -> None:
    inside = released.raw[0].rename(released.folder / "raw.csv")
    assert run_main("audit", released.folder, "--raw", inside, "--check", "names") == 2
    assert "move them out of it" in capfd.readouterr().err


@pytest.mark.parametrize("option", ["list", "internal"])
def test_options_of_captures_are_refused(
    option: str, released: Released, tmp_path: Path, capfd: Captured
) -> None:
    (tmp_path / "list").write_text("site1.example\n")
    value = tmp_path / "list" if option == "list" else "10.0.0.0/8"
    raw = ("--raw", released.raw[0], "--check", "names")
    assert run_main("audit", released.folder, *raw, f"--{option}", value) == 2
    error = capfd.readouterr().err
    assert error.count("\n") == 1
    assert f"{option}: it is for captures; " in error


def test_a_row_without_a_user_has_no_pseudonym(tmp_path: Path) -> None:
    """A text of --null, and null of JSON, mean that the user is missing."""
    raw = tmp_path / "raw"
    raw.write_text('{"t":1,"who":"-","site":"-"}\n{"t":2,"who":null,"site":null}\n{"t":3}\n')
    null = ("--null", "-", "--time-unit", "s", "--suppressed", "blank")
    done = run_filter(*NAMES, "--z", 2, *null, raw)
    assert (done.returncode, done.stdout) == (0, b"")
