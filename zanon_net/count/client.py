# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Opens the client of the counter that a URL names."""

from zanon_net.count.client_base import CountClient
from zanon_net.count.frames import Hello
from zanon_net.count.url import TlsFiles, read_place
from zanon_net.errors import ConfigError

SETTING = "count_at"


def connect(url: str, *, probe: int, settings: int, tls: TlsFiles | None = None) -> CountClient:
    """Returns a client of the counter at `url`, which is tls://HOST:PORT, tcp on this machine, or
    file:DIR.

    `probe` is the session and `settings` the digest of settings in the probe's messages. `tls` has
    the files for tls.

    Raises ConfigError, with `count_at` first, for another text, or files without certificates.
    """
    place, hello = read_place(SETTING, url), Hello(probe, settings)
    if place.scheme == "file":
        from zanon_net.count.file_client import FileClient  # late, as the import of asyncio below

        return FileClient(place.folder, hello)
    if place.scheme not in ("tls", "tcp"):
        raise ConfigError(f"{SETTING}: probes reach a counter by tls or by files")
    if (place.scheme == "tls") != (tls is not None):
        raise ConfigError(f"{SETTING}: tls needs a certificate, its key and an authority; tcp none")
    from zanon_net.count.stream_client import StreamClient
    from zanon_net.count.tls import client_context

    return StreamClient(place, hello, None if tls is None else client_context(tls))
