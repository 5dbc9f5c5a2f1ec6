# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Manifest of a run: all that machines can read about it, in counts."""

import itertools
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from json.encoder import encode_basestring_ascii
from typing import Any

from zanon_net._core import STAT_INFO
from zanon_net._record import dataclass
from zanon_net._text import readable, time_range
from zanon_net._version import __version__
from zanon_net.config.formats import FORMATS
from zanon_net.config.presets import MINUTE_ALL
from zanon_net.config.settings import Config
from zanon_net.output.disk import DiskFacts
from zanon_net.output.sink import Sent
from zanon_net.pipeline import packet_fates
from zanon_net.pipeline.diagnostics import MERGED
from zanon_net.pipeline.doubts import Doubts
from zanon_net.pipeline.facts import Drops, Facts, Loss, absences
from zanon_net.pipeline.hints import hints
from zanon_net.pipeline.totals import Totals

NAME_LEVELS, ADDRESS_LEVELS = ("domain", "category"), ("as", "country")
CUT = "there was no room for more output: the last files were cut to whole records"
Z_EQUALS_1 = "z = 1: every name is released, also one that a single user visited"


@dataclass(frozen=True, slots=True)
class Ending:
    """The end of a run, or its present state.

    files: {"file", "bytes", "records"} of each file that appears.
    written: records in them, by output.
    error: the reason why the run ended early, or None.
    drops: packets lost before the end.
    was_cut: true if there was no space for more, and the last files were cut to whole records.
    sent: the packets that were to leave through an interface; None if the output is no interface.
    disk: the state of the output on the disk.
    running: true if the run has not ended, and all fields are the state so far.
    waited: time that answers of a counter were waited for, if longer than the setting.
    captures: advice about captures that do not belong one after the other.
    """

    files: Sequence[Mapping[str, Any]]
    written: Mapping[str, int]
    interrupted: bool = False
    error: str | None = None
    drops: Drops = field(default_factory=Drops)
    was_cut: bool = False
    sent: Sent | None = None
    disk: DiskFacts = field(default_factory=DiskFacts)
    running: bool = False
    waited: str | None = None
    captures: str | None = None

    @property
    def is_whole(self) -> bool:
        """True if the run has ended, and nothing ended it early."""
        return not (self.running or self.interrupted or self.error is not None)

    def accounts(self, counters: Mapping[str, int]) -> dict[str, Any]:
        """Returns the fates of the records of closed flows: of each format, written, left_out and
        lost."""
        records = counters["records"]
        formats: dict[str, tuple[int, int]] = {}
        for name, form in sorted(FORMATS.items()):
            outputs = [output for output in form.outputs if output in self.written]
            if outputs and form.is_accounted:
                written = sum(self.written[output] for output in outputs)
                formats[name] = (written, counters[form.left_out] if form.left_out else 0)
        return {
            "closed": records + counters["flows_external"],
            "withheld": counters["flows_external"],
            "records": records,
            **{
                name: {
                    "written": n,
                    "left_out": left_out,
                    **self._rest(records - n - left_out, self.disk.lost.get(name, 0)),
                }
                for name, (n, left_out) in formats.items()
            },
        }

    def _rest(self, records: int, lost: int) -> dict[str, int]:
        """Returns the records that are in no file that has appeared. lost: records that were not
        written."""
        return {"lost": lost, "unfinished": records - lost} if self.running else {"lost": records}


def _diagnostics(
    config: Config, totals: Totals, described: Sequence[Mapping[str, Any]], ending: Ending
) -> list[str]:
    """Returns the hints on a run that one process made and that read all of its input."""
    alone = ending.captures is None and config.limits.shards == 1
    return list(hints(config, totals, described)) if ending.is_whole and alone else []


def _counters(totals: Totals) -> dict[str, dict[str, int]]:
    """Returns the counters by group, without the groups that `decisions` has."""
    groups = dict.fromkeys(group for _name, group, _text in STAT_INFO)
    return {one: totals.group(one) for one in groups if one not in ("decision", "suppressed")}


def build_manifest(
    config: Config, totals: Totals, sources: Iterable[Facts], ending: Ending
) -> dict[str, Any]:
    """Returns the manifest of a run.

    Equal input, settings and key file give equal manifests: a manifest does not depend on the
    duration of the run.
    """
    listed = list(sources)
    described = [source.to_dict() for source in listed]
    loss = Loss.of(described, ending.drops)
    notes = _notes(config, totals.counters)
    notes += [] if loss is None else [loss.text()]
    away = absences(described)
    notes += away
    notes += [CUT] if ending.was_cut else []
    full = ending.disk.note()
    notes += [] if full is None else [full]
    unsent = None if ending.sent is None else ending.sent.warning()
    notes += [] if unsent is None else [unsent]
    notes += [] if ending.waited is None else [ending.waited]
    notes += [] if ending.captures is None else [ending.captures]
    doubts = Doubts.of(totals.counters, totals.table)
    notes += doubts.texts()
    notes += _diagnostics(config, totals, described, ending)
    whole = not ending.interrupted and all(source.warning is None for source in listed)
    return {
        "name": "zanon-net",
        "version": __version__,
        "running": ending.running,
        "complete": whole
        and not ending.running
        and ending.error is None
        and loss is None
        and not away
        and unsent is None
        and not doubts.lost_decisions
        and ending.disk.records_lost == 0,
        "interrupted": ending.interrupted,
        "error": ending.error,
        "notes": notes,
        "configuration": config.to_dict(),
        "weaker_than": config.weaker_than,
        "forged_users": config.forged_users,
        "pseudonyms": _pseudonyms(config, totals),
        "workers": config.limits.workers,
        "time_range": time_range(totals.time_range_ns),
        "sources": described,
        "capture_drops": ending.drops.to_dict(),
        "users": totals.users,
        "decisions": totals.decisions(),
        "counters": _counters(totals),
        **_levels(config, totals),
        "attributes": totals.attributes,
        "records": ending.accounts(totals.counters),
        **_packets(config, totals, ending),
        **ending.disk.to_dict(),
        "outputs": [dict(file) for file in ending.files],
    }


