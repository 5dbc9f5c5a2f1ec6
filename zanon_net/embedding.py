# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The engine inside another program: frames in as arrays, released data out as arrays."""

from typing import TYPE_CHECKING, Any, NamedTuple, Self, SupportsIndex

import numpy as np
import numpy.typing as npt

from zanon_net import _core
from zanon_net.config.parse import as_int
from zanon_net.config.probe_rules import reject_counter
from zanon_net.config.settings import Config
from zanon_net.errors import ConfigError

if TYPE_CHECKING:
    from typing import Unpack

    from zanon_net.config.keywords import RunSettings

RECORD_DTYPE = _core.row_dtype("record_rows")
"""The fields of `Engine.records`."""
OBSERVATION_DTYPE = _core.row_dtype("observation_rows")
"""The fields of `Engine.observations`."""

NAME_SOURCES = (None, "tls", "quic", "http", "dns")
"""The meanings of the numbers in `name_source`."""
NAMESPACES = (None, "name", "dns", *_core.ATTRIBUTES)
"""The meanings of the numbers in `namespace`; 0 in an engine without attributes."""
NAME_STATUSES = ("none", "released", "suppressed", "unconfirmed", "invalid", "generalized")
"""The meanings of the numbers in `name_status`."""
NAME_LEVELS = (None, "name", "domain", "category")
"""The meanings of the numbers in `name_level`."""
DISCLOSURES = ("withheld", "pseudonym", "released")
"""The meanings of the numbers in `client_shown` and `server_shown`."""

PACKETS = "packets"
"""The core's name of the output whose text holds packets."""

Bytes = bytes | bytearray | memoryview | npt.NDArray[np.uint8]


class PacketBatch(NamedTuple):
    """Anonymized packets, Ethernet frames: packet i is `data[offset[i] : offset[i] + length[i]]`.

    data: uint8, whose bytes between packets have no meaning.
    offset: int64[n]. length, wire: uint32[n], bytes in `data` and on the wire.
    t_ns: int64[n], ns since the Unix epoch.
    """

    data: npt.NDArray[np.uint8]
    offset: npt.NDArray[np.int64]
    length: npt.NDArray[np.uint32]
    wire: npt.NDArray[np.uint32]
    t_ns: npt.NDArray[np.int64]


