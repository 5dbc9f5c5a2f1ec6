# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# QUIC: csrc/proto/quic*.h.

cdef class _Quic:
    """State of libcrypto for proto/quic. The module has one, used with the GIL held."""

    cdef zn_quic *quic
    cdef zn_quic_crypto_frames *frames

    def __cinit__(self):
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        self.frames = <zn_quic_crypto_frames *>malloc(sizeof(zn_quic_crypto_frames))
        if self.frames == NULL:
            raise MemoryError
        check(zn_quic_open(&self.quic, &err), &err)

    def __dealloc__(self):
        zn_quic_close(self.quic)
        free(self.frames)

    cdef keys(self, uint32_t version, zn_span dcid, zn_quic_side side, zn_quic_keys *keys):
        cdef zn_quic_secret sides[2]
        if (not zn_quic_derive(self.quic, version, dcid, sides) or
                not zn_quic_expand(version, &sides[<int>side], keys)):
            raise ValueError("QUIC keys of an unknown version, or of a longer connection ID")

    cdef list pieces_of(self, zn_span plain):
        if zn_quic_read_frames(plain, self.frames) != ZN_DONE:
            return None
        return [(self.frames.frame[i].offset, span_bytes(self.frames.frame[i].bytes))
                for i in range(self.frames.n)]


cdef _Quic quic_of_module = None


cdef _Quic shared_quic():
    global quic_of_module
    if quic_of_module is None:
        quic_of_module = _Quic()
    return quic_of_module


def quic_keys(uint32_t version, bytes dcid not None, *, bint server=False):
    """Returns (key, iv, header key) of one side's Initials. Raises ValueError for a version not
    read."""
    cdef _Copy copy = _Copy(dcid)
    cdef zn_quic_keys keys
    shared_quic().keys(version, copy.span, ZN_QUIC_SERVER if server else ZN_QUIC_CLIENT, &keys)
    return (PyBytes_FromStringAndSize(<const char *>keys.key, 16),
            PyBytes_FromStringAndSize(<const char *>keys.iv, 12),
            PyBytes_FromStringAndSize(<const char *>keys.header_key, 16))


def seal_quic(uint32_t version, bytes dcid not None, bytes packet not None, size_t header, *,
              bint server=False):
    """Returns the Initial `packet` as its sender protects it. `header` bytes precede its number."""
    cdef zn_quic_keys keys
    cdef _Copy copy = _Copy(dcid)
    cdef bytearray sealed = bytearray(packet) + bytes(ZN_QUIC_TAG_BYTES)
    shared_quic().keys(version, copy.span, ZN_QUIC_SERVER if server else ZN_QUIC_CLIENT, &keys)
    if not zn_quic_seal(shared_quic().quic, &keys, <uint8_t *><char *>sealed, header, len(packet)):
        raise ValueError("no Initial")
    return bytes(sealed)


def parse_quic_packets(bytes data not None, *, bint whole=True):
    """Returns (state, [(type, version, destination ID, source ID), ...]) of a datagram's long
    headers.

    state: result of the search for a further header.
    """
    cdef _Copy copy = _Copy(data)
    cdef zn_cursor cursor = zn_cursor_over_span(copy.span, whole)
    cdef zn_quic_packet packet
    packets = []
    state = zn_quic_next_packet(&cursor, &packet)
    while state == ZN_DONE:
        packets.append((QUIC_TYPES[packet.type], packet.version, span_bytes(packet.dcid),
                        span_bytes(packet.scid)))
        state = zn_quic_next_packet(&cursor, &packet)
    return PARSE_STATES[state], packets


def parse_quic_frames(bytes plain not None):
    """Returns (state, [(offset, bytes), ...]): the CRYPTO frames of an Initial's plaintext, by
    offset."""
    cdef _Copy copy = _Copy(plain)
    frames = shared_quic().pieces_of(copy.span)
    return ("malformed", []) if frames is None else ("done", frames)


def parse_quic(bytes data not None, bytes first_dcid=None):
    """Returns (state, version, destination ID, source ID, [(offset, bytes), ...]) of the client's
    Initials in a datagram.

    first_dcid: the ID that the keys are derived from; None: the Initial's own.
    state: done if an Initial opened; need_more if the datagram is cut; malformed if an opened
        Initial has malformed frames; other if no Initial opened.
    """
    state, _used, version, dcid, scid, frames, _places = read_quic(data, first_dcid)
    return state, version, dcid, scid, frames


def parse_gquic(bytes data not None, *, bint whole=True):
    """Returns (state, version, connection ID, [(offset, bytes), ...]) of a client's packet of
    Google's QUIC: the parts of its handshake, in the order of the packet."""
    cdef _Copy copy = _Copy(data)
    cdef zn_gquic_packet packet
    cdef zn_span frames
    cdef _Quic quic = shared_quic()
    state = zn_gquic_packet_read(copy.span, whole, 0, &packet)
    if state != ZN_DONE:
        return PARSE_STATES[<int>state], 0, b"", []
    if not whole:
        return "need_more", 0, b"", []
    state = zn_gquic_open(quic.quic, &packet, ZN_QUIC_CLIENT, packet.id, &frames)
    if state == ZN_DONE:
        state = zn_gquic_frames_read(&packet, frames, quic.frames)
    if state != ZN_DONE:
        return PARSE_STATES[<int>state], 0, b"", []
    return ("done", packet.version, span_bytes(packet.id),
            [(quic.frames.frame[i].offset, span_bytes(quic.frames.frame[i].bytes))
             for i in range(quic.frames.n)])


def parse_gquic_hello(bytes message not None):
    """Returns (state, name, offset of the name or None, token) of the CHLO at the start of a
    handshake's stream."""
    cdef _Copy copy = _Copy(message)
    cdef zn_gquic_message hello
    state = zn_gquic_hello_read(copy.span, &hello)
    if state != ZN_DONE:
        return PARSE_STATES[<int>state], b"", None, b""
    return ("done", span_bytes(hello.name), offset_in(copy.span, hello.name),
            span_bytes(hello.token))
