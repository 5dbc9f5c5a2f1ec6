# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Captures: csrc/capture/capture.h, with the filter in front of the engine.

cdef class Capture:
    """A pcap, pcapng or snoop capture: a file by path, a stream by descriptor, or bytes.

    start: bytes that were already read from the stream. unpacked: true if the stream is an unpacked
    file.
    """

    cdef zn_source source
    cdef object data
    cdef _Guard guard

    def __init__(self, path=None, *, int fd=-1, bytes start=b"", bytes data=None, str name="",
                 str filter="", bint unpacked=False):
        cdef zn_error err
        cdef zn_span read_before
        cdef const char *text
        cdef const uint8_t *content
        cdef size_t n
        cdef int rc
        if self.source.capture != NULL:
            raise RuntimeError("a capture cannot be opened twice")
        self.guard = _Guard()
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
        if unpacked:
            zn_capture_set_unpacked(self.source.capture)

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

    cdef int _enter(self) except -1:
        self._check_open()
        self.guard.enter()
        return 0

    def close(self):
        """Closes the capture. A second call does nothing."""
        if self.source.capture != NULL:
            self.guard.enter()
            self._close()
            self.guard.leave()

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        self.close()

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
        """Bytes in all; 0 if unknown."""
        self._check_open()
        return zn_capture_bytes_total(self.source.capture)

    @property
    def warning(self):
        """The reason why the capture ended early, or None."""
        cdef const char *text
        self._check_open()
        text = zn_capture_warning(self.source.capture)
        return None if text == NULL else text.decode("utf-8", "replace")

    @property
    def saw_end(self):
        """True if the end of the source was read without a damaged record before it."""
        self._check_open()
        return bool(zn_capture_saw_end(self.source.capture))

    @property
    def link_types(self):
        """Returns the number of frames run so far by link type."""
        return {self.source.link_type[i]: self.source.link_frames[i]
                for i in range(self.source.links)}

    def peek_ns(self):
        """Returns the time of the next frame without consuming it; None at the end."""
        cdef zn_error err
        cdef int64_t t_ns
        cdef int n
        memset(&err, 0, sizeof(err))
        while True:
            self._enter()
            with nogil:
                n = zn_capture_peek(self.source.capture, &t_ns, &err)
            self.guard.leave()
            if not interrupted(n, &err):
                break
        check(n, &err)
        return t_ns if n else None

    def read(self, int most):
        """Returns up to `most` next frames that pass the filter, and no frames at the end.

        The result is (bytes back to back, int64 times in ns, uint32 captured lengths, uint32 wire
        lengths, uint32 link types).
        """
        cdef zn_error err
        cdef zn_frame frame[64]
        cdef int n
        cdef Py_ssize_t count = 0
        cdef int64_t[::1] t_ns
        cdef uint32_t[:, ::1] facts
        np = numpy()
        times, numbers = np.empty(most, dtype=np.int64), np.empty((3, most), dtype=np.uint32)
        t_ns, facts = times, numbers
        data = bytearray()
        memset(&err, 0, sizeof(err))
        while count < most:
            self._enter()
            with nogil:
                n = zn_capture_next(self.source.capture, frame, min(most - count, 64), &err)
            self.guard.leave()
            if interrupted(n, &err):
                continue
            check(n, &err)
            if n == 0:
                break
            for i in range(n):
                if self.source.filter != NULL and not zn_filter_pass(self.source.filter, &frame[i]):
                    continue
                data += (<const char *>frame[i].data)[:frame[i].captured]
                t_ns[count] = frame[i].t_ns
                facts[0, count], facts[1, count] = frame[i].captured, frame[i].wire
                facts[2, count] = frame[i].link_type
                count += 1
        return (bytes(data), times[:count], *(row[:count] for row in numbers))

    def frames(self, int max):
        """Returns up to `max` next frames that pass as (t_ns, wire length, link type, bytes), for
        tests."""
        cdef zn_error err
        cdef zn_frame frame[64]
        cdef int n
        memset(&err, 0, sizeof(err))
        max = min(max, 64)
        passed = []
        while not passed:
            self._enter()
            with nogil:
                n = zn_capture_next(self.source.capture, frame, max, &err)
            self.guard.leave()
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
