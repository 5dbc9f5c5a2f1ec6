/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Block i of an address holds its first i bits followed by the pad from bit i on; the first bit of
 * its encryption flips bit i. Blocks 0..15 of all addresses are the inner nodes of one binary tree
 * of 2^16 - 1 nodes, encrypted once for each key. `first` has the bits that these nodes flip,
 * indexed by an address's first 16 bits. The other blocks of many addresses are written next to
 * each other and encrypted in place by one call, which also leaves no address in the working
 * buffer.
 *
 * Words are in memory order (network order bytes), so nothing here depends on the machine's byte
 * order.
 */
#include "crypto/cryptopan.h"

#include "util/arena.h"

#include <endian.h>
#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <sys/mman.h>

#define V4_BITS 32u
#define V6_BITS 128u
#define V4_BLOCKS (V4_BITS - ZN_CRYPTOPAN_TABLE_BITS)
#define V6_BLOCKS (V6_BITS - ZN_CRYPTOPAN_TABLE_BITS)
#define WORK_BLOCKS 2048u /* 32 KiB: stays close to the core, and hides the cost of a call */
#define KEY_HALF (ZN_CRYPTOPAN_KEY_BYTES / 2)

typedef uint64_t both_words __attribute__((vector_size(16)));

typedef union block {
    uint64_t word[2];
    both_words both;
} block;

_Static_assert(sizeof(block) == 16, "a block is one AES block");

struct zn_cryptopan {
    block keep[V6_BITS]; /* i-th: ones in the first i bits */
    block pad[V6_BITS];  /* i-th: the pad, its first i bits zero */
    block work[WORK_BLOCKS];
    uint16_t first[(size_t)1 << ZN_CRYPTOPAN_TABLE_BITS];
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *context;
};

static unsigned first_bit(const block *b)
{
    uint8_t byte;
    memcpy(&byte, b, 1);
    return byte >> 7;
}

/* The first bits of eight blocks, the first block's in front. */
static inline unsigned first_bits(const block *b)
{
    return first_bit(b) << 7 | first_bit(b + 1) << 6 | first_bit(b + 2) << 5 |
           first_bit(b + 3) << 4 | first_bit(b + 4) << 3 | first_bit(b + 5) << 2 |
           first_bit(b + 6) << 1 | first_bit(b + 7);
}

static bool encrypt(zn_cryptopan *p, size_t blocks)
{
    unsigned char *work = (unsigned char *)p->work;
    int length = (int)(blocks * sizeof(block)), written = 0;
    return EVP_EncryptUpdate(p->context, work, &written, work, length) == 1 && written == length;
}

/* An address in memory order, made as words: bytes that were just written could not be read as
 * words before they reach the cache. The bytes after an IPv4 address are zero. */
static inline block block_of_v4(uint32_t v)
{
    return (block){{htobe64((uint64_t)v << 32), 0}};
}

static inline block block_of_v6(const uint8_t address[16])
{
    block a;
    memcpy(&a, address, sizeof a);
    return a;
}

/* Blocks TABLE_BITS .. bits - 1 of an address into work[]. */
static inline void lay_out(zn_cryptopan *p, size_t at, block a, unsigned bits)
{
    for (unsigned i = ZN_CRYPTOPAN_TABLE_BITS; i < bits; i++, at++)
        p->work[at].both = (a.both & p->keep[i].both) | p->pad[i].both;
}

/* `before`, and after it n more bytes of flips. */
static inline uint64_t more_flips(const zn_cryptopan *p, size_t at, unsigned n, uint64_t before)
{
    for (; n != 0; n--, at += 8)
        before = before << 8 | first_bits(&p->work[at]);
    return before;
}

/* Blocks that the first `bits` bits of an address take, in whole bytes of flips. */
static inline unsigned blocks_of(unsigned bits)
{
    return bits <= ZN_CRYPTOPAN_TABLE_BITS ? 0 : (bits + 7) / 8 * 8 - ZN_CRYPTOPAN_TABLE_BITS;
}

/* The address with its first bits flipped by its encrypted blocks. */
static inline zn_u128 flip_prefix(const zn_cryptopan *p, size_t at, zn_u128 address, unsigned bits)
{
    zn_u128 flips = p->first[(size_t)(address >> 112)];
    unsigned blocks = blocks_of(bits);
    for (unsigned i = 0; i < blocks; i += 8)
        flips = flips << 8 | first_bits(&p->work[at + i]);
    flips <<= 128 - ZN_CRYPTOPAN_TABLE_BITS - blocks;
    return address ^ (bits == 0 ? 0 : flips >> (128 - bits) << (128 - bits));
}

/* The address with its bits flipped by its encrypted blocks. */
static inline uint32_t flip_v4(const zn_cryptopan *p, size_t at, uint32_t v)
{
    return v ^ (uint32_t)more_flips(p, at, 2, p->first[v >> 16]);
}

