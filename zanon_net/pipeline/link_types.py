# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""Names of link types in the registry."""

from collections.abc import Mapping

LINK_TYPES = {
    0: "NULL",
    1: "ETHERNET",
    6: "IEEE802_5",
    7: "ARCNET_BSD",
    8: "SLIP",
    9: "PPP",
    10: "FDDI",
    12: "RAW_12",
    14: "RAW_14",
    50: "PPP_HDLC",
    51: "PPP_ETHER",
    100: "ATM_RFC1483",
    101: "RAW",
    104: "C_HDLC",
    105: "IEEE802_11",
    107: "FRELAY",
    108: "LOOP",
    109: "ENC",
    113: "LINUX_SLL",
    117: "PFLOG",
    119: "IEEE802_11_PRISM",
    122: "IP_OVER_FC",
    127: "IEEE802_11_RADIOTAP",
    129: "ARCNET_LINUX",
    138: "APPLE_IP_OVER_IEEE1394",
    163: "IEEE802_11_AVS",
    166: "PPP_PPPD",
    178: "JUNIPER_ETHER",
    192: "PPI",
    195: "IEEE802_15_4_WITHFCS",
    201: "BLUETOOTH_HCI_H4_WITH_PHDR",
    204: "PPP_WITH_DIR",
    205: "C_HDLC_WITH_DIR",
    206: "FRELAY_WITH_DIR",
    220: "USB_LINUX_MMAPPED",
    226: "IPNET",
    228: "IPV4",
    229: "IPV6",
    230: "IEEE802_15_4_NOFCS",
    239: "NFLOG",
    240: "NETANALYZER",
    253: "NETLINK",
    258: "PKTAP",
    274: "ETHERNET_MPACKET",
    276: "LINUX_SLL2",
    281: "DSA_TAG_BRCM",
    282: "DSA_TAG_BRCM_PREPEND",
    284: "DSA_TAG_DSA",
    285: "DSA_TAG_EDSA",
}


def by_link_type(frames: Mapping[int, int]) -> dict[str, int]:
    """Returns frames by the names of their link types, in the order of the numbers."""
    return {link_type_name(number): n for number, n in sorted(frames.items())}


def link_type_name(number: int) -> str:
    """Returns the registry's name of a LINKTYPE, or its number if it is not a common one."""
    return LINK_TYPES.get(number, f"LINKTYPE_{number}")
