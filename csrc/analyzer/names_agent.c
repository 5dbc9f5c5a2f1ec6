/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What the QUIC columns tell of a flow beside its name: analyzer/quic_facts.h. */
#include "analyzer/names_internal.h"
#include "analyzer/secondary.h"
#include "proto/quic.h"

static bool stays(uint8_t byte)
{
    bool letter = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
    return letter || (byte >= '0' && byte <= '9') || byte == '-' || byte == '.' || byte == '_' ||
           byte == '~';
}

/* Percent-encodes printable ASCII (RFC 3986 2.1), as Tstat does, so that no blank cuts a line and
 * no quote needs another. False for other bytes, and for what is longer than a name may be. */
static bool encode(zn_span raw, zn_hostname *out)
{
    static const char digits[] = "0123456789ABCDEF";
    zn_cursor c = zn_cursor_over_span(raw, true);
    out->n = 0;
    while (zn_cursor_left(&c) > 0) {
        uint8_t byte = zn_cursor_u8(&c);
        if (byte < 0x20 || byte > 0x7e || out->n + (stays(byte) ? 1 : 3) > ZN_HOSTNAME_MAX)
            return false;
        if (stays(byte)) {
            out->text[out->n++] = byte;
        } else {
            out->text[out->n++] = '%';
            out->text[out->n++] = (uint8_t)digits[byte >> 4];
            out->text[out->n++] = (uint8_t)digits[byte & 15];
        }
    }
    return true;
}

void zn_names_quic_hello(const zn_packet_context *s, const zn_tls_hello *hello)
{
    zn_quic_state *q = &zn_names_datagram(s->names, s->f)->quic;
    zn_span raw = zn_quic_user_agent(hello->transport_parameters);
    zn_hostname text;
    bool may_be_disclosed;
    q->facts.ech_bytes = hello->ech_bytes;
    if (raw.n == 0 || q->facts.agent != 0)
        return;
    may_be_disclosed = encode(raw, &text) && zn_roles_may_vote(s->names->roles, s->f);
    q->facts.agent = zn_secondary_observed(s->names, ZN_VOTE_AGENT, &text, may_be_disclosed);
    q->agent_waits = q->facts.agent != 0;
    zn_names_quic_agent(s);
}

void zn_names_quic_agent(const zn_packet_context *s)
{
    const zn_quic_state *q = &zn_names_datagram(s->names, s->f)->quic;
    if (q->agent_waits)
        (void)zn_secondary_vote(s->names, ZN_VOTE_AGENT, s->p->t_ns, s->flow, q->facts.agent);
}

void zn_names_quic_note(zn_quic_state *q, const zn_quic_packet *packet, bool from_client)
{
    if (packet->type == ZN_QUIC_NEGOTIATION)
        return;
    q->facts.version[from_client ? 0 : 1] = packet->version;
    if (packet->type == ZN_QUIC_ZERO_RTT && from_client && q->facts.zero_rtt < UINT16_MAX)
        q->facts.zero_rtt++;
}

const zn_quic_facts *zn_names_quic_facts(const zn_names *names, const zn_flow *f)
{
    if (f->tuple.proto != ZN_PROTO_UDP || f->datagram == 0 || f->protocol == ZN_PROTOCOL_DTLS)
        return NULL;
    return &zn_names_datagram(names, f)->quic.facts;
}
