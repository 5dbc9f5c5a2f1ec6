/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "quic_pool.h"

#include "proto/quic_crypto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID_BYTES 8
#define ANSWER_BYTES 300
#define NUMBER_BYTES 1

typedef struct connection {
    uint32_t version;
    zn_quic_keys keys; /* the client's */
    uint8_t first[ID_BYTES], client[ID_BYTES], server[ID_BYTES];
    uint8_t answer[ANSWER_BYTES];
    uint8_t proof[40];
} connection;

struct quic_pool {
    zn_quic *crypto;
    connection of[TALK_QUIC_POOL];
};

static void fail(const char *why)
{
    fprintf(stderr, "soak: %s\n", why);
    exit(2);
}

/* Writes a header up to the packet number of a packet of n bytes. Returns its length. */
static uint32_t put_header(const connection *c, const uint8_t *to, const uint8_t *from, uint32_t n,
                           uint8_t *out)
{
    uint32_t at = 0, rest;
    out[at++] = (uint8_t)(c->version == 1 ? 0xc0 : 0xd0);
    for (int shift = 24; shift >= 0; shift -= 8)
        out[at++] = (uint8_t)(c->version >> shift);
    out[at++] = ID_BYTES;
    memcpy(out + at, to, ID_BYTES);
    at += ID_BYTES;
    out[at++] = ID_BYTES;
    memcpy(out + at, from, ID_BYTES);
    at += ID_BYTES;
    out[at++] = 0; /* token */
    rest = n - at - 2;
    out[at++] = (uint8_t)(0x40 | rest >> 8);
    out[at++] = (uint8_t)rest;
    return at;
}

static void make_answer(quic_pool *pool, connection *c, const zn_quic_keys *keys)
{
    uint32_t header = put_header(c, c->client, c->server, ANSWER_BYTES, c->answer);
    c->answer[header] = 0;
    memset(c->answer + header + NUMBER_BYTES, 0, ANSWER_BYTES - header - NUMBER_BYTES);
    c->answer[header + NUMBER_BYTES] = ZN_QUIC_FRAME_PING;
    if (!zn_quic_seal(pool->crypto, keys, c->answer, header, ANSWER_BYTES - ZN_QUIC_TAG_BYTES))
        fail("no answer of QUIC");
}

static void make_connection(quic_pool *pool, connection *c, dice *d)
{
    zn_quic_secret sides[2];
    zn_quic_keys server;
    c->version = dice_percent(d, 70) ? 1 : 0x6b3343cf;
    for (unsigned i = 0; i < ID_BYTES; i++) {
        c->first[i] = (uint8_t)dice_roll(d);
        c->client[i] = (uint8_t)dice_roll(d);
        c->server[i] = (uint8_t)dice_roll(d);
    }
    if (!zn_quic_derive(pool->crypto, c->version, (zn_span){c->first, ID_BYTES}, sides) ||
        !zn_quic_expand(c->version, &sides[ZN_QUIC_CLIENT], &c->keys) ||
        !zn_quic_expand(c->version, &sides[ZN_QUIC_SERVER], &server))
        fail("no keys of QUIC");
    make_answer(pool, c, &server);
    memset(c->proof, 0x5a, sizeof c->proof);
    c->proof[0] = 0x41;
    memcpy(c->proof + 1, c->server, ID_BYTES);
}

quic_pool *quic_pool_open(uint64_t seed)
{
    quic_pool *pool = calloc(1, sizeof *pool);
    dice d = {seed};
    if (pool == NULL || zn_quic_open(&pool->crypto, NULL) != 0)
        fail("no QUIC");
    for (unsigned i = 0; i < TALK_QUIC_POOL; i++)
        make_connection(pool, &pool->of[i], &d);
    return pool;
}

void quic_pool_close(quic_pool *pool)
{
    zn_quic_close(pool->crypto);
    free(pool);
}

uint32_t quic_pool_seal(quic_pool *pool, unsigned connection_number, const uint8_t *plain,
                        uint32_t n, uint8_t *out)
{
    const connection *c = &pool->of[connection_number];
    uint32_t header = put_header(c, c->first, c->client, TALK_QUIC_DATAGRAM, out);
    uint32_t front = header + NUMBER_BYTES, end = TALK_QUIC_DATAGRAM - ZN_QUIC_TAG_BYTES;
    out[header] = 0;
    memcpy(out + front, plain, n);
    memset(out + front + n, 0, end - front - n);
    if (!zn_quic_seal(pool->crypto, &c->keys, out, header, end))
        fail("no Initial of QUIC");
    return front;
}

zn_span quic_pool_answer(const quic_pool *pool, unsigned connection_number)
{
    return (zn_span){pool->of[connection_number].answer, ANSWER_BYTES};
}

zn_span quic_pool_proof(const quic_pool *pool, unsigned connection_number)
{
    const connection *c = &pool->of[connection_number];
    return (zn_span){c->proof, sizeof c->proof};
}

bool quic_pool_unseal(quic_pool *pool, unsigned connection_number, zn_span datagram, zn_span *plain)
{
    zn_cursor c = zn_cursor_over_span(datagram, true);
    zn_quic_packet packet;
    return zn_quic_next_packet(&c, &packet) == ZN_DONE && packet.type == ZN_QUIC_INITIAL &&
           zn_quic_unseal(pool->crypto, &pool->of[connection_number].keys, &packet, plain) ==
               ZN_DONE;
}
