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


cdef extern from "crypto/addr_pseudonym.h" nogil:
    ctypedef enum zn_pseudonyms:
        ZN_PSEUDONYMS_NETWORKS
        ZN_PSEUDONYMS_CRYPTO_PAN
        ZN_PSEUDONYMS_RANDOM
    ctypedef struct zn_addr_plan:
        pass
    ctypedef struct zn_addr_choice:
        zn_pseudonyms pseudonyms
        uint8_t v4_block_bits, v6_block_bits
        uint8_t v4_user_bits, v6_user_bits
        const zn_net *internal
        size_t internal_count
    ctypedef struct zn_addr_pseudonym:
        pass
    int zn_addr_plan_init(zn_addr_plan *plan, const zn_addr_choice *choice, zn_error *err)
    void zn_addr_plan_fini(zn_addr_plan *plan)
    int zn_addr_pseudonym_open(zn_addr_pseudonym **out, const zn_addr_plan *plan,
                               const uint8_t *pan_key, const uint8_t *host_key, zn_error *err)
    void zn_addr_pseudonym_close(zn_addr_pseudonym *p)
    int zn_addr_pseudonym_make(zn_addr_pseudonym *p, const zn_addr *source, zn_addr *out, size_t n)


cdef extern from "crypto/keys.h" nogil:
    ctypedef struct zn_keys:
        pass
    ctypedef struct zn_key_scope:
        int64_t rotate_ns
        uint32_t z
        int64_t window_ns
        uint8_t digest[32]
    int zn_keys_open(zn_keys **out, const zn_key_scope *scope, const zn_addr_plan *plan,
                     const char *key_file, zn_error *err)
    void zn_keys_close(zn_keys *k)
    int64_t zn_keys_epoch(const zn_keys *k, int64_t t_ns)
    int zn_keys_pseudonyms(zn_keys *k, int64_t epoch, const zn_addr *real, zn_addr *pseudonyms,
                           size_t n)
    int zn_keys_rebase(zn_keys *k, int64_t t_ns, zn_error *err)
    int zn_keys_derive(zn_keys *k, const char *purpose, int64_t epoch, uint8_t *out, size_t n)
    int zn_keys_derive_shared(zn_keys *k, const char *label, uint64_t number, uint8_t *out,
                              size_t n)


cdef extern from "crypto/count_hash.h" nogil:
    ctypedef struct zn_count_settings:
        uint64_t z, window_ns, rotate_ns, generation_ns
    int zn_count_settings_digest(uint64_t *out, const zn_count_settings *settings, zn_error *err)


cdef extern from "crypto/count_generations.h" nogil:
    ctypedef struct zn_count_generations:
        pass
    ctypedef struct zn_count_periods:
        int64_t generation_ns, window_ns, epoch_ns
    ctypedef struct zn_count_range:
        uint64_t first, last
    zn_count_range zn_count_generations_of_vote(const zn_count_periods *periods, int64_t t_ns)
    zn_count_range zn_count_generations_of_client(const zn_count_periods *periods, int64_t t_ns)
    int zn_count_generations_open(zn_count_generations **out, zn_keys *keys,
                                  const zn_count_periods *periods, const zn_hash_key *secret,
                                  zn_error *err)
    void zn_count_generations_close(zn_count_generations *g)
    zn_id zn_count_generations_id(zn_count_generations *g, uint64_t generation, uint8_t domain,
                                  zn_span bytes)
    void zn_count_generations_forget(zn_count_generations *g, int64_t now_ns)
    unsigned zn_count_generations_held(const zn_count_generations *g)


cdef extern from "crypto/packet_keys.h" nogil:
    ctypedef struct zn_packet_keys:
        pass
    ctypedef struct zn_packet_shift:
        uint32_t seq[2]
        uint32_t timestamp[2]
    int zn_packet_keys_open(zn_packet_keys **out, const zn_addr_choice *choice, c_bool wide,
                            zn_keys *keys, zn_error *err)
    void zn_packet_keys_close(zn_packet_keys *k)
    int zn_packet_keys_enter(zn_packet_keys *k, int64_t epoch)
    void zn_packet_keys_rebase(zn_packet_keys *k)
    int zn_packet_keys_client(zn_packet_keys *k, const zn_addr *real, c_bool internal,
                              zn_addr *out)
    int zn_packet_keys_pair(zn_packet_keys *k, const zn_addr *user, const zn_addr *real,
                            zn_addr *out)
    int zn_packet_keys_port(zn_packet_keys *k, const zn_addr *user, uint16_t port, uint16_t *out)
    void zn_packet_keys_shift(const zn_packet_keys *k, const uint64_t *words,
                              zn_packet_shift *out)
    ctypedef enum zn_packet_id_kind:
        pass
    int zn_packet_keys_layer_id(const zn_packet_keys *k, zn_packet_id_kind kind, uint32_t id,
                                uint32_t *out)
    uint16_t zn_packet_id(const zn_packet_shift *shift, uint16_t id)
    void zn_packet_keys_blocks(const zn_packet_keys *k, zn_text *out)