PSEUDONYMS_KEEP = {
    "networks": "which of the networks below an address lies in",
    "crypto-pan": "the prefixes of addresses, by which pseudonyms of two epochs can be joined",
    "random": "nothing: no network can be told from another",
}
"""Structure of addresses that each kind of pseudonyms keeps, and so discloses."""


def _pseudonyms(config: Config, totals: Totals) -> dict[str, Any]:
    kept = totals.key_scope.rpartition("networks=")[2]
    return {
        "keep": PSEUDONYMS_KEEP[config.settings()["pseudonyms"].partition(":")[0]],
        "networks": kept.split(",") if kept else [],
        "networks_left_out": totals.networks_left_out,
        "pseudonym_id": totals.pseudonym_id,
    }


def _levels(config: Config, totals: Totals) -> dict[str, Any]:
    """Returns the counts of the levels of generalization. No label is in them."""
    if totals.levels is None:
        return {"levels": None}
    names = (NAME_LEVELS, ADDRESS_LEVELS)
    chosen = [[name for name in kind if name in config.anonymity.levels] for kind in names]
    above = itertools.zip_longest(*chosen)
    found = [["name", "address"], *([name for name in both if name] for both in above)]
    of_levels = zip(found, totals.levels["levels"], strict=True)
    users = {name: totals.levels[name] or None for name in ("smallest", "median")}
    return {
        "levels": {
            "published": {
                name: totals.counters[f"generalized_{name}"] for name in config.anonymity.levels
            },
            "tables": [{"levels": named, **counts} for named, counts in of_levels],
            "users_behind_labels": users,
            "levels_paused": totals.levels["paused"],
            "lacked_capacity": totals.levels["lacked_capacity"],
            "categories_ignored": totals.levels["ignored_categories"],
        }
    }


def _packets(config: Config, totals: Totals, ending: Ending) -> dict[str, Any]:
    if not any(output in ending.written for output in packet_fates.OUTPUTS):
        return {}
    interface = {} if ending.sent is None else {"interface": ending.sent.to_dict()}
    return {"packets": packet_fates.manifest_of(totals, config.views) | interface}


def _notes(config: Config, counters: Mapping[str, int]) -> list[str]:
    notes = [Z_EQUALS_1] if config.anonymity.z_limit == 1 else []
    external, flows = counters["flows_external"], counters["flows_tcp"] + counters["flows_udp"]
    if 2 * external > flows:
        notes.append(f"{external:,} of {flows:,} flows have no internal endpoint: check --internal")
    if merged := counters["frames_merged"]:
        notes.append(f"{merged:,} {MERGED}")
    if config.settings()["order"] == MINUTE_ALL:
        notes.append("observations and records leave when their minute is over, with no zero delay")
    return notes


def manifest_bytes(manifest: Mapping[str, Any]) -> bytes:
    """Returns the manifest as it is written: ASCII, two spaces a level.

    Paths in it are readable, because strict readers of JSON reject half surrogate pairs.
    """
    parts: list[str] = []
    _write(dict(manifest), "\n", parts)
    text = "".join(parts)
    if "\\ud" in text:  # it may be half a surrogate pair
        text = json.dumps(json.loads(readable(json.dumps(manifest, ensure_ascii=False))), indent=2)
    return (text + "\n").encode("ascii")


def _write(value: Any, line: str, parts: list[str]) -> None:
    """Appends the text of `json.dumps` with an indent of two spaces.

    It takes a third of the time, which counts for a folder of many captures.

    line: a line break with the indent of the value.
    """
    inner = line + "  "
    if isinstance(value, dict) and value:
        before = "{"
        for key, item in value.items():
            name = f"{before}{inner}{encode_basestring_ascii(str(key))}: "
            before = ","
            if type(item) is str:
                parts.append(name + encode_basestring_ascii(item))
            elif type(item) is int:
                parts.append(f"{name}{item}")
            elif item is None:
                parts.append(name + "null")
            else:
                parts.append(name)
                _write(item, inner, parts)
        parts.append(line + "}")
    elif isinstance(value, list | tuple) and value:
        before = "["
        for item in value:
            parts.append(before + inner)
            before = ","
            _write(item, inner, parts)
        parts.append(line + "]")
    else:
        parts.append("{}" if value == {} else json.dumps(value))
