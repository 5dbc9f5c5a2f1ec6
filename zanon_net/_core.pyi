# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Types of the compiled core. Calls release the GIL for a whole batch."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, NamedTuple, Never, Protocol, final

import numpy as np
import numpy.typing as npt

OUTPUTS: tuple[str, ...]
"""Names of the engine's outputs of text."""

ROWS: tuple[str, ...]
"""Names of its outputs of rows; see row_dtype."""

TABLES: tuple[str, ...]
"""The outputs that drain() gives as columns."""

FILE_NAMES: dict[str, tuple[str, str]]
"""The start and end of the names of an output's files, such as ("flows", ".csv")."""

FULL_ROWS: int
"""Rows at which a table is drained: records wait until it has this number."""

LIMITS: dict[str, int]
"""Limits of z, workers, interfaces, bytes of a ring and bytes kept of a frame."""

FIELD_TYPES: tuple[str, ...]
"""Types of fields: Arrow's names, or ms and s (doubles), time (ns since the Unix epoch), text."""

ATTRIBUTES: dict[str, int]
"""Bits of the attributes of flows besides names, by their words."""

STAT_INFO: list[tuple[str, str, str]]
"""(name, group, text) of every counter, in the order of csrc/util/stats.h."""

STAT_ALIASES: dict[str, str]
"""The old name of each counter that was renamed in this version, by its name."""

STAGES: tuple[str, ...]
"""The stages of an engine's work, in the order of a packet's way."""

ROW_FORMATS: tuple[str, ...]
"""Names of the formats of rows; "auto" first."""

UNKNOWN: tuple[str, ...]
LADDER_STEPS_MAX: int

TIME_UNITS: tuple[str, ...]
"""Units of times in rows, and "iso"."""

ROW_FAULTS: dict[str, str]
"""The text of each reason for which a row cannot be read, by its name."""

LOG_REASONS: dict[str, str]
"""The text of each reason for which the z-table is not asked about a row, by its name."""

LOG_PRESETS: dict[str, tuple[tuple[str, str, str], ...]]
"""Columns of each preset of logs: name, role, and what is written of a value."""

def describe_log_presets() -> dict[str, tuple[tuple[str, str, str], ...]]: ...

ROW_FATES: dict[str, str]
WINDOW_ENDS: tuple[str, ...]
ONCE_USERS: int

class Column(NamedTuple):
    """A row of csrc/release/columns.h."""

    group: str
    """FLOW: of every flow, in all formats except Tstat's. All other groups are of Tstat's logs."""

    name: str
    type: str | None
    """One of FIELD_TYPES; None if the column is in Tstat's logs alone."""

    unit: str
    """Empty for plain numbers and texts."""

    missing: str | None
    """Text for a missing value in Tstat's logs; None if there always is a value."""

    disclosure: str
    """The class: ALWAYS, ROUNDED, EXACT, CLIENT, RELEASED, OWN or COMPUTED(what)."""

    description: str

class ClosedWindow(NamedTuple):
    """A window that has ended: its time, the distinct users with a name (or attribute), and the
    number of names with 2^j to 2^(j+1) - 1 users, by j."""

    start_ns: int
    end_ns: int
    whole: bool
    users: int
    bins: tuple[int, ...]

class ClosedLevels(NamedTuple):
    """Exposures of a window, and rows of (z, exposures that z users share by name, by domain, by
    category, share of the entropy of names that is kept)."""

    exposures: int
    rows: tuple[tuple[int, int, int, int, float], ...]

@final
class Capture:
    """A pcap, pcapng or snoop capture: a file by path, a stream by descriptor, or bytes."""

    def __init__(
        self,
        path: str | None = None,
        *,
        fd: int = -1,
        start: bytes = b"",
        data: bytes | None = None,
        name: str = "",
        filter: str = "",
        unpacked: bool = False,
    ) -> None: ...
    @property
    def format(self) -> str: ...
    @property
    def bytes_read(self) -> int: ...
    @property
    def bytes_total(self) -> int: ...
    @property
    def warning(self) -> str | None: ...
    @property
    def saw_end(self) -> bool: ...
    @property
    def link_types(self) -> dict[int, int]: ...
    def read(
        self, most: int
    ) -> tuple[
        bytes,
        npt.NDArray[np.int64],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint32],
    ]: ...
    def frames(self, max: int) -> list[tuple[int, int, int, bytes]]: ...
    def peek_ns(self) -> int | None: ...
    def close(self) -> None: ...
    def __enter__(self) -> Capture: ...
    def __exit__(self, *exc: object) -> None: ...

