/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "frames.h"

#include <string.h>

#define CLIENT_ISN 1000u
#define SERVER_ISN 500000u

enum { FIN = 1, SYN = 2, RST = 4, PSH = 8, ACK = 16 };
enum { TCP_BYTES = 20, UDP_BYTES = 8, V4_BYTES = 20, V6_BYTES = 40 };
enum {
    IPPROTO_IPIP = 4,
    IPPROTO_TCP_ = 6,
    IPPROTO_UDP_ = 17,
    IPPROTO_IPV6_ = 41,
    IPPROTO_GRE_ = 47
};

static void put_be(uint8_t *out, uint64_t value, unsigned bytes)
{
    while (bytes-- > 0)
        *out++ = (uint8_t)(value >> 8 * bytes);
}

/* ---- addresses ------------------------------------------------------------------------------- */

static bool is_v6(const talk *t)
{
    return t->user % 2 != 0;
}

/* Users of even numbers have an IPv4 address, the others any of an IPv6 /56. */
static uint32_t user_v4(const talk *t)
{
    return 0x0a000000u | (uint32_t)t->user << 8 | 9;
}

static void put_client(const talk *t, uint8_t *out)
{
    if (is_v6(t)) {
        put_be(out, UINT64_C(0xfd00) << 48 | (uint64_t)t->user << 8 | (t->host & 0xff), 8);
        put_be(out + 8, t->host | 1, 8);
    } else {
        put_be(out, t->outer ? 0xac100001u | (t->host & 0xffff00) >> 4 : user_v4(t), 4);
    }
}

static void put_server(const talk *t, uint8_t *out)
{
    if (is_v6(t)) {
        put_be(out, UINT64_C(0x26000000) << 32, 8);
        put_be(out + 8, t->server + 1, 8);
    } else {
        put_be(out, 0x2d000001u + t->server, 4);
    }
}

/* ---- headers --------------------------------------------------------------------------------- */

static void put_v4(uint8_t *out, uint8_t protocol, uint32_t payload)
{
    memset(out, 0, V4_BYTES);
    out[0] = 0x45;
    put_be(out + 2, V4_BYTES + payload, 2);
    out[8] = 64;
    out[9] = protocol;
}

/* Writes the innermost IP header. Returns its length. */
static uint32_t put_ip(const talk *t, bool from_client, uint8_t protocol, uint32_t payload,
                       uint8_t *out)
{
    uint32_t bytes = is_v6(t) ? 16 : 4;
    uint8_t *ends;
    if (is_v6(t)) {
        memset(out, 0, 8);
        out[0] = 0x60;
        put_be(out + 4, payload, 2);
        out[6] = protocol;
        out[7] = 64;
        ends = out + 8;
    } else {
        put_v4(out, protocol, payload);
        ends = out + 12;
    }
    put_client(t, ends + (from_client ? 0 : bytes));
    put_server(t, ends + (from_client ? bytes : 0));
    return is_v6(t) ? V6_BYTES : V4_BYTES;
}

static uint32_t put_ethernet(uint16_t type, uint8_t *out)
{
    memset(out, 0x22, 12);
    put_be(out + 12, type, 2);
    return 14;
}

/* Writes a tunnel's own IPv4 header. */
static uint32_t put_outer(const talk *t, bool from_client, uint8_t protocol, uint32_t payload,
                          uint8_t *out)
{
    uint32_t client = t->outer ? user_v4(t) : 0xcb007101u, server = 0xcb007102u;
    put_v4(out, protocol, payload);
    put_be(out + 12, from_client ? client : server, 4);
    put_be(out + 16, from_client ? server : client, 4);
    return V4_BYTES;
}

