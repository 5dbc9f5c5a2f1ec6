# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# What an engine puts out: memory that it lends, the windows that have ended, rows.

cdef object closed_window(const zn_popularity_window *w):
    """A ClosedWindow without the empty bins behind the last."""
    cdef int used = ZN_ZTABLE_BINS
    while used > 0 and w.bins[used - 1] == 0:
        used -= 1
    bins = tuple([w.bins[j] for j in range(used)])
    return ClosedWindow(w.start_ns, w.end_ns, bool(w.whole), w.users, bins)


cdef class _Lent:
    """Memory that was taken from an engine, as bytes that may only be read."""

    cdef void *bytes  # NULL: it was given back
    cdef size_t size
    cdef int exports

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        if self.bytes == NULL:
            raise BufferError("this memory was given back")
        PyBuffer_FillInfo(buffer, self, self.bytes, self.size, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.exports -= 1


cdef class _Rows(_Lent):
    """The rows of a table."""

    cdef zn_table_block block

    cdef void take(self, zn_table *table):
        self.block = zn_table_take(table)
        self.bytes, self.size = self.block.bytes, self.block.size

    cdef void give(self, zn_table *table):
        zn_table_give(table, self.block)
        self.bytes = self.block.bytes = NULL

    def __dealloc__(self):
        zn_table_block_free(self.block)


cdef class _Lines(_Lent):
    """A text."""

    cdef zn_text text

    cdef void take(self, zn_text *text):
        self.text = text[0]
        self.bytes, self.size = self.text.bytes, self.text.n
        memset(text, 0, sizeof(text[0]))

    cdef void give(self, zn_text *text):
        text[0] = self.text
        text.n = 0
        self.bytes = self.text.bytes = NULL

    def __dealloc__(self):
        zn_text_fini(&self.text)


def row_dtype(str output):
    """The NumPy type of a row of record_rows or observation_rows, as the core lays it out."""
    cdef size_t count, row_bytes
    cdef const zn_event_field *field
    if output == "record_rows":
        field = zn_event_record_fields(&count, &row_bytes)
    else:
        field = zn_event_observation_fields(&count, &row_bytes)
    return numpy().dtype({
        "names": [field[i].name.decode() for i in range(count)],
        "formats": [field[i].format.decode() for i in range(count)],
        "offsets": [field[i].offset for i in range(count)],
        "itemsize": row_bytes,
    })
