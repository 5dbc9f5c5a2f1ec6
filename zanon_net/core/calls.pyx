# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Around every call of the C core: its errors, signals that came during it, one thread at a time.

cdef int check(int rc, zn_error *err) except -1:
    """Raises the exception for a C error, with C's own message, if rc is negative."""
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


def set_process(int option, unsigned long value):
    """Sets an attribute of the process by prctl(2); returns false if that cannot be done."""
    return bool(zn_process_set(option, value))


cdef bint interrupted(int rc, const zn_error *err) except -1:
    """Returns true if a signal ended the wait for a stream. Runs the signal's handler, which may
    raise."""
    if rc != -ZN_ERR_IO or err.os_errno != EINTR:
        return False
    PyErr_CheckSignals()
    return True


cdef class _Guard:
    """Refuses a call into an object while another thread is inside it."""

    cdef bint busy

    cdef int enter(self) except -1:
        if self.busy:
            raise RuntimeError("this object is in use by another thread")
        self.busy = True
        return 0

    cdef void leave(self) noexcept:
        self.busy = False
