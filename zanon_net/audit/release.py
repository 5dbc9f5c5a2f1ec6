# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Opens a release: folders of `run` and of `filter`, their settings and their files."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from pathlib import Path
from typing import Any

from zanon_net._record import dataclass
from zanon_net.config.log_rules import PRESETS
from zanon_net.config.presets import PURPOSE, PURPOSES
from zanon_net.config.rules import ATTRIBUTES
from zanon_net.errors import ConfigError, FormatError, UnopenedError
from zanon_net.output.log_files import OBSERVATIONS, LogPath, chosen, log_paths, log_paths_in
from zanon_net.output.state_file import MANIFEST
from zanon_net.report.folder import RunFolder, read_manifest

ROWS = "rows"
"""Format of files of `filter`: a time, a user and an attribute in each row."""
FILTER_PROGRAM = "zanon-net filter"
PUBLISH_PROGRAM = "zanon-net publish"
SUFFIX = ".zns"  # of sealed rows
SEALED = (
    "its rows are sealed; open them with `zanon-net unseal --out observations.jsonl`, and audit"
    " that file"
)
_ROW_SUFFIXES = (".csv", ".jsonl", ".parquet", ".gz", ".zst")


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of a log, and its format: a format of `run`, or ROWS.

    records: number of records that the manifest states for the file, or None.
    """

    path: Path
    form: str
    records: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Folder:
    """A folder of a run, or of `filter`.

    manifest: empty if the folder has no manifest. others: files of text in other formats of the
    run, which are not audited. columns: names of the columns of ROWS, by role.
    preset: tool whose form the logs of `filter` have; empty for other logs.
    """

    path: Path
    manifest: Mapping[str, Any]
    files: Sequence[LogFile]
    others: Sequence[Path] = ()
    columns: Mapping[str, str] = field(default_factory=dict)
    preset: str = ""

    def setting(self, *keys: str) -> Any:
        """Returns a value of the manifest's configuration, or None."""
        found: Any = self.manifest.get("configuration")
        for key in keys:
            found = found.get(key) if isinstance(found, Mapping) else None
        return found

    @property
    def coarse_steps(self) -> str:
        """The base of coarse numbers; without a manifest the base that discloses most."""
        if self.preset:
            return "4"
        return str(self.setting("output", "coarse_steps") or "sqrt2")

    @property
    def coarse_end(self) -> str:
        """The times of coarse records; without a manifest the times that disclose most."""
        if self.preset:
            return "none"
        return str(self.setting("output", "coarse_end") or "floored")

    @property
    def z(self) -> int:
        """The users that must share a name; 0 without a manifest."""
        return int(self.setting("anonymity", "z") or self.setting("z") or 0)

    @property
    def attributes(self) -> Sequence[str]:
        """The attributes besides names that the logs may have, by their words."""
        if not self.manifest:
            return ATTRIBUTES
        found = self.setting("anonymity", "attributes")
        return [str(word) for word in found] if isinstance(found, list) else []

    @property
    def pseudonyms(self) -> Any:
        """The kind of pseudonyms as the manifest states it, or None.

        `filter` makes pseudonyms of addresses for logs of other tools. All other users are texts,
        whose pseudonyms keep nothing of them.
        """
        if self.manifest.get("name") == FILTER_PROGRAM:
            return "networks" if self.preset else "random"
        return self.setting("addresses", "pseudonyms")


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """Settings that replace a manifest's settings; None: not given."""

    z: int | None = None
    window_ns: int | None = None
    rotate_ns: int | None = None
    internal: Sequence[str] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Folders that are audited as one release.

    z: the smallest of all folders. purpose: recipient that the run was made for.
    """

    folders: Sequence[Folder]
    z: int
    window_ns: int
    rotate_ns: int
    internal: Sequence[str]
    purpose: str
    notes: Sequence[str]


def open_release(logs: Sequence[str | Path], given: Given) -> Release:
    """Finds the folders, manifests and files.

    Raises UnopenedError for a path that cannot be opened, FormatError for a damaged folder, and
    ConfigError if a setting is missing or two folders cannot be one release.
    """
    if not logs:
        raise ConfigError("logs: give one or more output folders of run or filter")
    folders = [folder for path in logs for folder in _folders(Path(path))]
    if len({folder.path.resolve() for folder in folders}) < len(folders):
        raise ConfigError("logs: a folder is given twice")
    if not any(folder.files for folder in folders):
        raise FormatError(f"{folders[0].path}: there is no log in it")
    run, rows = ("anonymity",), ()
    z = _setting("z", folders, [(*run, "z"), (*rows, "z")], given.z)
    window = _setting("window", folders, [(*run, "window_ns"), ("window_ns",)], given.window_ns)
    rotate_keys = [("addresses", "rotate_ns"), ("rotate_ns",)]
    rotate = _setting("rotate", folders, rotate_keys, given.rotate_ns)
    if len(set(rotate)) > 1:
        raise ConfigError(
            "logs: the folders have epochs of two lengths (--rotate), so their pseudonyms cannot be"
            " compared; audit them one by one"
        )
    notes = []
    if len(set(z)) > 1:
        notes.append(f"The folders have different z; {min(z)} is used.")
    return Release(
        folders=folders,
        z=min(z),
        window_ns=max(window),
        rotate_ns=rotate[0],
        internal=given.internal or _internal(folders),
        purpose=_purpose(folders),
        notes=[*notes, *_notes(folders)],
    )


def refuse_ephemeral(release: Release) -> None:
    """Raises ConfigError if no key file can make the pseudonyms of a folder."""
    for folder in release.folders:
        modes = (folder.setting("addresses", "key_mode"), folder.setting("key_mode"))
        if "ephemeral" in modes:
            raise ConfigError(
                f"key_file: the run of {folder.path} had an ephemeral key, so no key file exists;"
                " leave it out"
            )


def _folders(path: Path) -> list[Folder]:
    """Returns the folders with a manifest at a path or below it, else the path itself."""
    if path.is_file():
        if path.suffix == SUFFIX:
            raise FormatError(f"{path}: {SEALED}")
        form = LogPath.of(path)
        return [Folder(path=path, manifest={}, files=[LogFile(path, form.form if form else ROWS)])]
    if not path.is_dir():
        raise UnopenedError(f"{path}: there is no such file or folder")
    if not (path / MANIFEST).exists():
        if (path / f"{MANIFEST}.partial").exists():
            raise UnopenedError(f"{path}: there is no {MANIFEST}: the run has not ended")
        inside = sorted(found.parent for found in path.glob(f"*/{MANIFEST}"))
        if inside:
            return [_with_manifest(folder) for folder in inside]
        files = _files_in(path)
        if not files and any(path.glob(f"*{SUFFIX}")):
            raise FormatError(f"{path}: {SEALED}")
        return [Folder(path=path, manifest={}, files=files)]
    return [_with_manifest(path)]


def _with_manifest(path: Path) -> Folder:
    manifest = read_manifest(path)
    if not isinstance(manifest, Mapping):
        raise FormatError(f"{path / MANIFEST} is no manifest of zanon-net")
    if manifest.get("name") == FILTER_PROGRAM:
        return _of_filter(path, manifest)
    if manifest.get("name") == PUBLISH_PROGRAM:
        raise FormatError(f"{path}: a release of publish is a table; give its file, and --quasi")
    folder = RunFolder.open(path)
    form, paths = folder.files()
    inside = path.resolve()
    if not all(
        (path / one["file"]).resolve().is_relative_to(inside) for one in manifest["outputs"]
    ):
        raise FormatError(f"{path / MANIFEST} lists a file that is a link out of its folder")
    records = {one["file"]: one.get("records") for one in folder.manifest["outputs"]}
    files = [LogFile(at, form, records.get(at.relative_to(path).as_posix())) for at in paths]
    listed = log_paths(path / file for file in records)
    others = [one.path for one in listed if one.path not in paths and one.form != "parquet"]
    return Folder(path=path, manifest=folder.manifest, files=files, others=others)


def _of_filter(path: Path, manifest: Mapping[str, Any]) -> Folder:
    settings = manifest.get("configuration")
    if not isinstance(settings, Mapping):
        raise FormatError(f"{path / MANIFEST} is damaged: it has no configuration")
    preset = settings.get("preset")
    if preset is not None:
        return _of_preset(path, manifest, preset)
    columns = {role: str(settings.get(role, role)) for role in ("time", "user", "attribute")}
    columns["unit"] = str(settings.get("time_unit") or "")
    delimiter = settings.get("delimiter")
    columns["delimiter"] = "\t" if delimiter == "tab" else str(delimiter or ",")
    columns["quote"] = "" if settings.get("quote") == "none" else '"'
    levels = settings.get("levels")
    columns["has_levels"] = str(levels or "")
    columns["has_labels"] = "labels" if isinstance(levels, list) else ""
    if settings.get("header"):  # then the file has no header line
        users = [] if settings.get("no_user") else [columns["user"]]
        attribute = columns["attribute"]
        attributes = attribute.split(",") if columns["has_levels"] else [attribute]
        columns["header"] = "\n".join([columns["time"], *users, *attributes, *_passed(settings)])
    return Folder(path=path, manifest=manifest, files=_files_in(path), columns=columns)


def _passed(settings: Mapping[str, Any]) -> list[str]:
    """Returns the columns that `filter` wrote as they were."""
    found = settings.get("pass")
    return list(map(str, found)) if isinstance(found, list) else []


def _of_preset(path: Path, manifest: Mapping[str, Any], preset: Any) -> Folder:
    """Returns a folder of logs of another tool: all its files but the manifest are such logs."""
    if preset not in PRESETS:
        raise FormatError(f"{path / MANIFEST} names no preset of this version")
    found = sorted(file for file in path.iterdir() if file.is_file() and file.name != MANIFEST)
    written = manifest.get("rows", {}).get("written") if len(found) == 1 else None
    files = [LogFile(file, preset, written) for file in found]
    return Folder(path=path, manifest=manifest, files=files, preset=preset)


def _files_in(path: Path) -> list[LogFile]:
    """Returns the files of a folder, of each run in one format."""
    logs = [log for log in log_paths_in(path) if log.path.is_file()]
    found = [LogFile(log.path, log.form) for log in chosen(logs, None)]
    if found:
        return found
    return [
        LogFile(file, ROWS)
        for file in sorted(path.iterdir())
        if file.is_file() and file.suffix in _ROW_SUFFIXES
    ]


def _setting(
    name: str, folders: Sequence[Folder], keys: Sequence[tuple[str, ...]], given: int | None
) -> list[int]:
    """Returns the value of a setting in each folder.

    Raises ConfigError if a folder does not state the setting.
    """
    if given is not None:
        return [given] * len(folders)
    values = []
    for folder in folders:
        found = [folder.setting(*key) for key in keys]
        numbers = [value for value in found if isinstance(value, int) and value > 0]
        if not numbers:
            raise ConfigError(f"{name}: {folder.path} has no {MANIFEST} that states it; give it")
        values.append(numbers[0])
    return values


def _internal(folders: Sequence[Folder]) -> Sequence[str]:
    networks = (
        folder.setting("addresses", "internal", "networks")
        or folder.setting("internal", "networks")
        for folder in folders
    )
    return next((list(map(str, found)) for found in networks if isinstance(found, list)), [])


def _purpose(folders: Sequence[Folder]) -> str:
    """Returns the most public recipient that a folder was made for."""
    found = [folder.setting("output", "for") for folder in folders]
    known = [PURPOSES.index(word) for word in found if word in PURPOSES]
    return PURPOSES[max(known)] if known else PURPOSE


def _notes(folders: Sequence[Folder]) -> list[str]:
    conditions: list[tuple[Callable[[Mapping[str, Any]], bool], str]] = [
        (lambda manifest: not manifest, "have no manifest, so options replace it"),
        (lambda manifest: bool(manifest.get("error")), "are of a run that failed"),
        (lambda manifest: bool(manifest.get("running")), "are of a run that has not ended"),
    ]
    counts = [
        (sum(condition(folder.manifest) for folder in folders), text)
        for condition, text in conditions
    ]
    notes = [f"{count} of {len(folders)} folders {text}." for count, text in counts if count]
    passed = sum(len(_passed(folder.manifest.get("configuration") or {})) for folder in folders)
    if passed:
        notes.append(
            f"{passed} columns were written as they were (--pass), and the audit does not check"
            " what they disclose."
        )
    return notes


__all__ = [
    "OBSERVATIONS",
    "ROWS",
    "Folder",
    "Given",
    "LogFile",
    "Release",
    "open_release",
    "refuse_ephemeral",
]
