# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The audit of captures of anonymized packets: whether they kept the promise.

The risks that remain are not measured, because attacks on packets need the truth, which generated
traffic has.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from zanon_net._text import time_range
from zanon_net.audit.promised import violations_of, write_details
from zanon_net.audit.result import RISKS, UNKNOWN, Metric, Report
from zanon_net.config.presets import PURPOSE
from zanon_net.errors import ConfigError, FormatError, UnopenedError
from zanon_net.output.new_file import refuse_existing
from zanon_net.output.state_file import MANIFEST

SUFFIXES = (".pcap", ".pcapng")
NO_FIGURE = "attacks on packets need the truth; the documents have figures of generated traffic"
OF_LOGS = (
    *("sensitive", "z", "window", "rotate", "check", "skip", "quasi", "sensitive_columns"),
    "key_file",
)


def are_captures(paths: Sequence[Path]) -> bool:
    """Returns true if the paths are of captures. Raises ConfigError if only some are."""
    found = {path.suffix in SUFFIXES for path in paths}
    if len(found) > 1:
        raise ConfigError("logs: captures and other logs are audited one by one; give one kind")
    return True in found


def audit_packets(paths: Sequence[Path], chosen: Mapping[str, Any]) -> Report:
    """Checks captures of anonymized packets against the captures of their run.

    paths: outputs of `packets`, or of `run` with a packet format.
    chosen: settings of the audit; raw has the captures of the run.

    Raises UnopenedError, FormatError and ConfigError for files and settings that cannot be audited.
    """
    from zanon_net.audit.raw.check import read_captures
    from zanon_net.audit.raw.packet_files import check_packets
    from zanon_net.audit.raw.promise import DAMAGED, Promise

    for name in OF_LOGS:
        if chosen[name] not in (None, ()):
            raise ConfigError(f"{name}: is not for captures; leave it out")
    if not chosen["raw"]:
        raise ConfigError("raw: a capture is checked against the captures of its run; give them")
    if chosen["details"] is not None:
        refuse_existing(chosen["details"])
    promise, packets = Promise(), 0
    raw = [Path(source) for source in chosen["raw"]]
    manifests = [manifest_of(path) for path in paths]
    for path, manifest in zip(paths, manifests, strict=True):
        try:
            seen = read_captures(
                manifest,
                raw,
                internal=chosen["internal"],
                never=chosen["never"],
                files=[Path(file) for file in chosen["lists"]],
                memory=chosen["memory"],
                threads=chosen["workers"],
            )
            result, shown = check_packets(path, manifest, seen, raw)
        except DAMAGED as error:
            raise damaged(path, error) from None
        promise.findings += result.violations
        promise.unproven += result.unproven
        promise.claims += result.claims
        packets += shown
        promise.notes += [result.note(), *result.notes]
    if chosen["details"] is not None:
        write_details(Path(chosen["details"]), promise)
    return Report(
        purpose=chosen["purpose"] or _purpose(manifests),
        promise=promise.state,
        facts=_facts(manifests, packets),
        metrics=[
            Metric(
                name=f"packets, {risk}",
                risk=risk,
                attacker="has the packets",
                verdict=UNKNOWN,
                note=NO_FIGURE,
            )
            for risk in RISKS
        ],
        violations=violations_of(promise),
        notes=promise.notes,
    )


def damaged(path: Path, error: Exception) -> Exception:
    """Returns the error of a manifest whose values are of other types, or another error as it
    is."""
    if isinstance(error, ConfigError):
        return error
    return FormatError(f"{path}: its manifest is damaged, or of another version")


def manifest_of(path: Path) -> dict[str, Any]:
    """Returns the manifest of a capture: beside the capture, or in its folder.

    A view has the manifest of its run, with the view's z.
    """
    base, _dot, view = path.stem.rpartition(".")
    of_capture = path.with_name(f"{path.name}.manifest.json")
    of_run = path.with_name(f"{base}{path.suffix}.manifest.json")
    for place in (of_capture, *([of_run] if base else []), path.with_name(MANIFEST)):
        try:
            if place.is_fifo():
                raise FormatError(f"{place} is no file, so it is no manifest")
            found = json.loads(place.read_text("utf-8"))
        except FileNotFoundError:
            continue
        except OSError as error:
            raise UnopenedError(f"{place} cannot be read: {error.strerror}") from None
        except ValueError:
            raise FormatError(f"{place}: the manifest is damaged") from None
        if not path.is_file():  # a pipe cannot be read twice
            raise UnopenedError(f"{path}: there is no such file")
        if isinstance(found, dict):
            try:
                return of_view(found, view) if base else found
            except (KeyError, TypeError, ValueError, AttributeError):
                raise FormatError(f"{place} is damaged, or of another version") from None
        raise FormatError(f"{place}: the manifest is damaged")
    raise UnopenedError(f"{path}: there is no manifest beside it")


def of_view(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    """Returns the manifest of a run as it holds for a view, or as it is if no view has the name."""
    own = manifest["configuration"]
    views = dict(one.split(":", 1) for one in (own.get("packets") or {}).get("view") or ())
    if name not in views:
        return manifest
    settings = dict(one.split("=", 1) for one in views[name].split(","))
    z = int(settings.get("z", own["anonymity"]["z"]))
    changes = [one | {"new": max(one["new"], z)} for one in manifest.get("z_changes") or ()]
    packets = {key.replace("-", "_"): value for key, value in settings.items()}
    view = {"anonymity": own["anonymity"] | {"z": z}, "packets": own["packets"] | packets}
    return manifest | {"configuration": own | view, "z_changes": changes}


def _purpose(manifests: Sequence[Mapping[str, Any]]) -> str:
    purposes = {manifest["configuration"]["output"]["for"] for manifest in manifests}
    return purposes.pop() if len(purposes) == 1 else PURPOSE


def _facts(manifests: Sequence[Mapping[str, Any]], packets: int) -> dict[str, Any]:
    spans = [manifest["time_range"] for manifest in manifests if manifest["time_range"]]
    first = min((span["first_ns"] for span in spans), default=None)
    last = max((span["last_ns"] for span in spans), default=None)
    own = manifests[0]["configuration"]
    return {
        "packets": packets,
        "files": len(manifests),
        "time_range": None if first is None or last is None else time_range((first, last)),
        "z": min(manifest["configuration"]["anonymity"]["z"] for manifest in manifests),
        "window_ns": own["anonymity"]["window_ns"],
        "rotate_ns": own["addresses"]["rotate_ns"],
        "key_mode": own["addresses"]["key_mode"],
    }
