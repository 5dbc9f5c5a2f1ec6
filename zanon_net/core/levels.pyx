# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Generalization: csrc/anonymity/levels.h.

cdef const zn_id *parents_of(void *of, uint32_t level, zn_id label, uint32_t above,
                             const zn_id *one, size_t *count) noexcept with gil:
    """Answers the core's question for the labels above a label."""
    levels = <Levels>of
    key = (level, label.lo, label.hi)
    found = levels.above.get(key, {}).get(above, ())
    count[0] = len(found)
    for i, (lo, hi) in enumerate(found):
        levels.answer[i].lo = lo
        levels.answer[i].hi = hi
    return levels.answer


cdef object levels_stats(const zn_levels *of, uint32_t count):
    """Returns the counters of levels, of which `count` are above the value."""
    cdef zn_levels_stats stats = zn_levels_get_stats(of)
    levels = [zn_levels_level_stats(of, i) for i in range(count + 1)]
    users = {i: stats.users[i] for i in range(ZN_LEVELS_Z_MAX + 1) if stats.users[i]}
    return {"paused": stats.paused, "lacked_capacity": stats.lacked_capacity, "users": users,
            "levels": levels}


cdef class Levels:
    """Values that fewer than z users share are published as coarser labels (anonymity/levels.h).

    Labels are numbers, and 0 means that a value lacks the level. Equal numbers at different levels
    are different labels.

    levels: number of levels above the value. z_max: largest z of set_z; None: z. keep: latest users
        of a value that are kept; None: all. max_tuples, max_attributes: caps of the values.
    max_votes, max_labels: caps of each level above. rebase_after: as in ZTable.
    parents: for each label (level, number) a dict from a level above to the numbers there. None:
        the label's chain is the only one.

    Raises ConfigError for values out of range, CapacityError if memory is exhausted.
    """

    cdef zn_ztable *table
    cdef zn_levels *levels
    cdef zn_hash_key key
    cdef dict above
    cdef zn_id answer[64]
    cdef readonly uint32_t count
    cdef _Guard guard

    def __init__(self, z, window_ns, levels, *, z_max=None, keep=None, max_tuples=1 << 24,
                 max_attributes=1 << 22, max_votes=1 << 22, max_labels=1 << 20,
                 rebase_after=256, parents=None):
        cdef zn_ztable_config table
        cdef zn_levels_config config
        cdef zn_error err
        if self.table != NULL:
            raise RuntimeError("levels cannot be opened twice")
        self.guard = _Guard()
        memset(&err, 0, sizeof(err))
        check(zn_hash_key_random(&self.key, &err), &err)
        table = zn_ztable_default_config(z, window_ns)
        table.keep = keep or 0
        table.max_tuples = max_tuples
        table.max_attributes = max_attributes
        table.rebase_after = rebase_after
        check(zn_ztable_open(&self.table, &table, &err), &err)
        config = zn_levels_default_config(self.table, levels, z, window_ns)
        config.z_max = z if z_max is None else z_max
        config.max_votes = max_votes
        config.max_labels = max_labels
        if parents is not None:
            self._set_parents(parents)
            config.parents = parents_of
            config.parents_of = <void *>self
        check(zn_levels_open(&self.levels, &config, &err), &err)
        self.count = levels

    cdef int _set_parents(self, parents) except -1:
        self.above = {}
        for (level, number), by_level in parents.items():
            label = self._identity(level, number)
            self.above[level, label.lo, label.hi] = {
                above: [self._pair(above, one) for one in numbers]
                for above, numbers in by_level.items()
            }
            if any(len(numbers) > 64 for numbers in by_level.values()):
                raise ConfigError("a label has at most 64 labels above it at a level")
        return 0

    cdef object _pair(self, level, number):
        cdef zn_id label = self._identity(level, number)
        return label.lo, label.hi

    cdef zn_id _identity(self, uint8_t level, uint64_t number) noexcept nogil:
        cdef zn_id label
        if number == 0:
            label.lo = label.hi = 0
            return label
        return zn_hash128(&self.key, level, &number, sizeof(number))

    def __dealloc__(self):
        zn_levels_close(self.levels)
        zn_ztable_close(self.table)

    def __reduce__(self):
        raise TypeError("levels cannot be pickled: they hold exposures that were not released")

    def decide(self, const int64_t[::1] t_ns, const uint64_t[::1] user,
               const uint64_t[:, ::1] chain, const uint8_t[::1] flags=None):
        """Decides n exposures in their order.

        t_ns: int64[n], 0 or later. user: uint64[n]. chain: uint64[n, levels + 1], finest first.
        flags: uint8[n], 1: only look whether z users share the value; 2: decided with the z of
        set_early_z.

        Returns (decision, level, users): uint8[n], a zn_decision, in which 0 is a release; uint8[n]
        and uint16[n], the level that is published and the users counted there.
        """
        cdef zn_exposure part[1024]
        cdef zn_level_decision answers[1024]
        cdef Py_ssize_t n = t_ns.shape[0], width = self.count + 1, start, i, j, many
        cdef zn_id *ids
        np = numpy()
        if user.shape[0] != n or chain.shape[0] != n or chain.shape[1] != width or (
                flags is not None and flags.shape[0] != n):
            raise ValueError("t_ns, user, chain and flags must have the same length")
        out = np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.uint16)
        cdef uint8_t[::1] decision = out[0], level = out[1]
        cdef uint16_t[::1] users = out[2]
        ids = <zn_id *>malloc(1024 * width * sizeof(zn_id))
        if ids == NULL:
            raise MemoryError
        self.guard.enter()
        with nogil:
            for start in range(0, n, 1024):
                many = min(1024, n - start)
                for i in range(many):
                    part[i].t_ns = t_ns[start + i]
                    part[i].user = zn_hash_words(&self.key, &user[start + i], 1)
                    part[i].chain = ids + i * width
                    part[i].flags = 0 if flags is None else flags[start + i]
                    for j in range(width):
                        ids[i * width + j] = self._identity(<uint8_t>j, chain[start + i, j])
                zn_levels_decide(self.levels, part, many, answers)
                for i in range(many):
                    decision[start + i] = answers[i].decision
                    level[start + i] = answers[i].level
                    users[start + i] = answers[i].users
        self.guard.leave()
        free(ids)
        return out

    def set_z(self, z):
        """Changes z for later exposures. Raises ConfigError for a z out of range."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_levels_set_z(self.levels, whole("z", z, 1, ZN_LEVELS_Z_MAX), &err), &err)

    def set_early_z(self, z):
        """Sets the z of exposures with flag 2, at least z."""
        zn_levels_set_early_z(self.levels, whole("z", z, 1, ZN_LEVELS_Z_MAX))

    @property
    def stats(self):
        """Counters: paused, lacked_capacity, users (labels published by users behind them), and
        levels, a dict for each level from 0 on."""
        return levels_stats(self.levels, self.count)

    @property
    def memory_bytes(self):
        """Bytes of memory in use, without the values."""
        return zn_levels_memory(self.levels)

    def check(self):
        """Raises AssertionError if an invariant is broken. Slow; for tests."""
        wrong = zn_levels_check(self.levels)
        if wrong == NULL:
            wrong = zn_ztable_check(self.table)
        if wrong != NULL:
            raise AssertionError(wrong.decode())
