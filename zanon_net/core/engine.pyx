# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# The engine: csrc/engine/engine.h.

cdef void run_aside(void *of, uint32_t task) noexcept with gil:
    """Calls the function that was passed to PacketEngine.call_aside."""
    call = (<PacketEngine>of).aside_call
    (<PacketEngine>of).aside_call = None
    call()


cdef class PacketEngine:
    """The whole packet path. An engine belongs to one thread at a time.

    count_secret: 16 random bytes, the key of the hashes of votes if the counter belongs to the same
    run. All other settings are of Config.engine_arguments().
    """

    cdef zn_engine *engine
    cdef _Guard guard
    cdef _Spare spare
    cdef size_t views
    cdef zn_job aside
    cdef object aside_call

    def __init__(self, *, bytes count_secret=None, **settings):
        cdef zn_engine_config config
        cdef zn_hash_key secret
        cdef zn_error err
        cdef _Kept kept = _Kept()
        if self.engine != NULL:
            raise RuntimeError("an engine cannot be opened twice")
        self.guard = _Guard()
        self.spare = _Spare()
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        config.size = sizeof(config)
        fill_engine_config(&config, settings, kept)
        if count_secret is not None:
            if len(count_secret) != sizeof(secret):
                raise ValueError("count_secret must have 16 bytes")
            memcpy(&secret, <const char *>count_secret, sizeof(secret))
            config.count_secret = &secret
        rc = zn_engine_open(&self.engine, &config, &err)
        memset(&secret, 0, sizeof(secret))
        check(rc, &err)
        self.views = config.view_count

    def __dealloc__(self):
        with nogil:
            zn_engine_close(self.engine)

    cdef int _enter(self) except -1:
        if self.engine == NULL:
            raise ValueError("the engine is closed")
        self.guard.enter()
        self.spare.give_back(zn_engine_outputs(self.engine))
        return 0

    def close(self):
        """Wipes and frees everything. A second call does nothing."""
        if self.engine != NULL:
            self.guard.enter()
            with nogil:  # its threads may be about to leave a call
                zn_engine_close(self.engine)
            self.engine = NULL
            self.guard.leave()

    def call_aside(self, call):
        """Makes one of the engine's threads call this function while the other threads continue.

        There is one call at a time, and it ends before the engine is closed. Works only with
        several workers.
        """
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._check_open()
        self.aside_call = call
        self.aside.run, self.aside.of = run_aside, <void *>self
        with nogil:
            rc = zn_engine_start_aside(self.engine, &self.aside, &err)
        check(rc, &err)

    def run(self, Capture capture not None, int max_frames, *, bint pauses=False):
        """Takes up to max_frames from the capture and returns their number, 0 at its end.

        pauses: returns -1 if a stream was silent for about 200 ms, instead of waiting further.
        """
        cdef zn_error err
        cdef int n
        memset(&err, 0, sizeof(err))
        capture._enter()
        try:
            self._enter()
            try:
                while True:
                    with nogil:
                        n = zn_engine_run(self.engine, &capture.source, max_frames, &err)
                    if not interrupted(n, &err):
                        break
                    if pauses and zn_capture_may_wait(capture.source.capture):
                        return -1
            finally:
                self.guard.leave()
        finally:
            capture.guard.leave()
        check(n, &err)
        return n

    def is_over(self, Capture capture not None):
        """Returns true if `run` has taken every frame of the capture."""
        self._check_open()
        capture._check_open()
        return bool(zn_engine_is_over(self.engine, &capture.source))

    def feed(self, const uint8_t[::1] buffer, const int64_t[::1] ts_ns, const uint32_t[::1] caplen,
             const uint32_t[::1] wirelen, uint32_t linktype):
        """Takes n frames that lie back to back in buffer; the other arguments are arrays of length
        n."""
        cdef Py_ssize_t n = ts_ns.shape[0]
        cdef Py_ssize_t at = 0
        cdef zn_error err
        cdef zn_frame *frames
        cdef int rc
        if caplen.shape[0] != n or wirelen.shape[0] != n:
            raise ValueError("ts_ns, caplen and wirelen differ in length")
        frames = <zn_frame *>malloc((n + 1) * sizeof(zn_frame))
        if frames == NULL:
            raise MemoryError
        try:
            for i in range(n):
                if caplen[i] > buffer.shape[0] - at or wirelen[i] < caplen[i]:
                    raise ValueError(f"frame {i}: its length does not fit the buffer")
                frames[i].data = &buffer[0] + at
                frames[i].t_ns = ts_ns[i]
                frames[i].captured = caplen[i]
                frames[i].wire = wirelen[i]
                frames[i].link_type = linktype
                at += caplen[i]
            memset(&err, 0, sizeof(err))
            self._enter()
            with nogil:
                rc = zn_engine_feed(self.engine, frames, n, &err)
            self.guard.leave()
            check(rc, &err)
        finally:
            free(frames)

    def idle(self, int64_t quiet_ns):
        """Closes flows that are idle for too long, because no packet came for quiet_ns. True:
        drain, and call flush."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_engine_idle(self.engine, quiet_ns, &err)
        self.guard.leave()
        check(rc, &err)
        return rc > 0

    def finish(self):
        """Ends the input: closes every flow and writes its record. True: drain, and call again."""
        return self._flush(True)

    def flush(self):
        """Writes records that wait. True: drain, and call again."""
        return self._flush(False)

    cdef bint _flush(self, bint finish) except -1:
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            if finish:
                rc = zn_engine_finish(self.engine, &err)
            else:
                rc = zn_engine_flush(self.engine, &err)
        self.guard.leave()
        check(rc, &err)
        return rc > 0

    @property
    def waiting(self):
        """True if records wait for the outputs to be drained."""
        self._check_open()
        return bool(zn_engine_waiting(self.engine))

    def window(self):
        """The window that has ended, as a ClosedWindow, until run is called again; or None."""
        cdef zn_popularity_window closed
        self._enter()
        try:
            return closed_window(&closed) if zn_engine_window(self.engine, &closed) else None
        finally:
            self.guard.leave()

    def attribute_windows(self):
        """The counts of each attribute besides names in the window that has ended, by its word."""
        cdef zn_popularity_window closed
        found = {}
        self._enter()
        try:
            for word, bit in ATTRIBUTES.items():
                if zn_engine_attribute_window(self.engine, bit.bit_length() - 1, &closed):
                    found[word] = closed_window(&closed)
            return found
        finally:
            self.guard.leave()

    def window_counts(self):
        """Returns the number of distinct users of each name in the ended window, in no order."""
        cdef zn_popularity_window closed
        cdef uint32_t[::1] view
        cdef size_t n = 0
        self._enter()
        try:
            if zn_engine_window(self.engine, &closed):
                n = sum(closed_window(&closed).bins)
            counts = numpy().empty(max(n, 1), dtype="uint32")
            view = counts
            return counts[:zn_engine_window_counts(self.engine, &view[0], n)]
        finally:
            self.guard.leave()

    def window_levels(self):
        """Sums the ended window by level, as ClosedLevels; None without levels."""
        cdef zn_level_shares shares
        cdef bint summed
        self._enter()
        try:
            with nogil:
                summed = zn_engine_window_levels(self.engine, &shares)
            return closed_levels(&shares) if summed else None
        finally:
            self.guard.leave()

    def set_z(self, z):
        """Changes z, up to z_max, for frames not taken yet. Raises ConfigError."""
        cdef uint32_t wanted = whole("z", z, 1, ZN_ZTABLE_Z_MAX)
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            check(zn_engine_set_z(self.engine, wanted, &err), &err)
        finally:
            self.guard.leave()

    def set_never(self, suffixes):
        """Replaces the suffixes whose names are never released, for names not read yet."""
        cdef zn_error err
        cdef _Kept kept = _Kept()
        cdef size_t count = 0
        cdef zn_span *spans = kept.texts(suffixes, &count)
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            check(zn_engine_set_never(self.engine, spans, count, &err), &err)
        finally:
            self.guard.leave()

    def take(self, str output):
        """Takes the text that is ready for an output, of all periods."""
        cdef int which = ALL_TEXTS.index(output)
        cdef zn_outputs *out
        self._enter()
        try:
            out = zn_engine_outputs(self.engine)
            data = PyBytes_FromStringAndSize(out.text[which].bytes, out.text[which].n)
            out.text[which].n = out.lines[which] = 0
            return data
        finally:
            self.guard.leave()

    def drain(self, *, size_t rows=0):
        """Takes all output that is ready.

        Returns ([(start of the period in ns, or None if the last period continues; {output: (text,
        its lines)}; {table: rows up to here}), ...], {table: its TableRows}).

        rows: a table with fewer rows is left for later, unless a period ended in it.
        """
        self._enter()
        try:
            return take_outputs(zn_engine_outputs(self.engine), rows, self.spare)
        finally:
            self.guard.leave()

    def fields(self, str table):
        """Returns (name, type, may be missing) of every column of a table; the types are
        FIELD_TYPES."""
        cdef zn_fields *fields
        self._check_open()
        fields = &zn_engine_outputs(self.engine).table[<int>TABLES.index(table)].fields
        return [(fields.at[i].name.decode(), FIELD_TYPES[<int>fields.at[i].type],
                 bool(fields.at[i].nullable)) for i in range(fields.n)]

    def header(self, str output):
        """Returns the first line of every file of a text output; empty if the output has no such
        line."""
        cdef zn_span header
        self._check_open()
        header = zn_outputs_header(self.engine, <zn_output><int>OUTPUTS.index(output))
        return b"" if header.n == 0 else PyBytes_FromStringAndSize(<char *>header.p, header.n)

    cdef int _check_open(self) except -1:
        if self.engine == NULL:
            raise ValueError("the engine is closed")
        return 0

    @property
    def stage(self):
        """The index in STAGES of the engine's present work. Any thread may read it."""
        self._check_open()
        return <int>zn_engine_profile_stage(self.engine)

    @property
    def stats(self):
        """Every counter by its name in STAT_INFO."""
        cdef const zn_stats *stats
        self._check_open()
        stats = zn_engine_stats(self.engine)
        return {STAT_INFO[i][0]: stats.n[i] for i in range(<int>ZN_STAT_COUNT)}

    def counts(self, *names):
        """Some of the counters by their names: all of them take longer than a small capture."""
        cdef const zn_stats *stats
        cdef int place
        self._check_open()
        stats = zn_engine_stats(self.engine)
        counts = {}
        for name in names:
            place = STAT_PLACES[name]
            counts[name] = stats.n[place]
        return counts

    @property
    def view_stats(self):
        """Returns the packet counters of each view; all other counters are zero."""
        cdef const zn_stats *stats
        self._check_open()
        listed = []
        for view in range(self.views):
            stats = zn_engine_view_stats(self.engine, view)
            listed.append({STAT_INFO[i][0]: stats.n[i] for i in range(<int>ZN_STAT_COUNT)})
        return listed

    @property
    def table_stats(self):
        """The z-table's counters."""
        self._check_open()
        return zn_engine_table_stats(self.engine)

    @property
    def level_stats(self):
        """The counts of the levels of generalization; None without levels.

        levels: for each level from 0 on, the exposures `published`, those of them published by a
        peek (`peeks`), the votes `withdrawn` and `evicted`, and the `labels` and `votes` alive.
        """
        cdef zn_level_report report
        self._check_open()
        if not zn_engine_levels(self.engine, &report):
            return None
        names = ("paused", "lacked_capacity", "smallest", "median", "ignored_categories")
        values = (report.paused, report.lacked_capacity, report.smallest, report.median,
                  report.ignored_categories)
        levels = [{"published": report.level[i].published, "peeks": report.level[i].peeks,
                   "withdrawn": report.level[i].withdrawn, "evicted": report.level[i].evicted,
                   "labels": report.level[i].labels, "votes": report.level[i].votes}
                  for i in range(report.count + 1)]
        return {"levels": levels, **dict(zip(names, values))}

    @property
    def attribute_stats(self):
        """The counts of each attribute besides names, by its word; None without attributes."""
        cdef zn_attribute_counts counts
        self._check_open()
        found = {}
        for word, bit in ATTRIBUTES.items():
            if zn_engine_attributes(self.engine, bit.bit_length() - 1, &counts):
                found[word] = {"observations": counts.observations, "released": counts.released,
                               "suppressed": counts.suppressed, "malformed": counts.malformed}
        return found or None

    @property
    def users(self):
        """Distinct users seen; a lower bound once their set is full."""
        cdef c_bool saturated
        self._check_open()
        return zn_engine_users(self.engine, &saturated)

    @property
    def time_range_ns(self):
        """(first, last) packet time in ns since the Unix epoch, or None."""
        cdef int64_t first, last
        self._check_open()
        return (first, last) if zn_engine_time_range(self.engine, &first, &last) else None

    @property
    def key_scope(self):
        """The settings that keys depend on, other than z, window and rotation, as a line."""
        self._check_open()
        return span_bytes(zn_engine_key_scope(self.engine)).decode("ascii")

    @property
    def networks_left_out(self):
        """Internal networks whose prefix is too long for pseudonyms to keep."""
        self._check_open()
        return zn_engine_networks_left_out(self.engine)

    @property
    def pseudonym_id(self):
        """16 hexadecimal digits, equal for outputs with the same pseudonyms; None without a key
        file."""
        cdef uint8_t id[8]
        self._check_open()
        if not zn_engine_pseudonym_id(self.engine, id):
            return None
        return PyBytes_FromStringAndSize(<const char *>id, sizeof(id)).hex()

    @property
    def packet_blocks(self):
        """The blocks that addresses of packets lie in, as a JSON list; empty without packets."""
        cdef zn_text text
        self._check_open()
        memset(&text, 0, sizeof(text))
        try:
            zn_engine_packet_blocks(self.engine, &text)
            if text.failed:
                raise MemoryError
            return b"" if text.n == 0 else PyBytes_FromStringAndSize(text.bytes, text.n)
        finally:
            zn_text_fini(&text)

    @property
    def count_probe(self):
        """(session of the probe, digest of its settings), as vote messages have them."""
        cdef uint64_t probe, settings
        self._check_open()
        probe = zn_engine_count_probe(self.engine, &settings)
        return probe, settings

    def count_begin(self, unsigned shards):
        """Sets the counter's number of shards, before the first frame. Raises ConfigError."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            check(zn_engine_count_begin(self.engine, shards, &err), &err)
        finally:
            self.guard.leave()

    def count_cut(self):
        """Makes messages although none are due, so that the counter can decide all queries."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            check(zn_engine_count_cut(self.engine, &err), &err)
        finally:
            self.guard.leave()

    def count_hold(self, int64_t hold_ns):
        """Sets the wait for answers in ns of packet time, in place of count_hold_ns."""
        self._enter()
        zn_engine_count_hold(self.engine, hold_ns)
        self.guard.leave()

    def count_messages(self):
        """Takes the vote messages that are ready."""
        cdef zn_span ready
        cdef size_t at = 0
        cdef uint32_t n
        messages = []
        self._enter()
        try:
            ready = zn_engine_count_messages(self.engine)
            while at < ready.n:
                n = (ready.p[at] | <uint32_t>ready.p[at + 1] << 8
                     | <uint32_t>ready.p[at + 2] << 16 | <uint32_t>ready.p[at + 3] << 24)
                messages.append(PyBytes_FromStringAndSize(<const char *>ready.p + at + 4, n))
                at += 4 + n
            zn_engine_count_sent(self.engine)
        finally:
            self.guard.leave()
        return messages

    @staticmethod
    def count_rows_of(bytes block not None):
        """Returns the rows that follow a message in count_messages(), with count_rows: for each
        vote its line, or None."""
        cdef size_t at = 0, n
        cdef const uint8_t *p = <const uint8_t *><const char *>block
        rows = []
        while at + 2 <= <size_t>len(block):
            n = p[at] | <size_t>p[at + 1] << 8
            rows.append(block[at + 2:at + 2 + n] if n != 0 else None)
            at += 2 + n
        return rows

    def count_answer(self, bytes message not None):
        """Takes an answer message; flush carries out its decisions. Raises FormatError."""
        cdef zn_error err
        cdef zn_span span
        span.p = <const uint8_t *><const char *>message
        span.n = len(message)
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            check(zn_engine_count_answer(self.engine, span, &err), &err)
        finally:
            self.guard.leave()

    def count_mute(self, bint muted):
        """Sets whether votes are suppressed before they are sent. Client addresses are sent all the
        same."""
        self._enter()
        zn_engine_count_mute(self.engine, muted)
        self.guard.leave()

    def count_abandon(self):
        """Drops all messages without an answer, and suppresses the votes and records that wait for
        them in the next flush.

        The probe continues as a new session, the one of count_probe, unless it has ended.
        """
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            check(zn_engine_count_abandon(self.engine, &err), &err)
        finally:
            self.guard.leave()

    @property
    def count_waiting(self):
        """The number of votes, queries and records that wait for answers."""
        self._check_open()
        return zn_engine_count_waiting(self.engine)

    @property
    def must_wait(self):
        """True if answers are missing for so long, or for so much, that no more should be fed."""
        self._check_open()
        return bool(zn_engine_must_wait(self.engine))

    def suppress_waiting(self, bint all):
        """Suppresses votes and records that wait for answers longer than allowed, or all of them.
        True: drain, and call flush."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_engine_suppress_waiting(self.engine, all, &err)
        self.guard.leave()
        check(rc, &err)
        return rc > 0

    @property
    def hold_bytes_max(self):
        """The most bytes that waiting packets took."""
        self._check_open()
        return zn_engine_hold_bytes_max(self.engine)

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        self._check_open()
        return zn_engine_memory(self.engine)

    @property
    def flow_memory(self):
        """(flows in the table, bytes that the table takes for them)."""
        cdef uint32_t live
        cdef size_t used
        self._check_open()
        used = zn_engine_flow_memory(self.engine, &live)
        return live, used

    @property
    def table_memory_bytes(self):
        """Bytes of memory that the z-table takes."""
        self._check_open()
        return zn_engine_table_memory(self.engine)

    @property
    def flow_bytes_max(self):
        """Bytes that the flow table takes when it is full."""
        self._check_open()
        return zn_engine_flow_memory_max(self.engine)

    def check(self):
        """Raises AssertionError if an invariant is broken. Slow: for tests."""
        cdef const char *broken
        self._check_open()
        broken = zn_engine_check(self.engine)
        if broken != NULL:
            raise AssertionError(broken.decode())
