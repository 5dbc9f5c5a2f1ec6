# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Replacements of TLS handshakes in anonymized packets: csrc/build/build_tls.h, build_x509.h.

cdef class _Built:
    """Output of zeros in a heap block of exactly n bytes, for AddressSanitizer."""

    cdef uint8_t *out
    cdef size_t n

    def __cinit__(self, size_t n):
        self.n = n
        self.out = <uint8_t *>malloc(n if n else 1)
        if self.out == NULL:
            raise MemoryError
        memset(self.out, 0, n)

    def __dealloc__(self):
        free(self.out)

    cdef bytes content(self):
        return PyBytes_FromStringAndSize(<const char *>self.out, self.n)


def build_masked_name(size_t n):
    """Returns the name that replaces a masked name of n bytes."""
    cdef _Built built = _Built(n)
    zn_build_masked_name(built.out, n)
    return built.content()


def build_client_hello(bytes data not None, *, bint name, bint fingerprint, str form="records"):
    """Returns (built?, the output) of a ClientHello. form: records, message or datagram."""
    cdef _Copy copy = _Copy(data)
    cdef _Built built = _Built(len(data))
    cdef zn_tls_scratch scratch
    cdef zn_build_choice choice
    cdef bint done
    choice.name = name
    choice.fingerprint = fingerprint
    if form == "records":
        done = zn_build_client_hello(copy.span, &choice, &scratch, built.out)
    elif form == "message":
        done = zn_build_client_hello_message(copy.span, &choice, built.out)
    else:
        done = zn_build_client_hello_datagram(copy.span, &choice, built.out)
    return bool(done), built.content()


def build_tls_fingerprint(bytes data not None, *, str form="records"):
    """Returns the fingerprint of a ClientHello, or None."""
    cdef _Copy copy = _Copy(data)
    cdef zn_tls_scratch scratch
    cdef zn_build_fingerprint out
    cdef bint done
    if form == "records":
        done = zn_build_tls_fingerprint(copy.span, &scratch, &out)
    elif form == "message":
        done = zn_build_tls_fingerprint_message(copy.span, &out)
    else:
        done = zn_build_tls_fingerprint_datagram(copy.span, &out)
    return PyBytes_FromStringAndSize(<const char *>out.bytes, out.n) if done else None


def build_server_flight(bytes data not None, bytes common_name not None=b""):
    """Returns (built?, the output) of a server's first records."""
    cdef _Copy copy = _Copy(data)
    cdef _Copy name = _Copy(common_name)
    cdef _Built built = _Built(len(data))
    cdef zn_tls_scratch scratch
    cdef zn_build_certificates certificates
    done = zn_build_server_flight(copy.span, name.span, &scratch, built.out, &certificates)
    return bool(done), built.content()


def build_x509(size_t n, bytes common_name not None=b""):
    """Returns a synthetic certificate of n bytes, or None."""
    cdef _Copy name = _Copy(common_name)
    cdef _Built built = _Built(n)
    if not zn_build_x509(built.out, n, name.span):
        if built.content() != bytes(n):
            raise AssertionError("something was written")
        return None
    return built.content()
