# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Opens the transport that a SOURCE names, and imports its library only then."""

import importlib
from pathlib import Path

from zanon_net.config.count_settings import CountConfig
from zanon_net.count.frames import Welcome
from zanon_net.count.transport import Transport
from zanon_net.count.url import Place, TlsFiles
from zanon_net.errors import ConfigError, MissingExtraError


def open_transport(place: Place, config: CountConfig, welcome: Welcome) -> Transport:
    """Opens the transport. Raises ZanonError, and ConfigError for another transport's settings."""
    is_tls = place.scheme == "tls"
    if is_tls != (config.tls_cert is not None):
        raise ConfigError(
            "tls_cert: tls:// needs --tls-cert, --tls-key and --tls-ca"
            if is_tls
            else f"tls_cert: is for tls://, not for {place.scheme}"
        )
    if config.out is not None and place.scheme != "file":
        raise ConfigError(f"out: is for the answers of file:DIR, not for {place.scheme}")
    match place.scheme:
        case "file":
            from zanon_net.count.folder_transport import FolderTransport

            answers = None if config.out is None else Path(config.out)
            return FolderTransport(Path(place.folder), welcome, _max_age_s(config), answers)
        case "nats":
            _need("nats", "nats-py", "nats")
            from zanon_net.count.nats_transport import NatsTransport

            return NatsTransport(place, _max_age_s(config))
        case "kafka":
            _need("confluent_kafka", "confluent-kafka", "kafka")
            from zanon_net.count.kafka_transport import KafkaTransport

            return KafkaTransport(place)
    from zanon_net.count.listener import Listener

    return Listener(place, welcome, _tls_files(config))


def _max_age_s(config: CountConfig) -> float:
    """Returns the seconds for which votes may still count and probes may wait for answers."""
    return (config.window_ns + int(config.max_skew) + int(config.probe_timeout)) * 1e-9


def _tls_files(config: CountConfig) -> TlsFiles | None:
    files = config.tls_cert, config.tls_key, config.tls_ca
    if None in files:
        return None
    return TlsFiles(*(str(file) for file in files))


def _need(module: str, package: str, extra: str) -> None:
    try:
        importlib.import_module(module)
    except ImportError:
        raise MissingExtraError(
            f"{extra}:// needs {package}; install it with: pip install 'zanon-net[{extra}]'"
        ) from None
