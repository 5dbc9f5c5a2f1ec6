# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Output of an engine: memory that it lends, windows that have ended, rows.

cdef object closed_window(const zn_popularity_window *w):
    """A ClosedWindow without the empty bins behind the last."""
    cdef int used = ZN_ZTABLE_BINS
    while used > 0 and w.bins[used - 1] == 0:
        used -= 1
    bins = tuple([w.bins[j] for j in range(used)])
    return ClosedWindow(w.start_ns, w.end_ns, bool(w.whole), w.users, bins)


cdef class _Lent:
    """Memory that an engine lends, as a buffer for reading."""

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


cdef class _Lender:
    """Lends the memory of an engine's outputs, and takes it back."""

    # The memory that was drained last of each table and text; reused once its readers are gone.
    cdef list tables
    cdef list texts

    def __cinit__(self):
        self.tables = [None] * len(TABLES)
        self.texts = [None] * ZN_OUTPUT_TEXTS

    cdef int take_back(self, zn_outputs *out) except -1:
        """Gives memory that has no reader left back to the outputs."""
        cdef _Rows rows
        cdef _Lines lines
        cdef zn_text *text
        for i in range(len(TABLES)):
            rows = self.tables[i]
            if rows is not None and rows.exports == 0:
                rows.give(&out.table[<int>i])
                self.tables[i] = None
        for j in range(ZN_OUTPUT_TEXTS):
            lines = self.texts[j]
            if lines is not None and lines.exports == 0:
                text = &out.text[<int>j]
                if text.bytes == NULL:
                    lines.give(text)
                self.texts[j] = None
        return 0

    cdef tuple drain(self, zn_outputs *out, size_t rows):
        """Drains the outputs; returns what PacketEngine.drain returns."""
        cdef size_t start[ZN_OUTPUT_TEXTS]
        cdef size_t counted[ZN_OUTPUT_TEXTS]
        cdef size_t end, lines
        memset(start, 0, sizeof(start))
        memset(counted, 0, sizeof(counted))
        ends_of_texts = [out.text[j].n for j in range(ZN_OUTPUT_TEXTS)]
        views = [self._text(out, j) if ends_of_texts[j] else None for j in range(ZN_OUTPUT_TEXTS)]
        taken = [i for i in range(len(TABLES)) if out.table[<int>i].rows != 0
                 and (out.table[<int>i].rows >= rows or out.mark_count != 0)]
        parts = []
        period = None
        for i in range(out.mark_count + 1):
            texts = {}
            for j in range(ZN_OUTPUT_TEXTS):
                end = out.marks[i].at[j] if i < out.mark_count else ends_of_texts[j]
                lines = out.marks[i].lines[j] if i < out.mark_count else out.lines[j]
                if end > start[j]:
                    texts[ALL_TEXTS[j]] = (views[j][start[j]:end], lines - counted[j])
                    start[j], counted[j] = end, lines
            ends = {TABLES[j]: out.marks[i].rows[<int>j] if i < out.mark_count
                    else out.table[<int>j].rows for j in taken}
            parts.append((period, texts, ends))
            period = out.marks[i].period_ns if i < out.mark_count else None
        tables = {TABLES[i]: self._columns(<int>i, &out.table[<int>i]) for i in taken}
        zn_outputs_clear(out)
        return parts, tables

    cdef object _text(self, zn_outputs *out, int which):
        """The text of an output, which then has none."""
        cdef _Lines lines = _Lines()
        lines.take(&out.text[which])
        self.texts[which] = lines
        return memoryview(lines)

    cdef list _columns(self, int which, zn_table *table):
        cdef zn_dictionary *words
        cdef uint8_t *values
        cdef const uint8_t *valid
        cdef size_t bits = (table.rows + 7) // 8
        cdef _Rows rows = _Rows()
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_table_end(table, &err), &err)
        places = []
        for i in range(table.fields.n):
            values = table.in_block.column[i].values
            valid = zn_table_valid(table, i)
            words = &table.dictionary[i]
            texts = None
            if table.fields.at[i].type == ZN_FIELD_TEXT:
                texts = (0, b"\0\0\0\0", b"")
                if words.n:
                    texts = (words.n,
                             PyBytes_FromStringAndSize(<char *>words.offsets, (words.n + 1) * 4),
                             PyBytes_FromStringAndSize(<char *>words.bytes, words.bytes_n))
            places.append((values - table.block.bytes,
                           table.rows * zn_table_width(table.fields.at[i].type) or bits,
                           None if valid == NULL else valid - table.block.bytes, texts))
        rows.take(table)
        self.tables[which] = rows
        view = memoryview(rows)
        return [
            (view[at:at + n], None if where is None else view[where:where + bits], texts)
            for at, n, where, texts in places
        ]


cdef object column_from(const char *group, const zn_column *c):
    """A Column."""
    kind = None if c.type == ZN_FIELD_TSTAT_ONLY else FIELD_TYPES[<int>c.type]
    missing = None if c.missing == NULL else c.missing.decode()
    return Column(group.decode(), c.name.decode(), kind, c.unit.decode(), missing,
                  c.disclosure.decode(), c.description.decode())


def columns():
    """Every Column, by groups, in the order of a line."""
    cdef const zn_column_group *group
    listed = []
    for i in range(ZN_COLUMN_GROUP_COUNT):
        group = zn_column_group_of(<zn_column_group_id>i)
        listed += [column_from(group.name, &group.at[j]) for j in range(group.n)]
    return listed


def row_dtype(str output):
    """The NumPy type of a row of record_rows or observation_rows, as the core lays it out."""
    cdef zn_event_row row
    if output == "record_rows":
        zn_event_record_row(&row)
    else:
        zn_event_observation_row(&row)
    return numpy().dtype({
        "names": [row.field[i].name.decode() for i in range(row.count)],
        "formats": [row.field[i].format.decode() for i in range(row.count)],
        "offsets": [row.field[i].offset for i in range(row.count)],
        "itemsize": row.bytes,
    })