/* Writes all that is before the innermost IP packet, of n bytes. */
static uint32_t put_link(const talk *t, bool from_client, uint32_t n, uint8_t *out)
{
    uint16_t type = is_v6(t) ? 0x86dd : 0x0800;
    uint32_t at;
    switch ((talk_tunnel)t->tunnel) {
    case TUNNEL_VLAN:
        at = put_ethernet(0x8100, out);
        put_be(out + at, 0x0007u << 16 | type, 4);
        return at + 4;
    case TUNNEL_QINQ:
        at = put_ethernet(0x88a8, out);
        put_be(out + at, UINT64_C(0x000581000007) << 16 | type, 8);
        return at + 8;
    case TUNNEL_MPLS:
        at = put_ethernet(0x8847, out);
        put_be(out + at, 0x00064140u, 4);
        return at + 4;
    case TUNNEL_PPPOE:
        at = put_ethernet(0x8864, out);
        put_be(out + at,
               UINT64_C(0x11000009) << 32 | (uint64_t)(n + 2) << 16 | (is_v6(t) ? 0x57 : 0x21), 8);
        return at + 8;
    case TUNNEL_GRE:
        at = put_ethernet(0x0800, out);
        at += put_outer(t, from_client, IPPROTO_GRE_, n + 4, out + at);
        put_be(out + at, type, 4);
        return at + 4;
    case TUNNEL_VXLAN:
        at = put_ethernet(0x0800, out);
        at += put_outer(t, from_client, IPPROTO_UDP_, n + 14 + 8 + UDP_BYTES, out + at);
        put_be(out + at,
               UINT64_C(40000) << 48 | UINT64_C(4789) << 32 |
                   (uint64_t)(n + 14 + 8 + UDP_BYTES) << 16,
               8);
        put_be(out + at + 8, UINT64_C(0x0800000000000700), 8);
        return at + 16 + put_ethernet(type, out + at + 16);
    case TUNNEL_IP:
        at = put_ethernet(0x0800, out);
        return at + put_outer(t, from_client, is_v6(t) ? IPPROTO_IPV6_ : IPPROTO_IPIP, n, out + at);
    default:
        return put_ethernet(type, out);
    }
}

static uint32_t put_tcp(const talk *t, const step *s, uint8_t *out)
{
    static const uint8_t flags[] = {[STEP_SYN] = SYN,          [STEP_SYN_ACK] = SYN | ACK,
                                    [STEP_ACK] = ACK,          [STEP_BYTES] = PSH | ACK,
                                    [STEP_SERVER] = PSH | ACK, [STEP_FIN] = FIN | ACK,
                                    [STEP_RST] = RST};
    bool from_client = s->kind != STEP_SYN_ACK && s->kind != STEP_SERVER;
    uint32_t ack = (from_client ? SERVER_ISN : CLIENT_ISN) + 1,
             seq = from_client ? CLIENT_ISN : SERVER_ISN;
    if (s->kind == STEP_BYTES || s->kind == STEP_SERVER)
        seq += 1 + s->from;
    else if (s->kind == STEP_ACK)
        seq++;
    else if (s->kind == STEP_FIN || s->kind == STEP_RST)
        seq += 1 + t->cut[t->pieces];
    if (from_client && t->wrong_ack)
        ack += 77;
    put_be(out,
           (uint64_t)(from_client ? t->client_port : t->server_port) << 16 |
               (from_client ? t->server_port : t->client_port),
           4);
    put_be(out + 4, seq, 4);
    put_be(out + 8, (flags[s->kind] & ACK) != 0 ? ack : 0, 4);
    put_be(out + 12, 0x5000u | flags[s->kind], 2);
    put_be(out + 14, UINT64_C(8192) << 32, 6);
    return TCP_BYTES;
}

static uint32_t put_udp(const talk *t, bool from_client, uint32_t payload, uint8_t *out)
{
    put_be(out,
           (uint64_t)(from_client ? t->client_port : t->server_port) << 16 |
               (from_client ? t->server_port : t->client_port),
           4);
    put_be(out + 4, (uint64_t)(payload + UDP_BYTES) << 16, 4);
    return UDP_BYTES;
}

/* ---- payload --------------------------------------------------------------------------------- */

static void add_part(frame_labels *labels, uint32_t at, uint32_t n, uint8_t message)
{
    if (labels->n < FRAME_PARTS)
        labels->part[labels->n++] = (frame_part){(uint16_t)at, (uint8_t)n, message};
}

/* Writes the client's stream from `from` to `to`, which is at `at` of what labels are found in. */
static void put_stream(const world *w, const talk *t, uint32_t from, uint32_t to, uint32_t at,
                       uint8_t *out, frame_labels *labels)
{
    for (uint8_t i = 0; i < t->messages; i++) {
        const talk_message *m = &t->message[i];
        uint32_t end = m->start + message_bytes(m->form), label = m->start + message_label(m->form);
        uint32_t first = from > m->start ? from : m->start, stop = to < end ? to : end;
        if (first >= stop)
            continue;
        labels->touched |= (uint8_t)(1u << i);
        message_write(m->form, w->name[t->name[m->name].name], t->upper, first - m->start,
                      stop - m->start, out + (first - from));
        if (message_label(m->form) == 0)
            continue;
        first = from > label ? from : label;
        stop = to < label + WORLD_LABEL ? to : label + WORLD_LABEL;
        if (first < stop)
            add_part(labels, at + first - from, stop - first, i);
    }
}

