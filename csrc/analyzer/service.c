/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/service.h"

#include "analyzer/kinds.h"
#include "proto/dns.h"
#include "proto/service_signature.h"

#define SILENT_PACKETS 12u /* in which a first word must come */
#define ANSWER_PACKETS 60u /* in which the first word must be answered */
#define RTP_PORT_MIN 1025  /* RTP goes between ports that no service has to itself */

/* Values of zn_flow_state.service: the words that came so far; zn_flow.watch_left counts the
 * packets in which more may come. From ZN_SERVICE_KNOWN on no packet is looked at any more. */
enum {
    SAID_NOTHING,
    SAID_HTTP_REQUEST,
    SAID_SMTP_GREETING,
    SAID_POP3_GREETING,
    SAID_IMAP_GREETING,
    SAID_IMAP_COMMAND,
    SAID_SSH_SERVER,
    SAID_TLS_CLIENT_HELLO = ZN_SERVICE_TLS_HELLO,
    IS_SILENT, /* no word in SILENT_PACKETS: the next payload is the last that may have one */
    IS_HTTP = ZN_SERVICE_KNOWN,
    IS_SMTP,
    IS_POP3,
    IS_IMAP,
    IS_SSH,
    IS_TLS = ZN_SERVICE_TLS,
    IS_UNKNOWN
};

/* A value of zn_flow_side.udp_type besides ZN_UDP_*: the side was taken for RTP, and is not. */
#define UDP_NOT_RTP 255

static const uint32_t connection[] = {
    [IS_HTTP] = ZN_CONNECTION_HTTP, [IS_SMTP] = ZN_CONNECTION_SMTP, [IS_POP3] = ZN_CONNECTION_POP3,
    [IS_IMAP] = ZN_CONNECTION_IMAP, [IS_SSH] = ZN_CONNECTION_SSH,   [IS_TLS] = ZN_CONNECTION_TLS,
};

static uint8_t first_word(zn_service_signature signature, bool from_client)
{
    switch (signature) {
    case ZN_SIGNATURE_HTTP_REQUEST:
    case ZN_SIGNATURE_HTTP_POST:
        return from_client ? SAID_HTTP_REQUEST : SAID_NOTHING;
    case ZN_SIGNATURE_TLS_CLIENT_HELLO:
        return from_client ? SAID_TLS_CLIENT_HELLO : SAID_NOTHING;
    case ZN_SIGNATURE_SMTP_GREETING:
        return from_client ? SAID_NOTHING : SAID_SMTP_GREETING;
    case ZN_SIGNATURE_POP3_GREETING:
        return from_client ? SAID_NOTHING : SAID_POP3_GREETING;
    case ZN_SIGNATURE_IMAP_GREETING:
        return from_client ? SAID_NOTHING : SAID_IMAP_GREETING;
    case ZN_SIGNATURE_SSH:
        return from_client ? SAID_NOTHING : SAID_SSH_SERVER;
    default:
        return SAID_NOTHING;
    }
}

/* The state after `said` and a segment. */
static uint8_t answer(uint8_t said, zn_span segment, bool from_client)
{
    zn_service_signature signature = zn_service_signature_of(segment);
    switch (said) {
    case SAID_NOTHING:
        return first_word(signature, from_client);
    case IS_SILENT: {
        uint8_t word = first_word(signature, from_client);
        return word == SAID_NOTHING ? said : word;
    }
    case SAID_HTTP_REQUEST:
        return !from_client && signature == ZN_SIGNATURE_HTTP_RESPONSE ? IS_HTTP : said;
    case SAID_TLS_CLIENT_HELLO:
        return !from_client && signature == ZN_SIGNATURE_TLS_SERVER_HELLO ? IS_TLS : said;
    case SAID_SMTP_GREETING:
        return from_client && signature == ZN_SIGNATURE_SMTP_HELO ? IS_SMTP : said;
    case SAID_POP3_GREETING:
        return from_client && signature == ZN_SIGNATURE_POP3_COMMAND ? IS_POP3 : said;
    case SAID_IMAP_GREETING:
        return from_client && zn_service_is_imap(segment) ? SAID_IMAP_COMMAND : said;
    case SAID_IMAP_COMMAND:
        return !from_client && zn_service_is_imap(segment) ? IS_IMAP : said;
    case SAID_SSH_SERVER:
        return from_client && signature == ZN_SIGNATURE_SSH ? IS_SSH : said;
    default:
        return said;
    }
}

void zn_service_open(zn_flow *f)
{
    if (f->tuple.proto == ZN_PROTO_TCP)
        f->watch_left = SILENT_PACKETS + 1;
}

void zn_service_need(const struct zn_names *names, const zn_flow *f, zn_watch_need *need)
{
    (void)names;
    if (ZN_STATE(f)->service >= IS_HTTP)
        return;
    zn_watch_need_after(need, f->watch_left);
    if (ZN_STATE(f)->service != SAID_NOTHING)
        zn_watch_need_both(need, ZN_WATCH_PAYLOAD);
    else
        zn_watch_need_both(need, ZN_WATCH_START);
}

/* Counts on to ANSWER_PACKETS in all, after SILENT_PACKETS or a first word. */
static void count_on(zn_flow *f)
{
    f->watch_left = (uint8_t)(f->watch_left + ANSWER_PACKETS - SILENT_PACKETS);
}

