# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Rows that go with votes: csrc/count/vote_rows.h.

VOTE_ROWS = {"sealed": ZN_VOTE_ROWS_SEALED, "shares": ZN_VOTE_ROWS_SHARES}


cdef bytes with_section(bytes plain, uint8_t flag, const uint8_t *section, size_t n):
    """Returns a plain message with the section that begins with the prefix."""
    cdef zn_span rows, message = bytes_span(plain)
    cdef bytearray out
    rows.p = section
    rows.n = n
    out = bytearray(zn_vote_rows_bytes(len(plain), rows))
    zn_vote_rows_attach(message, flag, rows, <uint8_t *><char *>out)
    return bytes(out)


cdef zn_span bytes_span(bytes data) noexcept:
    cdef zn_span span
    span.p = <const uint8_t *><const char *>data
    span.n = len(data)
    return span


cdef class VoteRows:
    """The rows of a vote message that has a section of rows.

    message: borrowed for the life of the object. Raises FormatError if it is damaged. flag: of
    VOTE_ROWS. prefix: 32 bytes for all rows.
    """

    cdef readonly bytes message
    cdef zn_vote_rows read

    def __init__(self, bytes message not None):
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_vote_rows_read(&self.read, bytes_span(message), &err), &err)
        self.message = message

    @staticmethod
    def are_in(bytes message not None):
        """Returns true if a message has rows, by its flags."""
        return zn_vote_rows_flagged(bytes_span(message))

    @property
    def flag(self):
        return self.read.flag

    @property
    def key(self):
        """Returns probe, shard and sequence of the message."""
        return self.read.probe, self.read.shard, self.read.sequence

    @property
    def prefix(self):
        return span_bytes(self.read.prefix)

    def plain(self):
        """Returns the message without its rows, as a shard takes it."""
        cdef bytearray out = bytearray(self.read.plain_bytes)
        zn_vote_rows_plain(&self.read, bytes_span(self.message), <uint8_t *><char *>out)
        return bytes(out)

    def attachments(self):
        """Returns the attachment of each vote: bytes, or b"" for no attachment."""
        cdef zn_cursor c = zn_cursor_over_span(self.read.rows, True)
        return [span_bytes(zn_vote_rows_next(&c)) for _vote in range(self.read.votes)]
