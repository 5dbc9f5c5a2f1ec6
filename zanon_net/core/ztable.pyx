# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# The z-table: csrc/include/zanon/ztable.h.

cdef uint64_t hash_any(const zn_hash_key *key, value) except? 0:
    cdef bytes data = value.encode() if isinstance(value, str) else bytes(value)
    return zn_hash64(key, <const char *>data, len(data))


# Namespaces under the key: a number and the same bytes as text are different attributes.
cdef enum:
    DOMAIN_TEXT = 1
    DOMAIN_NUMBER = 2


cdef uint32_t KEEP_MAX = 0xffffffff
cdef size_t EXPORT_STEP = 1 << 20  # bytes


cdef int64_t time_of(value) except -1:
    cdef int64_t t_ns
    try:
        t_ns = PyNumber_Index(value)  # a float has lost nanoseconds
    except OverflowError:
        t_ns = -1
    except TypeError:
        raise TypeError(f"t_ns must be a whole number, not {type(value).__name__}") from None
    if t_ns < 0:
        raise ValueError("t_ns must be 0 to 2**63 - 1, in nanoseconds")
    return t_ns


cdef bint times_are_good(zn_cell_column times, Py_ssize_t n, int64_t unit_ns) noexcept:
    """Returns true if each time that is not missing is from 1970 to 2262."""
    cdef zn_row_cell cell
    cdef int64_t t_ns
    for _ in range(n):
        zn_cells_read(&times, &cell, 1)
        if cell.kind != ZN_ROW_MISSING and not zn_row_cell_time(&cell, unit_ns, &t_ns):
            return False
    return True


def caps_for_bytes(memory_bytes, keep=None):
    """Returns the largest (max_tuples, max_attributes) with which a ZTable takes less than
    `memory_bytes`.

    The bound holds for every input: hostile inputs take all of it, usual inputs a small part.

    memory_bytes: bound of the table's memory, in bytes. keep: as in ZTable; it decides how much the
    users of an attribute cost.

    Raises ConfigError if no table is that small, or keep is out of range.
    """
    cdef zn_error err
    cdef zn_ztable_config config = zn_ztable_default_config(1, 1)
    cdef size_t limit = whole("memory_bytes", memory_bytes, 0, (1 << 63) - 1)
    cdef int rc
    memset(&err, 0, sizeof(err))
    config.keep = 0 if keep is None else whole("keep", keep, 1, KEEP_MAX)
    with nogil:
        rc = zn_ztable_fit_caps(&config, limit, &err)
    check(rc, &err)
    return config.max_tuples, config.max_attributes


cdef object window_length(window_ns, window):
    """Returns the window in nanoseconds, from the argument that is given."""
    if window_ns is not None and window is not None:
        raise ConfigError("window: give it or window_ns, not both")
    if window_ns is not None:
        return window_ns
    from zanon_net.config.parse import parse_duration  # late: nanoseconds need no parser

    return parse_duration("window", "1h" if window is None else window)


