# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""`zanon-net filter` with Parquet as input and as output."""

import datetime as dt
import io
import random
import subprocess
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
from support.cli import run_here
from support.filter import COMMAND, ENVIRONMENT

from zanon_net.config.filter_settings import FilterConfig
from zanon_net.errors import FormatError
from zanon_net.rows.parquet_rows import ParquetOutput

START = dt.datetime(2026, 5, 14, tzinfo=dt.UTC)
Row = tuple[int, str, str | None, float | None]


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def table_of(rows: list[Row], time: pa.DataType) -> pa.Table:
    seconds, users, attributes, prices = zip(*rows, strict=True) if rows else ((),) * 4
    times = [START + dt.timedelta(seconds=s) for s in seconds]
    return pa.table(
        {
            "price": pa.array(prices, pa.float32()),
            "note": pa.array(users, pa.string()),
            "time": pa.array(times, time),
            "attribute": pa.array(attributes, pa.dictionary(pa.int8(), pa.string())),
            "user": pa.array(users, pa.large_string()),
        }
    )


ROWS: list[Row] = [
    (0, "ann", "tea", 1.5),
    (1, "ann", "rare", None),
    (2, "bob", "tea", 2.5),
    (3, "cat", None, 0.5),
    (4, "cat", "tea", None),
]
TIME = pa.timestamp("us", "Europe/Rome")


def filtered(*arguments: object, stdin: bytes = b"") -> bytes:
    done = run_here("filter", "--z", 2, "-q", *arguments, stdin=stdin)
    assert done.returncode == 0, done.stderr
    assert not any(secret in done.stdout + done.stderr for secret in (b"bob", b"rare"))
    return done.stdout


def read(content: bytes) -> pa.Table:
    return pq.read_table(io.BytesIO(content))


@pytest.mark.parametrize("through", ["file", "standard input"])
def test_parquet_stays_parquet(through: str) -> None:
    pq.write_table(table_of(ROWS, TIME), "rows.parquet", row_group_size=2)
    if through == "file":
        out = read(filtered("--pass", "price", "rows.parquet"))
    else:
        with Path("rows.parquet").open("rb") as rows:
            command = [*COMMAND, "--z", "2", "-q", "--pass", "price"]
            done = subprocess.run(
                command, stdin=rows, capture_output=True, env=ENVIRONMENT, check=True
            )
        out = read(done.stdout)
    assert out.schema.names == ["time", "user", "attribute", "price"]
    assert out.schema.field("time").type == pa.timestamp("us", "UTC")
    assert out.schema.field("price").type == pa.float32()
    assert out.column("attribute").to_pylist() == ["tea", "tea"]
    assert out.column("price").to_pylist() == [2.5, None]
    assert out.column("time").to_pylist() == [START + dt.timedelta(seconds=s) for s in (2, 4)]
    assert {len(user) for user in out.column("user").to_pylist()} == {32}


def test_parquet_becomes_csv() -> None:
    pq.write_table(table_of(ROWS, TIME), "rows.parquet")
    out = filtered("--no-user", "--to", "csv", "rows.parquet")
    assert out.count(b"\n") == 3
    assert pa.csv.read_csv(io.BytesIO(out)).column("attribute").to_pylist() == ["tea"] * 2


