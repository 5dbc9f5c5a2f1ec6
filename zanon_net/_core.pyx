# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled core: thin handles over csrc/. No parsing, no policy, no loop over packets."""

import ipaddress
import os
from collections import namedtuple

from cpython.buffer cimport PyBuffer_FillInfo
from cpython.exc cimport PyErr_CheckSignals
from cpython.number cimport PyNumber_Index
from libc.errno cimport EINTR
from cpython.bytes cimport PyBytes_FromStringAndSize
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy, memset

from zanon_net.errors import CapacityError, CaptureError, ConfigError, FormatError, ZanonError

OUTPUTS = ("log_tcp_complete", "log_tcp_nocomplete", "log_udp_complete", "jsonl", "observations",
           "csv")
ROWS = ("record_rows", "observation_rows")
TABLES = ("tcp_table", "udp_table")
FULL_ROWS = ZN_OUTPUTS_ROWS
cdef enum:
    TEXTS = 8
ALL_TEXTS = OUTPUTS + ROWS
assert len(ALL_TEXTS) == TEXTS and TEXTS == <int>ZN_OUTPUT_TEXTS
assert len(ALL_TEXTS) + len(TABLES) == <int>ZN_OUTPUTS
FIELD_TYPES = ("bool", "uint8", "uint16", "uint32", "uint64", "int64", "ms", "s", "time", "text")
SETS = {"core": 0, "e2e": 1, "layer7": 2, "p2p": 4, "options": 8}
PARSE_STATES = ("done", "need_more", "malformed", "other")
HOST_KINDS = ("name", "home", "address", "empty", "invalid")
QUIC_TYPES = ("initial", "0-rtt", "handshake", "retry", "negotiation", "foreign")
STREAM_RESULTS = ("grew", "stored", "nothing", "conflict", "outside")
ROW_FORMATS = ("auto", "csv", "jsonl")
TIME_UNITS = ("s", "ms", "us", "ns", "iso")
ClosedWindow = namedtuple("ClosedWindow", "start_ns end_ns whole users bins")
DECISIONS = ("release", "below_z", "too_late", "late_deep", "no_room")


cdef list describe_stats():
    cdef const zn_stat_info *info
    entries = []
    for i in range(<int>ZN_STAT_COUNT):
        info = zn_stat_describe(i)
        entries.append((info.name.decode().lower(), info.group.decode(), info.text.decode()))
    return entries


STAT_INFO = describe_stats()
STAGES = tuple(zn_stage_name(<zn_stage>stage).decode() for stage in range(<int>ZN_STAGE_COUNT))
ROW_FAULTS = {
    zn_row_fault_name(<zn_row_fault>fault).decode().lower():
        zn_row_fault_text(<zn_row_fault>fault).decode()
    for fault in range(1, <int>ZN_FAULT_COUNT)
}


cdef int check(int rc, zn_error *err) except -1:
    """Raises the class of a C error with C's own message."""
    if rc >= 0:
        return 0
    message = err.msg.decode("utf-8", "replace")
    if err.code == ZN_ERR_CONFIG:
        raise ConfigError(message)
    if err.code == ZN_ERR_IO:
        raise CaptureError(err.os_errno, message)
    if err.code == ZN_ERR_FORMAT:
        raise FormatError(message)
    if err.code == ZN_ERR_CAPACITY:
        raise CapacityError(message)
    raise ZanonError(message)


cdef bint interrupted(int rc, const zn_error *err) except -1:
    """A signal came while a stream was waited for: runs its handler, which may raise."""
    if rc != -ZN_ERR_IO or err.os_errno != EINTR:
        return False
    PyErr_CheckSignals()
    return True


cdef class _Guard:
    """Refuses a second call into an object that is at work in another thread."""

    cdef bint busy

    cdef int enter(self) except -1:
        if self.busy:
            raise RuntimeError("this object is in use by another thread")
        self.busy = True
        return 0

    cdef void leave(self) noexcept:
        self.busy = False


cdef class Capture:
    """A pcap, pcapng or snoop capture: a file by path, a stream by descriptor (of which `start` was
    read already), or bytes."""

    cdef zn_source source
    cdef object data

    def __init__(self, path=None, *, int fd=-1, bytes start=b"", bytes data=None, str name="",
                 str filter=""):
        cdef zn_error err
        cdef zn_span read_before
        cdef const char *text
        cdef const uint8_t *content
        cdef size_t n
        cdef int rc
        if self.source.capture != NULL:
            raise RuntimeError("a capture cannot be opened twice")
        memset(&err, 0, sizeof(err))
        if filter:
            expression = filter.encode()
            text = expression
            check(zn_filter_open(&self.source.filter, text, &err), &err)
        if data is not None:
            self.data = data
            content = data
            n = len(data)
            rc = zn_capture_open_memory(&self.source.capture, content, n, &err)
        elif path is not None:
            encoded = os.fsencode(path)
            text = encoded
            with nogil:
                rc = zn_capture_open_path(&self.source.capture, text, &err)
        else:
            if len(start) > 65536:
                raise ValueError("at most 64 KiB can have been read before")
            encoded = os.fsencode(name)
            text = encoded
            read_before.p = start
            read_before.n = len(start)
            with nogil:
                rc = zn_capture_open_fd(&self.source.capture, fd, read_before, text, &err)
        while interrupted(rc, &err) and self.source.capture != NULL:
            memset(&err, 0, sizeof(err))
            with nogil:
                rc = zn_capture_open_again(&self.source.capture, &err)
        check(rc, &err)

    def __dealloc__(self):
        self._close()

    cdef void _close(self) noexcept:
        if self.source.capture != NULL:
            zn_capture_close(self.source.capture)
        if self.source.filter != NULL:
            zn_filter_close(self.source.filter)
        self.source.capture = NULL
        self.source.filter = NULL

    cdef int _check_open(self) except -1:
        if self.source.capture == NULL:
            raise ValueError("the capture is closed")
        return 0

    def close(self):
        """Closes the capture; again is fine."""
        self._close()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self._close()

    @property
    def format(self):
        """"pcap", "pcapng" or "snoop"."""
        self._check_open()
        return zn_capture_format(self.source.capture).decode()

    @property
    def bytes_read(self):
        """Bytes consumed so far."""
        self._check_open()
        return zn_capture_bytes_read(self.source.capture)

    @property
    def bytes_total(self):
        """Bytes in all, 0 when unknown."""
        self._check_open()
        return zn_capture_bytes_total(self.source.capture)

    @property
    def warning(self):
        """Why the capture ended early, or None."""
        cdef const char *text
        self._check_open()
        text = zn_capture_warning(self.source.capture)
        return None if text == NULL else text.decode("utf-8", "replace")

    @property
    def link_types(self):
        """Frames run so far by link type."""
        return {self.source.link_type[i]: self.source.link_frames[i]
                for i in range(self.source.links)}

    def peek_ns(self):
        """The time of the next frame, which stays the next one; None at the end."""
        cdef zn_error err
        cdef int64_t t_ns
        cdef int n
        self._check_open()
        memset(&err, 0, sizeof(err))
        with nogil:
            n = zn_capture_peek(self.source.capture, &t_ns, &err)
        check(n, &err)
        return t_ns if n else None

    def frames(self, int max):
        """Up to `max` next frames that pass as (t_ns, wire length, link type, bytes), for tests."""
        cdef zn_error err
        cdef zn_frame frame[64]
        cdef int n
        self._check_open()
        memset(&err, 0, sizeof(err))
        max = min(max, 64)
        passed = []
        while not passed:
            with nogil:
                n = zn_capture_next(self.source.capture, frame, max, &err)
            if interrupted(n, &err):
                continue
            check(n, &err)
            if n == 0:
                break
            passed = [
                (frame[i].t_ns, frame[i].wire, frame[i].link_type,
                 PyBytes_FromStringAndSize(<const char *>frame[i].data, frame[i].captured))
                for i in range(n)
                if self.source.filter == NULL or zn_filter_pass(self.source.filter, &frame[i])
            ]
        return passed


