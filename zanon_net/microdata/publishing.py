# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Releases the rows of Arrow tables from a buffer: `zanon-net publish` for programs."""

import hashlib
import json
import secrets
from collections.abc import Mapping, Sequence
from typing import Any, Self, cast

import numpy as np
import numpy.typing as npt

from zanon_net._core import CodedPublisher, Taxonomy, TupleGate, format_time, identities
from zanon_net.config.parse import column_name, parse_duration, reject, shown, whole
from zanon_net.config.publish_rules import WAYS
from zanon_net.config.schema import rows_of
from zanon_net.errors import ConfigError, FormatError
from zanon_net.microdata.arrow import arrow, as_table, compute, empty_as_missing, encoded, texts
from zanon_net.microdata.hierarchy import Hierarchy
from zanon_net.microdata.plan import Plan
from zanon_net.microdata.times import TIME_UNITS, times_of
from zanon_net.rows.publish_report import classes_of, delays_of

STATE_MARK = b"zanon-net publisher 1\n"
DIGEST_BYTES = 32
KEY_BYTES = 16
PUBLISH = {row.name: row for row in rows_of("publish")}
UNIT_NS = {"s": 10**9, "ms": 10**6, "us": 10**3, "ns": 1}

Numbers = npt.NDArray[np.uint64]


