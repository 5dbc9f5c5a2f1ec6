/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The keys of the two epochs that were entered last are kept, because a flow keeps its epoch up to
 * its last packet, even if the secret of that epoch is wiped (crypto/keys.h).
 *
 * Other addresses: the first bits of AES-128(K, address's 16-byte form), after the block's prefix.
 * For the flows of a user, AES-128(K, T xor address) with T = AES-128(K, user): CBC-MAC over two
 * blocks.
 *
 * Ports: an alternating Feistel network as in crypto/feistel.h, on 16 bits for 1024 .. 32767 and
 * 32768 .. 65535, and on 10 for 1 .. 1023, again while the result is no port of its kind. Its round
 * function is SipHash, which costs less than a call of libcrypto: T = SipHash(K, user's two words,
 * bits), and in round i SipHash(K, T, i * 256 + B).
 *
 * Identifiers of the headers around a packet: the same network under the key `id`, on the bits that
 * the identifier has, with T = SipHash(K, kind, bits, 0) and in round i SipHash(K, T, i * 65536 +
 * B), again while the result is reserved. The flows' constants have seven words there.
 *
 * Constants of a flow: SipHash(K, the words of the flow, n). seq: n = 0 gives the constants of
 * sequence numbers, n = 1 the constants of timestamps: the low 32 bits for side 0 and the high 32
 * bits for side 1. id: n = 0 and n = 1 give the two words of the key.
 */
#include "crypto/packet_keys.h"

#include "crypto/addr_blocks.h"
#include "util/arena.h"

#include <openssl/evp.h>
#include <stddef.h>
#include <sys/mman.h>

#define KEY_BYTES 16
#define V4_BITS 32u
#define V6_BITS 128u
#define NO_EPOCH INT64_C(-1)
#define SETS 2u
#define FLOW_WORDS 6u
#define ROUNDS 10u        /* of a port's permutation */
#define PORT_BITS 16u     /* of ports from FIRST_PORT on */
#define SYSTEM_BITS 10u   /* of those before it */
#define LAYER_ID_BITS 32u /* most bits of an identifier of a header around a packet */
/* Systems choose most ports of clients from here on, and few protocols have a port of their own
 * there by which a reader takes them for another one. */
#define HIGH_PORT 32768u
#define FIRST_PORT 1024u /* no port of a system's service (RFC 6335 section 6) */
#define V4_BLOCK(first) ((zn_u128)(first) << 120)
#define V6_BLOCK(first) ((zn_u128)(first) << 96)

/* By family: IPv4 first. */
static const zn_prefix outside_block[2] = {{V4_BLOCK(248), 5}, {V6_BLOCK(0x3fff0800), 21}};
static const zn_prefix pair_block[2] = {{V4_BLOCK(240), 5}, {V6_BLOCK(0x3fff0000), 21}};
static const zn_prefix group_block[2] = {{V4_BLOCK(239), 8}, {V6_BLOCK(0xff0e0000), 16}};

/* An AES block in memory order. */
typedef struct block {
    uint64_t word[2];
} block;

_Static_assert(sizeof(block) == KEY_BYTES && sizeof(zn_addr) == KEY_BYTES,
               "a block is one AES block");

/* The keys of an epoch, while they are made. */
typedef struct secrets {
    uint8_t pan[ZN_CRYPTOPAN_KEY_BYTES], host[ZN_FEISTEL_KEY_BYTES];
    uint8_t block[KEY_BYTES], outside[KEY_BYTES], pair[KEY_BYTES];
    uint8_t port[KEY_BYTES], seq[KEY_BYTES], id[KEY_BYTES];
} secrets;

static const struct {
    const char *label;
    size_t at, bytes;
} labels[] = {
    {"zanon-net/2/cryptopan", offsetof(secrets, pan), ZN_CRYPTOPAN_KEY_BYTES},
    {"zanon-net/2/host", offsetof(secrets, host), ZN_FEISTEL_KEY_BYTES},
    {"zanon-net/2/block", offsetof(secrets, block), KEY_BYTES},
    {"zanon-net/2/outside", offsetof(secrets, outside), KEY_BYTES},
    {"zanon-net/2/pair", offsetof(secrets, pair), KEY_BYTES},
    {"zanon-net/2/port", offsetof(secrets, port), KEY_BYTES},
    {"zanon-net/2/seq", offsetof(secrets, seq), KEY_BYTES},
    {"zanon-net/2/id", offsetof(secrets, id), KEY_BYTES},
};

/* The keys of an epoch, ready for use. */
typedef struct key_set {
    int64_t epoch; /* NO_EPOCH: of none */
    zn_addr_pseudonym *pseudonym;
    zn_u128 *place[2]; /* by family and root: its first address */
    EVP_CIPHER_CTX *outside, *pair;
    zn_hash_key port, seq, id;
} key_set;

struct zn_packet_keys {
    secrets made;
    key_set set[SETS];
    key_set none; /* random keys of constants, where no epoch was entered */
    zn_keys *keys;
    key_set *now;    /* NULL: no epoch was entered */
    unsigned recent; /* the set entered last */
    int64_t newest;  /* of the epochs entered since the clock was set anew; NO_EPOCH: none */
    uint64_t epochs; /* newest epochs so far */
    bool wide;
    zn_addr_plan plan;
    zn_addr_blocks blocks[2]; /* by family: IPv4 first; empty where wide */
    zn_u128 *random;          /* a number for each slot of a family, to draw its place */
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *draw;
};

/* ---- AES-128 ---- */

static bool set_key(const zn_packet_keys *k, EVP_CIPHER_CTX *context, const uint8_t key[KEY_BYTES])
{
    (void)EVP_CIPHER_CTX_reset(context);
    return EVP_EncryptInit_ex2(context, k->cipher, key, NULL, NULL) == 1 &&
           EVP_CIPHER_CTX_set_padding(context, 0) == 1;
}

static bool encrypt(EVP_CIPHER_CTX *context, block *b)
{
    unsigned char *bytes = (unsigned char *)b;
    int written = 0;
    return EVP_EncryptUpdate(context, bytes, &written, bytes, KEY_BYTES) == 1 &&
           written == KEY_BYTES;
}

static block block_of(const zn_addr *a)
{
    block b;
    memcpy(&b, a->byte, sizeof b);
    return b;
}

static zn_u128 number_of(const block *b)
{
    return (zn_u128)be64toh(b->word[0]) << 64 | be64toh(b->word[1]);
}

/* ---- open and close ---- */

static int make_plan(zn_packet_keys *k, const zn_addr_choice *choice, zn_error *err)
{
    zn_addr_choice own = *choice;
    int rc = 0;
    for (unsigned family = 0; rc == 0 && !k->wide && family < 2; family++)
        rc = zn_addr_blocks_init(&k->blocks[family], choice->internal, choice->internal_count,
                                 family == 0, err);
    own.v4_root = k->blocks[0].root;
    own.v4_roots = k->blocks[0].count;
    own.v6_root = k->blocks[1].root;
    own.v6_roots = k->blocks[1].count;
    return rc != 0 ? rc : zn_addr_plan_init(&k->plan, &own, err);
}

static int open_set(const zn_packet_keys *k, key_set *s, zn_error *err)
{
    s->epoch = NO_EPOCH;
    s->outside = EVP_CIPHER_CTX_new();
    s->pair = EVP_CIPHER_CTX_new();
    if (s->outside == NULL || s->pair == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the keys of packets");
    for (unsigned family = 0; family < 2; family++) {
        s->place[family] = zn_heap_alloc((k->blocks[family].count + 1) * sizeof(zn_u128));
        if (s->place[family] == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the keys of packets");
    }
    return zn_addr_pseudonym_open(&s->pseudonym, &k->plan, k->made.pan, k->made.host, err);
}

/* Takes all memory, so that nothing is allocated later. */
static int open_parts(zn_packet_keys *k, zn_error *err)
{
    uint32_t slots =
        k->blocks[0].slots > k->blocks[1].slots ? k->blocks[0].slots : k->blocks[1].slots;
    int rc = zn_hash_key_random(&k->none.seq, err);
    if (rc == 0)
        rc = zn_hash_key_random(&k->none.id, err);
    if (rc != 0)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "the system gave no random bytes");
    k->random = zn_heap_alloc((slots + 1) * sizeof *k->random);
    k->cipher = EVP_CIPHER_fetch(NULL, "AES-128-ECB", NULL);
    k->draw = EVP_CIPHER_CTX_new();
    if (k->random == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the keys of packets");
    if (k->cipher == NULL || k->draw == NULL)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "libcrypto offers no AES-128-ECB");
    for (unsigned i = 0; rc == 0 && i < SETS; i++)
        rc = open_set(k, &k->set[i], err);
    return rc;
}

int zn_packet_keys_open(zn_packet_keys **out, const zn_addr_choice *choice, bool wide,
                        zn_keys *keys, zn_error *err)
{
    zn_packet_keys *k = zn_block_alloc(sizeof *k);
    int rc;
    *out = NULL;
    if (k == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the keys of packets");
    (void)mlock(k, sizeof *k);
    k->keys = keys;
    k->wide = wide;
    k->newest = NO_EPOCH;
    rc = make_plan(k, choice, err);
    if (rc == 0)
        rc = open_parts(k, err);
    if (rc != 0)
        zn_packet_keys_close(k);
    else
        *out = k;
    return rc;
}

static void close_set(const zn_packet_keys *k, key_set *s)
{
    zn_addr_pseudonym_close(s->pseudonym);
    EVP_CIPHER_CTX_free(s->outside); /* libcrypto wipes the key schedule */
    EVP_CIPHER_CTX_free(s->pair);
    for (unsigned family = 0; family < 2; family++) {
        if (s->place[family] != NULL)
            zn_wipe(s->place[family], k->blocks[family].count * sizeof(zn_u128));
        zn_heap_free(s->place[family]);
    }
}

void zn_packet_keys_close(zn_packet_keys *k)
{
    if (k == NULL)
        return;
    for (unsigned i = 0; i < SETS; i++)
        close_set(k, &k->set[i]);
    EVP_CIPHER_CTX_free(k->draw);
    EVP_CIPHER_free(k->cipher);
    zn_heap_free(k->random);
    zn_addr_plan_fini(&k->plan);
    for (unsigned family = 0; family < 2; family++)
        zn_addr_blocks_fini(&k->blocks[family]);
    zn_wipe(k, sizeof *k);
    zn_block_free(k, sizeof *k);
}

/* ---- epochs ---- */

/* Makes the keys of the epoch; k->made holds nothing otherwise. */
static int derive(zn_packet_keys *k, int64_t epoch)
{
    int rc = 0;
    for (size_t i = 0; rc == 0 && i < sizeof labels / sizeof labels[0]; i++)
        rc = zn_keys_derive(k->keys, labels[i].label, epoch, (uint8_t *)&k->made + labels[i].at,
                            labels[i].bytes);
    if (rc != 0)
        zn_wipe(&k->made, sizeof k->made);
    return rc;
}

static zn_hash_key hash_key(const uint8_t bytes[KEY_BYTES])
{
    zn_hash_key key;
    memcpy(&key, bytes, sizeof key);
    key.k0 = le64toh(key.k0);
    key.k1 = le64toh(key.k1);
    return key;
}

/* Draws the places of the slots under the key that k->draw has. */
static bool draw_places(zn_packet_keys *k, key_set *s)
{
    bool ok = true;
    for (unsigned family = 0; ok && family < 2; family++) {
        zn_addr_blocks *blocks = &k->blocks[family];
        const zn_prefix *slot = blocks->root + (blocks->count - blocks->slots);
        for (uint32_t i = 0; ok && i < blocks->slots; i++) {
            zn_addr first = zn_addr_of_number(slot[i].first, family == 0);
            block b = block_of(&first);
            ok = encrypt(k->draw, &b);
            k->random[i] = number_of(&b);
        }
        if (ok)
            zn_addr_blocks_draw(blocks, k->random, s->place[family]);
        zn_wipe(k->random, blocks->slots * sizeof *k->random);
    }
    return ok;
}

/* Gives the set the keys in k->made. */
static bool load(zn_packet_keys *k, key_set *s)
{
    bool ok = zn_addr_pseudonym_rekey(s->pseudonym, k->made.pan, k->made.host, NULL) == 0 &&
              set_key(k, s->outside, k->made.outside) && set_key(k, s->pair, k->made.pair) &&
              set_key(k, k->draw, k->made.block) && draw_places(k, s);
    (void)EVP_CIPHER_CTX_reset(k->draw);
    s->port = hash_key(k->made.port);
    s->seq = hash_key(k->made.seq);
    s->id = hash_key(k->made.id);
    return ok;
}

/* Without keys, libcrypto and the pseudonyms refuse to encrypt; places and constants are zeros. */
static void forget(const zn_packet_keys *k, key_set *s)
{
    static const secrets zeros;
    s->epoch = NO_EPOCH;
    (void)zn_addr_pseudonym_rekey(s->pseudonym, zeros.pan, zeros.host, NULL);
    (void)EVP_CIPHER_CTX_reset(s->outside);
    (void)EVP_CIPHER_CTX_reset(s->pair);
    for (unsigned family = 0; family < 2; family++)
        zn_wipe(s->place[family], k->blocks[family].count * sizeof(zn_u128));
    zn_wipe(&s->port, sizeof s->port);
    zn_wipe(&s->seq, sizeof s->seq);
    zn_wipe(&s->id, sizeof s->id);
}

/* Moves to an epoch whose keys are not at hand. */
static int enter_new(zn_packet_keys *k, int64_t epoch)
{
    unsigned other = k->recent ^ 1u;
    key_set *s = &k->set[other];
    int rc = derive(k, epoch);
    bool ok;
    if (rc != 0)
        return rc;
    s->epoch = NO_EPOCH;
    ok = load(k, s);
    zn_wipe(&k->made, sizeof k->made);
    if (!ok) {
        forget(k, s);
        return -ZN_ERR_CRYPTO;
    }
    s->epoch = epoch;
    k->recent = other;
    k->now = s;
    if (epoch > k->newest) {
        k->newest = epoch;
        k->epochs++;
    }
    return 0;
}

uint64_t zn_packet_keys_epochs(const zn_packet_keys *k)
{
    return k->epochs;
}

int zn_packet_keys_enter(zn_packet_keys *k, int64_t epoch)
{
    if (ZN_LIKELY(k->now != NULL && k->now->epoch == epoch))
        return 0;
    k->now = NULL;
    if (epoch < 0)
        return -ZN_ERR_CONFIG;
    for (unsigned i = 0; i < SETS; i++)
        if (k->set[i].epoch == epoch) {
            k->recent = i;
            k->now = &k->set[i];
            return 0;
        }
    return enter_new(k, epoch);
}

void zn_packet_keys_rebase(zn_packet_keys *k)
{
    k->now = NULL;
    k->newest = NO_EPOCH;
    for (unsigned i = 0; i < SETS; i++)
        if (k->set[i].epoch != NO_EPOCH)
            forget(k, &k->set[i]);
}

/* ---- addresses ---- */

static int give_up(zn_addr *out)
{
    memset(out, 0, sizeof *out);
    return -ZN_ERR_CRYPTO;
}

/* The address in a block whose other bits are the first of `bits`. */
static zn_addr place_in(const zn_prefix blocks[2], bool v4, const block *bits)
{
    const zn_prefix *in = &blocks[v4 ? 0 : 1];
    zn_u128 x = in->first | number_of(bits) >> in->bits;
    static const uint8_t broadcast[4] = {255, 255, 255, 255};
    zn_addr a = zn_addr_of_number(x, v4);
    if (v4 && memcmp(a.byte + 12, broadcast, sizeof broadcast) == 0)
        a.byte[15] = 254;
    return a;
}

static int make_outside(const zn_packet_keys *k, const zn_addr *real, zn_addr *out)
{
    block b = block_of(real);
    if (!encrypt(k->now->outside, &b))
        return give_up(out);
    *out = place_in(outside_block, zn_addr_is_v4(real), &b);
    return 0;
}

int zn_packet_keys_client(zn_packet_keys *k, const zn_addr *real, bool internal, zn_addr *out)
{
    bool v4 = zn_addr_is_v4(real);
    const zn_kept_networks *kept = v4 ? &k->plan.v4.kept : &k->plan.v6.kept;
    const zn_prefix *root;
    uint32_t place;
    zn_u128 rest;
    if (k->now == NULL)
        return give_up(out);
    if (k->wide)
        return zn_addr_pseudonym_make(k->now->pseudonym, real, out, 1);
    place = kept->network[zn_kept_networks_find(kept, zn_addr_number(real))].root;
    if (!internal || place == 0)
        return make_outside(k, real, out);
    if (zn_addr_pseudonym_make(k->now->pseudonym, real, out, 1) != 0)
        return give_up(out);
    root = &k->blocks[v4 ? 0 : 1].root[place - 1];
    rest = zn_addr_number(out) & zn_bits_after(root->bits);
    *out = zn_addr_of_number(k->now->place[v4 ? 0 : 1][place - 1] | rest, v4);
    return 0;
}

int zn_packet_keys_pair(zn_packet_keys *k, const zn_addr *user, const zn_addr *real, zn_addr *out)
{
    static const zn_addr nobody;
    block b = block_of(user != NULL ? user : &nobody), address = block_of(real);
    if (k->now == NULL || !encrypt(k->now->pair, &b))
        return give_up(out);
    b.word[0] ^= address.word[0];
    b.word[1] ^= address.word[1];
    if (!encrypt(k->now->pair, &b))
        return give_up(out);
    *out = place_in(zn_addr_is_group(real) ? group_block : pair_block, zn_addr_is_v4(real), &b);
    return 0;
}

/* ---- ports and constants ---- */

/* Permutes numbers of `bits` bits, an even number, once. The number of the round comes before the
 * last `half` bits of a word, which are no fewer than half of `bits`. */
static uint32_t permute(const zn_hash_key *key, uint64_t tweak, unsigned bits, unsigned half,
                        uint32_t value)
{
    uint32_t mask = (1u << bits / 2) - 1, a = value >> bits / 2, b = value & mask;
    for (uint32_t round = 1; round <= ROUNDS; round++) {
        uint64_t words[2] = {tweak, (uint64_t)round << half | b};
        uint32_t c = a ^ ((uint32_t)zn_hash_words(key, words, 2) & mask);
        a = b;
        b = c;
    }
    return a << bits / 2 | b;
}

int zn_packet_keys_port(zn_packet_keys *k, const zn_addr *user, uint16_t port, uint16_t *out)
{
    unsigned bits = port >= FIRST_PORT ? PORT_BITS : SYSTEM_BITS;
    uint32_t first = port >= HIGH_PORT ? HIGH_PORT : port >= FIRST_PORT ? FIRST_PORT : 1;
    uint32_t last = port >= HIGH_PORT ? UINT16_MAX : HIGH_PORT - 1u, value = port;
    uint64_t words[3] = {0, 0, bits}, tweak;
    *out = 0;
    if (k->now == NULL)
        return -ZN_ERR_CRYPTO;
    if (port == 0)
        return 0;
    if (user != NULL)
        memcpy(words, user->byte, sizeof user->byte);
    words[0] = be64toh(words[0]);
    words[1] = be64toh(words[1]);
    tweak = zn_hash_words(&k->now->port, words, 3);
    do /* ends: the cycle of a permutation comes back to the port itself */
        value = permute(&k->now->port, tweak, bits, PORT_BITS / 2, value);
    while (value < first || value > last);
    *out = (uint16_t)value;
    return 0;
}

int zn_packet_keys_layer_id(const zn_packet_keys *k, zn_packet_id_kind kind, uint32_t id,
                            uint32_t *out)
{
    static const struct {
        uint32_t first, last;
        uint8_t bits;
    } range[] = {
        [ZN_PACKET_ID_VLAN] = {1, 4094, 12},
        [ZN_PACKET_ID_MPLS] = {16, (1u << 20) - 1, 20},
        [ZN_PACKET_ID_PPPOE] = {1, UINT16_MAX - 1, 16},
        [ZN_PACKET_ID_GRE] = {1, UINT32_MAX, 32},
        [ZN_PACKET_ID_VXLAN] = {1, (1u << 24) - 1, 24},
        [ZN_PACKET_ID_GTP] = {1, UINT32_MAX, 32},
        [ZN_PACKET_ID_L2TP_TUNNEL] = {1, UINT16_MAX, 16},
        [ZN_PACKET_ID_L2TP_SESSION] = {1, UINT16_MAX, 16},
        [ZN_PACKET_ID_LISP] = {1, (1u << 24) - 1, 24},
    };
    uint32_t first = range[kind].first, last = range[kind].last;
    uint64_t words[3] = {kind, range[kind].bits, 0}, tweak;
    *out = 0;
    if (k->now == NULL)
        return -ZN_ERR_CRYPTO;
    tweak = zn_hash_words(&k->now->id, words, 3);
    *out = id;
    if (id < first || id > last)
        return 0;
    do /* ends, as above */
        *out = permute(&k->now->id, tweak, range[kind].bits, LAYER_ID_BITS / 2, *out);
    while (*out < first || *out > last);
    return 0;
}

/* The hashes of the flow's words and 0, and of them and 1. */
static void hash_twice(const zn_hash_key *key, const uint64_t words[FLOW_WORDS], uint64_t out[2])
{
    zn_sip s = zn_sip_start(key);
    for (unsigned i = 0; i < FLOW_WORDS; i++)
        zn_sip_absorb(&s, words[i]);
    for (unsigned n = 0; n < 2; n++) {
        zn_sip end = s;
        zn_sip_absorb(&end, n);
        out[n] = zn_sip_words_end(&end, FLOW_WORDS + 1);
    }
}

void zn_packet_keys_shift(const zn_packet_keys *k, const uint64_t words[6], zn_packet_shift *out)
{
    const key_set *s = k->now != NULL ? k->now : &k->none;
    uint64_t constants[2], id[2];
    hash_twice(&s->seq, words, constants);
    hash_twice(&s->id, words, id);
    *out = (zn_packet_shift){
        .seq = {(uint32_t)constants[0], (uint32_t)(constants[0] >> 32)},
        .timestamp = {(uint32_t)constants[1], (uint32_t)(constants[1] >> 32)},
        .id = {.k0 = id[0], .k1 = id[1]},
    };
}

/* ---- the list of blocks ---- */

static void put_block(zn_text *out, const zn_prefix *of, bool v4, bool *first)
{
    char text[ZN_ADDR_TEXT_MAX];
    zn_addr a = zn_addr_of_number(of->first, v4);
    if (!*first)
        zn_text_literal(out, ", ");
    *first = false;
    zn_text_char(out, '"');
    zn_text_bytes(out, text, zn_addr_text(&a, text));
    zn_text_char(out, '/');
    zn_text_u64(out, of->bits);
    zn_text_char(out, '"');
}

/* Appends the ranges in use and the ranges that are long enough for a slot. */
static void put_ranges(const zn_addr_blocks *blocks, bool v4, zn_text *out, bool *first)
{
    uint32_t ranges = blocks->count - blocks->slots;
    for (uint32_t i = 0; i < ranges; i++)
        put_block(out, &blocks->root[i], v4, first);
    for (uint32_t i = 0; blocks->slots != 0 && i < blocks->spaces; i++)
        if (blocks->space[i].bits <= blocks->root[blocks->count - 1].bits)
            put_block(out, &blocks->space[i], v4, first);
}

void zn_packet_keys_blocks(const zn_packet_keys *k, zn_text *out)
{
    static const zn_prefix all = {0, 0};
    bool first = true;
    zn_text_char(out, '[');
    for (unsigned family = 0; family < 2; family++) {
        bool v4 = family == 0;
        if (k->wide)
            put_block(out, &all, v4, &first);
        else
            put_ranges(&k->blocks[family], v4, out, &first);
        put_block(out, &pair_block[family], v4, &first);
        put_block(out, &group_block[family], v4, &first);
        if (!k->wide)
            put_block(out, &outside_block[family], v4, &first);
    }
    zn_text_char(out, ']');
}
