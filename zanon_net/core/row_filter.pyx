# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Rows of observations: csrc/rows/filter.h, and their times, csrc/util/timestamp.h.

cdef object rows_read(const zn_row_reader_stats *stats):
    """Returns the counters of a reader, by name; rows dropped by the names of ROW_FAULTS."""
    faults = {name: stats.faults[i] for i, name in enumerate(ROW_FAULTS, 1)}
    return {"rows": stats.rows, "observations": stats.observations,
            "without_offset": stats.without_offset, **faults}


cdef object first_fault_of(const zn_row_reader_stats *stats):
    """Returns (line, text) of the first row that could not be read, or None."""
    if stats.first_fault == NULL:
        return None
    return stats.first_fault_line, stats.first_fault.decode()


cdef object reasons_of(const zn_row_filter_stats *stats):
    """Returns the rows that the z-table was not asked about, by the names of LOG_REASONS."""
    return {name: stats.reasons[i]
            for i, name in enumerate(LOG_REASONS, <int>ZN_LOG_NO_ATTRIBUTE)}


cdef object time_range_of(const zn_row_reader_stats *stats):
    """Returns (first, last) time of an observation in ns since the Unix epoch, or None."""
    return (stats.first_ns, stats.last_ns) if stats.observations else None


cdef class RowFilter:
    """Passes rows of observations through the z-table (csrc/rows/filter.h); one thread at a time.

    Text arguments are UTF-8. columns: time, user, attribute, then the columns passed on as they
    are. preset: 0, or 1 and the index of a preset of LOG_PRESETS: the input is such a log.

    ladder: None, or (taxonomies, steps, unknown). columns then has as many attributes as there are
    taxonomies, and the attributes leave generalized. steps: finest first, each with the level of
    each attribute, as bytes. unknown: one of UNKNOWN.
    """

    cdef zn_row_filter *row_filter
    cdef _Guard guard
    cdef tuple taxonomies
    cdef size_t steps
    cdef uint32_t label_levels

    def __init__(self, *, ladder=None, **settings):
        cdef zn_row_filter_config config
        cdef zn_error err
        cdef _Kept kept = _Kept()
        if self.row_filter != NULL:
            raise RuntimeError("a row filter cannot be opened twice")
        self.guard = _Guard()
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        self.label_levels = len(settings["levels"])
        fill_row_filter_config(&config, settings, kept)
        if ladder is not None:
            self._fill_ladder(&config.gate.ladder, ladder, kept)
        check(zn_row_filter_open(&self.row_filter, &config, &err), &err)

    cdef int _fill_ladder(self, zn_row_ladder_config *config, ladder, _Kept kept) except -1:
        cdef Taxonomy taxonomy
        cdef const zn_taxonomy **columns
        taxonomies, steps, unknown = ladder
        self.taxonomies = tuple(taxonomies)  # the core borrows them
        config.column_count = len(self.taxonomies)
        columns = <const zn_taxonomy **>kept.room((len(taxonomies) + 1) * sizeof(zn_taxonomy *))
        for i, taxonomy in enumerate(self.taxonomies):
            taxonomy._check_open()
            columns[i] = taxonomy.taxonomy
        config.columns = columns
        if any(len(step) != len(self.taxonomies) for step in steps):
            raise ValueError("a step has a level of each attribute")
        self.steps = config.step_count = len(steps)
        config.levels = kept.text(b"".join(steps)).p
        config.unknown = UNKNOWN.index(unknown)
        return 0

    def __dealloc__(self):
        zn_row_filter_close(self.row_filter)

    def __reduce__(self):
        raise TypeError("a row filter cannot be pickled: it holds exposures that were not released")

    cdef int _enter(self) except -1:
        if self.row_filter == NULL:
            raise ValueError("the row filter is closed")
        return self.guard.enter()

    def close(self):
        """Wipes and frees everything. A second call does nothing."""
        if self.row_filter != NULL:
            self.guard.enter()
            zn_row_filter_close(self.row_filter)
            self.row_filter = NULL
            self.guard.leave()

    def feed(self, bytes data not None):
        """Takes the next bytes of a source. Raises ConfigError or FormatError for bad input."""
        cdef zn_error err
        cdef const uint8_t *start = data
        cdef size_t n = len(data)
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_row_filter_feed(self.row_filter, start, n, &err)
        self.guard.leave()
        check(rc, &err)

    def end(self):
        """Ends the source; another may follow. Raises as feed does."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_row_filter_end(self.row_filter, &err)
        self.guard.leave()
        check(rc, &err)

    def finish(self):
        """Ends the input: closes the window that is being counted."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        rc = zn_row_filter_finish(self.row_filter, &err)
        self.guard.leave()
        check(rc, &err)

    def windows(self):
        """Takes the windows that have ended, as ClosedWindows."""
        cdef zn_popularity *popularity
        self._enter()
        try:
            popularity = zn_row_filter_popularity(self.row_filter)
            if popularity == NULL:
                return []
            closed = [closed_window(&popularity.stored[i]) for i in range(popularity.stored_count)]
            popularity.stored_count = 0
            return closed
        finally:
            self.guard.leave()

    def take(self):
        """Takes the rows that are ready to be written, as bytes."""
        cdef zn_text *text
        self._enter()
        try:
            text = zn_row_filter_output(self.row_filter)
            data = b"" if text.n == 0 else PyBytes_FromStringAndSize(text.bytes, text.n)
            text.n = 0
            return data
        finally:
            self.guard.leave()

    cdef int _check_open(self) except -1:
        if self.row_filter == NULL:
            raise ValueError("the row filter is closed")
        return 0

    @property
    def stats(self):
        """Rows, observations, written, without_offset, hold_full; rows dropped by the names of
        ROW_FAULTS."""
        cdef zn_row_filter_stats stats
        self._check_open()
        stats = zn_row_filter_get_stats(self.row_filter)
        return {**rows_read(&stats.read), "written": stats.written, "hold_full": stats.hold_full}

    @property
    def reasons(self):
        """Rows that the z-table was not asked about, by the names of LOG_REASONS."""
        cdef zn_row_filter_stats stats
        self._check_open()
        stats = zn_row_filter_get_stats(self.row_filter)
        return reasons_of(&stats)

    @property
    def first_fault(self):
        """(line, text) of the first row that could not be read, or None."""
        cdef zn_row_filter_stats stats
        self._check_open()
        stats = zn_row_filter_get_stats(self.row_filter)
        return first_fault_of(&stats.read)

    @property
    def time_range_ns(self):
        """(first, last) time of an observation in ns since the Unix epoch, or None."""
        cdef zn_row_filter_stats stats
        self._check_open()
        stats = zn_row_filter_get_stats(self.row_filter)
        return time_range_of(&stats.read)

    @property
    def table_stats(self):
        """The z-table's counters."""
        self._check_open()
        return zn_row_filter_table_stats(self.row_filter)

    @property
    def ladder_stats(self):
        """Counters of a ladder; None without one.

        Rows released by step, suppressed rows with an unknown value, and loss: the sum over the
        released rows of the mean loss of their attributes. The others are as in Levels.stats, with
        a level for each step.
        """
        cdef const zn_row_ladder_stats *stats
        self._check_open()
        stats = zn_row_filter_ladder_stats(self.row_filter)
        if stats == NULL:
            return None
        return {"released": [stats.released[i] for i in range(self.steps)],
                "unknown": stats.unknown, "loss": stats.loss,
                **levels_stats(zn_row_filter_levels(self.row_filter), self.steps - 1)}

    @property
    def label_stats(self):
        """Counters of labels, as in Levels.stats, and the suffixes with a category that are below
        their own domain; None without labels."""
        cdef const zn_row_labels *labels
        self._check_open()
        labels = zn_row_filter_labels(self.row_filter)
        if labels == NULL:
            return None
        return {"ignored_categories": zn_row_labels_get_stats(labels).ignored_categories,
                **levels_stats(zn_row_filter_levels(self.row_filter), self.label_levels)}

    @property
    def format(self):
        """"csv" or "jsonl"; "auto" while nothing says which."""
        self._check_open()
        return ROW_FORMATS[<int>zn_row_filter_format(self.row_filter)]

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        self._check_open()
        return zn_row_filter_memory(self.row_filter)


def parse_time(bytes text not None, str unit):
    """Returns (ns since the Unix epoch, has an offset?), or None."""
    cdef _Copy copy = _Copy(text)
    cdef zn_timestamp timestamp
    if not zn_timestamp_parse(copy.span, <zn_time_unit><int>TIME_UNITS.index(unit), &timestamp):
        return None
    return timestamp.t_ns, bool(timestamp.has_offset)


def time_problem(bytes text not None, str unit):
    """Returns the problem of a text that parse_time refuses, with a time that it would read."""
    cdef _Copy copy = _Copy(text)
    return zn_timestamp_problem(
        copy.span, <zn_time_unit><int>TIME_UNITS.index(unit)).decode("ascii")


def format_time(int64_t t_ns, str unit):
    """Returns t_ns >= 0 as text in the unit."""
    cdef zn_text text
    memset(&text, 0, sizeof(text))
    zn_timestamp_put(&text, t_ns, <zn_time_unit><int>TIME_UNITS.index(unit))
    try:
        return PyBytes_FromStringAndSize(text.bytes, text.n).decode("ascii")
    finally:
        zn_text_fini(&text)