@final
class PacketEngine:
    """The whole packet path. An engine belongs to one thread at a time."""

    @staticmethod
    def count_rows_of(block: bytes) -> list[bytes | None]: ...
    def __init__(
        self, *args: Never, count_secret: bytes | None = None, **settings: Any
    ) -> None: ...  # the settings are in core/settings.pyx
    def call_aside(self, call: Callable[[], object]) -> None: ...
    def run(self, capture: Capture, max_frames: int, *, pauses: bool = False) -> int: ...
    def is_over(self, capture: Capture) -> bool: ...
    def feed(
        self,
        buffer: bytes | bytearray | memoryview | npt.NDArray[np.uint8],
        ts_ns: npt.NDArray[np.int64],
        caplen: npt.NDArray[np.uint32],
        wirelen: npt.NDArray[np.uint32],
        linktype: int,
    ) -> None: ...
    def idle(self, quiet_ns: int) -> bool: ...
    def finish(self) -> bool: ...
    def flush(self) -> bool: ...
    @property
    def waiting(self) -> bool: ...
    def window(self) -> ClosedWindow | None: ...
    def attribute_windows(self) -> dict[str, ClosedWindow]: ...
    def window_counts(self) -> npt.NDArray[np.uint32]: ...
    def window_levels(self) -> ClosedLevels | None: ...
    def set_z(self, z: int) -> None: ...
    def set_never(self, suffixes: Sequence[bytes]) -> None: ...
    def take(self, output: str) -> bytes: ...
    def drain(
        self, *, rows: int = 0
    ) -> tuple[
        list[tuple[int | None, dict[str, tuple[memoryview, int]], dict[str, int]]],
        dict[str, TableRows],
    ]: ...
    def fields(self, table: str) -> list[tuple[str, str, bool]]: ...
    def header(self, output: str) -> bytes: ...
    @property
    def stage(self) -> int:
        """The index in STAGES of the engine's present work. Any thread may read it."""

    @property
    def stats(self) -> dict[str, int]: ...
    def counts(self, *names: str) -> dict[str, int]: ...
    @property
    def view_stats(self) -> list[dict[str, int]]: ...
    @property
    def level_stats(self) -> dict[str, Any] | None: ...
    @property
    def attribute_stats(self) -> dict[str, dict[str, int]] | None: ...
    @property
    def table_stats(self) -> dict[str, int]: ...
    @property
    def users(self) -> int: ...
    @property
    def time_range_ns(self) -> tuple[int, int] | None: ...
    @property
    def key_scope(self) -> str: ...
    @property
    def networks_left_out(self) -> int: ...
    @property
    def pseudonym_id(self) -> str | None: ...
    @property
    def packet_blocks(self) -> bytes: ...
    @property
    def count_probe(self) -> tuple[int, int]: ...
    def count_begin(self, shards: int) -> None: ...
    def count_cut(self) -> None: ...
    def count_hold(self, hold_ns: int) -> None: ...
    def count_messages(self) -> list[bytes]: ...
    def count_answer(self, message: bytes) -> None: ...
    def count_mute(self, muted: bool) -> None: ...
    def count_abandon(self) -> None: ...
    @property
    def count_waiting(self) -> int: ...
    @property
    def must_wait(self) -> bool: ...
    def suppress_waiting(self, all: bool) -> bool: ...
    @property
    def hold_bytes_max(self) -> int: ...
    @property
    def memory_bytes(self) -> int: ...
    @property
    def flow_memory(self) -> tuple[int, int]: ...
    @property
    def table_memory_bytes(self) -> int: ...
    @property
    def flow_bytes_max(self) -> int: ...
    def check(self) -> None: ...
    def close(self) -> None: ...

@final
class TableRows:
    """The rows of a table, taken from an engine with their memory; a RowBatch reads them."""

    def __init__(self, *args: Never, **kwargs: Never) -> None: ...
    def __len__(self) -> int: ...

