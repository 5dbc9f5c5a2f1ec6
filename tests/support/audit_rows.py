# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Releases of `filter` with their raw rows, for the raw mode of the audit."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from support.filter import open_row_filter, run_filter
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.row_check import check_rows
from zanon_net.config.filter_settings import FilterConfig
from zanon_net.rows.report import RowSource, RowTotals, build_filter_manifest

Manifest = dict[str, Any]


@dataclass(frozen=True)
class Released:
    """A release of `filter`, and the files of raw rows that the run read."""

    folder: Path
    raw: Sequence[Path]

    @property
    def file(self) -> Path:
        return next(path for path in self.folder.iterdir() if path.name.startswith("shared"))

    @property
    def manifest(self) -> Manifest:
        manifest: Manifest = json.loads((self.folder / "manifest.json").read_bytes())
        return manifest

    def edit_manifest(self, change: Callable[[Manifest], None]) -> None:
        manifest = self.manifest
        change(manifest)
        (self.folder / "manifest.json").write_text(json.dumps(manifest))

    def findings(self, **options: Any) -> list[Finding]:
        return check_rows(self.folder, self.manifest, self.raw, **options).run()


def filtered(folder: Path, sources: Sequence[Path], *options: object, to: str) -> Released:
    """Runs the command. to: ending of the file of the release."""
    done = run_filter("--json", *options, *sources)
    assert done.returncode == 0, done.stderr
    out = folder / "release"
    out.mkdir()
    (out / f"shared.{to}").write_bytes(done.stdout)
    (out / "manifest.json").write_bytes(done.stderr[done.stderr.index(b"{\n") :])
    return Released(out, sources)


def sifted(folder: Path, sources: Sequence[bytes], **options: Any) -> Released:
    """Filters in this process. The sources have the format of the first one."""
    config = FilterConfig(**options)
    row_filter = open_row_filter(**options)
    paths = []
    for number, data in enumerate(sources):
        row_filter.feed(data)
        row_filter.end()
        paths.append(folder / f"raw{number}")
        paths[-1].write_bytes(data)
    row_filter.finish()
    facts = [RowSource(path.name, None, 0, 0) for path in paths]
    manifest = build_filter_manifest(config, RowTotals.of(row_filter), facts, interrupted=False)
    out = folder / "release"
    out.mkdir(exist_ok=True)
    to = manifest["configuration"]["to"]
    ending = manifest["configuration"]["format"] if to == "auto" else to
    for old in out.iterdir():
        old.unlink()
    (out / f"shared.{ending}").write_bytes(row_filter.take())
    (out / "manifest.json").write_text(json.dumps(manifest))
    return Released(out, paths)
