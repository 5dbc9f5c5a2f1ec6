# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""md.Publisher: the same rows as the text front end; its state; a Publisher for each key."""

import csv
import io
import random
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from support.publish import AGE, CITY, csv_bytes, publish

from zanon_net import microdata as md
from zanon_net.errors import ConfigError, FormatError
from zanon_net.microdata.flink_function import PublishFunction

pa = pytest.importorskip("pyarrow")

S = 1_000_000_000
NAMES = ("time", "user", "city", "age", "product")
Row = tuple[int, str, str | None, int | None, str | None]


def rows_of(n: int, seed: int = 1) -> list[Row]:
    """Rows in bursts, some out of order."""
    chance = random.Random(seed)
    rows, now = [], 1000
    for _ in range(n):
        now += chance.choice((0, 0, 0, 1, 2, 5))
        rows.append(
            (
                now - chance.choice((0, 0, 0, 3, 20)),
                f"user{chance.randrange(30)}",
                chance.choice(("bern", "genf", "graz", "wien", None)),
                chance.choice((1, 12, 25, 33, 50, None)),
                chance.choice(("tea", "tea", "jam", "oil", None)),
            )
        )
    return rows


def table_of(rows: list[Row]) -> Any:
    columns = zip(*rows, strict=True)
    arrays = [
        pa.array(column, pa.int64() if i in (0, 3) else pa.string())
        for i, column in enumerate(columns)
    ]
    return pa.table(dict(zip(NAMES, arrays, strict=True)))


def plan_of(**more: Any) -> md.Plan:
    usual = {"user": "user", "sensitive": "product", "k": 3, "l": 2}
    return md.Plan(quasi={"city": CITY, "age": md.Round(10, 0, 39)}, **usual | more)


def open_publisher(plan: md.Plan | None = None, **more: Any) -> md.Publisher:
    usual = {"rows": 12, "delay": "10s", "time_unit": "s"}
    return md.Publisher(plan or plan_of(), **usual | more)


def run(rows: list[Row], size: int, publisher: md.Publisher) -> list[Any]:
    tables = [publisher.feed(table_of(rows[i : i + size])) for i in range(0, len(rows), size)]
    return [row for table in (*tables, publisher.flush()) for row in table.to_pylist()]


SETTINGS = [
    {},
    {"delay": None},
    {"buffer": "sliding"},
    {"buffer": "sliding", "delay": None},
    {"once": "20s"},
    {"adapt_l": "3:down"},
]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_the_same_rows_as_the_text(settings: dict[str, Any]) -> None:
    rows = rows_of(400)
    publisher = open_publisher(**settings)
    released = run(rows, 50, publisher)
    data = csv_bytes([(*row, "x") for row in rows])
    options = {"rows": 12, "delay": "10s", "k": 3, "l": 2} | settings
    out, by_text = publish(data, **options)
    written = list(csv.reader(io.StringIO(out.decode(), newline="")))[1:]
    as_text = [["" if v is None else str(v) for v in row.values()] for row in released]
    assert len(written) > 100
    assert Counter(map(tuple, as_text)) == Counter(map(tuple, written))
    assert [row[0] for row in as_text] == [row[0] for row in written]
    counts, report = by_text.window, publisher.report()
    assert report["rows"]["suppressed"] == counts["suppressed"]
    assert report["windows"] == counts["windows"]


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_any_batches_give_the_same(settings: dict[str, Any]) -> None:
    rows = rows_of(120)
    whole = run(rows, len(rows), open_publisher(**settings))
    assert whole
    assert run(rows, 1, open_publisher(**settings)) == whole
    assert run(rows, 7, open_publisher(**settings)) == whole


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_restored_at_any_row(settings: dict[str, Any]) -> None:
    rows, plan = rows_of(90), plan_of()
    whole, publisher = run(rows, 90, open_publisher(**settings)), open_publisher(**settings)
    released = []
    for i, row in enumerate(rows):
        released += publisher.feed(table_of([row])).to_pylist()
        state = publisher.state(with_plan=i % 2 == 0)
        publisher = md.Publisher.restore(state, None if i % 2 == 0 else plan)
        assert publisher.state(with_plan=i % 2 == 0) == state
    released += publisher.flush().to_pylist()
    assert released == whole


def test_a_state_is_checked() -> None:
    publisher = open_publisher()
    publisher.feed(table_of(rows_of(5)))
    state = publisher.state(with_plan=False)
    with pytest.raises(FormatError, match="not a state of a publisher"):
        md.Publisher.restore(state[:-1] + bytes([state[-1] ^ 1]), plan_of())
    with pytest.raises(FormatError, match="not a state of a publisher"):
        md.Publisher.restore(b"", plan_of())
    with pytest.raises(ConfigError, match="plan: differs from the plan of the state"):
        md.Publisher.restore(state, plan_of(k=2))
    with pytest.raises(ConfigError, match="plan: the state has no plan"):
        md.Publisher.restore(state)


def test_types_of_times_stay() -> None:
    stamps = pa.array([10, 11, 12], pa.timestamp("ms", "Europe/Rome"))
    columns = {"time": stamps, "city": ["bern"] * 3, "age": [1, 2, 3]}
    plan = md.Plan(quasi={"city": CITY, "age": AGE}, k=3)
    publisher = md.Publisher(plan, rows=3)
    released = publisher.feed(pa.table(columns))
    assert released.column("time").type == stamps.type
    assert released.column("time").cast(pa.int64()).to_pylist() == [12, 12, 12]
    assert released.column("age").to_pylist() == ["<10"] * 3
    texts = md.Publisher(plan, rows=3).feed(
        {
            "time": [f"2024-01-01T00:00:0{i}Z" for i in range(3)],
            "city": ["bern"] * 3,
            "age": [1] * 3,
        }
    )
    assert texts.column("time").to_pylist() == ["2024-01-01T00:00:02Z"] * 3