cdef class _Lists:
    """C arrays of the networks and suffixes an engine copies when it opens."""

    cdef zn_net *nets
    cdef zn_span *spans
    cdef object kept

    def __cinit__(self, internal, never):
        nets = [] if internal is None else list(internal)
        self.kept = [bytes(suffix) for suffix in never]
        self.nets = <zn_net *>malloc((len(nets) + 1) * sizeof(zn_net))
        self.spans = <zn_span *>malloc((len(self.kept) + 1) * sizeof(zn_span))
        if self.nets == NULL or self.spans == NULL:
            raise MemoryError
        for i, (prefix, bits) in enumerate(nets):
            if len(prefix) != 16 or not 0 <= bits <= 128:
                raise ValueError("a network is 16 bytes and 0 to 128 bits")
            memcpy(self.nets[i].prefix.byte, <const char *><bytes>prefix, 16)
            self.nets[i].bits = bits
        for i, suffix in enumerate(self.kept):
            self.spans[i].p = <const uint8_t *><const char *><bytes>suffix
            self.spans[i].n = len(suffix)

    def __dealloc__(self):
        free(self.nets)
        free(self.spans)


cdef object closed_window(const zn_popularity_window *w):
    """A ClosedWindow without the empty bins behind the last."""
    cdef int used = ZN_ZTABLE_BINS
    while used > 0 and w.bins[used - 1] == 0:
        used -= 1
    bins = tuple([w.bins[j] for j in range(used)])
    return ClosedWindow(w.start_ns, w.end_ns, bool(w.whole), w.users, bins)


cdef class _Lent:
    """Memory that was taken from an engine, as bytes that may only be read."""

    cdef void *bytes  # NULL: it was given back
    cdef size_t size
    cdef int exports

    def __getbuffer__(self, Py_buffer *buffer, int flags):
        if self.bytes == NULL:
            raise BufferError("this memory was given back")
        PyBuffer_FillInfo(buffer, self, self.bytes, self.size, 1, flags)
        self.exports += 1

    def __releasebuffer__(self, Py_buffer *buffer):
        self.exports -= 1


cdef class _Rows(_Lent):
    """The rows of a table."""

    cdef zn_table_block block

    cdef void take(self, zn_table *table):
        self.block = zn_table_take(table)
        self.bytes, self.size = self.block.bytes, self.block.size

    cdef void give(self, zn_table *table):
        zn_table_give(table, self.block)
        self.bytes = self.block.bytes = NULL

    def __dealloc__(self):
        zn_table_block_free(self.block)


cdef class _Lines(_Lent):
    """A text."""

    cdef zn_text text

    cdef void take(self, zn_text *text):
        self.text = text[0]
        self.bytes, self.size = self.text.bytes, self.text.n
        memset(text, 0, sizeof(text[0]))

    cdef void give(self, zn_text *text):
        text[0] = self.text
        text.n = 0
        self.bytes = self.text.bytes = NULL

    def __dealloc__(self):
        zn_text_fini(&self.text)


