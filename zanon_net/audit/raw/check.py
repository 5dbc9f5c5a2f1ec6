# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The raw mode of the audit: whether a release kept its promise, by captures and by the files."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address, ip_network
from itertools import chain
from pathlib import Path, PurePath
from typing import Any

from zanon_net.audit.raw import reader, tshark
from zanon_net.audit.raw.attribute_claims import judge_attribute
from zanon_net.audit.raw.cells import coarse, form_of
from zanon_net.audit.raw.columns import ColumnCheck
from zanon_net.audit.raw.exposures import Exposures, collect
from zanon_net.audit.raw.findings import Finding
from zanon_net.audit.raw.flows import DNS, RESOLVER, SERVER, Rules
from zanon_net.audit.raw.labels import Labels
from zanon_net.audit.raw.lists import is_label, lists_of
from zanon_net.audit.raw.names import (
    LABELLED,
    Claim,
    Settings,
    claims_of,
    flag,
    is_coarse,
    judge,
    matching,
)
from zanon_net.audit.raw.networks import EVERYWHERE, Networks, is_special, text_of
from zanon_net.audit.raw.packets import Read
from zanon_net.audit.raw.permutation import KeyedPseudonyms, Scope, read_key
from zanon_net.audit.raw.pseudonyms import FlowsOfRows, PseudonymCheck
from zanon_net.audit.raw.shown import BROKEN, Row, rows_of
from zanon_net.audit.raw.shown_packets import first_names
from zanon_net.audit.raw.sums import MANIFEST, sums
from zanon_net.audit.raw.traces import Secrets, hosts_in, search, search_bytes, unlikely
from zanon_net.audit.raw.withheld import hidden_name, withheld
from zanon_net.errors import ConfigError, FormatError

MINUTE_NS = 60 * 10**9
CHECKS = (
    *("names", "reasons", "attributes", "addresses", "hidden", "coarse", "pseudonyms", "sums"),
    "format",
)
CAPS = ("user_cap", "prefix_cap", "new_user")
UNPROVEN_MOST = 0.001  # of all claims
COVER_LEAST = 0.999  # of the log's time


