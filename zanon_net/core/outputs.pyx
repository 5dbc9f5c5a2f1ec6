# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Output of an engine: texts and rows with their memory, windows that have ended.

cdef object closed_window(const zn_popularity_window *w):
    """Returns a ClosedWindow without the empty bins at its end."""
    cdef int used = ZN_ZTABLE_BINS
    while used > 0 and w.bins[used - 1] == 0:
        used -= 1
    bins = tuple([w.bins[j] for j in range(used)])
    return ClosedWindow(w.start_ns, w.end_ns, bool(w.whole), w.users, bins)


cdef object closed_levels(const zn_level_shares *shares):
    """Returns ClosedLevels: a row for each z that the window has users for."""
    rows = [
        (
            zn_level_step(j),
            shares.shared[j][0],
            shares.shared[j][1],
            shares.shared[j][2],
            shares.kept[j],
        )
        for j in range(shares.steps)
    ]
    return ClosedLevels(shares.exposures, tuple(rows))


cdef class _Spare:
    """Memory of an engine's outputs that has no reader left, for the engine to reuse."""

    cdef zn_table_block blocks[ZN_OUTPUT_TABLES]
    cdef zn_text texts[ZN_OUTPUT_TEXTS]

    def __dealloc__(self):
        for i in range(ZN_OUTPUT_TABLES):
            zn_table_block_free(self.blocks[<int>i])
        for j in range(ZN_OUTPUT_TEXTS):
            zn_text_fini(&self.texts[<int>j])

    cdef void give_back(self, zn_outputs *out):
        """Gives the spare memory to the outputs."""
        for i in range(ZN_OUTPUT_TABLES):
            if self.blocks[<int>i].bytes != NULL:
                zn_table_give(&out.table[<int>i], self.blocks[<int>i])
                self.blocks[<int>i].bytes = NULL
        for j in range(ZN_OUTPUT_TEXTS):
            if out.text[<int>j].bytes == NULL:
                out.text[<int>j] = self.texts[<int>j]
                memset(&self.texts[<int>j], 0, sizeof(zn_text))


@no_gc_clear  # keeps `spare` until __dealloc__ has given it the block
cdef class TableRows:
    """The rows of a table, taken from an engine with their memory; a RowBatch reads them.

    The memory is valid as long as this object, or memory that a RowBatch lends, is referenced. It
    outlives the engine.
    """

    cdef zn_table_block block
    cdef _Spare spare
    cdef int table
    cdef Py_ssize_t rows
    # For each column: its type, the place of its values in the block, and the bits of values that
    # are present (None: all).
    # For texts also their number, offsets and bytes.
    cdef list columns

    def __init__(self):
        raise TypeError("rows come out of an engine")

    def __dealloc__(self):
        if self.spare is not None and self.spare.blocks[self.table].bytes == NULL:
            self.spare.blocks[self.table] = self.block
        else:
            zn_table_block_free(self.block)

    def __len__(self):
        return self.rows


@no_gc_clear
cdef class _Lines:
    """A text, taken from an engine with its memory, as a buffer for reading."""

    cdef zn_text text
    cdef _Spare spare
    cdef int output

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        PyBuffer_FillInfo(buffer, self, self.text.bytes, self.text.n, 1, flags)

    def __dealloc__(self):
        self.text.n = 0
        if self.spare is not None and self.spare.texts[self.output].bytes == NULL:
            self.spare.texts[self.output] = self.text
        else:
            zn_text_fini(&self.text)


cdef object take_text(zn_outputs *out, int output, _Spare spare):
    """Takes the text of an output, which is empty afterwards."""
    cdef _Lines lines = _Lines()
    lines.spare, lines.output, lines.text = spare, output, out.text[output]
    memset(&out.text[output], 0, sizeof(zn_text))
    return memoryview(lines)