cdef class Engine:
    """The whole packet path; belongs to one thread at a time."""

    cdef zn_engine *engine
    cdef _Guard guard
    # Of each table and each text, what was drained last: reused when nobody reads it any more.
    cdef list lent
    cdef list lent_texts

    def __init__(self, *, z, window_ns, rotate_ns, established, dns_votes, internal, never,
                 user_prefix, key_file, keep_client_port, dn_hunter, exact, outputs, split_ns, columns, max_flows,
                 max_tuples, max_attributes, z_max=0, popularity=False, workers=1):
        cdef zn_engine_config config
        cdef zn_error err
        cdef _Lists lists = _Lists(internal, never)
        if self.engine != NULL:
            raise RuntimeError("an engine cannot be opened twice")
        self.guard = _Guard()
        self.lent = [None] * len(TABLES)
        self.lent_texts = [None] * TEXTS
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        config.z = z
        config.window_ns = window_ns
        config.rotate_ns = rotate_ns
        config.established = established
        config.dns_votes = dns_votes
        config.exact = exact
        config.keep_client_port = keep_client_port
        config.dn_hunter = dn_hunter
        for name in columns:
            config.sets |= SETS[name]
        for output in outputs:
            config.outputs |= 1 << (*ALL_TEXTS, *TABLES).index(output)
        config.split_ns = split_ns
        if internal is not None:
            config.internal = lists.nets
            config.internal_count = len(internal)
        config.never = lists.spans
        config.never_count = len(lists.kept)
        config.user_v4_bits, config.user_v6_bits = user_prefix
        encoded = None if key_file is None else os.fsencode(key_file)
        if encoded is not None:
            config.key_file = encoded
        config.max_flows = max_flows
        config.max_tuples = max_tuples
        config.max_attributes = max_attributes
        config.z_max = z_max
        config.popularity = popularity
        config.workers = workers
        check(zn_engine_open(&self.engine, &config, &err), &err)

    def __dealloc__(self):
        zn_engine_close(self.engine)

    cdef int _enter(self) except -1:
        if self.engine == NULL:
            raise ValueError("the engine is closed")
        self.guard.enter()
        self._take_back()
        return 0

    cdef void _take_back(self):
        cdef _Rows rows
        cdef _Lines lines
        cdef zn_text *text
        for i in range(len(TABLES)):
            rows = self.lent[i]
            if rows is not None and rows.exports == 0:
                rows.give(&zn_engine_outputs(self.engine).table[<int>i])
                self.lent[i] = None
        for j in range(TEXTS):
            lines = self.lent_texts[j]
            if lines is not None and lines.exports == 0:
                text = &zn_engine_outputs(self.engine).text[<int>j]
                if text.bytes == NULL:
                    lines.give(text)
                self.lent_texts[j] = None

    def close(self):
        """Wipes and frees everything; again is fine."""
        if self.engine != NULL:
            self.guard.enter()
            zn_engine_close(self.engine)
            self.engine = NULL
            self.guard.leave()

    def run(self, Capture capture not None, int max_frames):
        """Takes up to max_frames from the capture; how many, 0 at its end."""
        cdef zn_error err
        cdef int n
        capture._check_open()
        memset(&err, 0, sizeof(err))
        self._enter()
        try:
            while True:
                with nogil:
                    n = zn_engine_run(self.engine, &capture.source, max_frames, &err)
                if not interrupted(n, &err):
                    break
        finally:
            self.guard.leave()
        check(n, &err)
        return n

    def feed(self, const uint8_t[::1] buffer, const int64_t[::1] ts_ns, const uint32_t[::1] caplen,
             const uint32_t[::1] wirelen, uint32_t linktype):
        """Takes n frames that lie back to back in buffer; arrays of length n."""
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
        """No packet came for quiet_ns: closes the flows that have been idle for too long. True: drain,
        and call settle."""
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
        """End of input: closes every flow and puts its record out. True: drain, and call again."""
        return self._settle(True)

    def settle(self):
        """Puts out records that wait. True: drain, and call again."""
        return self._settle(False)

    cdef bint _settle(self, bint finish) except -1:
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            if finish:
                rc = zn_engine_finish(self.engine, &err)
            else:
                rc = zn_engine_settle(self.engine, &err)
        self.guard.leave()
        check(rc, &err)
        return rc > 0

    @property
    def waiting(self):
        """Whether records wait for the outputs to be drained."""
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

    def window_counts(self):
        """The distinct users of each name in that window, in no order."""
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

    def take(self, str output):
        """The text that is ready for an output, whatever its period, which is then empty."""
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

    cdef object _lend(self, int output):
        """The text of an output, of which the engine forgets it."""
        cdef _Lines lines = _Lines()
        lines.take(&zn_engine_outputs(self.engine).text[output])
        self.lent_texts[output] = lines
        return memoryview(lines)

    def drain(self, *, size_t rows=0):
        """Everything that is ready, which is then gone: ([(start of the period in ns, or None where
        the last one goes on; {output: (text, its lines)}; {table: rows up to here}), ...],
        {table: columns}).

        rows: a table is left for later when it has fewer, unless a period ended in it.
        """
        cdef zn_outputs *out
        cdef size_t start[TEXTS]
        cdef size_t counted[TEXTS]
        cdef size_t end, lines
        self._enter()
        try:
            out = zn_engine_outputs(self.engine)
            memset(start, 0, sizeof(start))
            memset(counted, 0, sizeof(counted))
            ends_of_texts = [out.text[j].n for j in range(TEXTS)]
            views = [self._lend(j) if ends_of_texts[j] else None for j in range(TEXTS)]
            taken = [i for i in range(len(TABLES)) if out.table[<int>i].rows != 0
                     and (out.table[<int>i].rows >= rows or out.mark_count != 0)]
            parts = []
            period = None
            for i in range(out.mark_count + 1):
                texts = {}
                for j in range(TEXTS):
                    end = out.marks[i].at[j] if i < out.mark_count else ends_of_texts[j]
                    lines = out.marks[i].lines[j] if i < out.mark_count else out.lines[j]
                    if end > start[j]:
                        texts[ALL_TEXTS[j]] = (views[j][start[j]:end], lines - counted[j])
                        start[j], counted[j] = end, lines
                ends = {TABLES[j]: out.marks[i].rows[<int>j] if i < out.mark_count
                        else out.table[<int>j].rows for j in taken}
                parts.append((period, texts, ends))
                period = out.marks[i].period_ns if i < out.mark_count else None
            tables = {TABLES[i]: self._columns(<int>i, &out.table[<int>i]) for i in taken}
            zn_outputs_clear(out)
            return parts, tables
        finally:
            self.guard.leave()

    cdef list _columns(self, int which, zn_table *table):
        cdef zn_dictionary *words
        cdef uint8_t *values
        cdef const uint8_t *valid
        cdef size_t bits = (table.rows + 7) // 8
        cdef _Rows rows = _Rows()
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_table_end(table, &err), &err)
        places = []
        for i in range(table.fields.n):
            values = table.in_block.column[i].values
            valid = zn_table_valid(table, i)
            words = &table.dictionary[i]
            texts = None
            if table.fields.at[i].type == ZN_FIELD_TEXT:
                texts = (0, b"\0\0\0\0", b"")
                if words.n:
                    texts = (words.n,
                             PyBytes_FromStringAndSize(<char *>words.offsets, (words.n + 1) * 4),
                             PyBytes_FromStringAndSize(<char *>words.bytes, words.bytes_n))
            places.append((values - table.block.bytes,
                           table.rows * zn_table_width(table.fields.at[i].type) or bits,
                           None if valid == NULL else valid - table.block.bytes, texts))
        rows.take(table)
        self.lent[which] = rows
        view = memoryview(rows)
        return [
            (view[at:at + n], None if where is None else view[where:where + bits], texts)
            for at, n, where, texts in places
        ]

    def fields(self, str table):
        """(name, type, may be missing) of every column of a table; the types are FIELD_TYPES."""
        cdef zn_fields *fields
        self._check_open()
        fields = &zn_engine_outputs(self.engine).table[<int>TABLES.index(table)].fields
        return [(fields.at[i].name.decode(), FIELD_TYPES[<int>fields.at[i].type],
                 bool(fields.at[i].nullable)) for i in range(fields.n)]

    def header(self, str output):
        """The line that a file of a text output starts with; empty where there is none."""
        cdef zn_text text
        self._check_open()
        memset(&text, 0, sizeof(text))
        try:
            zn_outputs_header(zn_engine_outputs(self.engine),
                              <zn_output><int>OUTPUTS.index(output), &text)
            return b"" if text.n == 0 else PyBytes_FromStringAndSize(text.bytes, text.n)
        finally:
            zn_text_fini(&text)

    cdef int _check_open(self) except -1:
        if self.engine == NULL:
            raise ValueError("the engine is closed")
        return 0

    @property
    def stage(self):
        """The index in STAGES of what it is doing now; another thread may ask."""
        self._check_open()
        return <int>zn_engine_stage(self.engine)

    @property
    def stats(self):
        """Every counter by its name in STAT_INFO."""
        cdef const zn_stats *stats
        self._check_open()
        stats = zn_engine_stats(self.engine)
        return {STAT_INFO[i][0]: stats.n[i] for i in range(<int>ZN_STAT_COUNT)}

    @property
    def table_stats(self):
        """The z-table's counters."""
        self._check_open()
        return zn_engine_table_stats(self.engine)

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
    def memory_bytes(self):
        """Bytes of memory in use."""
        self._check_open()
        return zn_engine_memory(self.engine)

    @property
    def flow_memory(self):
        """(flows in the table, bytes that it takes for them)."""
        cdef uint32_t live
        cdef size_t used
        self._check_open()
        used = zn_engine_flow_memory(self.engine, &live)
        return live, used

    @property
    def flow_bytes_max(self):
        """Bytes that the flow table takes when it is full."""
        self._check_open()
        return zn_engine_flow_memory_max(self.engine)

    def check(self):
        """Raises AssertionError when an invariant is broken. Slow: for tests."""
        cdef const char *broken
        self._check_open()
        broken = zn_engine_check(self.engine)
        if broken != NULL:
            raise AssertionError(broken.decode())


def row_dtype(str output):
    """The NumPy type of a row of record_rows or observation_rows, as the core lays it out."""
    cdef size_t count, row_bytes
    cdef const zn_event_field *field
    if output == "record_rows":
        field = zn_event_record_fields(&count, &row_bytes)
    else:
        field = zn_event_observation_fields(&count, &row_bytes)
    return numpy().dtype({
        "names": [field[i].name.decode() for i in range(count)],
        "formats": [field[i].format.decode() for i in range(count)],
        "offsets": [field[i].offset for i in range(count)],
        "itemsize": row_bytes,
    })