void zn_service_wait(zn_flow *f)
{
    if (ZN_STATE(f)->service != SAID_NOTHING || f->watch_left != 0 ||
        f->tuple.proto != ZN_PROTO_TCP)
        return;
    ZN_STATE(f)->service = IS_SILENT;
    count_on(f);
}

/* Takes a segment, while the service of the flow is not known. */
static void see_segment(zn_flow *f, const zn_packet *p)
{
    uint8_t said = ZN_STATE(f)->service;
    ZN_STATE(f)->service = answer(said, p->payload, p->sender == f->client) & 0xfu;
    if (ZN_STATE(f)->service >= IS_HTTP)
        return;
    if (said == SAID_NOTHING && ZN_STATE(f)->service != SAID_NOTHING)
        count_on(f);
    else if (f->watch_left == 0 || ZN_STATE(f)->service == IS_SILENT)
        ZN_STATE(f)->service = IS_UNKNOWN;
}

/* Takes a datagram that looks like RTP or RTCP. From another source, or out of sequence, it begins
 * the suspicion anew. */
static void see_media(const zn_flow *f, zn_flow_side *side, const zn_datagram_signature *signature)
{
    bool second = signature->source == side->udp_first &&
                  (signature->kind == ZN_DATAGRAM_RTCP || signature->sequence == side->udp_second);
    if (side->udp_type == ZN_UDP_RTP)
        return;
    if (side->udp_type == ZN_UDP_RTP_ONCE && second) {
        side->udp_type = ZN_UDP_RTP;
    } else if (f->tuple.port[0] >= RTP_PORT_MIN && f->tuple.port[1] >= RTP_PORT_MIN) {
        side->udp_type = ZN_UDP_RTP_ONCE;
        side->udp_first = signature->source;
        side->udp_second = (uint16_t)(signature->sequence + 1);
    }
}

/* Types that hosts ask for: RFC 1035's, AAAA, SRV, RRSIG, SVCB, HTTPS and the questions. */
static bool is_common_type(uint16_t type)
{
    return (type >= 1 && type <= 16) || type == 28 || type == 33 || type == 46 || type == 64 ||
           type == 65 || (type >= 252 && type <= 255);
}

void zn_service_question(zn_flow_side *side, const zn_dns_question *q)
{
    if (side->udp_type == ZN_UDP_OTHER && is_common_type(q->type) && q->name_bytes != 0 &&
        q->name[0] != '_')
        side->udp_type = ZN_UDP_DNS;
}

/* Reads the question of a datagram that no analyzer has read. */
static void see_question(const zn_flow *f, zn_flow_side *side, const zn_packet *p)
{
    zn_dns_question q;
    if (zn_service_has_dns_port(&f->tuple) &&
        zn_dns_question_parse(p->payload, zn_packet_payload_whole(p), &q) == ZN_DONE)
        zn_service_question(side, &q);
}

static void see_datagram(zn_flow *f, const zn_packet *p)
{
    zn_flow_side *side = &f->side[p->sender];
    bool media = side->udp_type == ZN_UDP_RTP_ONCE || side->udp_type == ZN_UDP_RTP;
    zn_datagram_signature signature;
    if (side->udp_type != ZN_UDP_OTHER && !media)
        return;
    if (!media)
        see_question(f, side, p);
    if (side->udp_type == ZN_UDP_DNS)
        return;
    signature = zn_datagram_signature_of(p->payload, p->payload_len);
    switch (signature.kind) {
    case ZN_DATAGRAM_RTP:
    case ZN_DATAGRAM_RTCP:
        see_media(f, side, &signature);
        break;
    case ZN_DATAGRAM_SIP:
        side->udp_type = ZN_UDP_SIP;
        break;
    case ZN_DATAGRAM_TEREDO:
        side->udp_type = ZN_UDP_TEREDO;
        break;
    case ZN_DATAGRAM_DTLS:
        if (!media)
            side->udp_type = ZN_UDP_DTLS;
        break;
    case ZN_DATAGRAM_MPEG_TS:
        f->side[0].udp_type = f->side[1].udp_type = ZN_UDP_MPEG_TS;
        break;
    case ZN_DATAGRAM_OTHER:
        if (media)
            side->udp_type = UDP_NOT_RTP;
        break;
    case ZN_DATAGRAM_RTP_COMPANION:
        break;
    }
}

void zn_service_packet(zn_flow *f, const zn_packet *p)
{
    if (p->payload.n == 0 || ZN_STATE(f)->service >= IS_HTTP)
        return;
    if (p->tuple.proto == ZN_PROTO_TCP)
        see_segment(f, p);
    else
        see_datagram(f, p);
}

uint32_t zn_service_connection(const zn_flow *f)
{
    return ZN_STATE(f)->service < sizeof connection / sizeof connection[0]
               ? connection[ZN_STATE(f)->service]
               : 0;
}

uint8_t zn_service_udp_type(const zn_flow *f, unsigned side)
{
    uint8_t type = f->side[side].udp_type; /* of a TCP flow, something else */
    return type == UDP_NOT_RTP || f->tuple.proto != ZN_PROTO_UDP ? ZN_UDP_OTHER : type;
}
