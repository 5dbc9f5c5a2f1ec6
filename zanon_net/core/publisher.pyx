# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Buffered release of whole rows: csrc/rows/publisher.h and csrc/rows/release_list.h.

ROW_FATES = {
    zn_row_fate_name(<zn_row_fate>fate).decode().lower():
        zn_row_fate_text(<zn_row_fate>fate).decode()
    for fate in range(<int>ZN_FATE_USERS, <int>ZN_FATE_COUNT)
}
WINDOW_ENDS = ("full", "time", "idle", "memory", "clock", "last")
ONCE_USERS = 1 << 22


cdef class _Columns:
    """The hierarchies of the quasi-identifiers, kept because the core borrows them."""

    cdef list objects
    cdef const zn_taxonomy *taxonomies[ZN_GROUPS_COLUMNS_MAX]

    def __cinit__(self, taxonomies):
        cdef Taxonomy taxonomy
        if not 1 <= len(taxonomies) <= ZN_GROUPS_COLUMNS_MAX:
            raise ConfigError(f"quasi: name 1 to {ZN_GROUPS_COLUMNS_MAX} columns")
        self.objects = list(taxonomies)
        for i, taxonomy in enumerate(self.objects):
            taxonomy._check_open()
            self.taxonomies[i] = taxonomy.taxonomy

    cdef void fill(self, zn_window_config *config) noexcept:
        config.groups.columns = self.taxonomies
        config.groups.column_count = len(self.objects)
        config.groups.rule.t = 1
        config.once_users = ONCE_USERS


cdef dict window_counts(const zn_window *window, size_t quasi_count, size_t sensitive_count):
    """Returns a window's counters, in numbers alone."""
    cdef const zn_window_stats *stats = zn_window_get_stats(window)
    released = stats.fates[0]
    columns = range(sensitive_count)
    return {
        "rows": stats.rows,
        "released": released,
        "waited": stats.fates[1],
        "suppressed": {name: stats.fates[i]
                       for i, name in enumerate(ROW_FATES, <int>ZN_FATE_USERS)},
        "windows": {name: stats.windows[i] for i, name in enumerate(WINDOW_ENDS)},
        "clock_jumps": stats.clock_jumps,
        "groups": stats.groups,
        "swaps": stats.swaps,
        "merges": stats.merges,
        "users_min": stats.users_min,
        "loss_sums": [stats.loss[i] for i in range(quasi_count)],
        "distinct_min": [stats.distinct_min[i] for i in columns],
        "distinct_sums": [stats.distinct_sum[i] for i in columns],
        "entropy_min": [stats.entropy_min[i] for i in columns],
        "entropy_sums": [stats.entropy_sum[i] for i in columns],
        "share_max": [stats.share_max[i] for i in columns],
        "delay_sum": stats.delay_sum,
        "delay_p95": zn_window_delay_quantile(window, 0.95),
        "delay_max": stats.delay_max,
        "l_windows": {l: stats.l_windows[l] for l in range(<int>ZN_WINDOW_L_MAX)
                      if stats.l_windows[l]},
    }


cdef class RowPublisher:
    """Collects rows in a buffer and releases them in classes (csrc/rows/publisher.h); one thread at
    a time.

    taxonomies: of the quasi-identifiers, in their order. settings: the settings of PublishConfig.
    """

    cdef zn_publisher *publisher
    cdef _Columns columns
    cdef size_t sensitive_count
    cdef _Guard guard

    def __init__(self, taxonomies, **settings):
        cdef zn_publisher_config config
        cdef zn_error err
        cdef _Kept kept = _Kept()
        if self.publisher != NULL:
            raise RuntimeError("a publisher cannot be opened twice")
        self.guard = _Guard()
        self.columns = _Columns(taxonomies)
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        self.columns.fill(&config.window)
        fill_publisher_config(&config, settings, kept)
        self.sensitive_count = config.window.groups.sensitive_count
        check(zn_publisher_open(&self.publisher, &config, &err), &err)

    def __dealloc__(self):
        zn_publisher_close(self.publisher)

    def __reduce__(self):
        raise TypeError("a publisher cannot be pickled: it holds rows that were not released")

    cdef int _enter(self) except -1:
        if self.publisher == NULL:
            raise ValueError("the publisher is closed")
        return self.guard.enter()

    def close(self):
        """Wipes and frees everything. A second call does nothing."""
        if self.publisher != NULL:
            self.guard.enter()
            zn_publisher_close(self.publisher)
            self.publisher = NULL
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
            rc = zn_publisher_feed(self.publisher, start, n, &err)
        self.guard.leave()
        check(rc, &err)

    def end(self):
        """Ends the source; another may follow. Raises as feed does."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_publisher_end(self.publisher, &err)
        self.guard.leave()
        check(rc, &err)

    def idle(self):
        """Closes the open window, because no row has come for a while."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_publisher_idle(self.publisher, &err)
        self.guard.leave()
        check(rc, &err)

    def finish(self):
        """Ends the input: closes the last window."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_publisher_finish(self.publisher, &err)
        self.guard.leave()
        check(rc, &err)

    def take(self):
        """Takes the rows that are ready to be written, as bytes."""
        cdef zn_text *text
        self._enter()
        try:
            text = zn_publisher_output(self.publisher)
            data = b"" if text.n == 0 else PyBytes_FromStringAndSize(text.bytes, text.n)
            text.n = 0
            return data
        finally:
            self.guard.leave()

    cdef int _check_open(self) except -1:
        if self.publisher == NULL:
            raise ValueError("the publisher is closed")
        return 0

    @property
    def stats(self):
        """Returns rows, observations, without_offset; rows dropped by the names of ROW_FAULTS."""
        self._check_open()
        return rows_read(zn_publisher_read_stats(self.publisher))

    @property
    def window(self):
        """The window's counters."""
        self._check_open()
        return window_counts(zn_publisher_window(self.publisher), len(self.columns.objects),
                             self.sensitive_count)

    @property
    def first_fault(self):
        """(line, text) of the first row that could not be read, or None."""
        self._check_open()
        return first_fault_of(zn_publisher_read_stats(self.publisher))

    @property
    def time_range_ns(self):
        """(first, last) time of a row in ns since the Unix epoch, or None."""
        self._check_open()
        return time_range_of(zn_publisher_read_stats(self.publisher))

    @property
    def format(self):
        """"csv" or "jsonl"; "auto" while nothing says which."""
        self._check_open()
        return ROW_FORMATS[<int>zn_publisher_format(self.publisher)]

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        self._check_open()
        return zn_publisher_memory(self.publisher)


