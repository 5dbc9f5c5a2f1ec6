# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Metrics of a run, as its server at `--metrics` exports them."""

from collections import defaultdict
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import ProxyHandler, build_opener

from zanon_net._text import printable
from zanon_net.errors import ConfigError, MissingExtraError, ZanonError

try:
    from prometheus_client.parser import text_string_to_metric_families
except ImportError:
    raise MissingExtraError(
        "top needs prometheus-client and Textual; install them with: pip install 'zanon-net[top]'"
    ) from None

TIMEOUT_S = 3.0
SIZE_MAX = 1 << 20  # the metrics of a run take 6 KiB
SIGN = "packets_total"  # every run has it
PREFIX = "zanon_"


class Scrape:
    """The metrics at one moment, by their names without the prefix `zanon_`."""

    def __init__(self, text: str):
        """Raises ValueError for a text that is not metrics of zanon_net."""
        self._metrics: dict[str, dict[str, float]] = defaultdict(dict)
        for family in text_string_to_metric_families(text):
            for sample in family.samples:
                label = printable(next(iter(sample.labels.values()), ""))
                self._metrics[sample.name.removeprefix(PREFIX)][label] = sample.value
        if SIGN not in self._metrics:
            raise ValueError("no metrics of zanon-net")

    def number(self, name: str) -> float | None:
        """Returns the value of a metric without a label; None if the metric is missing."""
        return self._metrics[name].get("") if name in self._metrics else None

    def by_label(self, name: str) -> Mapping[str, float]:
        """Returns the values of a metric by the values of its one label."""
        return self._metrics.get(name, {})


class Endpoint:
    """Server of the metrics. Raises ConfigError for a text that is not ADDR:PORT."""

    def __init__(self, address: str):
        port = None
        with suppress(ValueError):
            parts = urlsplit(f"//{address}")
            is_plain = parts.netloc == address and not set("@ ") & set(address)
            port = parts.port if is_plain and address.isprintable() else None
        if not port or not parts.hostname:
            raise ConfigError(
                "ADDR:PORT: must be an address and a port, such as 127.0.0.1:9464 or [::1]:9464"
            )
        self.address = address
        self._opener = build_opener(ProxyHandler({}))

    def scrape(self) -> Scrape:
        """Requests the metrics. Raises ZanonError if no run answers."""
        try:
            with self._opener.open(f"http://{self.address}/metrics", timeout=TIMEOUT_S) as answer:
                return Scrape(answer.read(SIZE_MAX).decode("utf-8"))
        except URLError as error:
            reason = getattr(error.reason, "strerror", None) or str(error.reason)
            raise ZanonError(f"{self.address}: no answer: {reason}") from None
        except OSError as error:
            raise ZanonError(f"{self.address}: no answer: {error.strerror or error}") from None
        except (HTTPException, ValueError, LookupError):  # also of a text that is not UTF-8
            raise ZanonError(
                f"{self.address}: the answer is no metrics of zanon-net; give the address"
                " that the run has in --metrics"
            ) from None
