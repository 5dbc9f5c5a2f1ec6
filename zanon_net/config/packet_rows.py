# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Settings of anonymized packets: rows of `run`, which `packets` has, too."""

from functools import partial

from zanon_net.config import rules
from zanon_net.config.setting import Setting
from zanon_net.config.types import HOLD, HOLD_MEMORY, PACKET_VIEWS, one_of

_packets = partial(Setting, commands=("run", "packets"), section="packets", heading="Packets")

ROWS = (
    _packets(
        name="hold",
        type=HOLD,
        default="1s",
        help="The packet time that a packet waits for decisions on its fields. Fields that are"
        " undecided by then are suppressed. With 0 it leaves at once.",
        manifest=rules.shown_hold,
        core="hold_ns",
    ),
    _packets(
        name="hold_memory",
        type=HOLD_MEMORY,
        default=256 << 20,
        help="Memory for packets that wait; beyond it the oldest leave early, and are counted.",
        manifest="as it is",
        core="hold_bytes",
    ),
    _packets(
        name="payload",
        type=one_of(rules.PAYLOADS, f"must be {', '.join(rules.PAYLOADS)}"),
        default="zero",
        help="Payload that no rule shows: zeros of the same length; cut off, the length on the wire"
        " staying; or zeros but for TLS application data and QUIC's protected packets.",
        about="payload that no rule shows: zeros of the same length, cut off, or encrypted data as"
        " it is",
        manifest="as it is",
        core="payload",
        core_value=rules.core_payload,
    ),
    _packets(
        name="packet_addresses",
        option=("--addresses",),
        type=one_of(rules.PACKET_ADDRESSES, "must be blocks or wide"),
        default="blocks",
        help="Pseudonyms of clients: in the blocks of private and reserved addresses, or as logs"
        " have them (wide), any address.",
        manifest="as it is",
        core="wide_addresses",
        core_value=rules.core_wide_addresses,
    ),
    _packets(
        name="server_address",
        type=one_of(rules.SERVER_ADDRESSES, f"must be {', '.join(rules.SERVER_ADDRESSES)}"),
        default="tested",
        help="Addresses of servers: themselves where z users share them, else a pseudonym for this"
        " user alone; that pseudonym always (withheld); or one pseudonym for all users.",
        about="addresses of servers: themselves where z users share them, a pseudonym for each user"
        " (withheld), or one for all users (linkable)",
        manifest="as it is",
        core="server_addresses",
        core_value=rules.core_server_addresses,
    ),
    _packets(
        name="mac",
        type=one_of(rules.MACS, f"must be {', '.join(rules.MACS)}"),
        default="role",
        help="MAC addresses: one for the users' side and one for the other, a pseudonym of the IP"
        " address, or zeros.",
        about="one MAC address for the users' side and one for the other, a pseudonym of the IP"
        " address, or zeros",
        manifest="as it is",
        core="macs",
        core_value=rules.core_macs,
    ),
    _packets(
        name="tcp_timestamps",
        type=one_of(rules.TCP_TIMESTAMPS, f"must be {', '.join(rules.TCP_TIMESTAMPS)}"),
        default="drop",
        help="TCP's timestamp option, whose drift tells devices apart: left out, shifted by a"
        " constant of the flow, or as it is.",
        about="the timestamp option of TCP: left out, shifted by a constant of the flow, or as it"
        " is",
        manifest="as it is",
        core="tcp_timestamps",
        core_value=rules.core_tcp_timestamps,
    ),
    _packets(
        name="ttl",
        type=one_of(rules.TTLS, "must be class or keep"),
        default="class",
        help="Time to live: 64, 128 or 255, the next above (class), or as it is.",
        manifest="as it is",
        core="keep_ttl",
        core_value=rules.core_keep_ttl,
    ),
    _packets(
        name="encapsulation",
        type=one_of(rules.ENCAPSULATIONS, "must be strip or keep"),
        default="strip",
        help="Headers around packets: left out, or VLAN tags, MPLS labels, PPPoE sessions and"
        " tunnels with pseudonyms of their identifiers and addresses.",
        about="tags, labels, sessions and tunnels around packets: left out, or with pseudonyms of"
        " their identifiers and addresses",
        manifest="as it is",
        core="keep_encapsulation",
        core_value=rules.core_keep_encapsulation,
    ),
    _packets(
        name="fingerprint",
        type=one_of(rules.FINGERPRINTS, f"must be {', '.join(rules.FINGERPRINTS)}"),
        default="tested",
        help="The TLS client's offer, which identifies its software: shown if z users share"
        " it, never, or always.",
        manifest="as it is",
        core="fingerprints",
        core_value=rules.core_fingerprints,
    ),
    _packets(
        name="timestamps",
        type=one_of(tuple(rules.TIMESTAMPS), f"must be {', '.join(rules.TIMESTAMPS)}"),
        default="ns",
        help="Times of packets are rounded down to multiples of this.",
        manifest="as it is",
        core="packet_times_ns",
        core_value=rules.core_packet_times,
    ),
    _packets(
        name="suppressed",
        type=one_of(rules.SUPPRESSED, "must be drop or coarse"),
        default="drop",
        help="Packets of a flow whose name is suppressed: dropped, or only those of TCP, without"
        " payload and names, all positions in its streams rounded up to 16 KiB (coarse).",
        about="packets of a flow whose name is suppressed: dropped, or those of TCP with rounded"
        " positions and lengths",
        manifest="as it is",
        core="coarse_suppressed",
        core_value=rules.core_coarse_suppressed,
    ),
    _packets(
        name="view",
        type=PACKET_VIEWS,
        default=(),
        help="A further output of the same packets that shows less, in a file beside the first one:"
        " strict:z=50,payload=cut. Repeatable.",
        about="further outputs of the same packets that show less, each in a file of its own:"
        " `strict:z=50,payload=cut`",
        example=("strict:z=50,payload=cut",),
        manifest="as it is",
        core="views",
        core_value=rules.core_views,
        core_kind="views",
    ),
)
