# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# Pseudonyms and their keys: csrc/crypto.

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

    cdef int _enter(self) except -1:
        if self.pan == NULL:
            raise RuntimeError("this CryptoPan has no key")
        return self.guard.enter()

    def anonymize(self, address):
        """Returns the pseudonym of an address (str, bytes of 4 or 16, or ipaddress) in the same
        type.

        Raises ValueError if it is not an address, and TypeError for a number.
        """
        cdef zn_addr addr
        if isinstance(address, int):
            raise TypeError("an address is str, bytes or of ipaddress; a number may be either kind")
        parsed = ipaddress.ip_address(address)
        addr = addr_of(parsed.packed)
        self._enter()
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
        """Returns the pseudonyms of uint32[n] IPv4 addresses in host order.

        Raises TypeError for another dtype, ValueError for another shape.
        """
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
        self._enter()
        with nogil:
            rc = zn_cryptopan_v4(self.pan, &source[0], &out[0], n)
        self.guard.leave()
        if rc != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        return 0

    def anonymize_v6(self, addresses):
        """Returns the pseudonyms of uint8[n, 16] IPv6 addresses in network order.

        Raises TypeError for another dtype, ValueError for another shape.
        """
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
        self._enter()
        with nogil:
            rc = zn_cryptopan_v6(self.pan, &source[0, 0], &out[0, 0], n)
        self.guard.leave()
        if rc != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        return 0


PSEUDONYMS = ("networks", "crypto-pan", "random")
"""Kinds of pseudonyms of addresses, in the order of csrc/include/zanon/zanon.h."""


cdef class _Plan:
    """Settings of the pseudonyms (crypto/addr_pseudonym).

    pseudonyms: one of PSEUDONYMS.
    block: bits of the IPv4 and IPv6 blocks that crypto-pan keeps.
    user: bits of a user's IPv4 and IPv6 prefix.
    internal: (prefix as 16 bytes, bits) of each internal network.

    Raises ConfigError for networks that cannot be kept.
    """

    cdef zn_addr_plan plan

    def __cinit__(self, str pseudonyms not None, block, user, internal):
        cdef zn_error err
        cdef zn_addr_choice choice
        cdef _Kept kept = _Kept()
        memset(&err, 0, sizeof(err))
        memset(&choice, 0, sizeof(choice))
        choice.pseudonyms = <zn_pseudonyms><int>PSEUDONYMS.index(pseudonyms)
        choice.v4_block_bits, choice.v6_block_bits = block
        choice.v4_user_bits, choice.v6_user_bits = user
        choice.internal = kept.networks(internal, &choice.internal_count)
        check(zn_addr_plan_init(&self.plan, &choice, &err), &err)

    def __dealloc__(self):
        zn_addr_plan_fini(&self.plan)


cdef class Pseudonyms:
    """Pseudonyms of addresses under fixed keys, for tests and benchmarks.

    pan_key: 32 bytes. host_key: 16 bytes. The other arguments are the arguments of _Plan.
    """

    cdef _Plan plan
    cdef zn_addr_pseudonym *handle

    def __init__(self, bytes pan_key not None, bytes host_key not None, pseudonyms, *,
                 block=(32, 128), user=(32, 56), internal=()):
        cdef zn_error err
        if self.handle != NULL:
            raise RuntimeError("keys cannot be set twice")
        if len(pan_key) != 32 or len(host_key) != 16:
            raise ConfigError("the keys of pseudonyms have 32 and 16 bytes")
        memset(&err, 0, sizeof(err))
        self.plan = _Plan(pseudonyms, block, user, internal)
        check(zn_addr_pseudonym_open(&self.handle, &self.plan.plan,
                                     <const uint8_t *><const char *>pan_key,
                                     <const uint8_t *><const char *>host_key, &err), &err)

    def __dealloc__(self):
        zn_addr_pseudonym_close(self.handle)

    def make(self, const uint8_t[:, ::1] addresses not None):
        """Returns the pseudonyms of uint8[n, 16] addresses (IPv4 as ::ffff:a.b.c.d) as an array of
        that type."""
        pseudonyms = numpy().empty((len(addresses), 16), dtype="uint8")
        cdef uint8_t[:, ::1] out = pseudonyms
        cdef size_t n = len(addresses)
        cdef int rc
        if self.handle == NULL or addresses.shape[1] != 16:
            raise ValueError("addresses have 16 bytes")
        if n == 0:
            return pseudonyms
        with nogil:
            rc = zn_addr_pseudonym_make(self.handle, <const zn_addr *>&addresses[0, 0],
                                        <zn_addr *>&out[0, 0], n)
        if rc != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        return pseudonyms