cdef class Live:
    """Network interfaces, opened together and read as one stream in the order of time."""

    cdef zn_live_group *group
    cdef _Guard guard
    cdef tuple names

    def __init__(self, interfaces, *, str filter="", uint32_t snaplen=262144,
                 uint32_t ring_bytes=1 << 26, bint promiscuous=True, unsigned rings=1):
        cdef zn_live_config config
        cdef zn_error err
        if self.group != NULL:
            raise RuntimeError("interfaces cannot be opened twice")
        memset(&err, 0, sizeof(err))
        memset(&config, 0, sizeof(config))
        self.guard = _Guard()
        self.names = tuple(interfaces)
        check(zn_live_group_open(&self.group, &err), &err)
        expression = filter.encode()
        config.filter = expression
        config.snaplen = snaplen
        config.ring_bytes = ring_bytes
        config.promiscuous = promiscuous
        for name in self.names:
            encoded = os.fsencode(name)
            config.interface = encoded
            check(zn_live_group_add(self.group, &config, rings, &err), &err)

    def __dealloc__(self):
        zn_live_group_close(self.group)

    cdef int _enter(self) except -1:
        if self.group == NULL:
            raise ValueError("the interfaces are closed")
        return self.guard.enter()

    def close(self):
        """Closes the interfaces; again is fine."""
        if self.group != NULL:
            self.guard.enter()
            zn_live_group_close(self.group)
            self.group = NULL
            self.guard.leave()

    def run(self, Engine engine not None, int max_frames, int wait_ms):
        """Feeds up to max_frames to the engine, waiting up to wait_ms for the first; how many."""
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
        """The next frames, as Capture.frames has them, for tests."""
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
        """No frame enters a ring any more; those in it can still be read."""
        self._enter()
        zn_live_group_stop(self.group)
        self.guard.leave()

    @property
    def ended(self):
        """Whether every interface is gone."""
        self._enter()
        self.guard.leave()
        return zn_live_group_ended(self.group)

    def facts(self):
        """For each interface its name, link type, counters, and why it ended or None."""
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


cdef object numpy():
    """NumPy, from the first array on: importing it takes longer than all the rest together."""
    import numpy as np

    return np


cdef object straight(array):
    """The array, or a copy when it is not in one piece or not aligned."""
    return numpy().require(array, None, "CA")


cdef uint64_t hash_any(const zn_hash_key *key, value) except? 0:
    cdef bytes data = value.encode() if isinstance(value, str) else bytes(value)
    return zn_hash64(key, <const char *>data, len(data))


# Namespaces under the key: a number and the same bytes as text are different attributes.
cdef enum:
    DOMAIN_TEXT = 1
    DOMAIN_NUMBER = 2


cdef uint32_t KEEP_MAX = 0xffffffff


cdef object whole(name, value, low, high):
    """A whole number in its limits, or an error that names it."""
    if not hasattr(value, "__index__"):
        raise TypeError(f"{name} must be a whole number, not {type(value).__name__}")
    number = value.__index__()
    if not low <= number <= high:
        raise ConfigError(f"{name} is {number}: it must be {low} to {high}")
    return number


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


def caps_for_bytes(memory_bytes, keep=None):
    """The largest (max_tuples, max_attributes) with which a ZTable stays below `memory_bytes`.

    That holds for every input: hostile ones take all of it, usual ones a small part. keep: as in
    ZTable; what is kept of an attribute decides how much its users cost.

    Raises ConfigError when no table is that small, or keep is out of range.
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


cdef class ZTable:
    """Decides observations (time, user, attribute) by z-anonymity (Jha et al. 2022, Algorithm 1).

    An observation is released when at least z distinct users, the present one included, exposed
    the attribute within the last window. Users and attributes are bytes or str; they are held as
    hashes under a random key.

    z: threshold, 1 to 2**31. window_ns: the window in nanoseconds, up to ten years. keep: most
    recent distinct users kept per attribute, at least z; None keeps all. max_tuples,
    max_attributes: caps (caps_for_bytes has those for a memory size), at which the oldest go
    first; 2**24 and 2**22 where they are None. max_jump_ns: a larger step forward in time must be
    confirmed; None: off. rebase_after: refused observations in a row that prove the clock wrong.
    reserve: take all memory the caps allow now, for any input, so that no observation waits for
    the kernel later; the caps have to be given then. Otherwise memory grows with what is live.

    A table belongs to one thread at a time: observe_batch lets other threads run, and a call from
    one of those meanwhile raises RuntimeError. It can be neither pickled nor copied.

    Raises ConfigError (a ValueError) for values out of range, TypeError for what is no number,
    CapacityError when memory is out, or less is left than the caps would reserve.

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
    cdef _Guard guard

    def __cinit__(self, *arguments, **options):
        self.guard = _Guard()

    def __init__(self, z, window_ns, *, keep=None, max_tuples=None, max_attributes=None,
                 max_jump_ns=None, rebase_after=256, reserve=False):
        cdef zn_error err
        if self.table != NULL:
            raise RuntimeError("a table cannot be opened twice")
        memset(&err, 0, sizeof(err))
        z = whole("z", z, 1, ZN_ZTABLE_Z_MAX)
        window_ns = whole("window_ns", window_ns, 1, ZN_ZTABLE_WINDOW_MAX_NS)
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
                        "released, under a key that must not leave the process")

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
        """True when the observation may be released.

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
        released = zn_ztable_observe(self.table, &o) == ZN_RELEASE
        self.guard.leave()
        return released

    def observe_batch(self, t_ns, user, attribute):
        """Decides n observations in their order; a boolean array of length n.

        t_ns: int64[n], nanoseconds. user, attribute: uint64[n], any identifying numbers.
        Raises TypeError for another dtype, ValueError for another shape or a negative time.
        """
        np = numpy()
        for name, array, dtype in (("t_ns", t_ns, np.int64), ("user", user, np.uint64),
                                   ("attribute", attribute, np.uint64)):
            if not isinstance(array, np.ndarray) or array.dtype != dtype:
                raise TypeError(f"{name} must be an array of {np.dtype(dtype).name}")
            if array.ndim != 1 or len(array) != len(t_ns):
                raise ValueError(f"{name} must have one dimension and the length of t_ns")
        if len(t_ns) and t_ns.min() < 0:
            raise ValueError("t_ns holds a negative time")
        answers = np.empty(len(t_ns), dtype=np.uint8)
        self._batch(straight(t_ns), straight(user), straight(attribute), answers)
        return answers == ZN_RELEASE

    cdef int _batch(self, const int64_t[::1] t_ns, const uint64_t[::1] user,
                    const uint64_t[::1] attribute, uint8_t[::1] answers) except -1:
        cdef zn_columns columns
        cdef Py_ssize_t n = t_ns.shape[0]
        self._enter()
        if n != 0:
            columns.t_ns = &t_ns[0]
            columns.user = &user[0]
            columns.attribute = &attribute[0]
            columns.domain = DOMAIN_NUMBER
            with nogil:
                zn_ztable_observe_columns(self.table, &self.key, &columns, n, &answers[0])
        self.guard.leave()
        return 0

    def count(self, attribute):
        """Distinct users of an attribute (bytes, str, or a number as in observe_batch) in the
        window that ends at the newest time seen; saturates at keep."""
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
        """Distinct users of every attribute that has some, as count() has them, in no order."""
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
        """Changes z for what comes. Raises ConfigError when it is out of range or above keep."""
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
        self.guard.leave()

    def check(self):
        """Raises AssertionError when an invariant is broken. Slow: for tests."""
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
        """Counters since the table was made, and what is alive now.

        observations: each one is released, below_z (too few users), too_late (older than the
        window, or a refused jump), late_deep (late, and too many users since) or no_room. late:
        behind the clock, decided all the same. clock_jumps: times the clock proved wrong and the
        table was emptied. evicted: live entries thrown out at a cap. tuples, attributes: alive.
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


