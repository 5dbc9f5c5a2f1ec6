# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Frames out of an interface: csrc/output/packet_sender.h.

cdef class PacketSender:
    """Sends packets out of a network interface.

    patience_ns: wait of a packet for space if the interface's queue is full.
    """

    cdef zn_packet_sender *sender
    cdef zn_packet_sender_counts last
    cdef _Guard guard

    def __init__(self, str interface, *, int64_t patience_ns=0):
        cdef zn_error err
        if self.guard is not None:
            raise RuntimeError("an interface cannot be opened twice")
        self.guard = _Guard()
        memset(&err, 0, sizeof(err))
        encoded = os.fsencode(interface)
        check(zn_packet_sender_open(&self.sender, encoded, patience_ns, &err), &err)

    def __dealloc__(self):
        zn_packet_sender_close(self.sender)

    cdef int _enter(self) except -1:
        if self.sender == NULL:
            raise ValueError("the interface is closed")
        return self.guard.enter()

    def close(self):
        """Closes the interface. A second call does nothing. The counts stay."""
        if self.sender != NULL:
            self.guard.enter()
            self.last = zn_packet_sender_get_counts(self.sender)
            zn_packet_sender_close(self.sender)
            self.sender = NULL
            self.guard.leave()

    def send(self, const uint8_t[::1] records):
        """Sends the records of a pcap file without its header, as the output "packets" has them.

        Raises CaptureError if the interface is down or gone.
        """
        cdef zn_error err
        cdef zn_span span
        cdef int rc
        memset(&err, 0, sizeof(err))
        span.p = &records[0] if records.shape[0] else NULL
        span.n = records.shape[0]
        self._enter()
        with nogil:
            rc = zn_packet_sender_send(self.sender, span, &err)
        self.guard.leave()
        check(rc, &err)

    @property
    def counts(self):
        """Returns counts of packets: sent, full, oversize and error; and bytes of the packets
        sent."""
        cdef zn_packet_sender_counts counts = self.last
        if self.sender != NULL:
            counts = zn_packet_sender_get_counts(self.sender)
        return counts

    @property
    def has_address(self):
        """Returns true if the interface has an IP address now."""
        self._enter()
        self.guard.leave()
        return bool(zn_packet_sender_has_address(self.sender))