@final
class RowBatch:
    """Rows of a table that an engine drained, for libraries that read Arrow."""

    def __init__(
        self,
        fields: Sequence[tuple[str, str, bool, dict[str, str]]],
        table: TableRows,
        start: int,
        end: int,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...
    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

def columns() -> list[Column]: ...
def row_dtype(output: str) -> np.dtype[np.void]: ...
def packet_places(
    records: npt.NDArray[np.uint8],
) -> tuple[
    npt.NDArray[np.int64],
    npt.NDArray[np.uint32],
    npt.NDArray[np.uint32],
    npt.NDArray[np.int64],
]: ...

@final
class Live:
    """Network interfaces, opened together and read as one stream in the order of time."""

    def __init__(
        self,
        interfaces: Sequence[str],
        *,
        filter: str = "",
        snaplen: int = 262144,
        ring_bytes: int = ...,
        promiscuous: bool = True,
        rings: int = 1,
    ) -> None: ...
    def keep(self, shard: int, shards: int) -> None: ...
    def run(self, engine: PacketEngine, max_frames: int, wait_ms: int) -> int: ...
    def frames(self, wait_ms: int) -> list[tuple[int, int, int, bytes]]: ...
    def stop(self) -> None: ...
    def gone(self, i: int) -> bool: ...
    def reopen(self, i: int) -> None: ...
    def facts(self) -> list[dict[str, Any]]: ...
    def close(self) -> None: ...

@final
class PacketSender:
    """Sends packets out of a network interface."""

    def __init__(self, interface: str, *, patience_ns: int = 0) -> None: ...
    def send(self, records: bytes | memoryview) -> None: ...
    @property
    def counts(self) -> dict[str, int]: ...
    @property
    def has_address(self) -> bool: ...
    def close(self) -> None: ...

def caps_for_bytes(memory_bytes: int, keep: int | None = None) -> tuple[int, int]: ...

NUMBER: str
TEXT: str
TIME: str
TRUTH: str

class _ArrowStream(Protocol):
    """A column that exports Arrow data as a stream, as polars' Series and chunked arrays do."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object: ...

class _ArrowArray(Protocol):
    """A column that exports Arrow data as an array, as pyarrow's arrays do."""

    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

class _Series(Protocol):
    """A column of pandas."""

    @property
    def dtype(self) -> Any: ...
    def to_numpy(self) -> npt.NDArray[Any]: ...

_TableColumn = _ArrowStream | _ArrowArray | _Series

@final
class Texts:
    """A column of texts, for libraries that read Arrow."""

    offsets: npt.NDArray[np.int64]
    data: npt.NDArray[np.uint8]
    valid: npt.NDArray[np.uint8] | None

    def __init__(
        self,
        length: int,
        offsets: npt.NDArray[np.int64],
        data: npt.NDArray[np.uint8],
        valid: npt.NDArray[np.uint8] | None = None,
    ) -> None: ...
    def __len__(self) -> int: ...
    def __arrow_c_schema__(self) -> object: ...
    def __arrow_c_array__(self, requested_schema: object = None) -> tuple[object, object]: ...

@final
class Cells:
    """A column of a table in memory, which is lent and not copied."""

    @property
    def kind(self) -> str: ...
    @property
    def unit_ns(self) -> int: ...
    def __init__(self, name: str, values: npt.NDArray[Any] | _TableColumn) -> None: ...
    def __len__(self) -> int: ...
    def texts(self, marks: npt.NDArray[np.uint8], least: int) -> Texts: ...

@final
class ZTable:
    """See zanon_net.ZTable."""

    def __init__(
        self,
        z: int = 20,
        window_ns: int | None = None,
        *,
        window: int | str | None = None,
        keep: int | None = None,
        max_tuples: int | None = None,
        max_attributes: int | None = None,
        max_jump_ns: int | None = None,
        rebase_after: int = 256,
        reserve: bool = False,
    ) -> None: ...
    def observe(self, t_ns: int, user: bytes | str, attribute: bytes | str) -> bool: ...
    def observe_batch(
        self,
        t_ns: npt.NDArray[np.integer[Any] | np.datetime64] | _TableColumn,
        user: npt.NDArray[Any] | _TableColumn,
        attribute: npt.NDArray[Any] | _TableColumn,
    ) -> npt.NDArray[np.bool_]: ...
    def observe_hashed(self, t_ns: int, user: int, lo: int, hi: int) -> bool: ...
    def observe_hashed_batch(
        self,
        t_ns: npt.NDArray[np.int64],
        user: npt.NDArray[np.uint64],
        lo: npt.NDArray[np.uint64],
        hi: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.bool_]: ...
    def dump(self) -> bytes: ...
    @classmethod
    def load(cls, data: bytes) -> ZTable: ...
    def count(self, attribute: bytes | str | int) -> int: ...
    def counts(self) -> npt.NDArray[np.uint32]: ...
    def set_z(self, z: int) -> None: ...
    def clear(self) -> None: ...
    def check(self) -> None: ...
    @property
    def z(self) -> int: ...
    @property
    def stats(self) -> dict[str, int]: ...
    @property
    def memory_bytes(self) -> int: ...

VOTE_KINDS: dict[str, int]
COUNTING_KINDS: tuple[int, ...]
VOTE_ENTRIES: dict[str, int]
STANDINGS: dict[str, int]
VOTE_WATERMARK_END: int

def vote_settings(
    z: int, window_ns: int, rotate_ns: int | None = ..., count_rotate_ns: int | None = ...
) -> int: ...
def write_entry(kind: int, message: bytes = ..., session: int = ...) -> bytes: ...
def read_entry(entry: bytes) -> tuple[int, bytes, int]: ...
def vote_rules(
    *,
    user_prefix: tuple[int, int] = ...,
    evidence: str = ...,
    dns_votes: str = ...,
    internal: bool = ...,
    key_check: int = ...,
) -> int: ...
def vote_rules_difference(probes: int, counted: int) -> str: ...
def read_votes(message: bytes) -> dict[str, Any]: ...
def read_answers(message: bytes) -> dict[str, Any]: ...
def write_answers(
    shard: int, probe: int, sequence: int, settings: int, answers: Sequence[bool] | npt.NDArray[Any]
) -> bytes: ...

@final
class VoteWriter:
    """Writes vote messages (count/vote_message)."""

    def __init__(
        self,
        probe: int,
        shard: int,
        settings: int,
        *,
        rules: int | None = ...,
        sequence: int = ...,
        max_votes: int = ...,
        new_session: bool = ...,
        marks_missing: bool = ...,
    ) -> None: ...
    def __len__(self) -> int: ...
    def add(self, kind: int, t_ns: int, user: int, lo: int, hi: int) -> None: ...
    def add_columns(
        self,
        kind: int,
        t_ns: npt.NDArray[np.int64],
        user: npt.NDArray[np.uint64],
        lo: npt.NDArray[np.uint64],
        hi: npt.NDArray[np.uint64],
    ) -> None: ...
    def finish(self, watermark_ns: int) -> bytes: ...
    @property
    def sequence(self) -> int: ...
    @property
    def order(self) -> npt.NDArray[np.uint32]: ...

@final
class VoteShard:
    """The counter of one shard (count/vote_shard)."""

    def __init__(
        self,
        z: int,
        window_ns: int,
        *,
        rotate_ns: int | None = None,
        count_rotate_ns: int | None = None,
        shard: int = 0,
        keep: int | None = None,
        max_tuples: int | None = None,
        max_attributes: int | None = None,
        max_clients: int | None = None,
        max_pending: int | None = None,
        max_probes: int | None = None,
        max_leases: int | None = None,
        max_ahead_ns: int | None = None,
        max_lag_ns: int = 0,
        keep_releases: bool = False,
    ) -> None: ...
    def put(
        self, message: bytes, now_ns: int | None = None, *, marks_only: bool = False
    ) -> bool: ...
    def decide(self, before_ns: int | None = None) -> list[bytes]: ...
    def releases(
        self,
    ) -> tuple[
        npt.NDArray[np.int64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
    ]: ...
    def forget_probe(self, probe: int) -> None: ...
    def begin(self, expected: int) -> bool: ...
    @property
    def has_begun(self) -> bool: ...
    def expect_no_more(self, expected: int) -> None: ...
    def missing(self, expected: int) -> int: ...
    def standing(
        self, session: int, sequence: int, settings: int, rules: int, *, after: int = 0
    ) -> int: ...
    def refuse(self, session: int) -> None: ...
    def abandon(self, session: int) -> None: ...
    def lags(self) -> dict[int, int]: ...
    @property
    def membership(self) -> dict[str, int]: ...
    @property
    def probes(self) -> dict[int, tuple[int, int]]: ...
    def probe(self, number: int) -> tuple[int, int, bool] | None: ...
    @property
    def known_probes(self) -> dict[int, tuple[int, int, bool]]: ...
    @property
    def watermark(self) -> int: ...
    @property
    def settings(self) -> int: ...
    @property
    def rules(self) -> int | None: ...
    @rules.setter
    def rules(self, rules: int) -> None: ...
    @property
    def stats(self) -> dict[str, Any]: ...
    @property
    def memory_bytes(self) -> int: ...
    def check(self) -> None: ...
    def dump(self) -> bytes: ...
    @classmethod
    def load(cls, data: bytes) -> VoteShard: ...

@final
class VoteRings:
    """Memory for messages between the processes of one run (count/vote_ring)."""

    probes: int

    def __init__(self, probes: int) -> None: ...

@final
class VoteRing:
    """A probe's ends of its two rings (count/vote_ring)."""

    def __init__(self, rings: VoteRings, probe: int) -> None: ...
    def put(self, message: bytes) -> bool: ...
    def take(self) -> bytes | None: ...

@final
class LocalCounter:
    """The counter of the processes of one run (count/local_counter)."""

    def __init__(self, shard: VoteShard, rings: VoteRings) -> None: ...
    def step(self, expected: int) -> tuple[bool, int]: ...
    def has_sent(self, probe: int) -> bool: ...

@final
class VoteWatch:
    """Clocks of a counter's probes (count/probe_watch)."""

    def __init__(self, timeout_ns: int, now_ns: int) -> None: ...
    def __len__(self) -> int: ...
    def __contains__(self, key: object, /) -> bool: ...
    def hear(self, session: int, now_ns: int, *, joins: bool) -> None: ...
    def remove(self, session: int) -> bool: ...
    def look(self, shards: Iterable[VoteShard], now_ns: int, held: Iterable[int] = ...) -> None: ...
    def all_present(self, shards: Iterable[VoteShard], expected: int) -> bool: ...
    def take_silent(self, now_ns: int) -> list[int]: ...
    def slow(self, limit_ns: int, now_ns: int) -> list[int]: ...
    def note_late(self, now_ns: int) -> None: ...
    def late(self, now_ns: int, patience_ns: int) -> dict[int, int]: ...
    def forget_unknown(self) -> None: ...
    @property
    def heard(self) -> dict[int, int]: ...
    @property
    def speakers(self) -> set[int]: ...

@final
class OwnVotes:
    """Releases of a probe that its own users suffice for (count/own_votes)."""

    def __init__(
        self,
        z: int,
        window_ns: int,
        *,
        max_leases: int = ...,
        max_tuples: int | None = None,
        max_attributes: int | None = None,
    ) -> None: ...
    def observe(self, t_ns: int, user: int, lo: int, hi: int) -> bool: ...
    def observe_columns(
        self,
        t_ns: npt.NDArray[np.int64],
        user: npt.NDArray[np.uint64],
        lo: npt.NDArray[np.uint64],
        hi: npt.NDArray[np.uint64],
    ) -> npt.NDArray[np.bool_]: ...
    def shares(self, lo: int, hi: int, t_ns: int) -> bool: ...
    def advance(self, watermark_ns: int) -> None: ...
    def refused(self, lo: int) -> None: ...
    def take_sent(
        self,
    ) -> tuple[
        npt.NDArray[np.uint8],
        npt.NDArray[np.int64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
    ]: ...
    @property
    def stats(self) -> dict[str, int]: ...

@final
class Levels:
    """Values that fewer than z users share are published as coarser labels (anonymity/levels)."""

    count: int
    def __init__(
        self,
        z: int,
        window_ns: int,
        levels: int,
        *,
        z_max: int | None = ...,
        keep: int | None = ...,
        max_tuples: int = ...,
        max_attributes: int = ...,
        max_votes: int = ...,
        max_labels: int = ...,
        max_per_network: int | None = ...,
        rebase_after: int = ...,
        parents: Mapping[tuple[int, int], Mapping[int, Sequence[int]]] | None = ...,
    ) -> None: ...
    def decide(
        self,
        t_ns: npt.NDArray[np.int64],
        user: npt.NDArray[np.uint64],
        chain: npt.NDArray[np.uint64],
        flags: npt.NDArray[np.uint8] | None = ...,
        networks: npt.NDArray[np.uint32] | None = ...,
    ) -> tuple[npt.NDArray[np.uint8], npt.NDArray[np.uint8], npt.NDArray[np.uint16]]: ...
    def clear(self) -> None: ...
    def restore(self, snapshot: bytes) -> None: ...
    def set_z(self, z: int) -> None: ...
    def set_early_z(self, z: int) -> None: ...
    @property
    def stats(self) -> dict[str, Any]: ...
    @property
    def memory_bytes(self) -> int: ...
    def check(self) -> None: ...

@final
class Taxonomy:
    """The generalization hierarchy of a column (microdata/taxonomy)."""

    def __init__(
        self,
        lines: Iterable[Sequence[bytes]],
        in_order: bool = ...,
        width: float = ...,
        first: int = ...,
        whole: bool = ...,
    ) -> None: ...
    @classmethod
    def read(cls, data: bytes, delimiter: int = ...) -> Taxonomy: ...
    @property
    def leaves(self) -> int: ...
    @property
    def nodes(self) -> int: ...
    @property
    def levels(self) -> int: ...
    @property
    def only_children(self) -> tuple[int, int]: ...
    @property
    def memory_bytes(self) -> int: ...
    def labels(self) -> list[bytes]: ...
    def lines(self) -> list[list[bytes]]: ...
    def arrays(
        self,
    ) -> tuple[
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
        npt.NDArray[np.int32],
        npt.NDArray[np.float64],
    ]: ...
    def level_losses(self) -> list[float]: ...
    def ancestors(self) -> npt.NDArray[np.int32]: ...
    def find(self, values: Sequence[bytes | None]) -> npt.NDArray[np.int32]: ...
    def common(self, a: Any, b: Any) -> npt.NDArray[np.int32]: ...

def intervals(
    values: Sequence[bytes], width: float, whole: bool = ...
) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.bool_]]: ...

@final
class Groups:
    """Groups the rows of windows so that each group can be released."""

    def __init__(
        self,
        taxonomies: Sequence[Taxonomy],
        *,
        rows: int,
        sensitive: int = 1,
        k: int = 1,
        l: int = 1,
        kind: int = 0,
        c: float = 1.0,
        max_share: float = 1.0,
        t: float = 1.0,
        repair: bool = True,
        strict: bool = True,
        neighbours: int = 3,
        growth: int = 3,
        weight: float = 0.7,
        part: int = 0,
    ) -> None: ...
    def window(
        self,
        quasi: npt.NDArray[np.integer[Any]],
        sensitive: npt.NDArray[np.uint64 | np.int64] | None = None,
        user: npt.NDArray[np.uint64 | np.int64] | None = None,
        *,
        l: int = 0,
        rows: int | None = None,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
    def oldest(
        self,
        quasi: npt.NDArray[np.integer[Any]],
        sensitive: npt.NDArray[np.uint64 | np.int64] | None = None,
        user: npt.NDArray[np.uint64 | np.int64] | None = None,
    ) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]: ...
    def entropy(
        self,
        quasi: npt.NDArray[np.integer[Any]],
        sensitive: npt.NDArray[np.uint64 | np.int64],
        user: npt.NDArray[np.uint64 | np.int64] | None = None,
    ) -> list[tuple[float, int]]: ...
    @property
    def stats(self) -> dict[str, int]: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class AdaptiveL:
    """The l that repairs aim at, window by window."""

    def __init__(
        self,
        l_min: int,
        l_max: int,
        way: str = "up",
        *,
        alpha: float = ...,
        band: float = ...,
        dwell: int = ...,
    ) -> None: ...
    def next(self, entropy: float, values: int) -> int: ...

@final
class RowFilter:
    """Passes rows of observations through the z-table; belongs to one thread at a time."""

    def __init__(
        self,
        *args: Never,
        ladder: tuple[Sequence[Taxonomy], Sequence[bytes], str] | None = ...,
        **settings: Any,  # as core/settings.pyx has them
    ) -> None: ...
    def feed(self, data: bytes) -> None: ...
    def end(self) -> None: ...
    def finish(self) -> None: ...
    def windows(self) -> list[ClosedWindow]: ...
    def take(self) -> bytes: ...
    @property
    def reasons(self) -> dict[str, int]: ...
    @property
    def stats(self) -> dict[str, int]: ...
    @property
    def first_fault(self) -> tuple[int, str] | None: ...
    @property
    def time_range_ns(self) -> tuple[int, int] | None: ...
    @property
    def table_stats(self) -> dict[str, int]: ...
    @property
    def ladder_stats(self) -> dict[str, Any] | None: ...
    @property
    def label_stats(self) -> dict[str, Any] | None: ...
    @property
    def format(self) -> str: ...
    @property
    def memory_bytes(self) -> int: ...
    def close(self) -> None: ...

MARKS: tuple[str, ...]

@final
class FrameFilter:
    """Passes rows of tables through the z-table; belongs to one thread at a time."""

    def __init__(self, *args: Never, **settings: Any) -> None: ...  # as core/settings.pyx has them
    def decide(
        self, time: Cells, unit_ns: int, user: Cells, attribute: Cells
    ) -> tuple[npt.NDArray[np.uint8], Texts | None]: ...
    @property
    def stats(self) -> dict[str, int]: ...
    @property
    def first_fault(self) -> tuple[int, str] | None: ...
    @property
    def time_range_ns(self) -> tuple[int, int] | None: ...
    @property
    def reasons(self) -> dict[str, int]: ...
    @property
    def table_stats(self) -> dict[str, int]: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class RowPublisher:
    """Collects rows in a buffer and releases them in classes; belongs to one thread at a time."""

    def __init__(
        self,
        taxonomies: Sequence[Taxonomy],
        **settings: Any,  # as core/settings.pyx has them
    ) -> None: ...
    def feed(self, data: bytes) -> None: ...
    def end(self) -> None: ...
    def idle(self) -> None: ...
    def finish(self) -> None: ...
    def take(self) -> bytes: ...
    @property
    def stats(self) -> dict[str, int]: ...
    @property
    def window(self) -> dict[str, Any]: ...
    @property
    def first_fault(self) -> tuple[int, str] | None: ...
    @property
    def time_range_ns(self) -> tuple[int, int] | None: ...
    @property
    def format(self) -> str: ...
    @property
    def memory_bytes(self) -> int: ...
    def close(self) -> None: ...

@final
class CodedPublisher:
    """Collects rows of codes in a buffer; belongs to one thread at a time."""

    def __init__(self, taxonomies: Sequence[Taxonomy], **numbers: Any) -> None: ...
    def feed(
        self,
        t_ns: npt.NDArray[np.int64],
        user: npt.NDArray[np.uint64] | None,
        quasi: Sequence[npt.NDArray[np.int32]],
        sensitive: Sequence[npt.NDArray[np.uint64]],
        first_number: int,
    ) -> None: ...
    def advance(self, t_ns: int) -> None: ...
    def end(self, idle: bool = False) -> None: ...
    def take(
        self,
    ) -> tuple[
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint64],
        npt.NDArray[np.uint32],
        npt.NDArray[np.uint16],
        npt.NDArray[np.int64],
    ]: ...
    def waiting(self) -> npt.NDArray[np.uint64]: ...
    def stopped(self, n: int) -> None: ...
    def save(self) -> bytes: ...
    def load(self, saved: bytes) -> None: ...
    @property
    def deadline_ns(self) -> int | None: ...
    @property
    def counts(self) -> dict[str, Any]: ...
    @property
    def memory_bytes(self) -> int: ...