cdef class Sieve:
    """Rows of observations through the z-table (csrc/sieve.h); one thread at a time.

    Text arguments are UTF-8. columns: time, user, attribute, then those passed on as they are.
    """

    cdef zn_sieve *sieve
    cdef _Guard guard

    def __init__(self, *, z, window_ns, rotate_ns, key_file, max_tuples, max_attributes, with_user,
                 keep_suppressed, columns, format, to, unit, delimiter, header, strict,
                 popularity=False):
        cdef zn_sieve_config config
        cdef zn_error err
        cdef _Lists names = _Lists(None, [*columns, header])
        if self.sieve != NULL:
            raise RuntimeError("a sieve cannot be opened twice")
        if len(columns) > ZN_ROW_COLUMNS_MAX or len(delimiter) != 1:
            raise ValueError("too many columns, or a delimiter that is not one byte")
        self.guard = _Guard()
        memset(&config, 0, sizeof(config))
        memset(&err, 0, sizeof(err))
        config.gate.z = z
        config.gate.window_ns = window_ns
        config.gate.rotate_ns = rotate_ns
        encoded = None if key_file is None else os.fsencode(key_file)
        if encoded is not None:
            config.gate.key_file = encoded
        config.gate.max_tuples = max_tuples
        config.gate.max_attributes = max_attributes
        config.gate.with_user = with_user
        config.gate.keep_suppressed = keep_suppressed
        config.gate.popularity = popularity
        config.format = <zn_row_format><int>ROW_FORMATS.index(format)
        config.to = <zn_row_format><int>ROW_FORMATS.index(to)
        config.unit = <zn_time_unit><int>TIME_UNITS.index(unit)
        config.delimiter = delimiter[0]
        config.columns.count = len(columns)
        for i in range(len(columns)):
            config.columns.name[i] = names.spans[i]
        config.header = names.spans[len(columns)]
        config.strict = strict
        check(zn_sieve_open(&self.sieve, &config, &err), &err)

    def __dealloc__(self):
        zn_sieve_close(self.sieve)

    def __reduce__(self):
        raise TypeError("a sieve cannot be pickled: it holds exposures that were not released")

    cdef int _enter(self) except -1:
        if self.sieve == NULL:
            raise ValueError("the sieve is closed")
        return self.guard.enter()

    def close(self):
        """Wipes and frees everything; again is fine."""
        if self.sieve != NULL:
            self.guard.enter()
            zn_sieve_close(self.sieve)
            self.sieve = NULL
            self.guard.leave()

    def feed(self, bytes data not None):
        """Takes the next bytes of a source: ConfigError or FormatError where they do not fit."""
        cdef zn_error err
        cdef const uint8_t *start = data
        cdef size_t n = len(data)
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_sieve_feed(self.sieve, start, n, &err)
        self.guard.leave()
        check(rc, &err)

    def end(self):
        """The source has ended; another may follow. Raises as feed does."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        with nogil:
            rc = zn_sieve_end(self.sieve, &err)
        self.guard.leave()
        check(rc, &err)

    def finish(self):
        """No other source follows: closes the window that is being counted."""
        cdef zn_error err
        cdef int rc
        memset(&err, 0, sizeof(err))
        self._enter()
        rc = zn_sieve_finish(self.sieve, &err)
        self.guard.leave()
        check(rc, &err)

    def windows(self):
        """The windows that have ended, as ClosedWindows, which the sieve then forgets."""
        cdef zn_popularity *popularity
        self._enter()
        try:
            popularity = zn_sieve_popularity(self.sieve)
            closed = [closed_window(&popularity.kept[i]) for i in range(popularity.kept_count)]
            popularity.kept_count = 0
            return closed
        finally:
            self.guard.leave()

    def take(self):
        """What may be written, which the sieve then forgets."""
        cdef zn_text *text
        self._enter()
        try:
            text = zn_sieve_output(self.sieve)
            data = b"" if text.n == 0 else PyBytes_FromStringAndSize(text.bytes, text.n)
            text.n = 0
            return data
        finally:
            self.guard.leave()

    cdef int _check_open(self) except -1:
        if self.sieve == NULL:
            raise ValueError("the sieve is closed")
        return 0

    @property
    def stats(self):
        """Rows, observations, written, without_offset; rows dropped by the names of ROW_FAULTS."""
        cdef const zn_sieve_stats *stats
        self._check_open()
        stats = zn_sieve_get_stats(self.sieve)
        faults = {name: stats.faults[i] for i, name in enumerate(ROW_FAULTS, 1)}
        return {"rows": stats.rows, "observations": stats.observations, "written": stats.written,
                "without_offset": stats.without_offset, **faults}

    @property
    def first_fault(self):
        """(line, text) of the first row that could not be read, or None."""
        cdef const zn_sieve_stats *stats
        self._check_open()
        stats = zn_sieve_get_stats(self.sieve)
        if stats.first_fault == ZN_FAULT_GOOD:
            return None
        return stats.first_fault_line, zn_row_fault_text(stats.first_fault).decode()

    @property
    def time_range_ns(self):
        """(first, last) time of an observation in ns since the Unix epoch, or None."""
        cdef const zn_sieve_stats *stats
        self._check_open()
        stats = zn_sieve_get_stats(self.sieve)
        return (stats.first_ns, stats.last_ns) if stats.observations else None

    @property
    def table_stats(self):
        """The z-table's counters."""
        self._check_open()
        return zn_sieve_table_stats(self.sieve)

    @property
    def format(self):
        """"csv" or "jsonl"; "auto" while nothing says which."""
        self._check_open()
        return ROW_FORMATS[<int>zn_sieve_format(self.sieve)]

    @property
    def memory_bytes(self):
        """Bytes of memory in use."""
        self._check_open()
        return zn_sieve_memory(self.sieve)


def parse_time(bytes text not None, str unit):
    """(ns since the Unix epoch, whether it names an offset), or None."""
    cdef _Copy copy = _Copy(text)
    cdef zn_moment moment
    if not zn_moment_parse(copy.span, <zn_time_unit><int>TIME_UNITS.index(unit), &moment):
        return None
    return moment.t_ns, bool(moment.has_offset)


def format_time(int64_t t_ns, str unit):
    """t_ns >= 0 as text in the unit."""
    cdef zn_text text
    memset(&text, 0, sizeof(text))
    zn_moment_put(&text, t_ns, <zn_time_unit><int>TIME_UNITS.index(unit))
    try:
        return PyBytes_FromStringAndSize(text.bytes, text.n).decode("ascii")
    finally:
        zn_text_fini(&text)


cdef zn_addr addr_of(bytes packed) except *:
    cdef zn_addr addr
    cdef bytes mapped = packed if len(packed) == 16 else bytes(10) + b"\xff\xff" + packed
    memcpy(addr.byte, <const char *>mapped, 16)
    return addr


cdef object address_from(const zn_addr *addr):
    packed = PyBytes_FromStringAndSize(<const char *>addr.byte, 16)
    if packed[:12] == bytes(10) + b"\xff\xff":
        return ipaddress.IPv4Address(packed[12:])
    return ipaddress.IPv6Address(packed)


