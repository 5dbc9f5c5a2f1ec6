/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Replacements of addresses, ports and numbers in anonymized packets, under keys of an epoch.
 *
 * Addresses of internal networks become pseudonyms inside blocks that no host of the Internet has.
 * So a monitor that knows private networks treats them as internal:
 *
 *   range       10.0.0.0/8, 172.16.0.0/12, 192.168.0.0/16, 100.64.0.0/10 and fc00::/7. An internal
 *               address in one stays in it: the range's bits are kept, those below are permuted as
 *               the pseudonyms of logs are (crypto/addr_pseudonym.h), with the range in place of
 *               /0, and at least its bits in place of the bits of a block.
 *   slot        The place of a public internal network: a network of the same length, drawn for
 *               each epoch, in a range that holds no internal network (IPv6: in fd00::/8, or else
 *               in the other half of fc00::/7; crypto/addr_blocks.h). A network inside another
 *               internal one lies in that one's slot. Bits below are permuted likewise.
 *
 * Other addresses become 27 or 107 pseudorandom bits in a block of their own. The block of clients
 * outside the internal networks is 248.0.0.0/5 (never 255.255.255.255) and 3fff:800::/21. The block
 * of addresses that replace a server in the flows of one user is 240.0.0.0/5 and 3fff::/21. The
 * address that replaces a multicast group has 24 or 112 pseudorandom bits in 239.0.0.0/8 or
 * ff0e::/16.
 *
 * If addresses are wide, all clients have the pseudonyms of logs, in no block.
 *
 * Labels of keys (crypto/keys.h): cryptopan, host, block, outside, pair, port, seq, id.
 */
#ifndef ZN_CRYPTO_PACKET_KEYS_H
#define ZN_CRYPTO_PACKET_KEYS_H

#include "crypto/addr_pseudonym.h"
#include "crypto/keys.h"
#include "util/hash.h"
#include "util/text.h"

typedef struct zn_packet_keys zn_packet_keys;

/*
 * Opens the keys of a run. choice: choice of the logs' pseudonyms, with `internal` set to the
 * users' networks for all kinds of pseudonyms; borrowed for the call. keys: keys of the epochs,
 * borrowed. wide: clients have the pseudonyms of logs. Returns 0; -ZN_ERR_CONFIG if the internal
 * networks do not fit into the ranges (the message has the sum, and says what to do), or if
 * 0.0.0.0/0 or ::/0 is one of them unless wide; -ZN_ERR_CAPACITY; -ZN_ERR_CRYPTO.
 */
int zn_packet_keys_open(zn_packet_keys **out, const zn_addr_choice *choice, bool wide,
                        zn_keys *keys, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_packet_keys_close(zn_packet_keys *k);

/* Makes the functions below use the keys of an epoch that zn_keys_epoch returned. Keeps the keys of
 * the last two epochs. Returns 0, or -ZN_ERR_CRYPTO / -ZN_ERR_CONFIG for an epoch whose secret is
 * wiped. */
int zn_packet_keys_enter(zn_packet_keys *k, int64_t epoch);
/* Returns the number of epochs entered, each later than all epochs before. */
uint64_t zn_packet_keys_epochs(const zn_packet_keys *k);
/* Forgets all keys, after the clock was set anew (zn_keys_rebase). */
void zn_packet_keys_rebase(zn_packet_keys *k);

/* The pseudonym of a client's address: in its range or slot where it is internal, else (and in no
 * internal network) in the block of outside clients. 0, or -ZN_ERR_CRYPTO with *out zero, as where
 * no epoch is entered. */
int zn_packet_keys_client(zn_packet_keys *k, const zn_addr *real, bool internal, zn_addr *out);
/* Writes the address that replaces `real` in the flows of `user`: a group if `real` is one. If
 * user is NULL, all users have that address. Returns 0, or -ZN_ERR_CRYPTO with *out zero. */
int zn_packet_keys_pair(zn_packet_keys *k, const zn_addr *user, const zn_addr *real, zn_addr *out);
/* Writes the port that replaces `port` in the flows of `user` (NULL: of all users). The ranges 1 ..
 * 1023, 1024 .. 32767 and 32768 .. 65535 are permuted, each in itself, so that a client's port
 * stays a client's port; 0 stays. Returns 0, or -ZN_ERR_CRYPTO with *out 0. */
int zn_packet_keys_port(zn_packet_keys *k, const zn_addr *user, uint16_t port, uint16_t *out);

/* Kinds of identifiers of a subscriber's line, a network or a tunnel in the headers around a
 * packet. */
typedef enum zn_packet_id_kind {
    ZN_PACKET_ID_VLAN = 1,
    ZN_PACKET_ID_MPLS,
    ZN_PACKET_ID_PPPOE,
    ZN_PACKET_ID_GRE,
    ZN_PACKET_ID_VXLAN, /* of Geneve, too */
    ZN_PACKET_ID_GTP,
    ZN_PACKET_ID_L2TP_TUNNEL,
    ZN_PACKET_ID_L2TP_SESSION,
    ZN_PACKET_ID_LISP
} zn_packet_id_kind;

/* Writes the identifier that replaces `id` in the epoch. Each kind has a permutation: of 1 .. 4094
 * (VLAN), of 16 .. 2^20 - 1 (MPLS), of 1 .. 65534 (PPPoE), and of all numbers but 0 for the other
 * kinds. Other numbers are reserved, and stay. Returns 0, or -ZN_ERR_CRYPTO with *out 0. */
int zn_packet_keys_layer_id(const zn_packet_keys *k, zn_packet_id_kind kind, uint32_t id,
                            uint32_t *out);

/* The constants of a flow. */
typedef struct zn_packet_shift {
    uint32_t seq[2];       /* added to the sequence numbers of each side, by tuple index */
    uint32_t timestamp[2]; /* added to its TCP timestamps */
    zn_hash_key id;        /* of zn_packet_id and zn_packet_long_id */
} zn_packet_shift;

/* Makes the constants of a flow that `words` identify: both ends' addresses, ports and protocol,
 * and the time of its first packet. Random ones where no epoch is entered. */
void zn_packet_keys_shift(const zn_packet_keys *k, const uint64_t words[6], zn_packet_shift *out);

/* Returns the IP identification that replaces `id` in the flow. */
static inline uint16_t zn_packet_id(const zn_packet_shift *shift, uint16_t id)
{
    zn_sip s = zn_sip_start(&shift->id);
    zn_sip_absorb(&s, id);
    return (uint16_t)zn_sip_words_end(&s, 1);
}

/* Returns the 32-bit identification that replaces `id` in the flow's IPv6 fragments. */
static inline uint32_t zn_packet_long_id(const zn_packet_shift *shift, uint32_t id)
{
    zn_sip s = zn_sip_start(&shift->id);
    zn_sip_absorb(&s, id);
    return (uint32_t)zn_sip_words_end(&s, 1);
}

/* Appends the blocks of the epoch to *out as a JSON list of texts such as "10.0.0.0/8": the ranges
 * in use, the three blocks of other addresses, and of slots the ranges that they are drawn in. If
 * addresses are wide: /0, and the blocks of addresses and groups in one user's flows. */
void zn_packet_keys_blocks(const zn_packet_keys *k, zn_text *out);

#endif
