# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Rows that only their reader opens: csrc/crypto/sealed_row.h.

ROW_BYTES_MAX = ZN_ROW_MAX
"""The longest row that can be sealed."""


def reader_key_new():
    """Draws a reader's keys and returns (secret, public), each in PEM."""
    cdef zn_reader_pem secret, public_key
    cdef zn_error err
    memset(&err, 0, sizeof(err))
    check(zn_reader_key_new(&secret, &public_key, &err), &err)
    try:
        return secret.text[:secret.n], public_key.text[:public_key.n]
    finally:
        memset(&secret, 0, sizeof(secret))


def reader_public_key(bytes pem not None):
    """Returns the 32 bytes of a reader's public key in PEM. Raises ConfigError for another text."""
    cdef _Copy copy = _Copy(pem)
    cdef zn_error err
    cdef uint8_t key[32]
    memset(&err, 0, sizeof(err))
    check(zn_reader_public_read(copy.span, key, &err), &err)
    return PyBytes_FromStringAndSize(<const char *>key, 32)


cdef size_t attached_bytes(rows) except? 0:
    """Returns the most bytes that the attachments of these rows take in a section, without
    shares."""
    cdef size_t size = 0
    for row in rows:
        size += 2
        if row is not None:
            if len(row) > ZN_ROW_MAX:
                raise ConfigError(f"a row of {len(row)} bytes: at most {ZN_ROW_MAX} are sealed")
            size += zn_row_sealed_bytes(len(row))
    return size


cdef uint8_t *put_length(uint8_t *at, size_t n) noexcept:
    at[0] = <uint8_t>n
    at[1] = <uint8_t>(n >> 8)
    return at + 2


cdef zn_row_place place_of_rows(bytes message, list rows) except *:
    """Returns the place of the first vote of a plain message, which must have one vote per row."""
    cdef zn_vote_header header
    cdef zn_error err
    memset(&err, 0, sizeof(err))
    check(zn_vote_header_read(&header, bytes_span(message), &err), &err)
    if header.votes != len(rows):
        raise ValueError(f"{len(rows)} rows for {header.votes} votes")
    return zn_row_place(header.probe, header.sequence, header.shard, 0)


cdef class RowSealer:
    """Seals the rows of a probe's votes to a reader.

    reader: the 32 bytes of the reader's public key. Raises ConfigError for an unusable key.
    """

    cdef zn_row_sealer *sealer

    def __init__(self, bytes reader not None):
        cdef zn_error err
        if self.sealer != NULL:
            raise RuntimeError("a sealer cannot be opened twice")
        if len(reader) != 32:
            raise ConfigError("a reader's public key has 32 bytes")
        memset(&err, 0, sizeof(err))
        check(zn_row_sealer_open(&self.sealer, <const uint8_t *><const char *>reader, &err), &err)

    def __dealloc__(self):
        zn_row_sealer_close(self.sealer)

    def renew(self):
        """Draws new keys, for the messages of the next interval."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_row_sealer_renew(self.sealer, &err), &err)

    def attach(self, bytes message not None, list rows not None):
        """Returns a vote message with the sealed rows of its votes.

        rows: for each vote, in the message's order, the row or None. Raises ConfigError for a row
        of more than ROW_BYTES_MAX bytes.
        """
        cdef bytearray section = bytearray(32 + attached_bytes(rows))
        cdef uint8_t *start = <uint8_t *><char *>section
        cdef uint8_t *at = start + 32
        cdef zn_row_place place = place_of_rows(message, rows)
        cdef size_t n
        cdef bint good = zn_row_sealer_begin(self.sealer, &place)
        memcpy(start, zn_row_sealer_public(self.sealer), 32)
        for row in rows:
            n = 0 if row is None else zn_row_sealed_bytes(len(row))
            at = put_length(at, n)
            if n != 0:
                good = good and zn_row_sealer_seal(self.sealer, place.index, bytes_span(row), at)
            at += n
            place.index += 1
        if not good:
            raise ZanonError("the crypto library could not seal a row")
        return with_section(message, ZN_VOTE_ROWS_SEALED, start, at - start)


cdef class RowOpener:
    """Opens rows that were sealed to a reader.

    key_file: the reader's secret key, which only its owner may read. Raises ConfigError for another
    file, CaptureError for a file that cannot be read.
    """

    cdef zn_row_opener *opener

    def __init__(self, key_file):
        cdef zn_error err
        cdef bytes path = os.fsencode(key_file)
        if self.opener != NULL:
            raise RuntimeError("an opener cannot be opened twice")
        memset(&err, 0, sizeof(err))
        check(zn_row_opener_open(&self.opener, path, &err), &err)

    def __dealloc__(self):
        zn_row_opener_close(self.opener)

    def unseal(self, bytes probe_key not None, uint64_t probe, uint16_t shard, uint64_t sequence,
               uint32_t index, bytes sealed not None):
        """Returns the row that was sealed for this vote of a message; None if it was sealed for
        another vote."""
        cdef zn_row_place place = zn_row_place(probe, sequence, shard, index)
        cdef _Copy copy = _Copy(sealed)
        cdef zn_span row
        if len(probe_key) != 32:
            raise FormatError("a probe's public key has 32 bytes")
        if not zn_row_opener_unseal(self.opener, <const uint8_t *><const char *>probe_key, &place,
                                    copy.span, &row):
            return None
        return span_bytes(row)


def sealed_row_bytes(size_t n):
    """Returns the length of a sealed row of n bytes; n is at most ROW_BYTES_MAX."""
    return zn_row_sealed_bytes(min(n, ZN_ROW_MAX))