class Publisher:
    """Releases the rows of a stream in classes, each of which meets the requirements of a plan.

    Rows wait in a buffer until they are released together. `zanon-net publish` releases the same
    rows, and batches of any size give the same releases.

    plan: its quasi-identifiers have hierarchies that need no data: Round with both ends, or
        Hierarchy. It has no t, because the whole of a stream is unknown.
    rows: number of rows that are released together.
    delay: no row leaves later than this after its own time, in the stream's time; a duration such
        as "60s", or ns. None: no bound, and no row waits for the next window.
    time: the column of the time: timestamps, or numbers and texts in `time_unit` ("s", "ms", "us",
        "ns" or "iso"). It is written as the time of the release.
    buffer: "tumbling" releases all rows together, "sliding" the oldest with the rows near it.
    neighbours, growth, weight, adapt_l, once: --neighbours, --growth, --lambda, --adapt-l and
        --once of the command.

    Raises ConfigError with a text that begins with the argument's name. One thread at a time. It
    contains rows that were not released, and so does its state.
    """

    def __init__(
        self,
        plan: Plan,
        rows: int = PUBLISH["rows"].default,
        delay: int | str | None = None,
        *,
        time: str = "time",
        time_unit: str = "iso",
        buffer: str = "tumbling",
        neighbours: int = PUBLISH["neighbours"].default,
        growth: int = PUBLISH["growth"].default,
        weight: float = PUBLISH["lambda_"].default,
        adapt_l: int | str | None = None,
        once: int | str | None = None,
    ) -> None:
        self._settings: dict[str, Any] = {
            "rows": PUBLISH["rows"].read(rows),
            "delay": None if delay is None else parse_duration("delay", delay),
            "time": column_name("time", time),
            "time_unit": time_unit,
            "buffer": PUBLISH["buffer"].read(buffer),
            "neighbours": PUBLISH["neighbours"].read(neighbours),
            "growth": PUBLISH["growth"].read(growth),
            "weight": PUBLISH["lambda_"].read(weight),
            "adapt_l": PUBLISH["adapt_l"].read(adapt_l),
            "once": None if once is None else parse_duration("once", once),
        }
        self.plan = plan
        self._check()
        self._hierarchies = _hierarchies_of(plan)
        self._core = CodedPublisher(
            [hierarchy.taxonomy for hierarchy in self._hierarchies], **self._numbers()
        )
        self._gate = TupleGate(plan.rule, len(plan.sensitive_columns))
        self._keys = secrets.token_bytes(2 * KEY_BYTES)  # of users and of sensitive values
        self._number = 0  # of the next row
        self._unreadable = 0
        self._kept: Any = None  # the columns of the rows in the buffer that are written as they are
        self._numbers_kept: Numbers = np.empty(0, np.uint64)
        self._time_type: Any = None
        self._ranks = [_ranks(hierarchy.labels) for hierarchy in self._hierarchies]

    def _check(self) -> None:
        plan, settings = self.plan, self._settings
        if plan.rule["t"] < 1:
            reject("t", "is about the whole of a table; a stream has no whole")
        for name in ("k", "l"):
            if getattr(plan, name) > settings["rows"]:
                reject(
                    name, f"{getattr(plan, name)} do not fit into a window of {settings['rows']}"
                )
        if settings["time"] in plan.read_columns:
            reject("time", f"{shown(settings['time'])} is named already")
        if settings["time_unit"] not in TIME_UNITS:
            reject("time_unit", f"must be one of {', '.join(TIME_UNITS)}")
        if settings["once"] is not None and plan.user is None:
            reject("once", "is about users; the plan names no column of users")
        if settings["once"] is not None and settings["delay"] is None:
            reject("once", "needs a delay, which says how late a row may come")
        if settings["adapt_l"] is not None:
            most = int(settings["adapt_l"].partition(":")[0])
            if not plan.sensitive or not plan.l <= most <= settings["rows"]:
                reject("adapt_l", "needs a sensitive column, and must be from l to rows")
            if settings["buffer"] == "sliding":
                reject("adapt_l", "is for a tumbling buffer: a sliding one repairs nothing")

    def _numbers(self) -> dict[str, Any]:
        """Returns the numbers that the core is opened with."""
        settings = self._settings
        most, _colon, way = (settings["adapt_l"] or "0").partition(":")
        return {
            **self.plan.rule,
            "sensitive_count": len(self.plan.sensitive_columns),
            "with_user": self.plan.user is not None,
            "rows": settings["rows"],
            "delay_ns": settings["delay"] or 0,
            "sliding": settings["buffer"] == "sliding",
            "neighbours": settings["neighbours"],
            "growth": settings["growth"],
            "lambda_": settings["weight"],
            "adapt_l": int(most),
            "adapt_way": WAYS.index(way or "up"),
            "once_ns": settings["once"] or 0,
        }

    # ---- rows -----------------------------------------------------------------------------------

    def feed(self, batch: Any) -> Any:
        """Takes rows, and returns the rows that are released by them, as a pyarrow.Table.

        batch: an object that exports Arrow data: RecordBatch, Table, DataFrames; or a mapping of
        lists.

        The table has the time of the release, the quasi-identifiers, the sensitive columns and the
        passed columns; it is empty if nothing is released. Raises ConfigError if a column is
        missing or changes its type, FormatError for a wrong time and, with the plan's
        unknown="error", for an unknown value.
        """
        table = as_table(batch, (self._settings["time"], *self.plan.read_columns), "the batch")
        table = empty_as_missing(self._readable(table))
        own = table.select([*self.plan.sensitive_columns, *self.plan.passed])
        own = _plain(own)
        self._check_types(table, own)
        times = times_of(table.column(0), self._settings["time"], self._settings["time_unit"])
        quasi = self._quasi(table)
        sensitive = [
            self._identities(table.column(name), self._keys[KEY_BYTES:])
            for name in self.plan.sensitive_columns
        ]
        user = self.plan.user
        users = None if user is None else self._identities(table.column(user), self._keys[:16])
        first, n = self._number, table.num_rows
        self._number += n
        new = np.arange(first, first + n, dtype=np.uint64)
        self._numbers_kept = np.concatenate([self._numbers_kept, new])
        self._kept = own if self._kept is None else arrow().concat_tables([self._kept, own])
        self._core.feed(times, users, quasi, sensitive, first)
        return self._released()

    def advance(self, t_ns: int) -> Any:
        """Moves the stream's time on to t_ns (ns since 1970), and returns the rows released by
        it."""
        self._core.advance(whole("t_ns", t_ns, 0, 2**63 - 1))
        return self._released()

    def idle(self) -> Any:
        """Releases the rows that wait, because no row has come for a while. Rows without a group
        stay while they may."""
        self._core.end(idle=True)
        return self._released()

    def flush(self) -> Any:
        """Releases the rows that wait at the end of the stream, and suppresses the rest."""
        self._core.end()
        return self._released()

    @property
    def deadline_ns(self) -> int | None:
        """Time at which the oldest row must leave (ns since 1970); None if no row waits, or without
        a bound."""
        return self._core.deadline_ns

    def _readable(self, table: Any) -> Any:
        """Returns the rows that have a time and a user."""
        pc = compute()
        for name in (self._settings["time"], self.plan.user):
            if name is not None and table.column(name).null_count:
                before = table.num_rows
                table = table.filter(pc.is_valid(table.column(name)))
                self._unreadable += before - table.num_rows
        return table

    def _check_types(self, table: Any, own: Any) -> None:
        """Checks that the batch has the schema of the first batch, which is the schema of the
        output."""
        kind = _time_type(table.column(0).type, self._settings["time"])
        if self._time_type is None:
            self._time_type = kind
        if kind != self._time_type:
            raise ConfigError(f"the batch: column {self._settings['time']!r} changes its type")
        if self._kept is None:
            return
        for name, old, new in zip(own.column_names, self._kept.schema, own.schema, strict=True):
            if old.type != new.type:
                raise ConfigError(f"the batch: column {name!r} changes its type")

    def _quasi(self, table: Any) -> list[npt.NDArray[np.int32]]:
        """Returns the leaf of each quasi-identifier; -1 if the row is to be dropped."""
        columns = []
        for name, hierarchy in zip(self.plan.quasi_columns, self._hierarchies, strict=True):
            codes = hierarchy.codes(table.column(name))
            unknown = codes < 0
            if self.plan.unknown == "error" and unknown.any():
                row = int(np.flatnonzero(unknown)[0]) + 1
                raise FormatError(
                    f"the batch: row {row}: column {name!r} has a value that its hierarchy lacks"
                )
            if self.plan.unknown == "top":
                codes = np.where(unknown, hierarchy.nodes - 1, codes).astype(np.int32)
            columns.append(codes)
        return columns

    def _identities(self, column: Any, key: bytes) -> Numbers:
        codes, words = encoded(column)
        listed = texts(words).to_pylist()
        hashes = identities([*(word.encode() for word in listed), None], key)
        indices = codes.combine_chunks().fill_null(len(listed)).to_numpy(zero_copy_only=False)
        return np.ascontiguousarray(hashes[indices.astype(np.int64)])

    # ---- releases -------------------------------------------------------------------------------

    def _released(self) -> Any:
        """Returns the rows that have left, gated and sorted. All other rows stay in the buffer."""
        numbers, users, release, nodes, times = self._core.take()
        kept, places = self._kept, np.searchsorted(self._numbers_kept, numbers)
        own = None if kept is None else kept.take(places)
        waiting = np.sort(self._core.waiting())
        if kept is not None and len(waiting) != len(self._numbers_kept):
            self._kept = kept.take(np.searchsorted(self._numbers_kept, waiting))
            self._numbers_kept = waiting
        if own is None:
            return _plain(self._table(None, release, nodes, times))
        table = self._table(own, release, nodes, times)
        good = self._gated(table, users, release)
        if not good.all():
            self._core.stopped(int((~good).sum()))
            table, release = table.filter(good), release[good]
            nodes = nodes[good]
        # Without a dictionary, which could have words that no row has.
        return _plain(table.take(self._order(table, release, nodes)))

    def _table(self, own: Any, release: Any, nodes: Any, times: Any) -> Any:
        """Returns the rows as they are written."""
        pa = arrow()
        columns = {}
        if self._time_type is not None:
            columns[self._settings["time"]] = self._times(times[release])
        for i, (name, hierarchy) in enumerate(
            zip(self.plan.quasi_columns, self._hierarchies, strict=True)
        ):
            columns[name] = _labelled(nodes[:, i], hierarchy)
        for name in () if own is None else own.column_names:
            columns[name] = own.column(name)
        return pa.table(columns)

    def _times(self, t_ns: npt.NDArray[np.int64]) -> Any:
        pa, unit = arrow(), self._settings["time_unit"]
        kind = self._time_type
        if pa.types.is_timestamp(kind):
            return pa.array(t_ns, pa.timestamp("ns", kind.tz)).cast(kind)
        if pa.types.is_integer(kind):
            return pa.array(t_ns // UNIT_NS[unit]).cast(kind)
        distinct, places = np.unique(t_ns, return_inverse=True)
        return pa.array([format_time(int(t), unit) for t in distinct], kind).take(places)

    def _gated(self, table: Any, users: Numbers, release: Any) -> npt.NDArray[np.bool_]:
        """Returns true for rows that may be written, counted from the table itself, each release
        separately."""
        n = table.num_rows
        releases: list[bytes | None] = [str(i).encode() for i in range(len(set(release.tolist())))]
        quasi = [_written(table.column(name)) for name in self.plan.quasi_columns]
        quasi.append((releases, release.astype(np.int32)))
        sensitive = [_written(table.column(name)) for name in self.plan.sensitive_columns]
        of_users = None if self.plan.user is None else users.view(np.int64)
        return np.asarray(self._gate.decide(quasi, sensitive, of_users, n) == 0)

    def _order(self, table: Any, release: Any, nodes: Any) -> Any:
        """Returns an order of the rows of each release by their values, because the order of
        arrival would identify rows."""
        keys = [ranks[nodes[:, i]] for i, ranks in enumerate(self._ranks)]
        for name in (*self.plan.sensitive_columns, *self.plan.passed):
            codes, words = encoded(table.column(name))
            ranks = _ranks(texts(words).to_pylist())
            indices = codes.combine_chunks().fill_null(len(words)).to_numpy(zero_copy_only=False)
            keys.append(np.append(ranks, -1)[indices])
        return np.lexsort([*reversed(keys), release])

    # ---- reports --------------------------------------------------------------------------------

    def report(self) -> dict[str, Any]:
        """Returns rows in, out, waiting and suppressed by reason; classes, losses, delays, in
        numbers."""
        counts = self._core.counts
        return {
            "plan": self.plan.to_dict(),
            "rows": {
                "read": counts["rows"] + self._unreadable,
                "unreadable": self._unreadable,
                "written": counts["released"],
                "waiting": len(self._numbers_kept),
                "suppressed": counts["suppressed"],
                "waited": counts["waited"],
            },
            "windows": counts["windows"],
            "windows_by_l": {str(aim): number for aim, number in counts["l_windows"].items()},
            "clock_jumps": counts["clock_jumps"],
            "classes": classes_of(counts, self.plan.quasi_columns, self.plan.sensitive_columns),
            "delay_s": delays_of(counts),
        }

    # ---- state ----------------------------------------------------------------------------------

    def state(self, *, with_plan: bool = True) -> bytes:
        """Returns the whole state, from which `restore` resumes. It is as secret as the rows that
        wait.

        with_plan: if true, the state has the plan with its hierarchies, and `restore` needs no
        plan.
        """
        kept = b"" if self._kept is None else _ipc_bytes(self._kept)
        core = self._core.save()
        head = {
            "settings": self._settings,
            "plan": _plan_json(self.plan, self._hierarchies) if with_plan else None,
            "plan_digest": _plan_digest(self.plan, self._hierarchies),
            "number": self._number,
            "unreadable": self._unreadable,
            "keys": self._keys.hex(),
            "numbers": self._numbers_kept.tolist(),
            "time_type": None if self._time_type is None else _type_text(self._time_type),
            "parts": [len(core), len(kept)],
        }
        text = json.dumps(head, separators=(",", ":")).encode()
        body = STATE_MARK + len(text).to_bytes(8, "little") + text + core + kept
        return body + hashlib.sha256(body).digest()

    @classmethod
    def restore(cls, state: bytes, plan: Plan | None = None) -> Self:
        """Returns a publisher that continues from `state`, bit for bit.

        plan: the plan of the state's publisher; None: the plan in the state. Raises FormatError for
        other bytes, ConfigError for another plan.
        """
        head, core, kept = _parts(state)
        if plan is None:
            if head["plan"] is None:
                raise ConfigError("plan: the state has no plan; give it")
            plan = _plan_from(head["plan"])
        publisher = cls(plan, **head["settings"])
        if _plan_digest(plan, publisher._hierarchies) != head["plan_digest"]:
            raise ConfigError("plan: differs from the plan of the state")
        publisher._core.load(core)
        publisher._number, publisher._unreadable = head["number"], head["unreadable"]
        publisher._keys = bytes.fromhex(head["keys"])
        publisher._numbers_kept = np.array(head["numbers"], np.uint64)
        if head["time_type"] is not None:
            publisher._time_type = _type_from(head["time_type"])
        if kept:
            publisher._kept = arrow().ipc.open_stream(kept).read_all()
        waiting = np.sort(publisher._core.waiting())
        if not np.array_equal(waiting, publisher._numbers_kept):
            raise FormatError("the state is damaged")
        return publisher


# ---- columns ------------------------------------------------------------------------------------


def _hierarchies_of(plan: Plan) -> list[Hierarchy]:
    found = []
    for name, recoding in plan.recodings.items():
        if recoding is None:
            reject("quasi", f"{shown(name)} needs a Hierarchy, or a Round with both ends")
        try:
            found.append(recoding.hierarchy(None))
        except ConfigError as error:
            reject("quasi", f"{shown(name)}: {error}")
    return found


def _plain(table: Any) -> Any:
    """Returns the table without dictionaries, which would grow from batch to batch."""
    pa = arrow()
    for i, name in enumerate(table.column_names):
        column = table.column(i)
        if pa.types.is_dictionary(column.type):
            table = table.set_column(i, name, column.cast(column.type.value_type))
    return table


def _time_type(kind: Any, name: str) -> Any:
    """Returns the type in which a release's time is written."""
    types = arrow().types
    if types.is_dictionary(kind):
        kind = kind.value_type
    if not (types.is_timestamp(kind) or types.is_integer(kind) or types.is_string(kind)):
        raise ConfigError(f"the batch: column {name!r} holds no timestamps, whole numbers or texts")
    return kind


def _labelled(nodes: npt.NDArray[np.uint16], hierarchy: Hierarchy) -> Any:
    """Returns the labels of nodes as a dictionary column; a missing value is null."""
    pa = arrow()
    missing = np.array([label is None for label in hierarchy.labels])
    indices = pa.array(nodes.astype(np.int32), mask=missing[nodes])
    words = pa.array([label or "" for label in hierarchy.labels], pa.string())
    return pa.DictionaryArray.from_arrays(indices, words)


def _written(column: Any) -> tuple[list[bytes | None], npt.NDArray[np.int32]]:
    """Returns (values, codes) of a column that would be written."""
    codes, words = encoded(column)
    values = [word.encode() for word in texts(words).to_pylist()]
    indices = codes.combine_chunks().fill_null(len(values)).to_numpy(zero_copy_only=False)
    return [*values, None], indices.astype(np.int32)


def _ranks(words: Sequence[str | None]) -> npt.NDArray[np.int64]:
    """Returns the place of each word among all, by bytes."""
    order = sorted(range(len(words)), key=lambda i: (words[i] or "").encode())
    ranks = np.empty(len(words), np.int64)
    ranks[order] = np.arange(len(words))
    return ranks


# ---- state --------------------------------------------------------------------------------------


def _ipc_bytes(table: Any) -> bytes:
    pa = arrow()
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table.combine_chunks())
    return bytes(sink.getvalue().to_pybytes())


