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


cdef zn_id identity_of(const zn_hash_key *key, uint8_t level, uint64_t number) noexcept nogil:
    """Returns the identity of a label of `Levels`."""
    cdef zn_id label
    if number == 0:
        label.lo = label.hi = 0
        return label
    return zn_hash128(key, level, &number, sizeof(number))


cdef struct numbers_of:  # labels of a batch, row by row
    const zn_hash_key *key
    const uint64_t *numbers
    const uint32_t *networks
    size_t width


cdef void hash_numbers(void *of, size_t i, zn_id *chain) noexcept nogil:
    """Writes the labels of exposure i above level 0."""
    cdef const numbers_of *source = <const numbers_of *>of
    cdef size_t level
    for level in range(1, source.width):
        chain[level] = identity_of(source.key, <uint8_t>level,
                                   source.numbers[i * source.width + level])


cdef uint32_t network_of(void *of, size_t i) noexcept nogil:
    """Returns the network of exposure i."""
    return (<const numbers_of *>of).networks[i]


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
    max_per_network: users of a network that may have votes for a label; None: no cap.
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
    cdef bint with_networks
    cdef _Guard guard

    def __init__(self, z, window_ns, levels, *, z_max=None, keep=None, max_tuples=1 << 24,
                 max_attributes=1 << 22, max_votes=1 << 22, max_labels=1 << 20,
                 max_per_network=None, rebase_after=256, parents=None):
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
        config.max_per_network = max_per_network or 0
        self.with_networks = config.max_per_network != 0
        if parents is not None:
            self._set_parents(parents)
            config.parents = parents_of
            config.parents_of = <void *>self
        check(zn_levels_open(&self.levels, &config, &err), &err)
        self.count = levels

    cdef int _set_parents(self, parents) except -1:
        self.above = {}
        for (level, number), by_level in parents.items():
            label = identity_of(&self.key, level, number)
            self.above[level, label.lo, label.hi] = {
                above: [self._pair(above, one) for one in numbers]
                for above, numbers in by_level.items()
            }
            if any(len(numbers) > 64 for numbers in by_level.values()):
                raise ConfigError("a label has at most 64 labels above it at a level")
        return 0

    cdef object _pair(self, level, number):
        cdef zn_id label = identity_of(&self.key, level, number)
        return label.lo, label.hi

    def __dealloc__(self):
        zn_levels_close(self.levels)
        zn_ztable_close(self.table)

    def __reduce__(self):
        raise TypeError("levels cannot be pickled: they hold exposures that were not released")

    def decide(self, const int64_t[::1] t_ns, const uint64_t[::1] user,
               const uint64_t[:, ::1] chain, const uint8_t[::1] flags=None,
               const uint32_t[::1] networks=None):
        """Decides n exposures in their order.

        t_ns: int64[n], 0 or later. user: uint64[n]. chain: uint64[n, levels + 1], finest first.
        flags: uint8[n], 1: only look whether z users share the value; 2: decided with the z of
        set_early_z. networks: uint32[n], the network of each user, for max_per_network.

        Returns (decision, level, users): uint8[n], a zn_decision, in which 0 is a release; uint8[n]
        and uint16[n], the level that is published and the users counted there.
        """
        cdef zn_observation part[1024]
        cdef zn_level_decision answers[1024]
        cdef zn_exposures batch
        cdef numbers_of source
        cdef Py_ssize_t n = t_ns.shape[0], start, i
        np = numpy()
        if user.shape[0] != n or chain.shape[0] != n or chain.shape[1] != self.count + 1 or (
                flags is not None and flags.shape[0] != n) or (
                self.with_networks and (networks is None or networks.shape[0] != n)):
            raise ValueError("t_ns, user, chain, flags and networks must have the same length")
        out = np.zeros(n, np.uint8), np.zeros(n, np.uint8), np.zeros(n, np.uint16)
        cdef uint8_t[::1] decision = out[0], level = out[1]
        cdef uint16_t[::1] users = out[2]
        source.key = &self.key
        source.width = self.count + 1
        batch.observations = part
        batch.chain = hash_numbers
        batch.network = network_of
        batch.of = &source
        self.guard.enter()
        with nogil:
            for start in range(0, n, 1024):
                batch.n = min(1024, n - start)
                batch.flags = NULL if flags is None else &flags[start]
                source.numbers = &chain[start, 0]
                source.networks = &networks[start] if self.with_networks else NULL
                for i in range(<Py_ssize_t>batch.n):
                    part[i].t_ns = t_ns[start + i]
                    part[i].user = zn_hash_words(&self.key, &user[start + i], 1)
                    part[i].attribute = identity_of(&self.key, 0, chain[start + i, 0])
                zn_levels_decide(self.levels, &batch, answers)
                for i in range(<Py_ssize_t>batch.n):
                    decision[start + i] = answers[i].decision
                    level[start + i] = answers[i].level
                    users[start + i] = answers[i].users
        self.guard.leave()
        return out

    def clear(self):
        """Empties the table of values, and with it all levels."""
        zn_ztable_clear(self.table)

    def restore(self, const uint8_t[::1] snapshot):
        """Raises ConfigError, because a snapshot of a z-table has no votes for labels."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_ztable_import(self.table, &snapshot[0], snapshot.shape[0], &err), &err)

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