def identities(values: Sequence[bytes | None], key: bytes) -> npt.NDArray[np.uint64]: ...

CLASS_FAULTS: tuple[str, ...]
"""The reason why a class may not be released: users, diversity, share, distance."""

@final
class TupleGate:
    """Decides which rows of a table may be written; belongs to one thread at a time."""

    def __init__(self, rule: dict[str, Any], sensitive_count: int = 1) -> None: ...
    def decide(
        self,
        quasi: Sequence[tuple[Sequence[bytes | None], npt.NDArray[np.int32]]],
        sensitive: Sequence[tuple[Sequence[bytes | None], npt.NDArray[np.int32]]],
        users: npt.NDArray[np.int64] | None,
        n: int,
    ) -> npt.NDArray[np.uint8]: ...
    @property
    def memory_bytes(self) -> int: ...

@final
class CryptoPan:
    """See zanon_net.CryptoPan."""

    def __init__(self, key: bytes) -> None: ...
    def anonymize(self, address: Any) -> Any: ...
    def anonymize_v4(self, addresses: npt.NDArray[np.uint32]) -> npt.NDArray[np.uint32]: ...
    def anonymize_v6(self, addresses: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]: ...

@final
class Stream:
    """Ordered first bytes of one stream (flow/reassembly)."""

    def __init__(self, base: int) -> None: ...
    def add(self, seq: int, data: bytes) -> str: ...
    def head(self) -> bytes: ...
    def consume(self, n: int) -> None: ...
    @property
    def first(self) -> int: ...
    @property
    def has_hole(self) -> bool: ...