cdef class ZTable:
    """ZTable(z=20, window_ns=None, *, window=None, keep=None, max_tuples=None,
    max_attributes=None, max_jump_ns=None, rebase_after=256, reserve=False)
--

    Decides observations (time, user, attribute) by z-anonymity (Jha et al. 2022, Algorithm 1).

    An observation is released when at least z distinct users, the present one included, exposed
    the attribute within the last window. Users and attributes are bytes or str; they are stored as
    hashes under a random key.

    z: the threshold, 1 to 2**31.
    window_ns: the window in nanoseconds, up to ten years; or
    window: the window as a text such as "1h" or "90s". Without either, one hour.
    keep: most recent distinct users kept of each attribute, z to 2**32 - 1; None keeps all.
    max_tuples, max_attributes: most (attribute, user) pairs and attributes at once, beyond which
        the oldest are removed; None: 2**24 and 2**22. caps_for_bytes computes caps for a size.
    max_jump_ns: a larger step forward in time, in nanoseconds, must be confirmed; None: off.
    rebase_after: rejected observations in a row that prove the clock wrong.
    reserve: take all memory the caps allow now, so that no observation waits for the kernel later;
        the caps have to be given then. Otherwise memory grows with the live entries.

    A table belongs to one thread at a time: observe_batch lets other threads run, and a call from
    such a thread meanwhile raises RuntimeError. It can be neither pickled nor copied.

    Observations whose hashes come from elsewhere go to observe_hashed; a table without others
    can be stored by dump() and restored by load(). The random key of texts and numbers never leaves
    the process, so their observations cannot be restored.

    Raises ConfigError (a ValueError) for values out of range, TypeError for a value that is no
    number, and CapacityError if memory is exhausted or less is left than the caps would reserve.

    >>> table = ZTable(2, 10)
    >>> table.observe(0, "ann", "example.org"), table.observe(5, "bob", "example.org")
    (False, True)
    >>> table.observe(16, "bob", "example.org")
    False
    >>> table.count("example.org"), table.stats["released"]
    (1, 1)
    >>> import numpy as np
    >>> t_ns, user = np.array([20, 21, 22]), np.array([7, 7, 8], np.uint64)
    >>> table.observe_batch(t_ns, user, np.array([1, 1, 1], np.uint64))
    array([False, False,  True])
    """

    cdef zn_ztable *table
    cdef zn_ztable_config config
    cdef zn_hash_key key
    cdef bint keyed  # holds hashes under the random key
    cdef _Guard guard

    def __cinit__(self, *arguments, **options):
        self.guard = _Guard()

    @embedsignature(False)  # it puts the star behind keep
    def __init__(self, z=20, window_ns=None, *, window=None, keep=None, max_tuples=None,
                 max_attributes=None, max_jump_ns=None, rebase_after=256, reserve=False):
        cdef zn_error err
        if self.table != NULL:
            raise RuntimeError("a table cannot be opened twice")
        memset(&err, 0, sizeof(err))
        z = whole("z", z, 1, ZN_ZTABLE_Z_MAX)
        window_ns = whole("window_ns", window_length(window_ns, window), 1,
                          ZN_ZTABLE_WINDOW_MAX_NS)
        self.config = zn_ztable_default_config(z, window_ns)
        if keep is not None:
            self.config.keep = whole("keep", keep, z, KEEP_MAX)
        if reserve and (max_tuples is None or max_attributes is None):
            raise ConfigError("reserve needs max_tuples and max_attributes, whose memory it takes; "
                              "caps_for_bytes has them for a memory size")
        self.config.max_tuples = whole(
            "max_tuples", 1 << 24 if max_tuples is None else max_tuples, 1, ZN_ZTABLE_TUPLES_MAX)
        self.config.max_attributes = whole(
            "max_attributes", 1 << 22 if max_attributes is None else max_attributes, 1,
            ZN_ZTABLE_ATTRIBUTES_MAX)
        self.config.reserve = bool(reserve)
        if max_jump_ns is not None:
            self.config.max_jump_ns = whole("max_jump_ns", max_jump_ns, 1, (1 << 63) - 1)
        self.config.rebase_after = whole("rebase_after", rebase_after, 1, (1 << 32) - 1)
        check(zn_hash_key_random(&self.key, &err), &err)
        check(zn_ztable_open(&self.table, &self.config, &err), &err)

    def __dealloc__(self):
        zn_ztable_close(self.table)

    def __reduce__(self):
        raise TypeError("a ZTable cannot be pickled or copied: it holds exposures that were not "
                        "released, under a key that must not leave the process; dump() stores one "
                        "of hashes")

    def __repr__(self):
        if self.table == NULL:
            return "<ZTable, never opened>"
        if self.guard.busy:
            return f"<ZTable z={self.config.z}, at work in another thread>"
        stats = self.stats
        return (f"<ZTable z={self.config.z} window_ns={self.config.window_ns} "
                f"keep={self.config.keep or None} tuples={stats['tuples']} "
                f"attributes={stats['attributes']} "
                f"released={stats['released']}/{stats['observations']} "
                f"memory_bytes={self.memory_bytes}>")

    cdef int _enter(self) except -1:
        if self.table == NULL:
            raise RuntimeError("this table was never opened")
        return self.guard.enter()

    cdef zn_id _text_id(self, value) except *:
        cdef bytes data = value.encode() if isinstance(value, str) else bytes(value)
        return zn_hash128(&self.key, DOMAIN_TEXT, <const char *>data, len(data))

    cdef zn_id _number_id(self, uint64_t value) noexcept nogil:
        return zn_hash128(&self.key, DOMAIN_NUMBER, &value, sizeof(value))

    def observe(self, t_ns, user, attribute):
        """Returns True if the observation may be released.

        t_ns: nanoseconds since the Unix epoch, 0 to 2**63 - 1. user, attribute: bytes or str.
        Raises ValueError for another time, TypeError for another type.
        """
        cdef zn_observation o
        o.t_ns = time_of(t_ns)
        if not isinstance(user, (bytes, str)) or not isinstance(attribute, (bytes, str)):
            raise TypeError("user and attribute are bytes or str")
        o.user = hash_any(&self.key, user)
        o.attribute = self._text_id(attribute)
        self._enter()
        self.keyed = True
        released = zn_ztable_observe(self.table, &o) == ZN_RELEASE
        self.guard.leave()
        return released

    def observe_hashed(self, t_ns, user, lo, hi):
        """Returns True if the observation may be released. The caller computes its hashes.

        user: 64 bits of a keyed hash, of which the lowest 32 and the highest 8 decide. lo, hi: both
        halves of a keyed hash of 128 bits, of which 112 decide. Without a secret key, a person who
        chooses names and addresses could make two of them collide.
        """
        cdef zn_observation o
        o.t_ns = time_of(t_ns)
        o.user = user
        o.attribute.lo = lo
        o.attribute.hi = hi
        self._enter()
        released = zn_ztable_observe(self.table, &o) == ZN_RELEASE
        self.guard.leave()
        return released

    def observe_hashed_batch(self, t_ns, user, lo, hi):
        """Decides n observations with given hashes in their order; returns a boolean array of
        length n.

        t_ns: int64[n]. user, lo, hi: uint64[n].
        """
        answers = numpy().empty(len(t_ns), dtype=numpy().uint8)
        t_ns, user, lo, hi = word_columns({"t_ns": t_ns, "user": user, "lo": lo, "hi": hi})
        self._hashed(t_ns, user, lo, hi, answers)
        return answers == ZN_RELEASE

    cdef int _hashed(self, const int64_t[::1] t_ns, const uint64_t[::1] user,
                     const uint64_t[::1] lo, const uint64_t[::1] hi,
                     uint8_t[::1] answers) except -1:
        cdef zn_observation part[256]
        cdef Py_ssize_t start, i, n, total = t_ns.shape[0]
        self._enter()
        with nogil:
            for start in range(0, total, 256):
                n = min(256, total - start)
                for i in range(n):
                    part[i].t_ns = t_ns[start + i]
                    part[i].user = user[start + i]
                    part[i].attribute.lo = lo[start + i]
                    part[i].attribute.hi = hi[start + i]
                zn_ztable_observe_batch(self.table, part, n, &answers[start])
        self.guard.leave()
        return 0

    def observe_batch(self, t_ns, user, attribute):
        """Decides n observations in their order; returns a boolean array of length n.

        t_ns: whole numbers of nanoseconds, or datetime64 of any unit and zone. user, attribute:
        whole numbers or texts; a negative number equals that number plus 2**64, and a text equals
        the text that observe() takes. Each is a NumPy array, a pandas Series, or a column of
        polars, pyarrow or another library that exports Arrow data, and has n values. Arrays of
        int64 and uint64 are fastest. An observation with a missing value is not counted, and its
        answer is False.

        Raises TypeError for values of another type, ValueError for another shape or a negative
        time.
        """
        np = numpy()
        for array, dtypes in ((t_ns, (np.int64,)), (user, (np.int64, np.uint64)),
                              (attribute, (np.int64, np.uint64))):
            if not isinstance(array, np.ndarray) or array.dtype not in dtypes:
                return self._any_batch(t_ns, user, attribute)
        for name, array in (("t_ns", t_ns), ("user", user), ("attribute", attribute)):
            if array.ndim != 1 or len(array) != len(t_ns):
                raise ValueError(f"{name} must have one dimension and the length of t_ns")
        if len(t_ns) and t_ns.min() < 0:
            raise ValueError("t_ns holds a negative time")
        answers = np.empty(len(t_ns), dtype=np.uint8)
        self._batch(straight(t_ns), straight(user).view(np.uint64),
                    straight(attribute).view(np.uint64), answers)
        return answers == ZN_RELEASE

    cdef int _batch(self, const int64_t[::1] t_ns, const uint64_t[::1] user,
                    const uint64_t[::1] attribute, uint8_t[::1] answers) except -1:
        cdef zn_columns columns
        cdef Py_ssize_t n = t_ns.shape[0]
        self._enter()
        if n != 0:
            self.keyed = True
            columns.t_ns = &t_ns[0]
            columns.user = &user[0]
            columns.attribute = &attribute[0]
            columns.domain = DOMAIN_NUMBER
            with nogil:
                zn_ztable_observe_columns(self.table, &self.key, &columns, n, &answers[0])
        self.guard.leave()
        return 0

    cdef object _any_batch(self, t_ns, user, attribute):
        """Decides observations in columns of any kind."""
        cdef Cells times = Cells("t_ns", t_ns), users = Cells("user", user)
        cdef Cells attributes = Cells("attribute", attribute)
        for name, cells, kinds in (("t_ns", times, (NUMBER, TIME)), ("user", users, (NUMBER, TEXT)),
                                   ("attribute", attributes, (NUMBER, TEXT))):
            if cells.kind not in kinds:
                raise TypeError(f"{name} holds {cells.kind}, not {' or '.join(kinds)}")
            if len(cells) != len(times):
                raise ValueError(f"{name} must have one dimension and the length of t_ns")
        if not times_are_good(times.column, times.length, times.unit_ns):
            raise ValueError("t_ns holds a negative time, or a time after 2262")
        answers = numpy().empty(max(len(times), 1), dtype=numpy().uint8)
        out = <uint8_t *>memory_of(answers)
        self._enter()
        self.keyed = True
        with nogil:
            self._observe_cells(times.column, times.unit_ns, users.column, attributes.column,
                                times.length, out)
        self.guard.leave()
        return answers[:len(times)] == ZN_RELEASE

    cdef void _observe_cells(self, zn_cell_column times, int64_t unit_ns, zn_cell_column users,
                             zn_cell_column attributes, Py_ssize_t n,
                             uint8_t *answers) noexcept nogil:
        cdef zn_observation part[256]
        cdef Py_ssize_t place[256]
        cdef uint8_t decided[256]
        cdef zn_row_cell user, attribute, time
        cdef Py_ssize_t i, j, count = 0
        for i in range(n):
            answers[i] = ZN_BELOW_Z
            zn_cells_read(&times, &time, 1)
            zn_cells_read(&users, &user, 1)
            zn_cells_read(&attributes, &attribute, 1)
            if (user.kind != ZN_ROW_MISSING and attribute.kind != ZN_ROW_MISSING
                    and zn_row_cell_time(&time, unit_ns, &part[count].t_ns)):
                part[count].user = self._user_of(&user)
                part[count].attribute = self._attribute_of(&attribute)
                place[count] = i
                count += 1
            if count == 256 or i + 1 == n:
                zn_ztable_observe_batch(self.table, part, count, decided)
                for j in range(count):
                    answers[place[j]] = decided[j]
                count = 0

    cdef uint64_t _user_of(self, const zn_row_cell *cell) noexcept nogil:
        if cell.kind == ZN_ROW_NUMBER:
            return zn_hash_words(&self.key, &cell.number, 1)
        return zn_hash64(&self.key, cell.text.p, cell.text.n)

    cdef zn_id _attribute_of(self, const zn_row_cell *cell) noexcept nogil:
        if cell.kind == ZN_ROW_NUMBER:
            return self._number_id(cell.number)
        return zn_hash128(&self.key, DOMAIN_TEXT, cell.text.p, cell.text.n)

    def count(self, attribute):
        """Returns the distinct users of an attribute in the window that ends at the newest time
        seen.

        The attribute is bytes, str, or a number from 0 to 2**64 - 1. The result saturates at keep.
        """
        cdef zn_id attribute_id
        if isinstance(attribute, (bytes, str)):
            attribute_id = self._text_id(attribute)
        else:
            attribute_id = self._number_id(whole("attribute", attribute, 0, (1 << 64) - 1))
        self._enter()
        users = zn_ztable_count(self.table, attribute_id)
        self.guard.leave()
        return users

    def counts(self):
        """Returns the distinct users of every attribute that has users, as count() does, in no
        order."""
        cdef uint32_t[::1] view
        self._enter()
        try:
            attributes = zn_ztable_get_stats(self.table).attributes
            numbers = numpy().empty(max(attributes, 1), dtype="uint32")
            view = numbers
            n = zn_ztable_counts(self.table, &view[0], attributes)
        finally:
            self.guard.leave()
        return numbers[:n]

    def set_z(self, z):
        """Changes z for later observations. Raises ConfigError if out of range or above keep."""
        cdef uint32_t wanted = whole("z", z, 1, self.config.keep or ZN_ZTABLE_Z_MAX)
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        rc = zn_ztable_set_z(self.table, wanted, &err)
        self.guard.leave()
        check(rc, &err)
        self.config.z = wanted

    def clear(self):
        """Forgets every exposure and the clock, and gives memory back; counters stay."""
        self._enter()
        zn_ztable_clear(self.table)
        self.keyed = False
        self.guard.leave()

    def dump(self):
        """Returns the state, as bytes for load(): settings, clock, counters, and the users of each
        attribute, by hash.

        The bytes must be encrypted where they are stored. Raises ConfigError for a table with
        observations that are not hashed: their key never leaves the process.
        """
        cdef zn_ztable_cursor cursor
        cdef bytearray out = bytearray()
        cdef char *at
        cdef size_t written, size = 0
        if self.keyed:
            raise ConfigError("only a table of observe_hashed can be dumped: the key of texts and "
                              "numbers never leaves the process")
        memset(&cursor, 0, sizeof(cursor))
        self._enter()
        try:
            while True:
                out.extend(bytes(EXPORT_STEP))
                at = out
                with nogil:
                    written = zn_ztable_export(self.table, &cursor, at + size, EXPORT_STEP)
                size += written
                del out[size:]
                if written == 0:
                    return bytes(out)
        finally:
            self.guard.leave()

    @classmethod
    def load(cls, data):
        """Returns the table whose dump() gave `data`.

        On later observations in time order it decides as the dumped table does, while neither
        reaches a cap. On late observations it may differ, and never releases an observation that
        brute force would suppress.

        Raises FormatError for other bytes, a damaged dump, or another version, CapacityError if
        memory is exhausted.
        """
        cdef const uint8_t[::1] view = data
        cdef zn_ztable_config config = zn_ztable_default_config(1, 1)
        cdef zn_error err
        cdef ZTable table
        cdef int rc
        cdef const uint8_t *at = NULL
        cdef size_t size = view.shape[0]
        if size != 0:
            at = &view[0]
        memset(&err, 0, sizeof(err))
        check(zn_ztable_snapshot_config(at, size, &config, &err), &err)
        try:
            table = cls(config.z, config.window_ns, keep=config.keep or None,
                        max_tuples=config.max_tuples, max_attributes=config.max_attributes,
                        max_jump_ns=config.max_jump_ns or None, rebase_after=config.rebase_after)
        except ConfigError as error:
            raise FormatError(f"the snapshot of a z-table is damaged: {error}") from None
        with nogil:
            rc = zn_ztable_import(table.table, at, size, &err)
        check(rc, &err)
        return table

    def check(self):
        """Raises AssertionError if an invariant is broken. Slow: for tests."""
        cdef const char *broken
        self._enter()
        broken = zn_ztable_check(self.table)
        self.guard.leave()
        if broken != NULL:
            raise AssertionError(broken.decode())

    @property
    def z(self):
        """The threshold in force."""
        return self.config.z

    @property
    def stats(self):
        """Counters since the table was opened, and numbers of live objects.

        observations: each is released, below_z (too few users), too_late (older than the window, or
            a rejected jump), late_deep (late, and too many users since) or no_room.
        late: behind the clock, but decided.
        clock_jumps: times the clock proved wrong and the table was emptied.
        evicted: live entries removed at a cap.
        tuples, attributes: live entries.
        """
        self._enter()
        stats = zn_ztable_get_stats(self.table)
        self.guard.leave()
        return stats

    @property
    def memory_bytes(self):
        """Bytes of memory the table has touched and not given back."""
        self._enter()
        used = zn_ztable_memory(self.table)
        self.guard.leave()
        return used
