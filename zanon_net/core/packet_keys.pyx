# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Replacements of addresses, ports and numbers in packets (csrc/crypto/packet_keys), for tests.

cdef zn_addr address_or_none(text) except *:
    return addr_of(ipaddress.ip_address(text).packed if text is not None else bytes(16))


cdef class PacketKeys:
    """Keys of packets, for epochs of `keys`.

    internal: (prefix as 16 bytes, bits) of each internal network. The other arguments are the
    arguments of _Plan. Addresses are texts.
    """

    cdef Keys keys
    cdef zn_packet_keys *handle

    def __init__(self, Keys keys not None, *, bint wide=False, pseudonyms="networks",
                 block=(32, 128), user=(32, 56), internal=()):
        cdef zn_error err
        cdef zn_addr_choice choice
        cdef _Kept kept = _Kept()
        if self.handle != NULL:
            raise RuntimeError("keys cannot be opened twice")
        memset(&err, 0, sizeof(err))
        memset(&choice, 0, sizeof(choice))
        choice.pseudonyms = <zn_pseudonyms><int>PSEUDONYMS.index(pseudonyms)
        choice.v4_block_bits, choice.v6_block_bits = block
        choice.v4_user_bits, choice.v6_user_bits = user
        choice.internal = kept.networks(internal, &choice.internal_count)
        self.keys = keys
        check(zn_packet_keys_open(&self.handle, &choice, wide, keys.keys, &err), &err)

    def __dealloc__(self):
        zn_packet_keys_close(self.handle)

    def enter(self, int64_t epoch):
        """Takes the keys of an epoch."""
        if zn_packet_keys_enter(self.handle, epoch) != 0:
            raise ZanonError("there are no keys of this epoch")

    def rebase(self):
        """Forgets all keys."""
        zn_packet_keys_rebase(self.handle)

    def client(self, str real not None, bint internal=True):
        """Returns the pseudonym of a client's address; None without keys."""
        cdef zn_addr address = address_or_none(real)
        cdef zn_addr out
        failed = zn_packet_keys_client(self.handle, &address, internal, &out) != 0
        if failed and out.byte[:16] != bytes(16):
            raise AssertionError("something is left of an address")
        return None if failed else str(address_from(&out))

    def clients(self, const uint8_t[:, ::1] reals not None):
        """Returns the pseudonyms of uint8[n, 16] internal addresses (IPv4 as ::ffff:a.b.c.d)."""
        result = numpy().zeros((len(reals), 16), dtype="uint8")
        cdef uint8_t[:, ::1] out = result
        cdef Py_ssize_t i
        for i in range(len(reals)):
            if zn_packet_keys_client(self.handle, <const zn_addr *>&reals[i, 0], True,
                                     <zn_addr *>&out[i, 0]) != 0:
                raise ZanonError("there are no keys")
        return result

    def pair(self, user, str real not None):
        """Returns the pseudonym of an address in the flows of a user (None: of all users); None
        without keys."""
        cdef zn_addr of = address_or_none(user)
        cdef zn_addr address = address_or_none(real)
        cdef zn_addr out
        failed = zn_packet_keys_pair(self.handle, NULL if user is None else &of, &address,
                                     &out) != 0
        if failed and out.byte[:16] != bytes(16):
            raise AssertionError("something is left of an address")
        return None if failed else str(address_from(&out))

    def ports(self, user, ports):
        """Returns the pseudonyms of ports of a user (None: of all users); None without keys."""
        cdef zn_addr of = address_or_none(user)
        cdef uint16_t out
        result = []
        for port in ports:
            if zn_packet_keys_port(self.handle, NULL if user is None else &of, port, &out) != 0:
                return None
            result.append(out)
        return result

    def layer_ids(self, int kind, ids):
        """Returns the pseudonyms of identifiers of a header around a packet; None without keys.

        kind: from 1 on, in the order of zn_packet_id_kind.
        """
        cdef uint32_t out
        result = []
        for number in ids:
            if zn_packet_keys_layer_id(self.handle, <zn_packet_id_kind>kind, number, &out) != 0:
                return None
            result.append(out)
        return result

    def shift(self, words, ids=()):
        """Returns (seq, timestamps, replacements of ids) of the flow of six words."""
        cdef uint64_t six[6]
        cdef zn_packet_shift out
        six = words
        zn_packet_keys_shift(self.handle, six, &out)
        return (tuple(out.seq), tuple(out.timestamp), [zn_packet_id(&out, i) for i in ids])

    def blocks(self):
        """Returns the blocks of the epoch, as JSON."""
        cdef zn_text text
        memset(&text, 0, sizeof(text))
        zn_packet_keys_blocks(self.handle, &text)
        try:
            return span_bytes(zn_span(<const uint8_t *>text.bytes, text.n)).decode("ascii")
        finally:
            zn_text_fini(&text)