static inline block flip_v6(const zn_cryptopan *p, size_t at, block a)
{
    uint64_t first = be64toh(a.word[0]);
    first ^= more_flips(p, at, 6, p->first[first >> 48]);
    return (block){{htobe64(first), a.word[1] ^ htobe64(more_flips(p, at + 48, 8, 0))}};
}

static void set_masks(zn_cryptopan *p)
{
    for (unsigned i = 0; i < V6_BITS; i++) {
        uint8_t bytes[16] = {0};
        memset(bytes, 0xff, i / 8);
        bytes[i / 8] = (uint8_t)(0xff00u >> i % 8);
        memcpy(&p->keep[i], bytes, sizeof bytes);
    }
}

static bool set_pad(zn_cryptopan *p, const uint8_t source[KEY_HALF])
{
    block pad;
    memcpy(&p->work[0], source, sizeof(block));
    if (!encrypt(p, 1))
        return false;
    pad = p->work[0];
    for (unsigned i = 0; i < V6_BITS; i++)
        for (unsigned w = 0; w < 2; w++)
            p->pad[i].word[w] = pad.word[w] & ~p->keep[i].word[w];
    OPENSSL_cleanse(&pad, sizeof pad);
    return true;
}

/*
 * One level of the tree turns first[prefix of `level` bits] into first[prefix of level + 1 bits],
 * in place: from the highest prefix down, because prefix v writes to 2v and 2v + 1.
 */
static bool grow_table(zn_cryptopan *p, unsigned level)
{
    size_t end = (size_t)1 << level;
    while (end > 0) {
        size_t n = end < WORK_BLOCKS ? end : WORK_BLOCKS;
        for (size_t k = 0; k < n; k++) {
            size_t prefix = (end - n + k) << (ZN_CRYPTOPAN_TABLE_BITS - level);
            p->work[k].word[0] = htobe64((uint64_t)prefix << 48) | p->pad[level].word[0];
            p->work[k].word[1] = p->pad[level].word[1];
        }
        if (!encrypt(p, n))
            return false;
        for (size_t k = n; k-- > 0;) {
            size_t v = end - n + k;
            uint16_t flips = (uint16_t)((unsigned)p->first[v] << 1 | first_bit(&p->work[k]));
            p->first[2 * v + 1] = p->first[2 * v] = flips;
        }
        end -= n;
    }
    return true;
}

/* Wipes everything that depends on the key; without it the context refuses to encrypt. */
static void forget_key(zn_cryptopan *p)
{
    (void)EVP_CIPHER_CTX_reset(p->context);
    OPENSSL_cleanse(p->pad, sizeof p->pad);
    OPENSSL_cleanse(p->work, sizeof p->work);
    OPENSSL_cleanse(p->first, sizeof p->first);
}

int zn_cryptopan_rekey(zn_cryptopan *p, const uint8_t key[ZN_CRYPTOPAN_KEY_BYTES], zn_error *err)
{
    bool ok;
    forget_key(p);
    ok = EVP_EncryptInit_ex2(p->context, p->cipher, key, NULL, NULL) == 1 &&
         EVP_CIPHER_CTX_set_padding(p->context, 0) == 1 && set_pad(p, key + KEY_HALF);
    for (unsigned level = 0; ok && level < ZN_CRYPTOPAN_TABLE_BITS; level++)
        ok = grow_table(p, level);
    if (ok)
        return 0;
    forget_key(p);
    return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto could not set up AES-128 for Crypto-PAn");
}