@final
class Pseudonyms:
    """Pseudonyms of addresses under fixed keys."""

    def __init__(
        self,
        pan_key: bytes,
        host_key: bytes,
        pseudonyms: str,
        *,
        block: tuple[int, int] = ...,
        user: tuple[int, int] = ...,
        internal: Sequence[tuple[bytes, int]] = ...,
    ) -> None: ...
    def make(self, addresses: npt.NDArray[np.uint8]) -> npt.NDArray[np.uint8]: ...

@final
class Keys:
    """Epoch keys (crypto/keys)."""

    def __init__(
        self,
        rotate_ns: int,
        key_file: str | None = None,
        *,
        z: int = 20,
        window_ns: int = 3_600_000_000_000,
        digest: bytes = ...,
        pseudonyms: str = "networks",
        block: tuple[int, int] = ...,
        user: tuple[int, int] = ...,
        internal: Sequence[tuple[bytes, int]] = ...,
    ) -> None: ...
    def pseudonym(self, t_ns: int, address: str) -> tuple[str, int]: ...
    def rebase(self, t_ns: int) -> None: ...
    def derive_shared(self, label: bytes, number: int, n: int) -> bytes: ...

ROW_BYTES_MAX: int
VOTE_ROWS: dict[str, int]

def reader_key_new() -> tuple[bytes, bytes]:
    """Draws a reader's keys and returns (secret, public), each in PEM."""

