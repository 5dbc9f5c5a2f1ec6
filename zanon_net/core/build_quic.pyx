# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Tests build datagrams of QUIC: csrc/build/build_quic.h.

def build_quic(bytes datagram not None, *, bytes crypto not None=b"", bytes key_id=None,
               bint server=False, bint whole=True):
    """Returns (the replacement of a datagram in an anonymized packet, number of Initials sealed
    again).

    crypto: the sender's handshake stream, as it may leave. key_id: the ID that keys are derived
    from; None: each packet of a client has its own ID.
    """
    cdef _Copy copy = _Copy(datagram)
    cdef _Copy stream = _Copy(crypto)
    cdef _Copy ident = _Copy(b"" if key_id is None else key_id)
    cdef bytearray out = bytearray(len(datagram))
    cdef zn_build_quic_choice choice
    memset(&choice, 0, sizeof(choice))
    choice.sender = ZN_QUIC_SERVER if server else ZN_QUIC_CLIENT
    choice.key_id = NULL if key_id is None else &ident.span
    choice.crypto = stream.span
    resealed = zn_build_quic_datagram(shared_quic().quic, copy.span, whole, &choice,
                                      <uint8_t *><char *>out)
    return bytes(out), resealed