int zn_cryptopan_open(zn_cryptopan **out, const uint8_t key[ZN_CRYPTOPAN_KEY_BYTES], zn_error *err)
{
    zn_cryptopan *p = zn_block_alloc(sizeof *p);
    int rc;
    *out = NULL;
    if (p == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for Crypto-PAn");
    (void)mlock(p, sizeof *p);
    set_masks(p);
    p->cipher = EVP_CIPHER_fetch(NULL, "AES-128-ECB", NULL);
    p->context = EVP_CIPHER_CTX_new();
    if (p->cipher == NULL || p->context == NULL)
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no AES-128-ECB");
    else
        rc = zn_cryptopan_rekey(p, key, err);
    if (rc != 0)
        zn_cryptopan_close(p);
    else
        *out = p;
    return rc;
}

void zn_cryptopan_close(zn_cryptopan *p)
{
    if (p == NULL)
        return;
    EVP_CIPHER_CTX_free(p->context); /* libcrypto wipes the key schedule */
    EVP_CIPHER_free(p->cipher);
    OPENSSL_cleanse(p, sizeof *p);
    zn_block_free(p, sizeof *p);
}

/* Fails, and leaves no address in the output nor in the working buffer. */
static int give_up(zn_cryptopan *p, void *out, size_t bytes)
{
    OPENSSL_cleanse(p->work, sizeof p->work);
    memset(out, 0, bytes);
    return -ZN_ERR_CRYPTO;
}

int zn_cryptopan_v4(zn_cryptopan *p, const uint32_t *in, uint32_t *out, size_t n)
{
    size_t count;
    for (size_t done = 0; done < n; done += count) {
        count = n - done < WORK_BLOCKS / V4_BLOCKS ? n - done : WORK_BLOCKS / V4_BLOCKS;
        for (size_t k = 0; k < count; k++)
            lay_out(p, k * V4_BLOCKS, block_of_v4(in[done + k]), V4_BITS);
        if (!encrypt(p, count * V4_BLOCKS))
            return give_up(p, out, n * sizeof *out);
        for (size_t k = 0; k < count; k++)
            out[done + k] = flip_v4(p, k * V4_BLOCKS, in[done + k]);
    }
    return 0;
}

int zn_cryptopan_v6(zn_cryptopan *p, const uint8_t *in, uint8_t *out, size_t n)
{
    size_t count;
    for (size_t done = 0; done < n; done += count) {
        count = n - done < WORK_BLOCKS / V6_BLOCKS ? n - done : WORK_BLOCKS / V6_BLOCKS;
        for (size_t k = 0; k < count; k++)
            lay_out(p, k * V6_BLOCKS, block_of_v6(in + 16 * (done + k)), V6_BITS);
        if (!encrypt(p, count * V6_BLOCKS))
            return give_up(p, out, 16 * n);
        for (size_t k = 0; k < count; k++) {
            block a = flip_v6(p, k * V6_BLOCKS, block_of_v6(in + 16 * (done + k)));
            memcpy(out + 16 * (done + k), &a, sizeof a);
        }
    }
    return 0;
}

int zn_cryptopan_prefixes(zn_cryptopan *p, zn_u128 *addresses, const uint8_t *bits, size_t n)
{
    size_t from = 0, to = 0;
    while (from < n) {
        size_t at = 0;
        for (; to < n && at + V6_BLOCKS <= WORK_BLOCKS; to++) {
            uint64_t high = htobe64((uint64_t)(addresses[to] >> 64));
            uint64_t low = htobe64((uint64_t)addresses[to]);
            lay_out(p, at, (block){{high, low}}, ZN_CRYPTOPAN_TABLE_BITS + blocks_of(bits[to]));
            at += blocks_of(bits[to]);
        }
        if (at != 0 && !encrypt(p, at))
            return give_up(p, addresses, n * sizeof *addresses);
        for (at = 0; from < to; from++) {
            addresses[from] = flip_prefix(p, at, addresses[from], bits[from]);
            at += blocks_of(bits[from]);
        }
    }
    return 0;
}

/* Returns the IPv4 address in an address for which zn_addr_is_v4 is true. */
static inline uint32_t v4_of(const zn_addr *a)
{
    uint32_t four;
    memcpy(&four, a->byte + 12, sizeof four);
    return be32toh(four);
}

/* Lays out addresses from in[0] on while work[] has space; returns how many, and their blocks. */
static size_t lay_out_mixed(zn_cryptopan *p, const zn_addr *in, size_t n, size_t *blocks)
{
    size_t count = 0, at = 0;
    for (; count < n && at + V6_BLOCKS <= WORK_BLOCKS; count++) {
        if (zn_addr_is_v4(&in[count])) {
            lay_out(p, at, block_of_v4(v4_of(&in[count])), V4_BITS);
            at += V4_BLOCKS;
        } else {
            lay_out(p, at, block_of_v6(in[count].byte), V6_BITS);
            at += V6_BLOCKS;
        }
    }
    *blocks = at;
    return count;
}

static void flip_mixed(const zn_cryptopan *p, const zn_addr *in, zn_addr *out, size_t n)
{
    size_t at = 0;
    for (size_t k = 0; k < n; k++) {
        if (zn_addr_is_v4(&in[k])) {
            uint32_t four = htobe32(flip_v4(p, at, v4_of(&in[k])));
            out[k] = zn_addr_from_v4((const uint8_t *)&four);
            at += V4_BLOCKS;
        } else {
            block a = flip_v6(p, at, block_of_v6(in[k].byte));
            memcpy(out[k].byte, &a, sizeof a);
            at += V6_BLOCKS;
        }
    }
}

int zn_cryptopan_addrs(zn_cryptopan *p, const zn_addr *in, zn_addr *out, size_t n)
{
    size_t count;
    for (size_t done = 0; done < n; done += count) {
        size_t blocks;
        count = lay_out_mixed(p, in + done, n - done, &blocks);
        if (!encrypt(p, blocks))
            return give_up(p, out, n * sizeof *out);
        flip_mixed(p, in + done, out + done, count);
    }
    return 0;
}
