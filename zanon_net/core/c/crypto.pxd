# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/crypto

cdef extern from "crypto/cryptopan.h" nogil:
    ctypedef struct zn_cryptopan:
        pass
    int zn_cryptopan_open(zn_cryptopan **out, const uint8_t *key, zn_error *err)
    void zn_cryptopan_close(zn_cryptopan *p)
    int zn_cryptopan_addrs(zn_cryptopan *p, const zn_addr *source, zn_addr *out, size_t n)
    int zn_cryptopan_v4(zn_cryptopan *p, const uint32_t *source, uint32_t *out, size_t n)
    int zn_cryptopan_v6(zn_cryptopan *p, const uint8_t *source, uint8_t *out, size_t n)


cdef extern from "crypto/keys.h" nogil:
    ctypedef struct zn_keys:
        pass
    int zn_keys_open(zn_keys **out, int64_t rotate_ns, const char *key_file, zn_error *err)
    void zn_keys_close(zn_keys *k)
    int64_t zn_keys_epoch(const zn_keys *k, int64_t t_ns)
    int zn_keys_pseudonym(zn_keys *k, int64_t t_ns, const zn_addr *real, zn_addr *pseudonym,
                          int64_t *epoch)
    int zn_keys_rebase(zn_keys *k, int64_t t_ns, zn_error *err)
    int zn_keys_derive(zn_keys *k, const char *purpose, int64_t epoch, uint8_t *out, size_t n)
