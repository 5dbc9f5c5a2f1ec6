# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Runs over a capture whose logs the raw mode of the audit checks."""

import itertools
import json
from collections.abc import Iterable
from pathlib import Path

import zanon_net
from zanon_net import Config
from zanon_net.audit.raw.attributes import READERS
from zanon_net.audit.raw.check import RawResult, check_files, rules_of
from zanon_net.audit.raw.exposures import collect
from zanon_net.audit.raw.packets import Read

SETTINGS = tuple(itertools.product((1, 2, 5, 20), ("established", "any")))
"""Pairs of z and evidence."""
ATTRIBUTES = tuple(READERS)
"""Attributes besides names that the audit can read. All runs have them."""
FORMATS = ("csv", "jsonl", "tstat", "parquet", "observations")
ROOM = 1 << 30  # bytes of memory


def checked_run(
    capture: Path, packets: Iterable[Read], z: int, evidence: str, out: Path
) -> RawResult:
    """Returns the findings in the logs of a run.

    packets: of the capture, as tshark reads them with ATTRIBUTES.
    """
    own = {"z": z, "evidence": evidence, "format": FORMATS}
    own |= {"attributes": ATTRIBUTES}
    zanon_net.run([capture], Config().replace(**own), out=out)
    manifest = json.loads((out / "manifest.json").read_bytes())
    return check_files(out, manifest, collect(packets, rules_of(manifest), ROOM))
