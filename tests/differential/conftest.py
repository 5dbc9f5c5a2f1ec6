# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""tshark as a second reader of frames that the tests make."""

import os
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence

import pytest
from support.capture_bytes import write_capture

Rows = list[dict[str, str]]
Tshark = Callable[..., Rows]

# One frame at a time: no reassembly, no memory of earlier frames.
SINGLE = ["tcp.desegment_tcp_streams:FALSE", "tcp.analyze_sequence_numbers:FALSE"]
SINGLE += ["ip.defragment:FALSE", "ipv6.defragment:FALSE", "tcp.relative_sequence_numbers:FALSE"]
# Streams and datagrams put together, segments in any order.
WHOLE = ["tcp.desegment_tcp_streams:TRUE", "tcp.reassemble_out_of_order:TRUE"]
WHOLE += ["ip.defragment:TRUE", "ipv6.defragment:TRUE"]


@pytest.fixture(scope="session")
def tshark(tmp_path_factory: pytest.TempPathFactory) -> Tshark:
    """A function from frames, their link types (or the one of all) and fields (name -> tshark's) to
    a row a frame. A field holds its last occurrence, or with `every` all of them, with commas.
    `every` also puts streams and datagrams together."""
    program = shutil.which("tshark")
    if program is None:
        reason = "tshark is not installed: `make test` installs it from Debian"
        if os.environ.get("CI") == "true":
            pytest.fail(reason)
        pytest.skip(reason)
    home = tmp_path_factory.mktemp("tshark")
    # Python itself may run under a preloaded sanitizer, and a person may have preferences.
    environment = {k: v for k, v in os.environ.items() if k != "LD_PRELOAD"}
    environment |= {"HOME": str(home), "XDG_CONFIG_HOME": str(home)}

    def read(
        frames: Sequence[bytes],
        link: int | Sequence[int],
        fields: Mapping[str, str],
        *,
        every: bool = False,
    ) -> Rows:
        path = home / "frames.pcapng"
        write_capture(path, frames, [link] * len(frames) if isinstance(link, int) else link)
        command = [program, "-n", "-r", str(path), "-d", "udp.port==7932,hp_erm", "-T", "fields"]
        command += ["-E", f"occurrence={'a' if every else 'l'}"]
        command += [word for choice in (WHOLE if every else SINGLE) for word in ("-o", choice)]
        command += [word for field in fields.values() for word in ("-e", field)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
        rows = [line.split("\t") for line in done.stdout.split("\n")[:-1]]
        assert len(rows) == len(frames)
        return [dict(zip(fields, row, strict=True)) for row in rows]

    return read
