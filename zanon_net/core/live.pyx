# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Interfaces: csrc/capture/live_group.h.

cdef class Live:
    """Network interfaces, opened together and read as one stream in the order of time."""

    cdef zn_live_group *group
    cdef _Guard guard
    cdef tuple names
    cdef bytes filter
    cdef zn_live_config config  # without the interface's name

    def __init__(self, interfaces, *, str filter="", uint32_t snaplen=262144,
                 uint32_t ring_bytes=1 << 26, bint promiscuous=True, unsigned rings=1):
        cdef zn_live_config config
        cdef zn_error err
        if self.group != NULL:
            raise RuntimeError("interfaces cannot be opened twice")
        memset(&err, 0, sizeof(err))
        memset(&self.config, 0, sizeof(self.config))
        self.guard = _Guard()
        self.names = tuple(interfaces)
        check(zn_live_group_open(&self.group, &err), &err)
        self.filter = filter.encode()
        self.config.filter = self.filter
        self.config.snaplen = snaplen
        self.config.ring_bytes = ring_bytes
        self.config.promiscuous = promiscuous
        for name in self.names:
            encoded = os.fsencode(name)
            config = self.config
            config.interface = encoded
            check(zn_live_group_add(self.group, &config, rings, &err), &err)

    def __dealloc__(self):
        zn_live_group_close(self.group)

    cdef int _enter(self) except -1:
        if self.group == NULL:
            raise ValueError("the interfaces are closed")
        return self.guard.enter()

    def close(self):
        """Closes the interfaces. A second call does nothing."""
        if self.group != NULL:
            self.guard.enter()
            zn_live_group_close(self.group)
            self.group = NULL
            self.guard.leave()

    def keep(self, unsigned shard, unsigned shards):
        """Keeps a part of each interface's rings, and closes the others in this process: rings that
        a process opened before it forked `shards` processes."""
        self._enter()
        zn_live_group_keep(self.group, shard, shards)
        self.guard.leave()

    def run(self, PacketEngine engine not None, int max_frames, int wait_ms):
        """Feeds up to max_frames to the engine, waiting up to wait_ms for the first; returns their
        number."""
        cdef zn_error err
        cdef int n
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            engine._enter()
            with nogil:
                n = zn_engine_run_live(engine.engine, self.group, max_frames, wait_ms, &err)
            engine.guard.leave()
        finally:
            self.guard.leave()
        if interrupted(n, &err):
            return 0
        check(n, &err)
        return n

    def frames(self, int wait_ms):
        """Returns the next frames, as Capture.frames does, for tests."""
        cdef zn_error err
        cdef const zn_frame *frame
        cdef int n
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            with nogil:
                n = zn_live_group_next(self.group, &frame, wait_ms, &err)
            check(n, &err)
            return [(frame[i].t_ns, frame[i].wire, frame[i].link_type,
                     PyBytes_FromStringAndSize(<const char *>frame[i].data, frame[i].captured))
                    for i in range(n)]
        finally:
            self.guard.leave()

    def stop(self):
        """Lets no more frames into the rings; frames that are in them can still be read."""
        self._enter()
        zn_live_group_stop(self.group)
        self.guard.leave()

    def gone(self, size_t i):
        """Returns true if the i-th interface is gone, and all of its frames were read."""
        self.names[i]  # raises IndexError
        self._enter()
        self.guard.leave()
        return zn_live_group_gone(self.group, i)

    def reopen(self, size_t i):
        """Opens the i-th interface, which is gone, again; its counters restart. After an error the
        interface remains gone."""
        cdef zn_live_config config = self.config
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        if not self.gone(i):
            raise ValueError("the interface is there")
        encoded = os.fsencode(self.names[i])
        config.interface = encoded
        self._enter()
        try:
            check(zn_live_group_reopen(self.group, i, &config, &err), &err)
        finally:
            self.guard.leave()

    def facts(self):
        """Returns for each interface its name, link type, counters, and the reason for its end or
        None."""
        cdef zn_live_counts counts
        cdef const char *warning
        self._enter()
        self.guard.leave()
        found = []
        for i in range(zn_live_group_size(self.group)):
            counts = zn_live_group_counts(self.group, i)
            warning = zn_live_group_warning(self.group, i)
            found.append({
                "name": self.names[i],
                "link_type": zn_live_group_link_type(self.group, i),
                "frames": counts.frames,
                "bytes": counts.bytes,
                "received": counts.received,
                "dropped": counts.dropped,
                "warning": None if warning == NULL else warning.decode("utf-8", "replace"),
            })
        return found