@pytest.mark.parametrize(
    ("problem", "make"),
    [
        ("t: is about the whole", lambda: open_publisher(plan_of(t=0.5))),
        ("k: 20 do not fit", lambda: open_publisher(plan_of(k=20))),
        ("l: 13 do not fit", lambda: open_publisher(plan_of(l=13))),
        ("time: 'city' is named already", lambda: open_publisher(time="city")),
        ("once: is about users", lambda: open_publisher(plan_of(user=None), once="1s")),
        ("adapt_l: needs", lambda: open_publisher(adapt_l=1)),
        ("quasi: 'age'", lambda: md.Publisher(md.Plan(quasi=["age"]))),
        ("quasi: 'age'", lambda: md.Publisher(md.Plan(quasi={"age": md.Round(10, 0)}))),
        ("delay", lambda: open_publisher(delay="soon")),
        ("delay: is needed", lambda: PublishFunction(plan_of())),
        ("the batch: there is no column 'time'", lambda: open_publisher().feed({"x": [1]})),
    ],
)
def test_wrong_settings(problem: str, make: Callable[[], object]) -> None:
    with pytest.raises(ConfigError, match=problem):
        make()


def test_unknown_values() -> None:
    row = (1000, "ann", "atlantis", 3, "tea")
    with pytest.raises(FormatError, match=r"row 1: column 'city'") as caught:
        open_publisher().feed(table_of([row]))
    assert "atlantis" not in str(caught.value)
    for unknown, suppressed in (("suppress", 1), ("top", 0)):
        publisher = open_publisher(plan_of(unknown=unknown))
        publisher.feed(table_of([row]))
        assert publisher.report()["rows"]["suppressed"]["unknown"] == suppressed


# ---- a Publisher for each key -------------------------------------------------------------------


class Driver:
    """A keyed stream in this process: states and timers of keys, and the stream's time."""

    def __init__(self, make: Callable[[], PublishFunction]) -> None:
        self.make, self.states, self.timers = make, {}, set()
        self.key: Any = None
        self.released: dict[Any, list[Any]] = {}
        self.restart()

    def restart(self) -> None:
        """As after a failure: a new function, with the states of the checkpoint."""
        self.function = self.make()
        self.function.open(self)

    def get_state(self, _descriptor: object) -> "Driver":
        return self

    def value(self) -> bytes | None:
        return self.states.get(self.key)

    def update(self, value: bytes) -> None:
        self.states[self.key] = value

    def get_current_key(self) -> Any:
        return self.key

    def timer_service(self) -> "Driver":
        return self

    def register_event_time_timer(self, timestamp: int) -> None:
        self.timers.add((timestamp, self.key))

    def _collect(self, tables: Iterator[Any]) -> None:
        for table in tables:
            self.released.setdefault(self.key, []).extend(table.to_pylist())

    def element(self, key: Any, batch: Any) -> None:
        self.key = key
        self._collect(self.function.process_element(batch, self))

    def watermark(self, time_ms: int) -> None:
        while due := sorted(timer for timer in self.timers if timer[0] <= time_ms):
            self.timers.remove(due[0])
            self.key = due[0][1]
            self._collect(self.function.on_timer(due[0][0], self))


def drive(rows: list[Row], size: int, *, restart: int = 0) -> dict[Any, list[Any]]:
    plan = plan_of(k=2, l=1)
    make = lambda: PublishFunction(plan, rows=12, delay="10s", time_unit="s")  # noqa: E731
    driver = Driver(make)
    partition = plan.partition(table_of(rows), 3)
    assert len(partition) == 3
    for number, i in enumerate(range(0, len(rows), size), start=1):
        batch = table_of(rows[i : i + size])
        parts = partition.of(batch)
        for key in sorted(set(parts.tolist())):
            driver.element(key, batch.filter(pa.array(parts == key)))
        driver.watermark(min(row[0] for row in rows[i:]) * 1000 - 1)
        if restart and number % restart == 0:
            driver.restart()
    driver.watermark(1 << 60)
    return driver.released


def test_keys_and_timers() -> None:
    rows = rows_of(300)
    released = drive(rows, 10)
    assert len(released) == 3
    assert sum(map(len, released.values())) > 200


def test_a_restart_at_any_element_changes_nothing() -> None:
    rows = rows_of(150)
    expected = drive(rows, 5)
    assert drive(rows, 5, restart=1) == expected
    assert drive(rows, 5, restart=4) == expected


def test_parts_have_k_users() -> None:
    rows = rows_of(300)
    table, plan = table_of(rows), plan_of(k=20)
    partition = plan.partition(table, 64)
    parts = partition.of(table)
    assert 1 < len(partition) <= 64
    for part in range(len(partition)):
        assert len({row[1] for row, own in zip(rows, parts, strict=True) if own == part}) >= 20
    with pytest.raises(ConfigError, match="k: the table has fewer than 31 users"):
        plan_of(k=31).partition(table, 4)


def test_no_label_that_no_row_has_comes_along() -> None:
    """A dictionary of all labels would show the values of rows that were suppressed."""
    publisher = open_publisher(plan_of(k=2, l=1), rows=2)
    rows = [(1000, "user1", "bern", 1, "tea"), (1000, "user2", "bern", 1, "tea")]
    released = publisher.feed(table_of(rows))
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, released.schema) as stream:
        stream.write_table(released)
    assert released.num_rows == 2
    assert b"graz" not in sink.getvalue().to_pybytes()