def reader_public_key(pem: bytes) -> bytes:
    """Returns the 32 bytes of a reader's public key."""

def sealed_row_bytes(n: int) -> int:
    """Returns the length of a sealed row of n bytes."""

@final
class VoteRows:
    """The rows of a vote message that has a section of rows (count/vote_rows)."""

    def __init__(self, message: bytes) -> None: ...
    @staticmethod
    def are_in(message: bytes) -> bool: ...
    @property
    def message(self) -> bytes: ...
    @property
    def flag(self) -> int: ...
    @property
    def key(self) -> tuple[int, int, int]: ...
    @property
    def prefix(self) -> bytes: ...
    def plain(self) -> bytes: ...
    def attachments(self) -> list[bytes]: ...

@final
class RowSealer:
    """Seals rows of votes to a reader (crypto/sealed_row)."""

    def __init__(self, reader: bytes) -> None: ...
    def renew(self) -> None: ...
    def attach(self, message: bytes, rows: list[bytes | None]) -> bytes: ...

@final
class RowOpener:
    """Opens rows that were sealed to a reader (crypto/sealed_row)."""

    def __init__(self, key_file: str | PathLike[str]) -> None: ...
    def unseal(
        self, probe_key: bytes, probe: int, shard: int, sequence: int, index: int, sealed: bytes
    ) -> bytes | None: ...

