# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# The gate of whole rows: csrc/release/tuple_gate.h.

CLASS_FAULTS = ("users", "diversity", "share", "distance")


cdef int fill_class_rule(zn_class_rule *rule, dict numbers) except -1:
    """Fills in the rule from its numbers, by its members' names."""
    rule.k = whole("k", numbers["k"], 1, 0xffffffff)
    rule.l = whole("l", numbers["l"], 1, 0xffffffff)
    rule.kind = <zn_diversity_kind><int>whole("kind", numbers["kind"], 0, ZN_DIVERSITY_RECURSIVE)
    rule.c = numbers["c"]
    rule.max_share = numbers["max_share"]
    rule.t = numbers["t"]
    return 0


cdef class _Written:
    """A column as it would be written: a code for each row, and the identity of each code."""

    cdef const int32_t[::1] codes
    cdef zn_id *ids
    cdef Py_ssize_t count

    def __dealloc__(self):
        free(self.ids)

    cdef int fill(self, const zn_tuple_gate *gate, values, const int32_t[::1] codes) except -1:
        cdef zn_span span
        self.codes = codes
        self.count = len(values)
        self.ids = <zn_id *>malloc(max(self.count, 1) * sizeof(zn_id))
        if self.ids == NULL:
            raise MemoryError
        for i, value in enumerate(values):
            span.p = NULL if value is None else <const uint8_t *><const char *>value
            span.n = 0 if value is None else len(value)
            self.ids[i] = zn_tuple_gate_value(gate, span)
        for i in range(codes.shape[0]):
            if not 0 <= codes[i] < self.count:
                raise ValueError("a code has no value")
        return 0


cdef class TupleGate:
    """Decides which rows of a table may be written (csrc/release/tuple_gate.h).

    rule: the numbers k, l, kind, c, max_share, t of csrc/microdata/diversity.h.
    """

    cdef zn_tuple_gate *gate
    cdef _Guard guard
    cdef size_t sensitive_count

    def __init__(self, dict rule not None, sensitive_count=1):
        cdef zn_class_rule numbers
        cdef zn_error err
        if self.gate != NULL:
            raise RuntimeError("a gate cannot be opened twice")
        self.guard = _Guard()
        memset(&err, 0, sizeof(err))
        fill_class_rule(&numbers, rule)
        self.sensitive_count = whole("sensitive_count", sensitive_count, 0, ZN_TUPLE_SENSITIVE_MAX)
        check(zn_tuple_gate_open(&self.gate, &numbers, self.sensitive_count, &err), &err)

    def __dealloc__(self):
        zn_tuple_gate_close(self.gate)

    def __reduce__(self):
        raise TypeError("a gate cannot be pickled")

    def decide(self, quasi, sensitive, users, n):
        """Returns int8[n]: 0 for a row that may be written, else 1 + the place in CLASS_FAULTS.

        quasi, sensitive: columns as they would be written, each (values, codes): the bytes of each
            value, or None if it is missing, and int32[n].
        users: int64[n], or None if each row is a user of its own.

        Raises ValueError for a code without a value, CapacityError if memory is exhausted.
        """
        cdef const int64_t[::1] of_users
        cdef uint8_t[::1] faults
        if self.gate == NULL:
            raise RuntimeError("this gate was never opened")
        if len(sensitive) != self.sensitive_count:
            raise ValueError("another number of sensitive columns")
        columns = [self._column(values, codes, n) for values, codes in (*quasi, *sensitive)]
        array = numpy().empty(n, dtype=numpy().uint8)
        if n == 0:
            return array
        faults = array
        if users is not None:
            of_users = straight(users)
            if of_users.shape[0] != n:
                raise ValueError("users and rows differ in number")
        self.guard.enter()
        try:
            self._decide(columns, len(quasi), of_users if users is not None else None, faults)
        finally:
            self.guard.leave()
        return array

    cdef _Written _column(self, values, codes, n):
        cdef _Written column = _Written()
        column.fill(self.gate, values, straight(codes))
        if column.codes.shape[0] != n:
            raise ValueError("columns differ in length")
        return column

    cdef int _decide(self, list columns, size_t quasi_count, const int64_t[::1] users,
                     uint8_t[::1] faults) except -1:
        cdef zn_error err
        cdef _Written column
        cdef size_t n = faults.shape[0], width = len(columns), i, j
        cdef const int32_t **codes = <const int32_t **>malloc((width + 1) * sizeof(void *))
        cdef zn_id **ids = <zn_id **>malloc((width + 1) * sizeof(void *))
        cdef zn_id *row = <zn_id *>malloc((width + 1) * sizeof(zn_id))
        cdef const int64_t *of_users = NULL if users is None else &users[0]
        cdef zn_id user
        cdef zn_span span
        cdef int rc = 0, decided
        memset(&err, 0, sizeof(err))
        try:
            if codes == NULL or ids == NULL or row == NULL:
                raise MemoryError
            for j in range(width):
                column = columns[j]
                codes[j] = &column.codes[0]
                ids[j] = column.ids
            with nogil:
                span.n = sizeof(int64_t)
                for i in range(n):
                    for j in range(width):
                        row[j] = ids[j][codes[j][i]]
                    if of_users != NULL:
                        span.p = <const uint8_t *>&of_users[i]
                        user = zn_tuple_gate_user(self.gate, span)
                    rc = zn_tuple_gate_add(self.gate, row, quasi_count, row + quasi_count,
                                           &user if of_users != NULL else NULL, &err)
                    if rc < 0:
                        break
                decided = zn_tuple_gate_decide(self.gate, &faults[0], &err)
                rc = decided if rc == 0 else rc
            check(rc, &err)
        finally:
            free(codes)
            free(ids)
            free(row)
        return 0

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        return zn_tuple_gate_memory(self.gate)