class Engine:
    """Takes frames in batches and returns only data that may be published.

    An engine belongs to one thread at a time; several engines may run on several threads. Released
    data waits until `observations`, `records` and, with `packets`, `packets` are called: call them
    after each batch.

    config: the settings. Settings of input, files and interfaces have no effect. Only `purpose` and
        its presets of the output have an effect. A z that follows the stream is refused, because
        nothing would change it at the end of a window. A counter is refused, too.
    packets: true if the frames are wanted as anonymized packets, too.
    settings: single settings, which override config, such as z=10.

    Raises ConfigError, CaptureError for a key file that cannot be read, or CapacityError.
    """

    def __init__(
        self,
        config: Config | None = None,
        *,
        packets: bool = False,
        **settings: "Unpack[RunSettings]",
    ) -> None:
        config = (config or Config()).replace(**settings)
        outputs = _core.ROWS
        if packets:
            config = config.replace(format="pcap")  # which not every purpose allows
            outputs += (PACKETS,)
        if config.anonymity.dynamic:
            raise ConfigError("target_p: z follows the stream in a whole run only; give z alone")
        reject_counter(config.count.count_at)
        arguments = config.engine_arguments()
        arguments |= {"outputs": outputs, "split_ns": 0, "columns": (), "popularity": False}
        self._engine = _core.PacketEngine(**arguments)
        self._views = {view.name: f"view{n}_{PACKETS}" for n, view in enumerate(config.views, 1)}
        outputs += tuple(self._views.values())
        self._ready: dict[str, list[bytes]] = {output: [] for output in outputs}

    def feed(
        self,
        buffer: Bytes,
        ts_ns: npt.ArrayLike,
        caplen: npt.ArrayLike,
        wirelen: npt.ArrayLike,
        linktype: int,
    ) -> None:
        """Takes n frames. Arrays of the types named are used in place, without a copy.

        buffer: the frames back to back, uint8. ts_ns: int64[n], ns since the Unix epoch, in order
        of arrival. caplen, wirelen: uint32[n], bytes in the buffer and on the wire. linktype: the
        LINKTYPE_* of all frames, 1 for Ethernet.

        Raises ValueError if the lengths do not fit or a number is out of range, and TypeError for
        other values than whole numbers: the engine then took no frame. Raises CapacityError if
        memory is exhausted: then only `close` may be called.
        """
        self._engine.feed(
            buffer,
            _numbers("ts_ns", ts_ns, np.int64),
            _numbers("caplen", caplen, np.uint32),
            _numbers("wirelen", wirelen, np.uint32),
            _number("linktype", linktype, np.uint32),
        )

    def observations(self) -> npt.NDArray[np.void]:
        """Returns the observations released since the last call, of OBSERVATION_DTYPE.

        docs/reference/embedding.md has its fields, and their values in a withheld observation.
        """
        return np.frombuffer(self._take("observation_rows"), OBSERVATION_DTYPE)

    def records(self) -> npt.NDArray[np.void]:
        """Returns the flows that closed since the last call, of RECORD_DTYPE.

        docs/reference/embedding.md has its fields, and their values in a withheld record.
        """
        return np.frombuffer(self._take("record_rows"), RECORD_DTYPE)

    def packets(self, view: str | None = None) -> PacketBatch:
        """Returns the packets that left since the last call, after they waited for `hold`.

        view: the name of one of the config's views, whose packets are wanted.

        Raises ConfigError if the engine was not opened with `packets`, or has no such view.
        """
        if PACKETS not in self._ready:
            raise ConfigError("packets: open the engine with packets=True")
        if view is not None and view not in self._views:
            raise ConfigError(f"view: the engine was opened without {view!r}")
        data = np.frombuffer(self._take(PACKETS if view is None else self._views[view]), np.uint8)
        return PacketBatch(data, *_core.packet_places(data))

    def _take(self, output: str) -> bytes:
        self._gather()
        pieces, self._ready[output] = self._ready[output], []
        return b"".join(pieces)

    def _gather(self) -> None:
        """Empties the core's outputs, which have space for a bounded number of records."""
        while True:
            for output, pieces in self._ready.items():
                pieces.append(self._engine.take(output))
            if not self._engine.waiting:
                return
            self._engine.flush()

    def idle(self, quiet_ns: int) -> None:
        """Closes flows that are idle for too long, because no frame came for `quiet_ns` ns.

        Raises ValueError for a number out of range, TypeError for another value than a whole
        number.
        """
        self._engine.idle(_number("quiet_ns", quiet_ns, np.int64))

    def finish(self) -> None:
        """Ends the input: closes every flow; `records` and `packets` then have the rest.

        Frames that are fed later open new flows, which the next call closes.
        """
        while self._engine.finish():
            self._gather()

    @property
    def stats(self) -> dict[str, int]:
        """Every counter, as the manifest has them."""
        return self._engine.stats

    @property
    def memory_bytes(self) -> int:
        """Bytes of memory in use."""
        return self._engine.memory_bytes

    def close(self) -> None:
        """Wipes the keys and frees everything. A second call does nothing."""
        self._engine.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc: object) -> None:
        self.close()


def _numbers(name: str, values: npt.ArrayLike, wanted: type[Any]) -> npt.NDArray[Any]:
    """Returns `values` as a contiguous array of `wanted`; the same object if it is one already."""
    given = np.asarray(values)
    if given.ndim != 1:
        raise ValueError(f"{name} must have one dimension")
    if given.dtype == wanted:
        return np.require(given, requirements=("C", "ALIGNED"))
    if given.size and given.dtype.kind not in "iu":
        raise TypeError(f"{name} must hold whole numbers")
    limits = np.iinfo(wanted)
    if given.size and not (limits.min <= int(given.min()) and int(given.max()) <= limits.max):
        raise ValueError(f"{name} holds a number out of range")
    return given.astype(wanted)


def _number(name: str, value: SupportsIndex, wanted: type[Any]) -> int:
    """Returns `value`, which must fit into `wanted`."""
    number, limits = as_int(value), np.iinfo(wanted)
    if number is None:
        raise TypeError(f"{name} must be a whole number")
    if not limits.min <= number <= limits.max:
        raise ValueError(f"{name} is out of range")
    return number