@final
class ThresholdSealer:
    """Makes shares, and seals rows that they open (crypto/threshold)."""

    def __init__(self, key: bytes, *, z: int, window_ns: int, epochs: int = 4) -> None: ...
    def attach(self, message: bytes, rows: list[bytes | None]) -> bytes: ...

@final
class ThresholdShard:
    """Collects shares, and opens the rows of released votes (crypto/threshold_shard)."""

    def __init__(
        self, *, z: int, window_ns: int, epochs: int = 4, max_groups: int | None = None
    ) -> None: ...
    def take(self, messages: list[tuple[VoteRows, bytes]]) -> list[bytes]: ...
    @property
    def stats(self) -> dict[str, int]: ...
    def dump(self) -> bytes: ...
    def load(self, dump: bytes) -> None: ...

def set_process(option: int, value: int) -> bool:
    """Sets an attribute of the process by prctl(2); returns false if that cannot be done."""

def parse_tls(data: bytes, *, cut: bool = False) -> tuple[str, bytes, bool]:
    """Returns (state, name as sent, ECH offered). state: done, need_more, malformed or other."""

def parse_tls_details(data: bytes) -> tuple[list[int], int, bool, bool, bool, bool]:
    """Returns (versions, protocol bits, session id?, PSK?, early data?, retry?) of a hello in
    records."""

def parse_certificate(data: bytes) -> tuple[str, bytes]:
    """Returns (state, common name as sent) of the first certificate in a server's first records."""

def parse_hello(data: bytes) -> tuple[str, bytes, bool]:
    """Parses as parse_tls, but handshake messages without records, as QUIC carries them."""

def parse_dtls(
    data: bytes, *, whole: bool = True
) -> tuple[str, list[tuple[int, int, int, int, bytes]]]:
    """Returns (state, [(type, message number, length, offset, bytes), ...]) of a datagram's
    fragments."""

def parse_dtls_hello(body: bytes, *, declared: int = 0) -> tuple[str, bytes, bool, bytes]:
    """Returns (state, name as sent, ECH offered, cookie) of a ClientHello's body."""

def parse_dtls_cookie(body: bytes) -> tuple[str, bytes]:
    """Returns (state, cookie) of a HelloVerifyRequest's body."""

def parse_quic_packets(
    data: bytes, *, whole: bool = True
) -> tuple[str, list[tuple[str, int, bytes, bytes]]]:
    """Returns (state, [(type, version, destination ID, source ID), ...]) of a datagram's long
    headers."""

def parse_quic_frames(plain: bytes) -> tuple[str, list[tuple[int, bytes]]]:
    """Returns (state, [(offset, bytes), ...]): the CRYPTO frames of an Initial's plaintext, by
    offset."""

def parse_quic(
    data: bytes, first_dcid: bytes | None = None
) -> tuple[str, int, bytes, bytes, list[tuple[int, bytes]]]:
    """Returns (state, version, destination ID, source ID, CRYPTO frames) of the client's
    Initials."""

def parse_gquic(data: bytes, *, whole: bool = True) -> tuple[Any, ...]:
    """Returns (state, version, connection ID, [(offset, bytes), ...])."""

def parse_gquic_hello(message: bytes) -> tuple[Any, ...]:
    """Returns (state, name, offset of the name, token)."""

def quic_keys(version: int, dcid: bytes, *, server: bool = False) -> tuple[bytes, bytes, bytes]:
    """Returns (key, iv, header key) of one side's Initials."""

def seal_quic(
    version: int, dcid: bytes, packet: bytes, header: int, *, server: bool = False
) -> bytes:
    """Returns the Initial `packet` as its sender protects it. `header` bytes precede its number."""

