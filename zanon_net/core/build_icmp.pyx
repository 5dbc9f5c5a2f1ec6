# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Tests read and build ICMP messages: csrc/proto/icmp.h, csrc/build/build_icmp.h.

cdef dict quote_fields(const zn_icmp_quote *quote):
    return {
        "src": str(address_from(&quote.src)), "dst": str(address_from(&quote.dst)),
        "bytes": quote.bytes, "length": quote.length, "protocol": quote.protocol,
        "hops": quote.hops, "service": quote.service, "id": quote.id,
        "df": bool(quote.dont_fragment), "mf": bool(quote.more_fragments),
        "sport": quote.port[0], "dport": quote.port[1], "seq": quote.sequence,
        "echo_type": quote.echo_type, "echo_id": quote.echo_id,
    }


def parse_icmp(bytes message not None, bint v6):
    """Returns the fields of an ICMP message and of the packet that it quotes; None if it is too
    short."""
    cdef _Copy copy = _Copy(message)
    cdef zn_icmp found
    if zn_icmp_parse(copy.span, v6, &found) != ZN_DONE:
        return None
    return {
        "kind": ("other", "echo", "error")[<int>found.kind], "type": found.type,
        "code": found.code, "id": found.id, "seq": found.sequence,
        "gateway": str(address_from(&found.gateway)), "mtu": found.mtu, "pointer": found.pointer,
        "quoted": (None, "ip", "tcp", "udp", "echo")[<int>found.quote.kind],
        "quote": quote_fields(&found.quote),
    }


def build_icmp(bytes message not None, bint v6, *, src, dst, uint32_t wire=0, uint16_t echo_id=0,
               gateway=None, dict quote=None):
    """Returns the message that replaces an ICMP message in an anonymized packet.

    Addresses are packed. `quote` has the fields of zn_build_icmp_quote. wire: the length on the
    wire, or 0 for the length of the message.
    """
    cdef _Copy copy = _Copy(message)
    cdef bytearray out = bytearray(len(message))
    cdef zn_icmp found
    cdef zn_build_icmp_choice choice
    cdef zn_build_icmp_quote quoted
    memset(&choice, 0, sizeof(choice))
    memset(&quoted, 0, sizeof(quoted))
    choice.src, choice.dst = addr_of(src), addr_of(dst)
    choice.wire = wire or len(message)
    choice.echo_id = echo_id
    if gateway is not None:
        choice.gateway = addr_of(gateway)
    if quote is not None:
        quoted.src, quoted.dst = addr_of(quote["src"]), addr_of(quote["dst"])
        quoted.hops, quoted.service, quoted.id = quote["hops"], quote["service"], quote["id"]
        quoted.port, quoted.sequence = quote["ports"], quote["seq"]
        quoted.echo_id = quote["echo_id"]
        choice.quote = &quoted
    if zn_icmp_parse(copy.span, v6, &found) == ZN_DONE:
        zn_build_icmp(&found, len(message), &choice, <uint8_t *><char *>out)
    return bytes(out)
