/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/doh.h"

#include "analyzer/analyzers.h"
#include "proto/dns.h"
#include "proto/doh.h"

/* Returns the context in which names are names of DNS. */
static zn_packet_context dns_context(const zn_packet_context *s)
{
    zn_packet_context dns = *s;
    dns.analyzer = &s->names->analyzers[ZN_ANALYZER_DNS];
    return dns;
}

/* Takes the question of a message. Returns ZN_DONE, ZN_NEED_MORE if the question is cut, or
 * ZN_OTHER if the message is no query of DNS. */
static zn_parse take_question(const zn_packet_context *s, zn_span message, bool whole)
{
    zn_packet_context dns = dns_context(s);
    zn_dns_question q;
    zn_parse state = zn_dns_question_parse(message, whole, &q);
    if (state != ZN_DONE || q.response || q.opcode != 0)
        return state == ZN_NEED_MORE ? ZN_NEED_MORE : ZN_OTHER;
    if (q.name_odd)
        zn_names_rejected(&dns, ZN_STAT_SUPPRESSED_INVALID);
    else
        (void)zn_names_observed(&dns, (zn_span){q.name, q.name_bytes});
    if (q.more)
        zn_names_rejected(&dns, ZN_STAT_SUPPRESSED_INVALID);
    return ZN_DONE;
}

void zn_doh_body(const zn_packet_context *s, zn_span message, bool whole)
{
    zn_packet_context dns = dns_context(s);
    zn_parse state = take_question(s, message, whole);
    if (state == ZN_NEED_MORE)
        zn_doh_lost(s);
    else if (state != ZN_DONE)
        zn_names_rejected(&dns, ZN_STAT_SUPPRESSED_INVALID);
}

void zn_doh_target(const zn_packet_context *s, zn_span target)
{
    uint8_t message[ZN_DOH_MESSAGE_MAX];
    bool whole;
    zn_span bytes = zn_doh_parameter(target, message, &whole);
    /* Other services have a parameter of this name, too. */
    if (bytes.n != 0)
        (void)take_question(s, bytes, whole);
}

void zn_doh_lost(const zn_packet_context *s)
{
    zn_packet_context dns = dns_context(s);
    zn_names_rejected(&dns, ZN_STAT_SUPPRESSED_INCOMPLETE);
}