cdef class CodedPublisher:
    """Collects rows of codes in a buffer (csrc/rows/release_list.h); one thread at a time.

    taxonomies: of the quasi-identifiers.
    numbers: k, l, kind, c, max_share (csrc/microdata/diversity.h), sensitive_count, rows, delay_ns,
        sliding, with_user, adapt_l, adapt_way, once_ns, neighbours, growth and lambda_
        (csrc/rows/window.h).
    """

    cdef zn_release_list list
    cdef _Columns columns
    cdef size_t sensitive_count
    cdef bint with_user
    cdef _Guard guard

    def __init__(self, taxonomies, **numbers):
        cdef zn_window_config config
        cdef zn_error err
        if self.list.window != NULL:
            raise RuntimeError("a publisher cannot be opened twice")
        self.guard = _Guard()
        self.columns = _Columns(taxonomies)
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        fill_class_rule(&config.groups.rule, {**numbers, "t": 1.0})
        self.columns.fill(&config)
        self.sensitive_count = config.groups.sensitive_count = numbers["sensitive_count"]
        self.with_user = config.with_user = numbers["with_user"]
        config.rows = numbers["rows"]
        config.delay_ns = numbers["delay_ns"]
        config.sliding = numbers["sliding"]
        config.adapt_l = numbers["adapt_l"]
        config.adapt_way = <zn_adaptive_way><int>numbers["adapt_way"]
        config.once_ns = numbers["once_ns"]
        config.groups.neighbours = numbers["neighbours"]
        config.groups.growth = numbers["growth"]
        config.groups.lambda_ = numbers["lambda_"]
        check(zn_release_list_open(&self.list, &config, &err), &err)

    def __dealloc__(self):
        zn_release_list_fini(&self.list)

    def __reduce__(self):
        raise TypeError("a publisher cannot be pickled; save its state")

    cdef zn_window *_window(self) except NULL:
        if self.list.window == NULL:
            raise RuntimeError("this publisher was never opened")
        return self.list.window

    def feed(self, t_ns, user, quasi, sensitive, uint64_t first_number):
        """Takes n rows, numbered from first_number on.

        t_ns: int64[n].
        user: uint64[n], or None without users.
        quasi: int32[n] of nodes for each column, -1 for an unknown value.
        sensitive: uint64[n] of identities for each column.
        """
        cdef zn_coded_rows rows
        cdef zn_error err
        cdef const int64_t[::1] times = straight(t_ns)
        cdef const uint64_t[::1] words
        cdef const int32_t[::1] codes
        cdef int rc = 0
        memset(&rows, 0, sizeof(rows))
        memset(&err, 0, sizeof(err))
        rows.n = times.shape[0]
        if rows.n == 0:
            return
        if len(quasi) != len(self.columns.objects) or len(sensitive) != self.sensitive_count:
            raise ValueError("another number of columns")
        rows.t_ns = &times[0]
        rows.first_number = first_number
        kept = []
        if self.with_user:
            words = self._column(user, rows.n, kept)
            rows.user = &words[0]
        for i, column in enumerate(quasi):
            codes = self._column(column, rows.n, kept)
            self._check_nodes(i, codes)
            rows.quasi[i] = &codes[0]
        for i, column in enumerate(sensitive):
            words = self._column(column, rows.n, kept)
            rows.sensitive[i] = &words[0]
        self._window()
        self.guard.enter()
        with nogil:
            rc = zn_release_list_take(&self.list, &rows, &err)
        self.guard.leave()
        check(rc, &err)

    cdef object _column(self, array, size_t n, list kept):
        array = straight(array)
        if array.shape != (n,):
            raise ValueError("columns differ in length")
        kept.append(array)
        return array

    cdef int _check_nodes(self, size_t column, const int32_t[::1] codes) except -1:
        cdef Taxonomy taxonomy = self.columns.objects[column]
        cdef int32_t nodes = <int32_t>zn_taxonomy_nodes(taxonomy.taxonomy)
        for i in range(codes.shape[0]):
            if not -1 <= codes[i] < nodes:
                raise ValueError("no node of the hierarchy")
        return 0

    def advance(self, int64_t t_ns):
        """Moves the stream's time on to t_ns, without a row."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        window = self._window()
        self.guard.enter()
        rc = zn_window_advance(window, t_ns, &err)
        self.guard.leave()
        check(rc, &err)

    def end(self, bint idle=False):
        """Closes the open window, because no row has come for a while or no row follows."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        window = self._window()
        self.guard.enter()
        rc = zn_window_end_now(window, ZN_WINDOW_IDLE if idle else ZN_WINDOW_LAST, &err)
        self.guard.leave()
        check(rc, &err)

    def take(self):
        """Takes the rows that have left, as (numbers, users, release, nodes, times).

        For each row: its number, its user, its release by number from 0, and the node of each
        quasi-identifier. For each release: its time. The types are uint64[n], uint64[n], uint32[n],
        uint16[n, columns], int64[releases].
        """
        np = numpy()
        cdef size_t n = self.list.n, columns = len(self.columns.objects)
        arrays = (np.empty(n, np.uint64), np.empty(n, np.uint64), np.empty(n, np.uint32),
                  np.empty((n, columns), np.uint16), np.empty(self.list.releases, np.int64))
        self._copy(arrays[0], self.list.number, n * sizeof(uint64_t))
        self._copy(arrays[1], self.list.user, n * sizeof(uint64_t))
        self._copy(arrays[2], self.list.release, n * sizeof(uint32_t))
        self._copy(arrays[3], self.list.nodes, n * columns * sizeof(uint16_t))
        self._copy(arrays[4], self.list.release_ns, self.list.releases * sizeof(int64_t))
        self.list.n = self.list.releases = 0
        return arrays

    cdef int _copy(self, array, const void *start, size_t size) except -1:
        cdef uint8_t[::1] view
        if size != 0:
            view = array.reshape(-1).view("uint8")
            memcpy(&view[0], start, size)
        return 0

    def waiting(self):
        """Returns int64[n]: the numbers of the rows in the buffer, in its order."""
        cdef size_t n
        cdef uint64_t *numbers = zn_window_payloads(self._window(), &n)
        array = numpy().empty(n, "uint64")
        self._copy(array, numbers, n * sizeof(uint64_t))
        return array

    def stopped(self, uint64_t n):
        """Counts n rows that were taken as stopped by the gate."""
        zn_window_count_stopped(self._window(), n)

    def save(self):
        """Returns the whole state without rows that were not taken, as bytes. They are as secret as
        the rows."""
        cdef zn_text text
        memset(&text, 0, sizeof(text))
        zn_window_save(self._window(), &text)
        try:
            if text.failed:
                raise MemoryError
            return PyBytes_FromStringAndSize(text.bytes, text.n)
        finally:
            zn_text_fini(&text)

    def load(self, bytes saved not None):
        """Resumes from the bytes that `save` returned. Raises FormatError for other bytes."""
        cdef zn_error err
        cdef _Copy copy = _Copy(saved)
        memset(&err, 0, sizeof(err))
        check(zn_window_load(self._window(), copy.span, &err), &err)

    @property
    def deadline_ns(self):
        """End of the oldest row's delay, in ns; None if the buffer is empty or has no bound."""
        deadline = zn_window_deadline(self._window())
        return None if deadline == 0x7fffffffffffffff else deadline

    @property
    def counts(self):
        """The window's counters."""
        return window_counts(self._window(), len(self.columns.objects), self.sensitive_count)

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        return zn_window_memory(self._window())


def identities(values, bytes key not None):
    """Returns int64[n]: keyed hashes of n texts (bytes), None for a missing value. key: 16
    bytes."""
    cdef zn_hash_key hash_key
    cdef uint64_t[::1] view
    cdef bytes value
    if len(key) != sizeof(hash_key):
        raise ValueError("a key has 16 bytes")
    memcpy(&hash_key, <const char *>key, sizeof(hash_key))
    out = numpy().empty(len(values), dtype="uint64")
    view = out
    for i, item in enumerate(values):
        value = b"" if item is None else b"=" + item
        view[i] = zn_hash64(&hash_key, <const char *>value, len(value))
    return out
