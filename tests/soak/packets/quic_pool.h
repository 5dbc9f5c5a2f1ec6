/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUIC connections that many conversations use in turn, so that their keys are made once, and the
 * sealing and opening of Initials under them.
 */
#ifndef QUIC_POOL_H
#define QUIC_POOL_H

#include "talk.h"

typedef struct quic_pool quic_pool;

quic_pool *quic_pool_open(uint64_t seed);
void quic_pool_close(quic_pool *pool);
/* Writes an Initial of the client, as a datagram of TALK_QUIC_DATAGRAM bytes, with these bytes
 * before the tag. Returns where they start in it. */
uint32_t quic_pool_seal(quic_pool *pool, unsigned connection, const uint8_t *plain, uint32_t n,
                        uint8_t *out);
/* The server's answer with its connection ID, and a packet of the client to that. */
zn_span quic_pool_answer(const quic_pool *pool, unsigned connection);
zn_span quic_pool_proof(const quic_pool *pool, unsigned connection);
/* Opens the client's Initial that a datagram begins with; false: it does not open. *plain is in the
 * pool's memory until the next call. */
bool quic_pool_unseal(quic_pool *pool, unsigned connection, zn_span datagram, zn_span *plain);

#endif
