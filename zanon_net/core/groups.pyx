# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Groups of a window's rows: csrc/microdata/groups.h.

cdef class Groups:
    """Groups the rows of windows so that each group can be released (csrc/microdata/groups.h).

    taxonomies: a Taxonomy for each quasi-identifier, 1 to 16.
    rows: most rows of a window.
    sensitive: the number of sensitive columns, 0 to 16.
    k, l, kind, c, max_share, t: the requirements of each group, as Plan.rule; t must be 1.
    repair: if true, groups that lack values swap rows with other groups or are merged with them.
    strict: if true, a group that lacks values after that is merged further, else dissolved; if
        false, Algorithm 1 is followed to the letter.
    neighbours: number of near groups that a repair looks at.
    growth: a merged group has at most growth x k rows.
    weight: share of the loss in a repair's price, 0 to 1; the work has the rest.
    part: a window of more rows is split by its taxonomies first; 0: 4,000.

    An object belongs to one thread at a time; calls let other threads run. Raises ConfigError for
    numbers out of range, CapacityError if memory is exhausted.
    """

    cdef zn_groups *groups
    cdef tuple taxonomies
    cdef size_t rows, sensitive
    cdef _Guard guard

    def __cinit__(self, *arguments, **options):
        self.guard = _Guard()

    def __init__(self, taxonomies, *, rows, sensitive=1, k=1, l=1, kind=0, c=1.0, max_share=1.0,
                 t=1.0, repair=True, strict=True, neighbours=3, growth=3, weight=0.7, part=0):
        cdef const zn_taxonomy *columns[ZN_GROUPS_COLUMNS_MAX]
        cdef zn_groups_config config
        cdef zn_error err
        if self.groups != NULL:
            raise RuntimeError("groups cannot be opened twice")
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        self.taxonomies = tuple(taxonomies)
        whole("taxonomies", len(self.taxonomies), 1, ZN_GROUPS_COLUMNS_MAX)
        for i, taxonomy in enumerate(self.taxonomies):
            (<Taxonomy?>taxonomy)._check_open()
            columns[i] = (<Taxonomy>taxonomy).taxonomy
        config.columns = columns
        config.column_count = len(self.taxonomies)
        config.sensitive_count = whole("sensitive", sensitive, 0, ZN_GROUPS_COLUMNS_MAX)
        config.rule.k = whole("k", k, 1, (1 << 31))
        config.rule.l = whole("l", l, 1, (1 << 31))
        config.rule.kind = <zn_diversity_kind><int>whole("kind", kind, 0, ZN_DIVERSITY_RECURSIVE)
        config.rule.c = c
        config.rule.max_share = max_share
        config.rule.t = t
        config.repair = repair
        config.strict = strict
        config.neighbours = whole("neighbours", neighbours, 0, (1 << 31))
        config.growth = whole("growth", growth, 0, (1 << 31))
        config.lambda_ = weight
        config.rows_max = whole("rows", rows, 0, (1 << 31))
        config.part_rows = whole("part", part, 0, (1 << 31))
        check(zn_groups_open(&self.groups, &config, &err), &err)
        self.rows = config.rows_max
        self.sensitive = config.sensitive_count

    def __dealloc__(self):
        zn_groups_close(self.groups)

    def __reduce__(self):
        raise TypeError("groups cannot be pickled or copied")

    cdef object _quasi(self, given):
        """Returns the nodes as uint16[n, columns], checked."""
        np = numpy()
        array = np.asarray(given)
        columns = len(self.taxonomies)
        if array.ndim != 2 or array.shape[1] != columns or array.dtype.kind not in "iu":
            raise ValueError(f"quasi must be an array of nodes, n x {columns}")
        if len(array):
            for low, high, taxonomy in zip(array.min(axis=0), array.max(axis=0), self.taxonomies):
                if not 0 <= low <= high < taxonomy.nodes:
                    raise ValueError("quasi holds a number of no node")
        return np.ascontiguousarray(array, dtype=np.uint16)

    cdef object _numbers(self, name, given, shape):
        """Returns identities as uint64 of this shape."""
        np = numpy()
        array = np.asarray(given)
        if array.dtype not in (np.int64, np.uint64) or array.shape != shape:
            raise ValueError(f"{name} must be int64 or uint64 of the shape {shape}")
        return np.ascontiguousarray(array).view(np.uint64)

    cdef object _arrays(self, quasi, sensitive, user):
        """Returns all three arrays, checked. An array that is None becomes empty."""
        np = numpy()
        if self.groups == NULL:
            raise RuntimeError("these groups were never opened")
        quasi = self._quasi(quasi)
        n = len(quasi)
        if sensitive is None:
            sensitive = np.empty((n, 0), np.uint64)
        sensitive = np.asarray(sensitive)
        if sensitive.ndim == 1 and self.sensitive == 1:
            sensitive = sensitive[:, np.newaxis]
        sensitive = self._numbers("sensitive", sensitive, (n, self.sensitive))
        user = np.empty(0, np.uint64) if user is None else self._numbers("user", user, (n,))
        return quasi, sensitive.reshape(-1), user

    def window(self, quasi, sensitive=None, user=None, *, l=0, rows=None):
        """Groups all rows of a window.

        Returns (of, nodes): int32[n], the group of each row or -1, and int32[groups, columns], the
        nodes of each group's quasi-identifiers. Groups are numbered by their first rows.

        quasi: n x columns numbers of nodes.
        sensitive: n, or n x columns, identities of values.
        user: n identities of users; None: each row is a user of its own.
        l: the l that repairs aim at, if it is more than the rule's.
        rows: cuts the rows into windows of this length; groups are numbered across windows.
        """
        np = numpy()
        quasi, sensitive, user = self._arrays(quasi, sensitive, user)
        n = len(quasi)
        step = whole("rows", max(n, 1) if rows is None else rows, 1, self.rows)
        of = np.empty(n, np.int32)
        nodes = np.empty((n, len(self.taxonomies)), np.int32)
        groups = self._windows(quasi, sensitive, user, of, nodes, step,
                               whole("l", l, 0, (1 << 31)))
        return of, nodes[:groups].copy()

    cdef Py_ssize_t _windows(self, const uint16_t[:, ::1] quasi, const uint64_t[::1] sensitive,
                             const uint64_t[::1] user, int32_t[::1] of, int32_t[:, ::1] nodes,
                             size_t step, uint32_t aim) except -1:
        cdef zn_group_rows rows
        cdef size_t at = 0, n = quasi.shape[0], groups = 0
        self.guard.enter()
        with nogil:
            while at < n:
                rows.n = step if step < n - at else n - at
                rows.quasi = &quasi[at, 0]
                rows.sensitive = &sensitive[at * self.sensitive] if self.sensitive != 0 else NULL
                rows.user = &user[at] if user.shape[0] != 0 else NULL
                zn_groups_window(self.groups, &rows, aim)
                groups = self._copy(of, nodes, at, rows.n, groups)
                at += rows.n
        self.guard.leave()
        return groups

    cdef size_t _copy(self, int32_t[::1] of, int32_t[:, ::1] nodes, size_t at, size_t n,
                      size_t groups) noexcept nogil:
        """Appends a window's result to the results so far; returns the number of groups so far."""
        cdef const uint32_t *group = zn_groups_of(self.groups)
        cdef const zn_node *node
        cdef size_t i, c, found = zn_groups_count(self.groups)
        for i in range(n):
            of[at + i] = -1 if group[i] == ZN_GROUP_NONE else <int32_t>(groups + group[i])
        for i in range(found):
            node = zn_groups_nodes(self.groups, <uint32_t>i)
            for c in range(<size_t>nodes.shape[1]):
                nodes[groups + i, c] = node[c]
        return groups + found

    def oldest(self, quasi, sensitive=None, user=None):
        """Groups the first row with the rows nearest to it, as many as the rule requires.

        Returns (of, nodes) as window() does: 0 for the rows of the group, -1 for all others.
        """
        cdef const uint16_t[:, ::1] quasi_view
        cdef const uint64_t[::1] sensitive_view, user_view
        cdef zn_group_rows rows
        np = numpy()
        quasi, sensitive, user = self._arrays(quasi, sensitive, user)
        n = whole("rows", len(quasi), 0, self.rows)
        of = np.empty(n, np.int32)
        nodes = np.empty((1, len(self.taxonomies)), np.int32)
        if n == 0:
            return of, nodes[:0]
        quasi_view, sensitive_view, user_view = quasi, sensitive, user
        rows.n = n
        rows.quasi = &quasi_view[0, 0]
        rows.sensitive = &sensitive_view[0] if self.sensitive != 0 else NULL
        rows.user = &user_view[0] if len(user) else NULL
        self.guard.enter()
        with nogil:
            zn_groups_oldest(self.groups, &rows)
        groups = self._copy(of, nodes, 0, n, 0)
        self.guard.leave()
        return of, nodes[:groups]

    def entropy(self, quasi, sensitive, user=None):
        """Returns [(entropy, values)] of each sensitive column in a window, by the natural
        logarithm.

        The arguments are the arguments of window().
        """
        cdef const uint16_t[:, ::1] quasi_view
        cdef const uint64_t[::1] sensitive_view, user_view
        cdef double entropy[ZN_GROUPS_COLUMNS_MAX]
        cdef uint32_t values[ZN_GROUPS_COLUMNS_MAX]
        cdef zn_group_rows rows
        quasi, sensitive, user = self._arrays(quasi, sensitive, user)
        rows.n = whole("rows", len(quasi), 1, self.rows)
        if self.sensitive == 0:
            return []
        quasi_view, sensitive_view, user_view = quasi, sensitive, user
        rows.quasi = &quasi_view[0, 0]
        rows.sensitive = &sensitive_view[0]
        rows.user = &user_view[0] if len(user) else NULL
        self.guard.enter()
        with nogil:
            zn_groups_entropy(self.groups, &rows, entropy, values)
        self.guard.leave()
        return [(entropy[i], values[i]) for i in range(<int>self.sensitive)]

    @property
    def stats(self):
        """Returns counters since the groups were opened: windows, groups, swaps, merges, and the
        pairs of rows that repairs looked at."""
        if self.groups == NULL:
            raise RuntimeError("these groups were never opened")
        return zn_groups_get_stats(self.groups)

    @property
    def memory_bytes(self):
        """Bytes of memory that the largest window takes."""
        if self.groups == NULL:
            raise RuntimeError("these groups were never opened")
        return zn_groups_memory(self.groups)


