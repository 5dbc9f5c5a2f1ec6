# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Converts values of Python for C, and values of C for Python.

cdef object numpy():
    """Imports NumPy for the first array, because the import takes longer than all others
    together."""
    import numpy as np

    return np


cdef object straight(array):
    """Returns the array, or a copy if it is not contiguous or not aligned."""
    return numpy().require(array, None, "CA")


cdef object whole(name, value, low, high):
    """Returns `value` as an int from low to high. Raises TypeError or ConfigError with its name."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    number = value.__index__()
    if not low <= number <= high:
        raise ConfigError(f"{name} is {number}: it must be {low} to {high}")
    return number


cdef int expect_none(dict settings) except -1:
    """Raises TypeError if a setting is left."""
    if settings:
        raise TypeError(f"unknown settings: {', '.join(sorted(settings))}")
    return 0


cdef uint32_t bits_of(dict bits, words) except? 0:
    """Returns the bits of all words in one number."""
    cdef uint32_t mask = 0
    for word in words:
        mask |= <uint32_t>bits[word]
    return mask


cdef zn_addr addr_of(bytes packed) except *:
    cdef zn_addr addr
    cdef bytes mapped = packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed
    memcpy(addr.byte, <const char *>mapped, 16)
    return addr


cdef object address_from(const zn_addr *addr):
    packed = PyBytes_FromStringAndSize(<const char *>addr.byte, 16)
    if packed[:12] == bytes(10) + b"\xff\xff":
        return ipaddress.IPv4Address(packed[12:])
    return ipaddress.IPv6Address(packed)


cdef bytes span_bytes(zn_span span):
    return b"" if span.n == 0 else PyBytes_FromStringAndSize(<const char *>span.p, span.n)


cdef class _Copy:
    """Input in a heap block of exactly its size.

    AddressSanitizer sees a read past the end only there, not in a bytes object.
    """

    cdef zn_span span

    def __cinit__(self, bytes data not None):
        cdef uint8_t *block = <uint8_t *>malloc(len(data) if data else 1)
        if block == NULL:
            raise MemoryError
        memcpy(block, <const char *>data, len(data))
        self.span.p = block
        self.span.n = len(data)

    def __dealloc__(self):
        free(<void *>self.span.p)


cdef class _Kept:
    """Objects that the struct of a core's settings points to, kept until the core has copied
    them."""

    cdef list objects

    def __cinit__(self):
        self.objects = []

    cdef const char *path(self, path) except? NULL:
        if path is None:
            return NULL
        encoded = os.fsencode(path)
        self.objects.append(encoded)
        return encoded

    cdef zn_span text(self, bytes text) except *:
        cdef zn_span span
        self.objects.append(text)
        span.p = <const uint8_t *><const char *>text
        span.n = len(text)
        return span

    cdef zn_span *texts(self, texts, size_t *count) except NULL:
        cdef zn_span *spans = <zn_span *>self.room(len(texts) * sizeof(zn_span))
        for i, text in enumerate(texts):
            spans[i] = self.text(text)
        count[0] = len(texts)
        return spans

    cdef int columns(self, names, zn_row_columns *columns) except -1:
        if len(names) > ZN_ROW_COLUMNS_MAX:
            raise ValueError("too many columns")
        for i, name in enumerate(names):
            columns.name[i] = self.text(name)
        columns.count = len(names)
        return 0

    cdef zn_net *networks(self, networks, size_t *count) except? NULL:
        cdef zn_net *nets
        if networks is None:
            return NULL
        nets = <zn_net *>self.room(len(networks) * sizeof(zn_net))
        for i, (prefix, bits) in enumerate(networks):
            if len(prefix) != 16 or not 0 <= bits <= 128:
                raise ValueError("a network is 16 bytes and 0 to 128 bits")
            nets[i].prefix = addr_of(prefix)
            nets[i].bits = bits
        count[0] = len(networks)
        return nets

    cdef zn_packet_view *views(self, views, size_t *count) except NULL:
        cdef zn_packet_view *at = <zn_packet_view *>self.room(len(views) * sizeof(zn_packet_view))
        for i, view in enumerate(views):
            (at[i].z, at[i].payload, at[i].server_addresses, at[i].fingerprints, at[i].times_ns,
             at[i].exact) = view
        count[0] = len(views)
        return at

    cdef zn_tunnel_port *tunnel_ports(self, ports, size_t *count) except NULL:
        cdef zn_tunnel_port *at = <zn_tunnel_port *>self.room(len(ports) * sizeof(zn_tunnel_port))
        for i, (kind, port) in enumerate(ports):
            at[i].kind = <zn_tunnel_kind><int>TUNNEL_KINDS.index(kind)
            at[i].port = port
        count[0] = len(ports)
        return at

    cdef zn_suffix *suffixes(self, suffixes, size_t *count) except NULL:
        cdef zn_suffix *at = <zn_suffix *>self.room(len(suffixes) * sizeof(zn_suffix))
        for i, (name, listed, category) in enumerate(suffixes):
            at[i].name = self.text(name)
            at[i].listed = listed
            at[i].category = category
        count[0] = len(suffixes)
        return at

    cdef zn_category *categories(self, categories, size_t *count) except NULL:
        cdef zn_category *at = <zn_category *>self.room(len(categories) * sizeof(zn_category))
        for i, (name, skipped) in enumerate(categories):
            at[i].name = self.text(name)
            at[i].skipped = skipped
        count[0] = len(categories)
        return at

    cdef zn_network *network_table(self, bytes rows, size_t *count) except? NULL:
        if len(rows) % sizeof(zn_network) != 0:
            raise ValueError("the table of networks is cut")
        self.objects.append(rows)
        count[0] = len(rows) // sizeof(zn_network)
        return <zn_network *><const char *>rows

    cdef char *room(self, size_t size) except NULL:
        cdef bytearray block = bytearray(size)
        self.objects.append(block)
        return block