cdef extern from "crypto/row_cipher.h" nogil:
    int ZN_ROW_MAX
    ctypedef struct zn_row_place:
        uint64_t probe, sequence
        uint16_t shard
        uint32_t index
    size_t zn_row_sealed_bytes(size_t n)


cdef extern from "crypto/sealed_row.h" nogil:
    ctypedef struct zn_reader_pem:
        char text[512]
        size_t n
    int zn_reader_key_new(zn_reader_pem *secret, zn_reader_pem *public_key, zn_error *err)
    int zn_reader_public_read(zn_span pem, uint8_t *key, zn_error *err)
    ctypedef struct zn_row_sealer:
        pass
    int zn_row_sealer_open(zn_row_sealer **out, const uint8_t *reader, zn_error *err)
    void zn_row_sealer_close(zn_row_sealer *s)
    int zn_row_sealer_renew(zn_row_sealer *s, zn_error *err)
    const uint8_t *zn_row_sealer_public(const zn_row_sealer *s)
    c_bool zn_row_sealer_begin(zn_row_sealer *s, const zn_row_place *place)
    c_bool zn_row_sealer_seal(zn_row_sealer *s, uint32_t index, zn_span row, uint8_t *out)
    ctypedef struct zn_row_opener:
        pass
    int zn_row_opener_open(zn_row_opener **out, const char *path, zn_error *err)
    void zn_row_opener_close(zn_row_opener *o)
    c_bool zn_row_opener_unseal(zn_row_opener *o, const uint8_t *probe_key,
                                const zn_row_place *place, zn_span sealed, zn_span *row)


cdef extern from "crypto/shamir.h" nogil:
    ctypedef uint64_t zn_f127  # of 128 bits: C's own type is used
    ctypedef struct zn_share:
        zn_f127 y
        uint64_t x
    zn_f127 zn_shamir_secret(const zn_share *shares, uint32_t z, zn_f127 *scratch)


cdef extern from "crypto/threshold.h" nogil:
    ctypedef struct zn_threshold_rule:
        int64_t window_ns
        uint32_t z, epochs
    ctypedef struct zn_threshold:
        pass
    ctypedef struct zn_threshold_vote:
        int64_t t_ns
        uint64_t user
        zn_id id
        zn_row_place place
    int zn_threshold_open(zn_threshold **out, const zn_threshold_rule *rule, const uint8_t *key,
                          zn_error *err)
    void zn_threshold_close(zn_threshold *s)
    int zn_threshold_renew(zn_threshold *s, zn_error *err)
    const uint8_t *zn_threshold_nonce(const zn_threshold *s)
    size_t zn_threshold_seal(zn_threshold *s, const zn_threshold_vote *vote, zn_span row,
                             uint8_t *out)


cdef extern from "crypto/threshold_shard.h" nogil:
    ctypedef struct zn_threshold_shard:
        pass
    ctypedef struct zn_threshold_stats:
        uint64_t votes, votes_malformed, votes_late, shares_conflicts, shares_full
        uint64_t keys_recovered, keys_spoiled
        uint64_t rows_opened, rows_short, rows_spoiled, rows_unprinted, resets
    ctypedef struct zn_threshold_decided:
        zn_threshold_vote vote
        c_bool released
        const uint8_t *nonce
        zn_span attachment
    int zn_threshold_shard_open(zn_threshold_shard **out, const zn_threshold_rule *rule,
                                uint32_t max_groups, zn_error *err)
    void zn_threshold_shard_close(zn_threshold_shard *s)
    c_bool zn_threshold_shard_take(zn_threshold_shard *s, const zn_threshold_decided *decided,
                                   zn_span *row)
    const zn_threshold_stats *zn_threshold_shard_stats(const zn_threshold_shard *s)
    size_t zn_threshold_shard_dump_bytes(const zn_threshold_shard *s)
    void zn_threshold_shard_dump(const zn_threshold_shard *s, uint8_t *out)
    int zn_threshold_shard_load(zn_threshold_shard *s, zn_span dump, zn_error *err)


cdef extern from "crypto/row_pseudonym.h" nogil:
    enum:
        ZN_PSEUDONYM_CHARS