cdef class CryptoPan:
    """Prefix-preserving pseudonyms of IP addresses (Xu, Fan, Ammar, Moon 2002).

    key: 32 bytes; the first 16 are the AES key, the last 16 make the pad. IPv4 is encrypted over
    32 bits, IPv6 over 128. Raises ConfigError for a key of another length.
    """

    cdef zn_cryptopan *pan
    cdef _Guard guard

    def __init__(self, bytes key not None):
        cdef zn_error err
        if self.pan != NULL:
            raise RuntimeError("a key cannot be set twice")
        if len(key) != 32:
            raise ConfigError(f"a Crypto-PAn key has 32 bytes, this one {len(key)}")
        memset(&err, 0, sizeof(err))
        self.guard = _Guard()
        check(zn_cryptopan_open(&self.pan, <const uint8_t *><const char *>key, &err), &err)

    def __dealloc__(self):
        zn_cryptopan_close(self.pan)

    def __reduce__(self):
        raise TypeError("a CryptoPan cannot be pickled: it holds a key")

    def anonymize(self, address):
        """The pseudonym of an address (str, bytes of 4 or 16, or ipaddress), in the same type."""
        cdef zn_addr addr
        parsed = ipaddress.ip_address(address)
        addr = addr_of(parsed.packed)
        self.guard.enter()
        rc = zn_cryptopan_addrs(self.pan, &addr, &addr, 1)
        self.guard.leave()
        if rc != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        pseudonym = address_from(&addr)
        if parsed.version == 6 and pseudonym.version == 4:
            pseudonym = ipaddress.IPv6Address(b"\0" * 10 + b"\xff\xff" + pseudonym.packed)
        if isinstance(address, str):
            return str(pseudonym)
        return pseudonym.packed if isinstance(address, bytes) else pseudonym

    def anonymize_v4(self, addresses):
        """Pseudonyms of uint32[n] IPv4 addresses in host order."""
        np = numpy()
        if not isinstance(addresses, np.ndarray) or addresses.dtype != np.uint32:
            raise TypeError("addresses must be an array of uint32")
        if addresses.ndim != 1:
            raise ValueError("addresses must have one dimension")
        out = np.empty_like(addresses, order="C")
        self._v4(straight(addresses), out)
        return out

    cdef int _v4(self, const uint32_t[::1] source, uint32_t[::1] out) except -1:
        cdef size_t n = source.shape[0]
        cdef int rc = 0
        if n == 0:
            return 0
        self.guard.enter()
        with nogil:
            rc = zn_cryptopan_v4(self.pan, &source[0], &out[0], n)
        self.guard.leave()
        if rc != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        return 0

    def anonymize_v6(self, addresses):
        """Pseudonyms of uint8[n, 16] IPv6 addresses in network order."""
        np = numpy()
        if not isinstance(addresses, np.ndarray) or addresses.dtype != np.uint8:
            raise TypeError("addresses must be an array of uint8")
        if addresses.ndim != 2 or addresses.shape[1] != 16:
            raise ValueError("addresses must have the shape (n, 16)")
        out = np.empty_like(addresses, order="C")
        self._v6(np.ascontiguousarray(addresses), out)
        return out

    cdef int _v6(self, const uint8_t[:, ::1] source, uint8_t[:, ::1] out) except -1:
        cdef size_t n = source.shape[0]
        cdef int rc = 0
        if n == 0:
            return 0
        self.guard.enter()
        with nogil:
            rc = zn_cryptopan_v6(self.pan, &source[0, 0], &out[0, 0], n)
        self.guard.leave()
        if rc != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        return 0


cdef class Keys:
    """Epoch keys (crypto/keys), for tests and for checking a key file."""

    cdef zn_keys *keys

    def __init__(self, int64_t rotate_ns, key_file=None):
        cdef zn_error err
        cdef const char *path = NULL
        if self.keys != NULL:
            raise RuntimeError("keys cannot be opened twice")
        memset(&err, 0, sizeof(err))
        encoded = None if key_file is None else os.fsencode(key_file)
        if encoded is not None:
            path = encoded
        check(zn_keys_open(&self.keys, rotate_ns, path, &err), &err)

    def __dealloc__(self):
        zn_keys_close(self.keys)

    def epoch(self, int64_t t_ns):
        """The epoch that serves a time."""
        return zn_keys_epoch(self.keys, t_ns)

    def pseudonym(self, int64_t t_ns, str address):
        """(pseudonym, epoch) of an address at a time."""
        cdef zn_addr real = addr_of(ipaddress.ip_address(address).packed)
        cdef zn_addr out
        cdef int64_t epoch
        if zn_keys_pseudonym(self.keys, t_ns, &real, &out, &epoch) != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        return str(address_from(&out)), epoch

    def rebase(self, int64_t t_ns):
        """The packet clock was set back to t_ns."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_keys_rebase(self.keys, t_ns, &err), &err)

    def derive(self, bytes purpose not None, int64_t epoch, size_t n):
        """n (1 to 32) bytes for another purpose of an epoch."""
        cdef uint8_t out[32]
        if not 1 <= n <= 32 or zn_keys_derive(self.keys, purpose, epoch, out, n) != 0:
            raise ZanonError("nothing can be derived")
        return PyBytes_FromStringAndSize(<const char *>out, n)


cdef class Stream:
    """Ordered head bytes of one stream (state/stream), for tests."""

    cdef zn_stream_pool pool
    cdef uint32_t stream
    cdef uint32_t base

    def __init__(self, uint32_t base):
        cdef zn_error err
        if self.stream != 0:
            raise RuntimeError("a stream cannot be opened twice")
        memset(&err, 0, sizeof(err))
        check(zn_stream_pool_init(&self.pool, 1, &err), &err)
        self.stream = zn_stream_take(&self.pool)
        self.base = base

    def __dealloc__(self):
        zn_stream_pool_fini(&self.pool)

    def add(self, uint32_t seq, bytes data not None):
        """Places data at a sequence number; grew, stored, nothing, conflict or outside."""
        cdef _Copy copy = _Copy(data)
        return STREAM_RESULTS[zn_stream_add(&self.pool, self.stream, seq - self.base, copy.span)]

    def consume(self, uint32_t n):
        """Moves the base by n bytes."""
        zn_stream_consume(&self.pool, self.stream, n)
        self.base += n

    @property
    def first(self):
        """Where the first stored byte lies from the base."""
        return zn_stream_first(&self.pool, self.stream)

    @property
    def has_hole(self):
        """Whether bytes are stored behind missing ones."""
        return bool(zn_stream_has_hole(&self.pool, self.stream))

    def head(self):
        """The contiguous bytes from the base."""
        cdef zn_span head = zn_stream_head(&self.pool, self.stream)
        return PyBytes_FromStringAndSize(<const char *>head.p, head.n)


cdef class _Copy:
    """Input in a heap block of exactly its size: AddressSanitizer sees a read past a bytes object's
    content only there."""

    cdef zn_span span

    def __cinit__(self, bytes data not None):
        cdef uint8_t *block = <uint8_t *>malloc(len(data) if data else 1)
        if block == NULL:
            raise MemoryError
        memcpy(block, <const char *>data, len(data))
        self.span.p = block
        self.span.n = len(data)

    def __dealloc__(self):
        free(<void *>self.span.p)


cdef bytes span_bytes(zn_span span):
    return b"" if span.n == 0 else PyBytes_FromStringAndSize(<const char *>span.p, span.n)


def parse_tls(bytes data not None, *, bint cut=False):
    """(state, name as sent, ECH offered); state: done, need_more, malformed or other."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_tls_hello hello
    memset(&hello, 0, sizeof(hello))
    state = zn_tls_client_hello(copy.span, cut, &scratch, &hello)
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", False
    return "done", span_bytes(hello.name), bool(hello.ech_offered)