@pytest.mark.parametrize("seed", range(2))
def test_parquet_decides_as_csv(seed: int) -> None:
    """And CSV becomes the same Parquet."""
    draw = random.Random(seed)
    rows = [
        (i // 2, draw.choice("abc"), draw.choice(["x", "y", 'z"\n,', None]), None)
        for i in range(300)
    ]
    table = table_of(rows, pa.timestamp("ns", "UTC")).select(["time", "user", "attribute", "note"])
    pq.write_table(table, "rows.parquet", row_group_size=70)
    pa.csv.write_csv(table, "rows.csv")
    options = ["--no-user", "--window", "4s", "--pass", "note", "--to", "parquet"]
    first = read(filtered(*options, "rows.parquet"))
    assert 0 < first.num_rows < 300
    assert first.to_pydict() == read(filtered(*options, "rows.csv")).to_pydict()


@pytest.mark.parametrize(
    ("unit", "times", "ns"),
    [
        ("s", ["1715670000", "1715670001.25"], 1_715_670_001_250_000_000),
        ("ms", ["1715670000000", "1715670000000.5"], 1_715_670_000_000_500_000),
        ("ns", ["1715670000000000000", "1715670000000000001"], 1_715_670_000_000_000_001),
        (
            "iso",
            ["2024-05-14T07:00:00Z", "2024-05-14T09:00:00.123456789+02:00"],
            1_715_670_000_123_456_789,
        ),
    ],
)
@pytest.mark.parametrize("form", ["csv", "jsonl", "tab"])
def test_text_becomes_parquet(form: str, unit: str, times: list[str], ns: int) -> None:
    rows = [(time, user) for time, user in zip(times, ("ann", "bob"), strict=True)]
    quote = '"' if unit == "iso" else ""
    text = {
        "csv": "time,user,attribute,p\n" + "".join(f'{t},{u},"news,a",\n' for t, u in rows),
        "tab": "time\tuser\tattribute\tp\n" + "".join(f"{t}\t{u}\tnews,a\t\n" for t, u in rows),
        "jsonl": "".join(
            f'{{"time":{quote}{t}{quote},"user":"{u}","attribute":"news,a"}}\n' for t, u in rows
        ),
    }[form]
    Path("rows").write_text(text)
    options = ["--time-unit", unit, "--to", "parquet", "--pass", "p"]
    options += ["--delimiter", "tab"] if form == "tab" else []
    out = read(filtered(*options, "rows"))
    assert out.column("time").cast(pa.int64()).to_pylist() == [ns]
    assert out.schema.field("time").type == pa.timestamp("ns", "UTC")
    assert out.column("attribute").to_pylist() == ["news,a"]
    assert out.column("p").to_pylist() == [None]


def test_no_row_is_a_file_with_columns() -> None:
    Path("rows.csv").write_text("time,user,attribute\n2024-05-14,ann,tea\n")
    out = read(filtered("--to", "parquet", "rows.csv"))
    assert out.num_rows == 0
    assert out.schema.names == ["time", "user", "attribute"]


def test_rows_before_damage_can_be_read() -> None:
    pq.write_table(table_of(ROWS * 200, TIME), "rows.parquet", row_group_size=500)
    content = bytearray(Path("rows.parquet").read_bytes())
    at = pq.read_metadata("rows.parquet").row_group(1).column(2).data_page_offset
    content[at : at + 20] = bytes(20)
    Path("rows.parquet").write_bytes(content)
    done = run_here("filter", "--z", 2, "-q", "rows.parquet")
    assert done.returncode == 1
    assert done.stderr == b"zanon-net: rows.parquet: the Parquet data is damaged\n"
    assert 0 < read(done.stdout).num_rows < 600


@pytest.mark.parametrize(
    ("options", "code", "problem"),
    [
        (["rows.parquet", "rows.csv"], 2, "files of Parquet and other sources cannot be one"),
        (["--to", "jsonl", "rows.parquet"], 2, "--to: Parquet can be written as parquet or csv"),
        (["--user", "nobody", "rows.parquet"], 2, "--user: there is no column 'nobody'"),
        (["--time-unit", "s", "rows.parquet"], 2, "--time-unit: column 'time' holds datetimes"),
        (
            ["--popularity", "p.json", "rows.parquet"],
            2,
            "--popularity: does not apply to Parquet; convert",
        ),
        (["--preset", "bind", "rows.parquet"], 2, "--preset: does not apply to Parquet"),
        (["cut.parquet"], 1, "cut.parquet: it is no Parquet file, or damaged"),
        (["-"], 1, "standard input: Parquet is read from its end; name a file"),
        (["rows.parquet", "other.parquet"], 2, "other.parquet: its columns and the columns of"),
    ],
)
def test_bad_input_is_one_line(options: list[str], code: int, problem: str) -> None:
    pq.write_table(table_of(ROWS, TIME), "rows.parquet")
    pq.write_table(table_of(ROWS, pa.timestamp("s")), "other.parquet")
    Path("rows.csv").write_text("time,user,attribute\n")
    content = Path("rows.parquet").read_bytes()
    Path("cut.parquet").write_bytes(content[:-9])
    done = run_here("filter", *options, "-q", stdin=content)
    assert done.returncode == code, done.stderr
    assert done.stderr.startswith(b"zanon-net: " + problem.encode()), done.stderr
    assert done.stderr.count(b"\n") == 1


def test_csv_cannot_hold_lists() -> None:
    lists = table_of(ROWS, TIME).append_column("tags", [[["rare"]] * len(ROWS)])
    pq.write_table(lists, "lists.parquet")
    done = run_here("filter", "--to", "csv", "--pass", "tags", "-q", "lists.parquet")
    _warning, *lines = done.stderr.splitlines()
    said = b"zanon-net: --to: CSV cannot hold column 'tags'; leave the column out, or write Parquet"
    assert (done.returncode, done.stdout, lines) == (2, b"", [said])


@pytest.mark.parametrize("row", [b"2026-05-14T00:00:00Z,ann,rare,tea", b"rare,ann,tea"])
def test_an_error_of_pyarrow_quotes_no_cell(row: bytes, capfd: pytest.CaptureFixture[str]) -> None:
    output = ParquetOutput(FilterConfig(z=2))
    output.take(b"time,user,attribute\n" + row + b"\n")
    with pytest.raises(FormatError, match="a row cannot be written as parquet") as caught:
        output.finish()
    assert "rare" not in str(caught.value)
    assert caught.value.__suppress_context__
    assert "rare" not in capfd.readouterr().out