def _type_text(kind: Any) -> str:
    """Returns a type as the schema of an empty table, in hexadecimal."""
    pa = arrow()
    return bytes(pa.schema([("t", kind)]).serialize().to_pybytes()).hex()


def _type_from(text: str) -> Any:
    pa = arrow()
    return pa.ipc.read_schema(pa.py_buffer(bytes.fromhex(text))).field(0).type


def _plan_json(plan: Plan, hierarchies: Sequence[Hierarchy]) -> dict[str, Any]:
    """Returns a plan in the form of JSON, with hierarchies as the arguments of their taxonomies."""
    found = {}
    for name, hierarchy in zip(plan.quasi_columns, hierarchies, strict=True):
        lines, *numbers = cast(tuple[Any, ...], hierarchy.taxonomy.__reduce__())[1]
        found[name] = [[[label.decode() for label in line] for line in lines], numbers]
    return {**plan.to_dict(), "hierarchies": found, "kinds": [h.kind for h in hierarchies]}


def _plan_digest(plan: Plan, hierarchies: Sequence[Hierarchy]) -> str:
    text = json.dumps(_plan_json(plan, hierarchies), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _plan_from(saved: Mapping[str, Any]) -> Plan:
    quasi = {}
    for kind, (name, (lines, numbers)) in zip(
        saved["kinds"], saved["hierarchies"].items(), strict=True
    ):
        labels = [[label.encode() for label in line] for line in lines]
        quasi[name] = Hierarchy._of(Taxonomy(labels, *numbers), kind)
    return Plan(
        quasi=quasi,
        passed=saved["pass"],
        **{name: saved[name] for name in _PLAN_FIELDS},
    )


_PLAN_FIELDS = ("sensitive", "user", "k", "l", "l_kind", "max_share", "t", "unknown")


def _parts(state: bytes) -> tuple[dict[str, Any], bytes, bytes]:
    """Returns (head, the core's part, the rows) of a state. Raises FormatError."""
    body, digest = state[:-DIGEST_BYTES], state[-DIGEST_BYTES:]
    if not body.startswith(STATE_MARK) or hashlib.sha256(body).digest() != digest:
        raise FormatError("not a state of a publisher of this version, or damaged")
    at = len(STATE_MARK) + 8
    end = at + int.from_bytes(body[at - 8 : at], "little")
    head = json.loads(body[at:end])
    core, kept = head["parts"]
    return head, body[end : end + core], body[end + core : end + core + kept]
