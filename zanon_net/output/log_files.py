# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Finds the files of logs in a folder of one run, of several runs, or of Tstat's."""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from zanon_net._record import dataclass
from zanon_net.config.formats import DATASET_OF
from zanon_net.output.files import PARTIAL

FLOW_FORMATS = ("parquet", "jsonl", "csv", "tstat")
"""The formats of flows. If a run wrote several, the first of them is read."""
TSTAT_LOGS = ("tcp_complete", "tcp_nocomplete", "udp_complete")
FLOWS, OBSERVATIONS = "flows", "observations"
LOGS = (FLOWS, OBSERVATIONS, *TSTAT_LOGS)

_STAMP = r"(?:-(?P<stamp>\d{8}T\d{6}Z))?(?:-(?P<number>\d+))?"
_PACKED = r"(?:\.gz|\.zst)?"
_NAMES = {
    "parquet": re.compile(rf"(?:tcp|udp){_STAMP}\.parquet"),
    "jsonl": re.compile(rf"flows{_STAMP}\.jsonl{_PACKED}"),
    "csv": re.compile(rf"flows{_STAMP}\.csv{_PACKED}"),
    OBSERVATIONS: re.compile(rf"observations{_STAMP}\.jsonl{_PACKED}"),
    "tstat": re.compile(rf"log_(?P<log>{'|'.join(TSTAT_LOGS)}){_PACKED}"),
}
_TSTAT_FOLDER = re.compile(r"(?P<stamp>.+?)(?:-(?P<number>\d+))?\.out")


@dataclass(frozen=True, slots=True)
class LogPath:
    """The path of a file of a log.

    form: its format, a key of the patterns of names. run: the folder of its run.
    stamp, number: start of its part, and its number among parts of one start.
    log: which of Tstat's logs it is; empty: another format.
    """

    path: Path
    form: str
    run: Path
    stamp: str = ""
    number: int = 1
    log: str = ""

    @classmethod
    def of(cls, path: Path) -> "LogPath | None":
        """Returns the path with what its name says; None if it is no name of a log."""
        matches = ((form, names.fullmatch(path.name)) for form, names in _NAMES.items())
        form, found = next((pair for pair in matches if pair[1] is not None), ("", None))
        if found is None:
            return None
        words = found.groupdict()
        folder = _TSTAT_FOLDER.fullmatch(path.parent.name) if form == "tstat" else None
        if folder is not None:
            words |= folder.groupdict()
        run = path.parent if folder is None else path.parent.parent
        if form == "parquet":
            datasets = [at for at in path.parents if at.name in DATASET_OF.values()]
            run = datasets[0].parent if datasets else path.parent
        stamp, number = words.get("stamp") or "", int(words.get("number") or 1)
        return cls(path, form, run, stamp, number, words.get("log") or "")


def log_paths(paths: Iterable[Path]) -> list[LogPath]:
    """Returns the paths of logs among paths, by run, time and number of their parts."""
    found = [log for path in paths for log in (LogPath.of(path),) if log is not None]
    return sorted(
        found, key=lambda log: (log.run, log.stamp, log.number, log.form, log.path.as_posix())
    )


def log_paths_in(folder: Path) -> list[LogPath]:
    """Returns the finished logs in a folder and below it, in the order of `log_paths`."""
    inside = (path.relative_to(folder) for path in folder.rglob("*"))
    whole = (path for path in inside if not any(part.endswith(PARTIAL) for part in path.parts))
    return log_paths(folder / path for path in whole)


def chosen(logs: Sequence[LogPath], log: str | None) -> list[LogPath]:
    """Returns the files to read, of each run in one format.

    log: one of LOGS. None: the flows, or the observations if there are no flows.
    """
    if log is None:
        return chosen(logs, FLOWS) or chosen(logs, OBSERVATIONS)
    order: Sequence[str] = FLOW_FORMATS
    if log == OBSERVATIONS:
        order = (OBSERVATIONS,)
    elif log in TSTAT_LOGS:
        order = ("tstat", *FLOW_FORMATS)
    formats: dict[Path, set[str]] = {}
    for one in logs:
        formats.setdefault(one.run, set()).add(one.form)
    wanted = {run: next((form for form in order if form in there), None)
              for run, there in formats.items()}  # fmt: skip
    return [one for one in logs if _is_wanted(one, wanted, log)]


def _is_wanted(one: LogPath, wanted: Mapping[Path, str | None], log: str) -> bool:
    is_other_log = log in TSTAT_LOGS and one.form == "tstat" and one.log != log
    return one.form == wanted[one.run] and not is_other_log