cdef class AdaptiveL:
    """The l that repairs aim at, window by window, by the entropy of the sensitive values
    (csrc/microdata/adaptive_l.h).

    l_min, l_max: bounds of l, which begins at l_min.
    way: "up" or "down": the direction of l when the entropy falls.
    alpha: weight of the newest window in the mean of the entropies, above 0, up to 1.
    band: least change of the normalized entropy that changes l, 0 to 1.
    dwell: least number of windows that l is kept for.

    Raises ConfigError for numbers out of range.
    """

    cdef zn_adaptive_l state

    def __init__(self, l_min, l_max, way="up", *, alpha=ZN_ADAPTIVE_ALPHA, band=ZN_ADAPTIVE_BAND,
                 dwell=ZN_ADAPTIVE_DWELL):
        cdef zn_adaptive_l_config config
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        if way not in ("up", "down"):
            raise ConfigError("l adapts up or down")
        config.l_min = whole("l_min", l_min, 0, (1 << 31))
        config.l_max = whole("l_max", l_max, 0, (1 << 31))
        config.way = ZN_ADAPTIVE_UP if way == "up" else ZN_ADAPTIVE_DOWN
        config.alpha = alpha
        config.band = band
        config.dwell = whole("dwell", dwell, 0, (1 << 31))
        check(zn_adaptive_l_init(&self.state, &config, &err), &err)

    def next(self, double entropy, values):
        """Returns the l of the next window.

        entropy: entropy of the last window, by the natural logarithm. values: number of its
        distinct values.
        """
        return zn_adaptive_l_next(&self.state, entropy, whole("values", values, 0, (1 << 31)))
