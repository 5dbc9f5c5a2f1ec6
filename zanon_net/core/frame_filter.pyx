# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Rows of tables in memory: csrc/rows/frame.h.

MARKS = ("drop", "blank", "release")


cdef class FrameFilter:
    """Passes rows of tables in memory through the z-table (csrc/rows/frame.h); one thread at a
    time. It takes the settings of RowFilter."""

    cdef zn_frame_filter *filter
    cdef _Guard guard
    cdef bint with_user

    def __init__(self, **settings):
        cdef zn_row_filter_config config
        cdef zn_error err
        cdef _Kept kept = _Kept()
        if self.filter != NULL:
            raise RuntimeError("a filter cannot be opened twice")
        self.guard = _Guard()
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        fill_row_filter_config(&config, settings, kept)
        self.with_user = config.gate.with_user
        check(zn_frame_filter_open(&self.filter, &config, &err), &err)

    def __dealloc__(self):
        zn_frame_filter_close(self.filter)

    def __reduce__(self):
        raise TypeError("a filter cannot be pickled: it holds exposures that were not released")

    def decide(self, Cells time not None, int64_t unit_ns, Cells user not None,
               Cells attribute not None):
        """Decides the next rows. Returns (uint8[n], the places of their fates in MARKS; pseudonyms
        of the rows that are not dropped, as Texts, or None without users).

        unit_ns: the unit of the times, in ns.

        Raises FormatError for a row that cannot be read if `strict` is set.
        """
        cdef zn_row_frame frame
        cdef zn_row_marks out
        cdef zn_error err
        cdef int rc
        np = numpy()
        n = len(time)
        if len(user) != n or len(attribute) != n:
            raise ValueError("columns differ in length")
        memset(&err, 0, sizeof(err))
        memset(&out, 0, sizeof(out))
        frame.time = time.column
        frame.user = user.column
        frame.attribute = attribute.column
        frame.unit_ns, frame.n = unit_ns, n
        marks = np.empty(max(n, 1), np.uint8)
        data = np.empty(max(n, 1) * ZN_PSEUDONYM_CHARS if self.with_user else 1, np.uint8)
        out.marks, out.pseudonyms = <uint8_t *>memory_of(marks), <char *>memory_of(data)
        self.guard.enter()
        with nogil:
            rc = zn_frame_filter_decide(self.filter, &frame, &out, &err)
        self.guard.leave()
        check(rc, &err)
        marks = marks[:n]
        if not self.with_user:
            return marks, None
        size = out.written * ZN_PSEUDONYM_CHARS
        offsets = np.arange(0, size + 1, ZN_PSEUDONYM_CHARS, np.int64)
        return marks, Texts(out.written, offsets, data[:max(size, 1)])

    @property
    def stats(self):
        """Rows, observations, written, without_offset, hold_full; rows dropped by the names of
        ROW_FAULTS."""
        cdef zn_row_filter_stats stats = zn_frame_filter_get_stats(self.filter)
        return {**rows_read(&stats.read), "written": stats.written, "hold_full": stats.hold_full}

    @property
    def first_fault(self):
        """(place from 0, text) of the first row that could not be read, or None."""
        cdef zn_row_filter_stats stats = zn_frame_filter_get_stats(self.filter)
        return first_fault_of(&stats.read)

    @property
    def time_range_ns(self):
        """(first, last) time of an observation in ns since the Unix epoch, or None."""
        cdef zn_row_filter_stats stats = zn_frame_filter_get_stats(self.filter)
        return time_range_of(&stats.read)

    @property
    def reasons(self):
        """Rows that the z-table was not asked about, by the names of LOG_REASONS."""
        cdef zn_row_filter_stats stats = zn_frame_filter_get_stats(self.filter)
        return reasons_of(&stats)

    @property
    def table_stats(self):
        """The z-table's counters."""
        return zn_frame_filter_table_stats(self.filter)

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        return zn_frame_filter_memory(self.filter)