cdef TableRows take_rows(zn_outputs *out, int which, _Spare spare):
    """Takes the rows of a table, which is empty afterwards."""
    cdef zn_table *table = &out.table[which]
    cdef zn_dictionary *words
    cdef const uint8_t *valid
    cdef zn_error err
    cdef TableRows rows = TableRows.__new__(TableRows)
    memset(&err, 0, sizeof(err))
    check(zn_table_end(table, &err), &err)
    rows.columns = []
    for i in range(table.fields.n):
        valid = zn_table_valid(table, i)
        words = &table.dictionary[i]
        texts = None
        if table.fields.at[i].type == ZN_FIELD_TEXT:
            texts = (0, b"\0\0\0\0", b"")
            if words.n:
                texts = (words.n,
                         PyBytes_FromStringAndSize(<char *>words.offsets, (words.n + 1) * 4),
                         PyBytes_FromStringAndSize(<char *>words.bytes, words.bytes_n))
        rows.columns.append((FIELD_TYPES[<int>table.fields.at[i].type],
                             table.in_block.column[i].values - table.block.bytes,
                             None if valid == NULL else valid - table.block.bytes, texts))
    rows.spare, rows.table, rows.rows = spare, which, table.rows
    rows.block = zn_table_take(table)
    return rows


cdef tuple take_outputs(zn_outputs *out, size_t rows, _Spare spare):
    """Drains the outputs; returns what PacketEngine.drain returns."""
    cdef size_t start[ZN_OUTPUT_TEXTS]
    cdef size_t counted[ZN_OUTPUT_TEXTS]
    cdef size_t end, lines
    memset(start, 0, sizeof(start))
    memset(counted, 0, sizeof(counted))
    ends_of_texts = [out.text[j].n for j in range(ZN_OUTPUT_TEXTS)]
    views = [take_text(out, <int>j, spare) if ends_of_texts[j] else None
             for j in range(ZN_OUTPUT_TEXTS)]
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
    tables = {TABLES[i]: take_rows(out, <int>i, spare) for i in taken}
    zn_outputs_clear(out)
    return parts, tables


def packet_places(const uint8_t[::1] records not None):
    """Returns the place of each packet in the text of the output "packets", without a header, as
    arrays.

    For each packet: where its bytes begin, their number, its bytes on the wire, its time in ns.
    """
    cdef int64_t[::1] offset, t_ns
    cdef uint32_t[::1] length, wire
    cdef zn_span text
    cdef zn_frame frame
    cdef size_t at = 0
    cdef size_t n = 0
    text.p = &records[0] if records.shape[0] != 0 else NULL
    text.n = records.shape[0]
    with nogil:
        while zn_packet_file_next(text, &at, &frame):
            n += 1
    np = numpy()
    arrays = tuple([np.empty(n, dtype) for dtype in ("int64", "uint32", "uint32", "int64")])
    offset, length, wire, t_ns = arrays
    at = n = 0
    with nogil:
        while zn_packet_file_next(text, &at, &frame):
            offset[n] = frame.data - text.p
            length[n], wire[n], t_ns[n] = frame.captured, frame.wire, frame.t_ns
            n += 1
    return arrays


cdef object column_from(const char *group, const zn_column *c):
    """Returns a Column."""
    kind = None if c.type == ZN_FIELD_TSTAT_ONLY else FIELD_TYPES[<int>c.type]
    missing = None if c.missing == NULL else c.missing.decode()
    return Column(group.decode(), c.name.decode(), kind, c.unit.decode(), missing,
                  c.disclosure.decode(), c.description.decode())


def columns():
    """Returns every Column, by groups, in the order of a line."""
    cdef const zn_column_group *group
    listed = []
    for i in range(ZN_COLUMN_GROUP_COUNT):
        group = zn_column_group_of(<zn_column_group_id>i)
        listed += [column_from(group.name, &group.at[j]) for j in range(group.n)]
    return listed


def row_dtype(str output):
    """Returns the NumPy type of a row of record_rows or observation_rows, with the core's
    layout."""
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
