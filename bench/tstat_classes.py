# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Classes of differences between a flow of zanon_net and Tstat's, as in conformance.md's table."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

NAMES = {"c_tls_SNI", "http_hostname", "quic_SNI", "fqdn", "s_tls_SCN"}


@dataclass(frozen=True, slots=True)
class Difference:
    """A column of a flow that differs."""

    path: str
    log: str
    column: str
    theirs: str
    ours: str
    flow: Mapping[str, str]  # Tstat's line
    mine: Mapping[str, str]  # ours

    @property
    def flow_ports(self) -> tuple[str, str]:
        """The flow's two ports."""
        return self.flow["c_port"], self.flow["s_port"]


def number(text: str) -> float:
    """Returns the number in a column, 0 if it is not a number."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def is_half_duplex(d: Difference) -> bool:
    return d.flow.get("s_syn_cnt") == "0" and d.mine.get("c_pkts_data", "0") != "0"


def is_late_timeout(d: Difference) -> bool:
    return d.log == "log_udp_complete" and (
        number(d.mine.get("c_pkts_all", "0")) == 1 < number(d.flow["c_pkts_all"])
    )


def is_damaged(d: Difference) -> bool:
    return "fuzz-" in d.path


def is_decoding(d: Difference) -> bool:
    return d.column == "(flow)" or bool(
        re.search(
            "gtp1_gn_normal_incl_frag|ipv6-mobility-dst|missing_krbtgt|cisco-fabric-path|ayiya3"
            "|fragmented-syn",
            d.path,
        )
    )


def is_time_going_back(d: Difference) -> bool:
    return d.column in ("(file)", "last", "durat") and bool(
        re.search("cassandra|http2-compression-bug", d.path)
    )


def is_flag_as_byte(d: Difference) -> bool:
    return d.column.endswith("_bytes_retx") and number(d.theirs) - number(d.ours) == 1


def is_guess_of_tstat(d: Difference) -> bool:
    return (d.column == "con_t" and d.theirs in ("131072", "16384")) or (
        d.column in ("c_type", "s_type") and d.theirs == "18"
    )


def is_dns_by_another_rule(d: Difference) -> bool:
    return d.column in ("c_type", "s_type") and {d.theirs, d.ours} == {"0", "19"}


def is_rtp_suspicion(d: Difference) -> bool:
    return d.column in ("c_type", "s_type") and {d.theirs, d.ours} <= {"0", "28", "29"}


def is_quic_or_dtls_taken_for_rtp(d: Difference) -> bool:
    columns = ("c_type", "s_type", "quic_c_vers", "quic_s_vers")
    return d.column in columns and {d.flow["c_type"], d.flow["s_type"]} & {"28", "29"} != set()


def is_length_in_a_byte(d: Difference) -> bool:
    return d.column == "quic_ech" and int(d.theirs) == int(d.ours) % 256


def is_behind_another_packet(d: Difference) -> bool:
    return d.column == "quic_zero_rtt" and number(d.theirs) < number(d.ours)


ANOMALIES = re.compile("[cs]_pkts_(rto|fs|reor|dup|unk|fc|unrto|unfs)")


def is_identification(d: Difference) -> bool:
    column = d.column[:2] + "pkts_dup"
    return bool(ANOMALIES.fullmatch(d.column)) and d.flow[column] != d.mine[column]


def is_zero_round_trip(d: Difference) -> bool:
    return d.column.endswith("_rtt_min") and number(d.ours) == 0


def is_side_that_sent_nothing(d: Difference) -> bool:
    return d.column == "s_type" and d.mine["s_pkts_all"] == "0"


def is_other_first_word(d: Difference) -> bool:
    return d.column in ("con_t", "http_t") and bool(re.search("http_connect|huge_ch", d.path))


def is_name_tstat_refuses(d: Difference) -> bool:
    return d.column in NAMES and d.theirs == "-"


CLASSES: list[tuple[str, Callable[[Difference], bool]]] = [
    ("damaged capture", is_damaged),
    ("half-duplex", is_half_duplex),
    ("timeout checked late", is_late_timeout),
    ("time goes back", is_time_going_back),
    ("decoding", is_decoding),
    ("a flag is no byte", is_flag_as_byte),
    ("guess of Tstat's", is_guess_of_tstat),
    ("DNS by another rule", is_dns_by_another_rule),
    ("RTP suspicion", is_rtp_suspicion),
    ("QUIC and DTLS beside RTP", is_quic_or_dtls_taken_for_rtp),
    ("ECH length in a byte", is_length_in_a_byte),
    ("0-RTT behind another packet", is_behind_another_packet),
    ("identification 0", is_identification),
    ("round trip of 0", is_zero_round_trip),
    ("a side that sent nothing", is_side_that_sent_nothing),
    ("first word", is_other_first_word),
    ("name that Tstat refuses", is_name_tstat_refuses),
]
"""Names of the classes, and the tests for them; the first that fits counts."""


def class_of(difference: Difference) -> str:
    """Returns the class of a difference, or "not explained"."""
    fits = (name for name, predicate in CLASSES if predicate(difference))
    return next(fits, "not explained")
