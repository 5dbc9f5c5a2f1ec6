# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Hierarchies of values: csrc/microdata/taxonomy.h, and their files, csrc/rows/hierarchy.h.

cdef class Taxonomy:
    """Generalization hierarchy of a column (csrc/microdata/taxonomy.h), immutable.

    Nodes are numbered by levels: the leaves first, the root last; -1 means no node. Texts are
    UTF-8; b"" is a missing value.

    lines: for each value its labels from the leaf to the root, all lists of the same length.
    in_order: if true, leaves are numbered in the order of the lines instead of the order of their
        bytes.
    width, first: if width is above 0, values are numbers, and line i contains the numbers from
        (first + i) * width to below (first + i + 1) * width. The outermost lines contain all
        numbers beyond them, too. A last line whose first label is empty is the line of a missing
        value.
    whole: if true, numbers that are not whole have no leaf.

    Raises FormatError, with the line, if the lines are no hierarchy; CapacityError for too many.
    """

    cdef zn_taxonomy *taxonomy
    cdef zn_taxonomy_notes notes
    cdef bint in_order
    cdef double width
    cdef int64_t first
    cdef bint whole

    def __init__(self, lines, bint in_order=False, double width=0, int64_t first=0,
                 bint whole=False):
        cdef zn_taxonomy_config config
        cdef zn_error err
        cdef _Kept kept = _Kept()
        if self.taxonomy != NULL:
            raise RuntimeError("a taxonomy cannot be opened twice")
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        rows = [list(line) for line in lines]
        config.lines = len(rows)
        config.levels = len(rows[0]) if rows else 0
        for number, row in enumerate(rows, 1):
            if len(row) != <Py_ssize_t>config.levels:
                raise FormatError(f"line {number} has {len(row)} columns, the first one has "
                                  f"{config.levels}")
        config.labels = kept.texts([label for row in rows for label in row], &config.lines)
        config.lines = len(rows)
        config.in_order = self.in_order = in_order
        config.width = self.width = width
        config.first = self.first = first
        config.whole = self.whole = whole
        check(zn_taxonomy_open(&self.taxonomy, &config, &self.notes, &err), &err)

    @classmethod
    def read(cls, bytes data not None, uint8_t delimiter=0x3b):
        """Reads the hierarchy in a file's bytes, in ARX's form (csrc/rows/hierarchy.h).

        delimiter: the byte between columns. Raises as the constructor.
        """
        cdef Taxonomy self = cls.__new__(cls)
        cdef zn_error err
        cdef zn_span span
        cdef int rc
        memset(&err, 0, sizeof(err))
        span.p = data
        span.n = len(data)
        with nogil:
            rc = zn_hierarchy_read(&self.taxonomy, span, delimiter, &self.notes, &err)
        check(rc, &err)
        return self

    def __dealloc__(self):
        zn_taxonomy_close(self.taxonomy)

    def __reduce__(self):
        return Taxonomy, (self.lines(), self.in_order, self.width, self.first, self.whole)

    cdef int _check_open(self) except -1:
        if self.taxonomy == NULL:
            raise ValueError("the taxonomy is not open")
        return 0

    @property
    def leaves(self):
        """The number of values, which are the first nodes."""
        self._check_open()
        return zn_taxonomy_leaves(self.taxonomy)

    @property
    def nodes(self):
        """The number of nodes of all levels."""
        self._check_open()
        return zn_taxonomy_nodes(self.taxonomy)

    @property
    def levels(self):
        """The number of levels. Level 0 has the leaves, and the last level has the root."""
        self._check_open()
        return zn_taxonomy_levels(self.taxonomy)

    @property
    def only_children(self):
        """Returns (number, line of the first) of the nodes between leaves and root with one
        child."""
        self._check_open()
        return self.notes.only_children, self.notes.line

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        self._check_open()
        return zn_taxonomy_memory(self.taxonomy)

    def labels(self):
        """Returns the text of each node, as bytes."""
        return [span_bytes(zn_taxonomy_label(self.taxonomy, <zn_node>i)) for i in range(self.nodes)]

    def lines(self):
        """Returns the labels of each leaf from itself to the root, as the constructor takes
        them."""
        labels = self.labels()
        return [[labels[zn_taxonomy_ancestor(self.taxonomy, <zn_node>i, level)]
                 for level in range(self.levels)] for i in range(self.leaves)]

    def arrays(self):
        """Returns (parent, level, leaves below, loss) of each node: int32, int32, int32 and
        float64."""
        cdef int32_t[::1] parent, level, below
        cdef double[::1] loss
        cdef zn_node i
        np = numpy()
        n = self.nodes
        arrays = [np.empty(n, np.int32), np.empty(n, np.int32), np.empty(n, np.int32),
                  np.empty(n, np.float64)]
        parent, level, below, loss = arrays
        for i in range(n):
            parent[i] = zn_taxonomy_parent(self.taxonomy, i)
            level[i] = <int32_t>zn_taxonomy_level(self.taxonomy, i)
            below[i] = <int32_t>zn_taxonomy_leaves_below(self.taxonomy, i)
            loss[i] = zn_taxonomy_loss(self.taxonomy, i)
        return tuple(arrays)

    def level_losses(self):
        """Returns the loss at each level, the mean over the leaves."""
        cdef uint32_t level
        cdef zn_node i
        means = []
        for level in range(<uint32_t>self.levels):
            total = 0.0
            for i in range(<zn_node>self.leaves):
                total += zn_taxonomy_loss(
                    self.taxonomy, zn_taxonomy_ancestor(self.taxonomy, i, level))
            means.append(total / self.leaves)
        return means

    def ancestors(self):
        """Returns int32[levels, nodes]: the ancestor of each node at each level, or the node if the
        level is below it."""
        cdef int32_t[:, ::1] view
        cdef zn_node i
        cdef uint32_t level
        out = numpy().empty((self.levels, self.nodes), dtype="int32")
        view = out
        for level in range(<uint32_t>view.shape[0]):
            for i in range(<zn_node>view.shape[1]):
                view[level, i] = zn_taxonomy_ancestor(self.taxonomy, i, level)
        return out

    def find(self, values):
        """Returns int32[n]: the leaf of each of n values, -1 if there is no leaf.

        values: bytes, or None for a missing value.
        """
        cdef int32_t[::1] view
        cdef bytes value
        cdef zn_span span
        cdef zn_node leaf
        self._check_open()
        out = numpy().empty(len(values), dtype="int32")
        view = out
        for i, given in enumerate(values):
            value = b"" if given is None else given
            span.p = <const uint8_t *><const char *>value
            span.n = len(value)
            leaf = zn_taxonomy_find(self.taxonomy, span)
            view[i] = -1 if leaf == ZN_NODE_NONE else leaf
        return out

    def common(self, a, b):
        """Returns int32[n]: the lowest node that is, or is above, both a[i] and b[i].

        a, b: arrays of nodes of the same length. Raises ValueError for a number of no node.
        """
        cdef int32_t[::1] left, right, view
        cdef Py_ssize_t i
        left, right = self._nodes(a), self._nodes(b)
        if left.shape[0] != right.shape[0]:
            raise ValueError("both arrays must have the same length")
        out = numpy().empty(left.shape[0], dtype="int32")
        view = out
        for i in range(view.shape[0]):
            view[i] = zn_taxonomy_common(self.taxonomy, <zn_node>left[i], <zn_node>right[i])
        return out

    cdef object _nodes(self, given):
        """Returns the array as int32, checked."""
        array = numpy().ascontiguousarray(given, dtype="int32")
        if array.ndim != 1 or (len(array) and not 0 <= array.min() <= array.max() < self.nodes):
            raise ValueError("an array of nodes has one dimension and numbers of nodes")
        return array


def intervals(values, double width, bint whole=False):
    """Returns the number of the interval of each value: the largest whole number <= value / width.

    values: bytes, a number in decimal each. whole: if true, numbers that are not whole count as no
    numbers.

    The result is (int64[n], bool[n]): the second array is true if the value is a number. An
    interval outside of int64 becomes the nearest end. Raises ConfigError for a width that is not
    above 0 or has more than 15 decimals.
    """
    cdef zn_error err
    cdef zn_interval_width step
    cdef zn_span span
    cdef bytes value
    cdef int64_t[::1] view
    cdef uint8_t[::1] known
    memset(&err, 0, sizeof(err))
    check(zn_interval_width_of(&step, width, &err), &err)
    np = numpy()
    out, are_numbers = np.zeros(len(values), np.int64), np.zeros(len(values), np.uint8)
    view, known = out, are_numbers
    for i, value in enumerate(values):
        span.p = <const uint8_t *><const char *>value
        span.n = len(value)
        known[i] = zn_interval_of(&step, whole, span, &view[i])
    return out, are_numbers.view(np.bool_)
