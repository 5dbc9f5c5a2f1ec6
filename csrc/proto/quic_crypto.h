/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The cryptography of QUIC Initials and Retries (RFC 9001 5, RFC 9369 3.3): keys that follow from
 * the client's first Destination Connection ID, the protection that they take off or put on, and
 * the tag of a Retry. All of these keys are public: they prove a packet's form, not its sender.
 */
#ifndef ZN_PROTO_QUIC_CRYPTO_H
#define ZN_PROTO_QUIC_CRYPTO_H

#include "proto/quic.h"
#include "util/cursor.h"

#define ZN_QUIC_KEY_BYTES 16 /* AES-128 */
#define ZN_QUIC_IV_BYTES 12
#define ZN_QUIC_SECRET_BYTES 32 /* SHA-256 */

typedef struct zn_quic_keys {
    uint8_t key[ZN_QUIC_KEY_BYTES], iv[ZN_QUIC_IV_BYTES];
    uint8_t header_key[ZN_QUIC_KEY_BYTES];
} zn_quic_keys;

typedef enum zn_quic_side { ZN_QUIC_CLIENT, ZN_QUIC_SERVER } zn_quic_side;

/* The secret from which the keys of one side's Initials are expanded. */
typedef struct zn_quic_secret {
    uint8_t byte[ZN_QUIC_SECRET_BYTES];
} zn_quic_secret;

/* True for a version whose packets are read. */
bool zn_quic_reads(uint32_t version);

/* libcrypto's algorithms, fetched once, and a buffer for plaintext. Belongs to one thread. */
typedef struct zn_quic zn_quic;

/* Returns 0, or -ZN_ERR_CRYPTO / -ZN_ERR_CAPACITY with *err filled and *out NULL. */
int zn_quic_open(zn_quic **out, zn_error *err);
/* Wipes and frees; NULL is fine. */
void zn_quic_close(zn_quic *q);

/* The Initial secrets of both sides, by zn_quic_side, from the client's first Destination
 * Connection ID (after a Retry, the Retry's Source Connection ID). False when the version is not
 * read or libcrypto fails. */
bool zn_quic_derive(const zn_quic *q, uint32_t version, zn_span first_dcid,
                    zn_quic_secret sides[2]);
/* A side's Initial keys from its secret. False as above. */
bool zn_quic_expand(uint32_t version, const zn_quic_secret *side, zn_quic_keys *out);

/*
 * Removes the protection of an Initial. Returns ZN_DONE with *plain, which borrows q's buffer until
 * the next call; ZN_NEED_MORE when the packet is cut; ZN_MALFORMED when it is too short or too long
 * to be one; ZN_OTHER when it does not authenticate under these keys: not a byte of it may be used.
 */
zn_parse zn_quic_unseal(zn_quic *q, const zn_quic_keys *keys, const zn_quic_packet *packet,
                        zn_span *plain);

/* Returns the unprotected bytes before the frames of the packet that zn_quic_unseal opened last, or
 * an empty span if it opened no packet. Borrows q's buffer until the next call. */
zn_span zn_quic_front(const zn_quic *q);

/*
 * Seals the packet of `n` bytes in place: `header` bytes up to the packet number, then the number,
 * whose bytes (1 to 4) the last two bits of the first byte say, then frames; number and frames have
 * at least four bytes together. After it is space for ZN_QUIC_TAG_BYTES, which are written too. RFC
 * 9001 5.3 and 5.4. False when it is too short or too long, or libcrypto fails: then nothing in it
 * may be used.
 */
bool zn_quic_seal(zn_quic *q, const zn_quic_keys *keys, uint8_t *packet, size_t header, size_t n);

/* Makes the tag of a Retry, from all of it before the tag and the client's first Destination
 * Connection ID. False for a version that has no tag, or whose tag's key is not known, and when
 * libcrypto fails. */
bool zn_quic_retry_tag(uint32_t version, zn_span first_dcid, zn_span retry,
                       uint8_t tag[ZN_QUIC_TAG_BYTES]);
/* Returns whether a Retry's tag is right for the client's first Destination Connection ID; false
 * where it cannot be made. */
bool zn_quic_retry_is_whole(const zn_quic_packet *packet, zn_span first_dcid);

#endif