def parse_tls_details(bytes data not None):
    """(versions, protocol bits, session id?, PSK?, early data?, retry?) of a hello behind records."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_tls_details details
    cdef c_bool ended
    zn_tls_read_details(
        zn_tls_handshake_bytes(copy.span, scratch.bytes, sizeof(scratch.bytes), &ended), &details)
    versions = [details.version[i] for i in range(details.versions)]
    return (versions, details.protocols, bool(details.session_id), bool(details.pre_shared_key),
            bool(details.early_data), bool(details.retry))


def parse_certificate(bytes data not None):
    """(state, common name as sent) of the first certificate in a server's first records."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_span certificate, name
    cdef c_bool ended
    memset(&certificate, 0, sizeof(certificate))
    memset(&name, 0, sizeof(name))
    state = zn_tls_first_certificate(
        zn_tls_handshake_bytes(copy.span, scratch.bytes, sizeof(scratch.bytes), &ended),
        &certificate)
    if state == ZN_DONE:
        state = zn_x509_common_name(certificate, &name)
    return PARSE_STATES[state], span_bytes(name) if state == ZN_DONE else b""


def parse_hello(bytes data not None):
    """As parse_tls, of handshake messages without records, as QUIC carries them."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_hello hello
    state = zn_tls_bare_hello(copy.span, &hello)
    return PARSE_STATES[state], span_bytes(hello.name), bool(hello.ech_offered)


def parse_dtls(bytes data not None, *, bint whole=True):
    """(state, [(type, message number, length, offset, bytes), ...]) of a datagram's fragments in
    the clear; state: done when there are any and nothing contradicts them."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dtls_reader reader = zn_dtls_read(copy.span, whole)
    cdef zn_dtls_fragment part
    fragments = []
    state = zn_dtls_next_fragment(&reader, &part)
    while state == ZN_DONE:
        fragments.append((part.type, part.message, part.length, part.offset,
                          span_bytes(part.bytes)))
        state = zn_dtls_next_fragment(&reader, &part)
    if state == ZN_OTHER and fragments:
        state = ZN_DONE
    return PARSE_STATES[state], fragments


def parse_dtls_hello(bytes body not None, *, size_t declared=0):
    """(state, name as sent, ECH offered, cookie) of a ClientHello's body; declared: its length, where
    the capture cut it."""
    cdef _Copy copy = _Copy(body)
    cdef zn_tls_hello hello
    state = zn_tls_datagram_hello(copy.span, declared or copy.span.n, &hello)
    return (PARSE_STATES[state], span_bytes(hello.name), bool(hello.ech_offered),
            span_bytes(hello.cookie))


def parse_dtls_cookie(bytes body not None):
    """(state, cookie) of a HelloVerifyRequest's body."""
    cdef _Copy copy = _Copy(body)
    cdef zn_span cookie
    state = zn_dtls_verify_request(copy.span, &cookie)
    return PARSE_STATES[state], span_bytes(cookie) if state == ZN_DONE else b""


cdef class _Quic:
    """libcrypto's side of proto/quic: one for the module, used with the GIL held."""

    cdef zn_quic *quic
    cdef zn_quic_pieces *pieces

    def __cinit__(self):
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        self.pieces = <zn_quic_pieces *>malloc(sizeof(zn_quic_pieces))
        if self.pieces == NULL:
            raise MemoryError
        check(zn_quic_open(&self.quic, &err), &err)

    def __dealloc__(self):
        zn_quic_close(self.quic)
        free(self.pieces)

    cdef keys(self, uint32_t version, zn_span dcid, zn_quic_side side, zn_quic_keys *keys):
        if not zn_quic_derive(self.quic, version, dcid, side, keys):
            raise ValueError("QUIC keys of an unknown version, or of a longer connection ID")

    cdef list pieces_of(self, zn_span plain):
        if zn_quic_read_frames(plain, self.pieces) != ZN_DONE:
            return None
        return [(self.pieces.piece[i].offset, span_bytes(self.pieces.piece[i].bytes))
                for i in range(self.pieces.n)]


cdef _Quic quic_of_module = None


cdef _Quic shared_quic():
    global quic_of_module
    if quic_of_module is None:
        quic_of_module = _Quic()
    return quic_of_module


def quic_keys(uint32_t version, bytes dcid not None, *, bint server=False):
    """(key, iv, header key) of one side's Initials. Raises ValueError for a version not read."""
    cdef _Copy copy = _Copy(dcid)
    cdef zn_quic_keys keys
    shared_quic().keys(version, copy.span, ZN_QUIC_SERVER if server else ZN_QUIC_CLIENT, &keys)
    return (PyBytes_FromStringAndSize(<const char *>keys.key, 16),
            PyBytes_FromStringAndSize(<const char *>keys.iv, 12),
            PyBytes_FromStringAndSize(<const char *>keys.header_key, 16))


def seal_quic(uint32_t version, bytes dcid not None, bytes packet not None, size_t header, *,
              bint server=False):
    """The Initial `packet` as its sender protects it; `header` bytes stand before its number."""
    cdef zn_quic_keys keys
    cdef _Copy copy = _Copy(dcid)
    cdef bytearray sealed = bytearray(packet) + bytes(ZN_QUIC_TAG_BYTES)
    shared_quic().keys(version, copy.span, ZN_QUIC_SERVER if server else ZN_QUIC_CLIENT, &keys)
    if not zn_quic_seal(&keys, <uint8_t *><char *>sealed, header, len(packet)):
        raise ValueError("no Initial")
    return bytes(sealed)


def parse_quic_packets(bytes data not None, *, bint whole=True):
    """(state, [(type, version, destination ID, source ID), ...]) of a datagram's long headers; state
    is how the search for one more ended."""
    cdef _Copy copy = _Copy(data)
    cdef zn_cursor cursor = zn_cursor_over_span(copy.span, whole)
    cdef zn_quic_packet packet
    packets = []
    state = zn_quic_next_packet(&cursor, &packet)
    while state == ZN_DONE:
        packets.append((QUIC_TYPES[packet.type], packet.version, span_bytes(packet.dcid),
                        span_bytes(packet.scid)))
        state = zn_quic_next_packet(&cursor, &packet)
    return PARSE_STATES[state], packets


def parse_quic_frames(bytes plain not None):
    """(state, [(offset, bytes), ...]): the CRYPTO frames of an Initial's plaintext, by offset."""
    cdef _Copy copy = _Copy(plain)
    pieces = shared_quic().pieces_of(copy.span)
    return ("malformed", []) if pieces is None else ("done", pieces)