@dataclass(slots=True)
class RawResult:
    """Findings of the raw mode.

    claims: number of values that needed z users. unproven: values that the audit could not confirm.
    """

    violations: list[Finding] = field(default_factory=list)
    unproven: list[Finding] = field(default_factory=list)
    claims: int = 0
    packets: int = 0
    unread: int = 0
    cut: int = 0
    reader: str = ""
    left_out: list[tuple[str, str]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def note(self) -> str:
        """Returns sentences with the numbers of packets read and of values not confirmed."""
        cut = f" {self.cut:,} captures are cut at their end." if self.cut else ""
        reader, why = "tshark", ""
        if self.reader == "plain":
            reader = "its own reader"
            why = " tshark is missing or too old. The audit's own reader reads no QUIC."
        return (
            f"The audit read {self.packets:,} packets with {reader}, and could not read"
            f" {self.unread:,} frames.{why}{cut} It could not confirm {len(self.unproven):,} of"
            f" {self.claims:,} shown values."
        )

    @classmethod
    def of(cls, seen: Exposures) -> "RawResult":
        """Returns a result without findings."""
        dark = len(seen.dark)
        return cls(packets=seen.packets, unread=dark, cut=seen.cut, reader=seen.reader)


def settings_of(manifest: Mapping[str, Any]) -> Settings:
    """Returns the settings of a run."""
    configuration = manifest["configuration"]
    own, output = configuration["anonymity"], configuration["output"]
    return Settings(
        z=own["z"],
        z_changes=[(one["t_ns"], one["new"]) for one in manifest.get("z_changes", ())],
        window_ns=own["window_ns"],
        rotate_ns=configuration["addresses"]["rotate_ns"],
        times_ns=1 if output["times"] == "exact" else MINUTE_NS,
        coarse_end=output["coarse_end"] == "floored",
        dn_hunter=own["dn_hunter"],
        dns_votes=own["dns_votes"],
        exact=own["exact"],
        attributes=tuple(own.get("attributes", ())),
    )


def internal_of(manifest: Mapping[str, Any], given: Sequence[str] | None) -> Sequence[str] | None:
    """Returns the internal networks of a run; None: the private ranges."""
    found = manifest["configuration"]["addresses"]["internal"]
    if given:
        return EVERYWHERE if list(given) == ["any"] else given
    if found in (None, "private"):
        return None
    if found == "any":
        return EVERYWHERE
    if found["not_shown"]:
        raise ConfigError(
            f"internal: the manifest leaves out {found['not_shown']} networks; give --internal"
        )
    return list(found["networks"])


def read_sources(
    sources: Sequence[Path], attributes: Sequence[str] = ()
) -> tuple[str, Iterator[Read]]:
    """Returns the name of the reader, and the packets of all captures by their first packet."""
    if len({path.resolve() for path in sources}) < len(sources):
        raise ConfigError("raw: a capture is given twice")
    program = tshark.find()
    name = "tshark" if program else "plain"
    read = (lambda path: tshark.read(program, path, attributes)) if program else reader.read
    firsts = []
    for path in sources:
        packets = iter(read(path))
        first = next(packets, None)
        if first is not None and len(sources) == 1:
            return name, chain([first], packets)
        if first is not None:
            firsts.append((first.t_ns, path))
        close = getattr(packets, "close", None)
        if close is not None:
            close()
    if not firsts:
        raise FormatError("raw: no packet can be read in the captures")
    return name, (packet for _t, path in sorted(firsts) for packet in read(path))


def rules_of(
    manifest: Mapping[str, Any],
    internal: Sequence[str] | None = None,
    never: Sequence[str] = (),
    files: Sequence[Path] = (),
) -> Rules:
    """Returns the settings of a run on which exposures depend. files: of its lists.

    Raises ConfigError if `never` has another number of suffixes than the run had.
    """
    count = manifest["configuration"]["anonymity"]["never_suffixes"]
    if never and len(never) != count:
        raise ConfigError(
            f"never: the file has {len(never):,} suffixes, and the run had {count:,}; give the"
            " file of the run"
        )
    own = manifest["configuration"]
    four, six = own["addresses"]["user_prefix"]
    networks = Networks(internal_of(manifest, internal), (four, six))
    evidence = own["anonymity"]["evidence"] == "established"
    return Rules(
        networks=networks,
        z=own["anonymity"]["z"],
        established=evidence,
        dns_votes=own["anonymity"]["dns_votes"],
        window_ns=own["anonymity"]["window_ns"],
        rotate_ns=own["addresses"]["rotate_ns"],
        ephemeral=own["addresses"]["key_mode"] == "ephemeral",
        never=tuple(never),
        lists=lists_of(manifest, files, never),
        attributes=tuple(own["anonymity"].get("attributes", ())),
    )


def read_captures(
    manifest: Mapping[str, Any],
    sources: Sequence[Path],
    *,
    internal: Sequence[str] | None = None,
    never: Sequence[str] = (),
    files: Sequence[Path] = (),
    memory: int = 2 << 30,
    threads: int = 1,
) -> Exposures:
    """Reads the captures that a folder was made of, and counts the users of each name."""
    rules = rules_of(manifest, internal, never, files)
    name, packets = read_sources(sources, rules.attributes)
    seen = collect(packets, rules, memory, threads)
    seen.reader = name
    if name == "plain":
        seen.attributes = frozenset()
    refuse_other_time(manifest, seen)
    if not seen.packets and any(one.get("records") for one in manifest["outputs"]):
        raise FormatError("raw: no packet can be read in the captures")
    return seen


def check_files(
    folder: Path,
    manifest: Mapping[str, Any],
    seen: Exposures,
    *,
    key_file: Path | None = None,
) -> RawResult:
    """Checks the files of a folder against what was read of its captures."""
    settings = settings_of(manifest)
    result = RawResult.of(seen)
    keyed = keyed_of(manifest, settings, key_file)
    checks = FolderCheck(folder, manifest, settings, seen, keyed)
    for finding in checks.run():
        (result.violations if finding.proven else result.unproven).append(finding)
    result.claims = checks.claims
    others = len(checks.unlisted) - 1
    if others > 0:
        reason = f"{others:,} files that no manifest lists, except for addresses and hidden names"
        result.left_out.append(("format", reason))
    if checks.sources_disclose:
        reason = "names of captures in the manifest, which have an address or a hidden name"
        result.left_out.append(("addresses", reason))
    if any(is_capture(one["file"]) for one in manifest["outputs"]):
        result.left_out.append(("packets", "give the files of packets as the argument"))
    if checks.unread_packets:
        reason = "names that only packets show: tshark and the files of packets are needed"
        result.left_out.append(("names", reason))
    if manifest["configuration"]["anonymity"]["never_suffixes"] and not seen.rules.never:
        result.left_out.append(("reasons", "names never to release: give the run's file (--never)"))
    for name in seen.rules.lists.unchecked():
        result.left_out.append(("reasons", f"names refused by --{name}: give its file (--list)"))
    for word in sorted(set(settings.attributes) - seen.attributes):
        result.left_out.append(("attributes", f"{word}: the audit cannot read it in the captures"))
    if checks.labels.unchecked:
        options = " or ".join(f"--{name}" for name in seen.rules.lists.missing)
        result.left_out.append(
            ("names", f"{checks.labels.unchecked:,} labels: give the files of {options} (--list)")
        )
    return result


def is_capture(file: str) -> bool:
    """Returns whether a file of a folder has packets, which have an audit of their own."""
    return file.endswith((".pcap", ".pcapng"))


def unlisted_in(folder: Path, manifest: Mapping[str, Any]) -> list[str]:
    """Returns the files of a folder that its manifest does not list, the manifest among them."""
    listed = {one["file"] for one in manifest["outputs"]}
    found = (path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file())
    return sorted(file for file in found if file not in listed)


def hidden_names(seen: Exposures, z: int) -> set[str]:
    """Returns the names that never had z users."""
    texts = {name.text for flow in seen.flows for name in flow.names if "." in name.text}
    spaces = ("name", DNS, "certificate")
    return {text for text in texts if max(seen.peak((space, text)) for space in spaces) < z}


def refuse_other_time(manifest: Mapping[str, Any], seen: Exposures) -> None:
    """Raises ConfigError if the captures do not cover the time of the log."""
    span = manifest["time_range"]
    if not span or seen.first_ns is None or seen.last_ns is None:
        return
    first, last = span["first_ns"], span["last_ns"]
    common = min(last, seen.last_ns) - max(first, seen.first_ns)
    share = 1.0 if last == first and common >= 0 else max(common, 0) / max(last - first, 1)
    if share < COVER_LEAST:
        raise ConfigError(
            f"raw: the captures cover {share:.1%} of the log's time; give all captures of the run"
        )


def keyed_of(
    manifest: Mapping[str, Any], settings: Settings, key_file: Path | None
) -> KeyedPseudonyms | None:
    """Returns the audit's own pseudonyms under a key file."""
    if key_file is None:
        return None
    own = manifest["configuration"]
    prefix = own["addresses"]["user_prefix"]
    scope = Scope(
        z=settings.z,
        window_ns=settings.window_ns,
        rotate_ns=settings.rotate_ns,
        pseudonyms=own["addresses"]["pseudonyms"],
        user_prefix=(prefix[0], prefix[1]),
        evidence=own["anonymity"]["evidence"],
        dns_votes=settings.dns_votes,
        networks=manifest["pseudonyms"]["networks"],
    )
    return KeyedPseudonyms(scope, read_key(key_file))


def counted_all(manifest: Mapping[str, Any]) -> bool:
    """Returns whether the engine counted each exposure, in the order of time."""
    decisions = manifest["decisions"]
    numbers = [decisions[name] for name in ("late", "late_deep", "clock_jumps", "evicted")]
    lost = ("too_late", "capacity", "conflict", "incomplete", "quic_version", "unread")
    numbers += [decisions["suppressed"].get(name, 0) for name in (*lost, *CAPS)]
    return not any(numbers)


class FolderCheck:
    """All checks of one folder."""

    def __init__(
        self,
        folder: Path,
        manifest: Mapping[str, Any],
        settings: Settings,
        seen: Exposures,
        keyed: KeyedPseudonyms | None,
    ) -> None:
        self._folder, self._manifest = folder, manifest
        self._settings, self._seen = settings, seen
        self._flows = FlowsOfRows.of(seen, settings)
        self._pseudonyms = PseudonymCheck(seen, settings, self._flows, keyed)
        self._shown: set[str] = set()  # pseudonyms
        self._has_labels = bool(seen.rules.lists.levels)
        self._released: set[str] = set()
        self._servers: set[bytes] = set()  # addresses that rows show as released
        self.labels = Labels(seen, settings, seen.rules.lists, counted_all(manifest))
        self._observed: Counter[str] = Counter()  # observations of attributes besides names
        self.claims = 0
        self.unread_packets: list[str] = []
        self.unlisted = unlisted_in(folder, manifest)
        self.sources_disclose = False  # an address or a hidden name in the names of captures

    def run(self) -> Iterator[Finding]:
        """Yields all findings."""
        rows: dict[str, int] = {}
        files = [one["file"] for one in self._manifest["outputs"] if not is_capture(one["file"])]
        for file in files:
            path = self._folder / file
            if path.suffix != ".parquet":
                yield from form_of(path, file)
            rows[file] = 0
            columns = ColumnCheck(self._settings.attributes)
            for row in rows_of(path, file):
                rows[file] += 1
                yield from columns.of_row(row)
                if row.form == BROKEN:
                    yield Finding("format", file, row.number, "line", 0, 1)
                    continue
                try:
                    yield from self._row(row)
                except (KeyError, TypeError, ValueError):
                    yield Finding("format", file, row.number, "line", 0, 1)
        yield from self._labels()
        yield from self._pseudonyms.findings()
        yield from self._traces(files)
        yield from sums(self._manifest, rows, self._seen, self._settings.z, self._observed)

    def _labels(self) -> Iterator[Finding]:
        """Yields the labels with too few users behind them. A name that packets of the run show is
        published, also if no row shows it."""
        dns = DNS if self._settings.dns_votes == "own" else "name"
        captures = [one["file"] for one in self._manifest["outputs"] if is_capture(one["file"])]
        for file in captures if self._has_labels else ():
            path = self._folder / file
            if tshark.find() is None or not path.is_file():
                self.unread_packets.append(file)
                continue
            for name, t_ns in first_names(path, dns):
                self.labels.show(name, [t_ns])
        yield from self.labels.findings()

    def _row(self, row: Row) -> Iterator[Finding]:
        for claim in claims_of(row, self._settings):
            self.claims += 1
            if self._has_labels and claim.column in LABELLED and is_label(claim.name[1]):
                self.labels.take(claim, row)
                self._released.add(str(claim.name[1]).removeprefix("*."))
                continue
            if claim.name[0] in self._settings.attributes:
                finding = self._attribute(claim, row)
            else:
                finding = judge(claim, row, self._seen, self._settings)
            if finding is not None:
                yield finding
            elif self._has_labels:
                self.labels.show(claim.name, self._certain(claim, row))
            if finding is None or not finding.proven:
                self._note(claim.name[1])
        if self._settings.z > 1 and not self._began_with_a_minute(row):
            yield from coarse(row, self._manifest["configuration"]["output"], self._settings.exact)
        finding = withheld(row, self._flows, self._seen, self._settings)
        if finding is not None:
            yield finding
        yield from self._own_addresses(row)
        self._pseudonyms.take(row)
        for column, crypto in (
            ("client", "c_iscrypto"),
            ("c_ip", "c_iscrypto"),
            ("server", "s_iscrypto"),
            ("s_ip", "s_iscrypto"),
            ("dns_rslv", "dns_enc"),
        ):
            if row.cells.get(column) and (crypto not in row.cells or flag(row.cells[crypto])):
                self._shown.add(row.cells[column])

    def _own_addresses(self, row: Row) -> Iterator[Finding]:
        """Yields the pseudonyms that are the address of the flow's own end."""
        if row.form == "observations":
            return
        for flow in self._flows.flows_of(row):
            ends = {"client": 0, "c_ip": 0, "server": 1, "s_ip": 1}
            for column, side in ends.items():
                text, address = row.cells.get(column), flow.known_as[side]
                is_mapped = side == 0 or flag(row.cells.get("s_iscrypto"))
                if text and is_mapped and not is_special(address) and text == text_of(address):
                    yield Finding("addresses", row.file, row.number, column, 1, 0, text)

    def _note(self, what: str | bytes) -> None:
        """Notes a name or an address that a row may show."""
        if isinstance(what, str):
            self._released.add(what)
        else:
            self._servers.add(what)

    def _began_with_a_minute(self, row: Row) -> bool:
        """Returns whether a line of Tstat's logs looks rounded only because its flow began at a
        whole minute."""
        if row.form != "tstat" or not is_coarse(row):
            return False
        flows = self._flows.flows_of(row)
        return any(hidden_name(flow, self._seen, self._settings) is None for flow in flows)

    def _attribute(self, claim: Claim, row: Row) -> Finding | None:
        """Returns what is wrong with an attribute. A released text may have names of hosts."""
        flow = None
        if row.form == "observations":
            self._observed[claim.name[0]] += 1
        elif claim.times.exact:
            flow = self._flows.flow_of(row)
        finding = judge_attribute(claim, row, self._seen, self._settings, flow)
        if finding is None or not finding.proven:
            self._released |= hosts_in(str(claim.name[1]))
        return finding

    def _certain(self, claim: Claim, row: Row) -> list[int]:
        """Returns the time of a row's exposure, or nothing if several exposures fit the row."""
        times = {one.t_ns for one in matching(claim, row, self._seen)}
        return list(times) if len(times) == 1 and claim.times.exact else []

    def _traces(self, files: Sequence[str]) -> Iterator[Finding]:
        """Yields the addresses and names that may stand nowhere in the folder. Chance explains a
        few pseudonyms that are addresses of clients."""
        addresses, servers = self._clients(), self._rare_servers()
        secrets = Secrets(addresses, self._hidden(), self._released, servers)
        findings = [
            finding for file in files for finding in search(self._folder / file, file, secrets)
        ]
        findings += self._in_other_files(secrets)
        chance = [one for one in findings if one.check == "addresses" and one.detail in self._shown]
        pairs = sum(
            len({one for one in addresses | servers if len(one) == size})
            * sum(len(ip_address(text).packed) == size for text in self._shown)
            / 2 ** (8 * size)
            for size in (4, 16)
        )
        explained = not unlikely(len({one.detail for one in chance}), pairs)
        yield from (one for one in findings if one not in chance or not explained)

    def _in_other_files(self, secrets: Secrets) -> Iterator[Finding]:
        """Yields the secrets in files that the manifest does not list, and in the manifest."""
        names = [str(one["name"]).encode() for one in self._manifest["sources"]]
        disclosed = {what for name in names for _kind, what in secrets.secrets_in(name)}
        self.sources_disclose, stated = bool(disclosed), {*self._stated(), *disclosed}
        for file in self.unlisted:
            label = file
            for kind, what in secrets.secrets_in(file.encode()):
                label = "a file whose name discloses"
                yield Finding(kind, label, None, "name", 1, 0, what)
            for finding in search_bytes(self._folder / file, label, secrets):
                if file != MANIFEST or finding.detail not in stated:
                    yield finding

    def _stated(self) -> Iterator[str]:
        """Yields texts of the manifest that a user may have, too: the first address of a network,
        and names of files."""
        for text in self._manifest["pseudonyms"]["networks"]:
            yield str(ip_network(text).network_address)
        for one in self._manifest["outputs"]:
            yield PurePath(one["file"]).name.lower()

    def _clients(self) -> set[bytes]:
        """Returns the addresses of clients and of internal hosts, except shared servers and
        addresses of no host in particular."""
        seen = self._seen
        addresses = set(seen.clients)
        for flow in seen.flows:
            addresses |= {end for end, _port in flow.ends if seen.rules.networks.hold(end)}
        return addresses - {
            one
            for one in addresses
            if is_special(one)
            or (not seen.rules.networks.hold(one) and self._peak(one) >= self._settings.z)
        }

    def _rare_servers(self) -> set[bytes]:
        """Returns the addresses of servers that z users never shared and that no row may show."""
        ends = {end for flow in self._seen.flows for end, _port in flow.ends}
        rare = {one for one in ends if not is_special(one) and self._peak(one) < self._settings.z}
        return rare - self._servers if self._settings.z > 1 else set()

    def _peak(self, address: bytes) -> int:
        """Returns the most users that ever shared a server."""
        return max(self._seen.peak((space, address)) for space in (SERVER, RESOLVER))

    def _hidden(self) -> set[str]:
        """Returns the names that z users never shared, and that no row may show."""
        if self._settings.z == 1:
            return set()
        return hidden_names(self._seen, self._settings.z) - self._released


__all__ = ["CHECKS", "RawResult", "check_files", "read_captures"]