def parse_http(
    data: bytes, *, cut: bool = False, any_method: bool = False
) -> tuple[str, bytes, int, int]:
    """Returns (state, host as sent, method number, bytes of the head)."""

@final
class HeaderTable:
    """State of one HTTP/2 connection's header compression (proto/hpack)."""

    def decode(self, block: bytes) -> tuple[str, list[tuple[bytes, bytes]]]: ...
    def next_unit(self, data: bytes) -> tuple[str, int, bool, bytes, int]: ...

def http2_preface(data: bytes) -> tuple[str, int]:
    """Returns (state, bytes) of the client's preface at the start of data."""

def skip_proxy_or_starttls_prefix(data: bytes) -> int:
    """Returns the length of the prefix that data starts with; 0: no prefix."""

def parse_dns(data: bytes, *, whole: bool = True) -> tuple[str, bytes, bool, int, int]:
    """Returns (state, name, response?, id, type). The state is malformed, too, if the name has no
    text form."""

def parse_dns_answers(data: bytes, *, whole: bool = True) -> tuple[str, list[str]]:
    """Returns (state, addresses of the answers). state: done, need_more, malformed or other."""

def normalize_host(name: bytes) -> tuple[str, str]:
    """Returns (kind, text): kind is name, home, address, empty or invalid."""

def read_hello(data: bytes, *, cut: bool = False) -> tuple[Any, ...]:
    """Returns the fields of a ClientHello in the first records of a stream."""

def read_hello_message(data: bytes) -> tuple[Any, ...]:
    """Returns the fields of a ClientHello without records, and QUIC's user agent."""

def read_hello_body(data: bytes, *, declared: int = 0) -> tuple[Any, ...]:
    """Returns the fields of a ClientHello's body as DTLS has it, and the cookie."""

def read_server_hello(data: bytes) -> tuple[Any, ...]:
    """Returns the fields of the ServerHello in the first records of a server."""

def read_server_message(data: bytes) -> tuple[Any, ...]:
    """Returns the fields of a ServerHello without records."""

def read_certificate(data: bytes) -> tuple[Any, ...]:
    """Returns (state, common name as sent, its offset, certificate, its offset)."""

def read_common_name(data: bytes) -> tuple[Any, ...]:
    """Returns (state, common name as sent, its offset) of a certificate in DER."""

def read_attribute(word: str, message: bytes) -> tuple[Any, ...]:
    """Returns (state, text, bytes as sent, their offset) of an attribute in a message; text is None
    if it is too long."""

def read_dtls(data: bytes, *, whole: bool = True) -> tuple[Any, ...]:
    """Returns (state, fragments in clear) of a datagram."""

def read_quic_packets(data: bytes, *, whole: bool = True) -> tuple[Any, ...]:
    """Returns (state, long headers) of a datagram."""

def read_quic(
    data: bytes, first_dcid: bytes | None = None, *, server: bool = False
) -> tuple[Any, ...]:
    """Returns (state, bytes read, version, destination ID, source ID, CRYPTO frames, offsets) of
    one side's Initials in a datagram."""

def read_http(data: bytes, *, cut: bool = False) -> tuple[Any, ...]:
    """Returns the fields of a request's head."""

def read_http_chunk(data: bytes) -> tuple[Any, ...]:
    """Returns (state, bytes of the chunk with its frame, last?)."""

def read_http_chunks(data: bytes, most: int) -> tuple[Any, ...]:
    """Returns (state, content of the chunks, all of it?)."""

def read_dns(data: bytes, *, whole: bool = True) -> tuple[Any, ...]:
    """Returns the fields of a message's first question."""

def read_dns_stream(data: bytes) -> tuple[Any, ...]:
    """Returns (state, bytes read, fields of questions) of the messages of a TCP stream."""

def read_doh(target: bytes) -> tuple[Any, ...]:
    """Returns the fields of the question in the target of a request."""

def read_dns_answers(data: bytes, *, whole: bool = True) -> tuple[Any, ...]:
    """Returns (state, addresses of the answers)."""

def read_dnstap(data: bytes) -> tuple[Any, ...]:
    """Returns the fields of a dnstap message."""

def read_frame_stream(data: bytes) -> tuple[Any, ...]:
    """Returns (state, type, content is dnstap?) of a control frame's payload."""

def read_icmp(data: bytes, v6: bool) -> tuple[Any, ...]:
    """Returns the fields of an ICMP message and of the packet that it quotes."""

def read_prefix(data: bytes) -> tuple[Any, ...]:
    """Returns (state, length of the prefix)."""

def read_nameless(data: bytes, later: Iterable[bytes], from_client: bool) -> tuple[Any, ...]:
    """Returns (protocols whose opening the bytes are, no name comes?)."""

def read_signature(data: bytes) -> str | None:
    """Returns the service that a TCP segment's start looks like, or None."""

def read_datagram_kind(data: bytes, wire: int) -> tuple[Any, ...]:
    """Returns (kind that a datagram looks like or None, SSRC, sequence number)."""

def parse_time(text: bytes, unit: str) -> tuple[int, bool] | None:
    """Returns (ns since the Unix epoch, has an offset?), or None."""

def time_problem(text: bytes, unit: str) -> str:
    """Returns the problem of a text that parse_time refuses, with a time that it would read."""

def format_time(t_ns: int, unit: str) -> str:
    """Returns t_ns >= 0 as text in the unit."""