def parse_quic(bytes data not None, bytes first_dcid=None):
    """(state, version, destination ID, source ID, [(offset, bytes), ...]) of the client's Initials in a
    datagram.

    first_dcid: the ID that the keys come from; None: the Initial's own. state: done when an Initial
    opened; need_more when the datagram is cut; malformed when the frames of one that opened are;
    other when none opened.
    """
    cdef _Copy copy = _Copy(data)
    cdef _Copy key_id = None if first_dcid is None else _Copy(first_dcid)
    cdef zn_cursor cursor = zn_cursor_over_span(copy.span, False)
    cdef zn_quic_packet packet
    cdef zn_quic_keys keys
    cdef zn_span plain
    cdef _Quic quic = shared_quic()
    found = ("other", 0, b"", b"", [])
    state = zn_quic_next_packet(&cursor, &packet)
    while state == ZN_DONE:
        if packet.type == ZN_QUIC_INITIAL:
            quic.keys(packet.version, packet.dcid if key_id is None else key_id.span,
                      ZN_QUIC_CLIENT, &keys)
            opened = zn_quic_unseal(quic.quic, &keys, &packet, &plain)
            if opened == ZN_DONE:
                pieces = quic.pieces_of(plain)
                if pieces is None:
                    return "malformed", 0, b"", b"", []
                found = ("done", packet.version, span_bytes(packet.dcid), span_bytes(packet.scid),
                         found[4] + pieces)
            elif opened == ZN_NEED_MORE and found[0] == "other":
                found = ("need_more", 0, b"", b"", [])
        state = zn_quic_next_packet(&cursor, &packet)
    if found[0] == "other" and state != ZN_OTHER:
        return PARSE_STATES[state], 0, b"", b"", []
    return found


def parse_http(bytes data not None, *, bint cut=False):
    """(state, host as sent, method number, bytes of the head)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_http_request request
    memset(&request, 0, sizeof(request))
    state = ZN_OTHER
    if zn_http_looks_like_request(copy.span):
        state = zn_http_request_head(copy.span, cut, &request)
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", 0, 0
    return "done", span_bytes(request.host), request.method, request.head_bytes


cdef class HeaderTable:
    """The state of one HTTP/2 connection's header compression (proto/hpack), for tests."""

    cdef zn_hpack table

    def __cinit__(self):
        zn_hpack_start(&self.table)

    def decode(self, bytes block not None):
        """(state, [(name, value), ...]) of a header block."""
        cdef _Copy copy = _Copy(block)
        cdef zn_cursor cursor = zn_cursor_over_span(copy.span, True)
        cdef zn_hpack_scratch scratch
        cdef zn_hpack_field field
        fields = []
        while True:
            state = zn_hpack_next(&self.table, &cursor, &scratch, &field)
            if state != ZN_DONE:
                return "done" if state == ZN_OTHER else PARSE_STATES[state], fields
            fields.append((span_bytes(field.name), span_bytes(field.value)))

    def next_unit(self, bytes data not None):
        """(state, bytes used, whether it begins a request, its host, its method number)."""
        cdef _Copy copy = _Copy(data)
        cdef zn_h2_scratch scratch
        cdef zn_h2_unit unit
        state = zn_h2_next(copy.span, &self.table, &scratch, &unit)
        return (PARSE_STATES[state], unit.used, bool(unit.request), span_bytes(unit.host),
                unit.method)


def h2_preface(bytes data not None):
    """(state, bytes) of the client's preface at the start of data."""
    cdef _Copy copy = _Copy(data)
    cdef size_t used = 0
    state = zn_h2_preface(copy.span, &used)
    return PARSE_STATES[state], used if state == ZN_DONE else 0


def skip_preamble(bytes data not None):
    """Bytes of the preamble that data starts with; 0: none."""
    cdef _Copy copy = _Copy(data)
    cdef size_t used
    zn_preamble_skip(copy.span, &used)
    return used


def parse_dns(bytes data not None, *, bint whole=True):
    """(state, name, response?, id, type); malformed also when the name has no text form."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dns_question question
    memset(&question, 0, sizeof(question))
    state = zn_dns_question_parse(copy.span, whole, &question)
    if state == ZN_DONE and question.name_odd:
        state = ZN_MALFORMED
    if state != ZN_DONE:
        return PARSE_STATES[state], b"", False, 0, 0
    name = PyBytes_FromStringAndSize(<const char *>question.name, question.name_bytes)
    return "done", name, bool(question.response), question.id, question.type


def parse_dns_answers(bytes data not None, *, bint whole=True):
    """(state, addresses of the answers)."""
    cdef _Copy copy = _Copy(data)
    cdef zn_dns_addresses addresses
    state = zn_dns_read_addresses(copy.span, whole, &addresses)
    return PARSE_STATES[state], [str(address_from(&addresses.at[i])) for i in range(addresses.n)]


cdef list encapsulations_of(const zn_packet *p):
    names = (name for name, group, _ in STAT_INFO if group == "encapsulation")
    return [name for bit, name in enumerate(names) if p.encapsulations >> bit & 1]


def decode_packet(bytes data not None, uint32_t link_type, int64_t wire=-1, *, key=(0,) * 8):
    """The packet's fields, the fragment's fields, or the name of the counter that says why it was
    dropped. key: eight words, for the hash of the 5-tuple."""
    cdef _Copy copy = _Copy(data)
    cdef zn_packet_input source
    cdef zn_packet p
    cdef zn_tunnel tunnels[3]
    cdef zn_fragment f
    cdef zn_bucket_key words
    words.word = key
    memset(&p, 0, sizeof(p))
    p.tunnels = tunnels
    source.bytes = copy.span
    source.wire = len(data) if wire < 0 else wire
    source.link_type = link_type
    drop = zn_packet_decode(&source, &words, &p, &f)
    if drop == ZN_STAT_FRAGMENTS:
        return {
            "src": str(address_from(&f.src)), "dst": str(address_from(&f.dst)), "id": f.id,
            "offset": f.offset, "more": bool(f.more), "protocol": f.protocol,
            "bytes": span_bytes(f.bytes), "encapsulations": encapsulations_of(&p),
        }
    if drop != ZN_STAT_COUNT:
        return STAT_INFO[<int>drop][0]
    receiver = 1 - p.sender
    return {
        "src": str(address_from(&p.tuple.addr[p.sender])), "sport": p.tuple.port[p.sender],
        "dst": str(address_from(&p.tuple.addr[receiver])), "dport": p.tuple.port[receiver],
        "proto": p.tuple.proto, "ttl": p.ttl, "flags": p.tcp_flags, "seq": p.seq, "ack": p.ack,
        "window": p.window, "payload": span_bytes(p.payload), "payload_len": p.payload_len,
        "fragment": p.fragment, "hash": p.hash, "encapsulations": encapsulations_of(&p),
        "tunnels": [(str(address_from(&p.tunnels[i].end[0])), str(address_from(&p.tunnels[i].end[1])))
                    for i in range(p.tunnel_count)],
    }


def normalize_host(bytes name not None):
    """(kind, text): kind is name, home, address, empty or invalid."""
    cdef _Copy copy = _Copy(name)
    cdef zn_hostname host
    kind = zn_hostname_normalize(copy.span, &host)
    text = PyBytes_FromStringAndSize(<const char *>host.text, host.n)
    return HOST_KINDS[kind], text.decode("ascii")


def hash64(bytes key not None, bytes data not None):
    """SipHash-1-3 of data under a 16-byte key."""
    cdef zn_hash_key k
    if len(key) != 16:
        raise ValueError("a hash key has 16 bytes")
    memcpy(&k, <const char *>key, 16)
    return zn_hash64(&k, <const char *>data, len(data))


def fail_allocation(uint64_t n):
    """The n-th allocation from now on fails once; 0: none. For tests."""
    zn_alloc_fail_after(n)