cdef class Keys:
    """Epoch keys (crypto/keys), for tests and for checking a key file.

    The arguments are the scope of the keys: the length of an epoch, z, the window, a digest of 32
    bytes over the other settings; and the arguments of _Plan.
    """

    cdef _Plan plan
    cdef zn_keys *keys

    def __init__(self, int64_t rotate_ns, key_file=None, *, uint32_t z=20,
                 int64_t window_ns=3_600_000_000_000, bytes digest not None=bytes(32),
                 pseudonyms="networks", block=(32, 128), user=(32, 56), internal=()):
        cdef zn_error err
        cdef zn_key_scope scope
        cdef const char *path = NULL
        if self.keys != NULL:
            raise RuntimeError("keys cannot be opened twice")
        if len(digest) != sizeof(scope.digest):
            raise ConfigError("the digest of a key's scope has 32 bytes")
        memset(&err, 0, sizeof(err))
        encoded = None if key_file is None else os.fsencode(key_file)
        if encoded is not None:
            path = encoded
        scope.rotate_ns, scope.z, scope.window_ns = rotate_ns, z, window_ns
        memcpy(scope.digest, <const char *>digest, sizeof(scope.digest))
        self.plan = _Plan(pseudonyms, block, user, internal)
        check(zn_keys_open(&self.keys, &scope, &self.plan.plan, path, &err), &err)

    def __dealloc__(self):
        zn_keys_close(self.keys)

    def epoch(self, int64_t t_ns):
        """Returns the epoch that contains a time."""
        return zn_keys_epoch(self.keys, t_ns)

    def pseudonym(self, int64_t t_ns, str address):
        """Returns (pseudonym, epoch) of an address at a time."""
        cdef zn_addr real = addr_of(ipaddress.ip_address(address).packed)
        cdef zn_addr out
        cdef int64_t epoch = zn_keys_epoch(self.keys, t_ns)
        if zn_keys_pseudonyms(self.keys, epoch, &real, &out, 1) != 0:
            raise ZanonError("the crypto library could not encrypt an address")
        return str(address_from(&out)), epoch

    def rebase(self, int64_t t_ns):
        """Sets the packet clock back to t_ns."""
        cdef zn_error err
        memset(&err, 0, sizeof(err))
        check(zn_keys_rebase(self.keys, t_ns, &err), &err)

    def derive(self, bytes purpose not None, int64_t epoch, size_t n):
        """Derives n (1 to 32) bytes for another purpose from an epoch's key."""
        cdef uint8_t out[32]
        if not 1 <= n <= 32 or zn_keys_derive(self.keys, purpose, epoch, out, n) != 0:
            raise ZanonError("nothing can be derived")
        return PyBytes_FromStringAndSize(<const char *>out, n)

    def derive_shared(self, bytes label not None, uint64_t number, size_t n):
        """Derives n (1 to 32) bytes that depend on the key file alone."""
        cdef uint8_t out[32]
        if not 1 <= n <= 32 or zn_keys_derive_shared(self.keys, label, number, out, n) != 0:
            raise ZanonError("nothing can be derived")
        return PyBytes_FromStringAndSize(<const char *>out, n)