static uint32_t put_message(const world *w, const talk *t, message_form form, uint8_t message,
                            uint8_t *out, frame_labels *labels)
{
    uint32_t n = message_bytes(form);
    message_write(form, w->name[t->name[t->message[message].name].name], t->upper, 0, n, out);
    if (message_label(form) != 0)
        add_part(labels, message_label(form), WORLD_LABEL, message);
    return n;
}

/* Writes CRYPTO frames with the pieces of a step, in an order that it draws. */
static uint32_t put_initial(const world *w, quic_pool *pool, const talk *t, const step *s,
                            uint8_t *out, frame_labels *labels)
{
    uint8_t plain[TALK_QUIC_DATAGRAM];
    uint32_t at = 0, left = s->from, turn = s->to % t->pieces;
    labels->sealed = true;
    for (uint32_t i = 0; i < t->pieces; i++) {
        uint32_t piece = (i + turn) % t->pieces, from = t->cut[piece], to = t->cut[piece + 1];
        if ((left & UINT32_C(1) << piece) == 0)
            continue;
        plain[at++] = 6;
        put_be(plain + at, 0x4000u | from, 2);
        put_be(plain + at + 2, 0x4000u | (to - from), 2);
        at += 4;
        put_stream(w, t, from, to, at, plain + at, labels);
        at += to - from;
    }
    (void)quic_pool_seal(pool, t->quic, plain, at, out);
    return TALK_QUIC_DATAGRAM;
}

static uint32_t put_span(zn_span bytes, uint8_t *out)
{
    memcpy(out, bytes.p, bytes.n);
    return (uint32_t)bytes.n;
}

static uint32_t put_payload(const world *w, quic_pool *pool, const talk *t, const step *s,
                            uint8_t *out, frame_labels *labels)
{
    uint32_t n = 0;
    switch ((step_kind)s->kind) {
    case STEP_BYTES:
        n = s->to - s->from;
        put_stream(w, t, s->from, s->to, 0, out, labels);
        break;
    case STEP_SERVER: /* of DNS, it answers the first question */
        n = put_message(w, t, s->message, 0, out, labels);
        break;
    case STEP_QUERY:
        n = put_message(w, t, FORM_DNS, s->message, out, labels);
        break;
    case STEP_ANSWER:
        n = put_message(w, t, FORM_DNS_ANSWER, s->message, out, labels);
        break;
    case STEP_INITIAL:
        return put_initial(w, pool, t, s, out, labels);
    case STEP_QUIC_ANSWER:
        return put_span(quic_pool_answer(pool, t->quic), out);
    case STEP_QUIC_PROOF:
        return put_span(quic_pool_proof(pool, t->quic), out);
    default:
        break;
    }
    if (s->spoiled != 0)
        out[s->spoiled - 1] ^= 1;
    return n;
}

/* ---- frames ---------------------------------------------------------------------------------- */

uint32_t frame_write(const world *w, quic_pool *pool, const talk *t, const step *s, uint8_t *out,
                     frame_labels *labels)
{
    uint8_t payload[MESSAGE_MAX + TALK_QUIC_DATAGRAM];
    bool udp = t->kind == TALK_DNS || t->kind == TALK_QUIC;
    bool from_client = s->kind != STEP_SYN_ACK && s->kind != STEP_SERVER &&
                       s->kind != STEP_ANSWER && s->kind != STEP_QUIC_ANSWER;
    uint32_t transport = udp ? UDP_BYTES : TCP_BYTES, ip = is_v6(t) ? V6_BYTES : V4_BYTES, n, at;
    labels->n = labels->touched = 0;
    labels->sealed = false;
    n = put_payload(w, pool, t, s, payload, labels);
    at = put_link(t, from_client, ip + transport + n, out);
    at += put_ip(t, from_client, udp ? IPPROTO_UDP_ : IPPROTO_TCP_, transport + n, out + at);
    at += udp ? put_udp(t, from_client, n, out + at) : put_tcp(t, s, out + at);
    memcpy(out + at, payload, n);
    return at + n;
}
