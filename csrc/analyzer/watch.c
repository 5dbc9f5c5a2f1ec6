/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/watch.h"

#include "analyzer/analyzers.h"
#include "analyzer/parse_state.h"

/* Packets of a flow before analyzers are asked. The first ones are of a handshake and looked into
 * anyway, and most flows that end before never have a packet to skip. */
#define ASKED_AFTER 6u

/* Adds the packets whose user has to be checked, and all while the client is not known yet. */
static void need_role(const zn_flow *f, zn_watch_need *need)
{
    bool any = f->user_outside || ZN_STATE(f)->addr_vote == ZN_ADDR_PENDING;
    zn_watch_need_both(need, any ? ZN_WATCH_TUNNEL | ZN_WATCH_PACKET : ZN_WATCH_TUNNEL);
}

/* Returns true if messages are looked for by the start of the client's segments alone. The first
 * bytes that no analyzer recognises are looked into, whatever their start (analyzer/unread). */
static bool is_searched_by_start(const zn_flow *f)
{
    return ZN_STATE(f)->parse == ZN_PARSE_SEARCH && ZN_STATE(f)->parse_tries != 0 &&
           ZN_STATE(f)->stream == 0 && ZN_STATE(f)->protocol == ZN_ANALYZER_NONE &&
           ZN_FACTS(f)->client_bytes != ZN_CLIENT_OPEN && !zn_service_has_dns_port(&f->tuple);
}

/* Adds the packets of a TCP flow that the search for names, and the votes for the server's address,
 * need. */
static void names_need(const zn_names *names, const zn_flow *f, zn_watch_need *need)
{
    (void)names;
    if (!ZN_FACTS(f)->client_marked)
        zn_watch_need_both(need, ZN_WATCH_PACKET);
    if (!zn_flow_has_user(f))
        return;
    need_role(f, need);
    if (ZN_STATE(f)->parse == ZN_PARSE_OFF)
        return;
    if (ZN_FACTS(f)->client_bytes == ZN_CLIENT_SILENT && !f->midstream)
        zn_watch_need_both(need, ZN_WATCH_PACKET); /* for the server's acknowledgements */
    if (ZN_STATE(f)->parse == ZN_PARSE_SEARCH &&
        f->midstream) /* the server may turn out to be the client */
        need->side[1 - f->client] |= ZN_WATCH_PAYLOAD;
    if (is_searched_by_start(f)) {
        need->side[f->client] |= ZN_WATCH_START | ZN_WATCH_BEFORE;
        need->follows = true;
    } else if (zn_parse_state_of(f) == ZN_PARSE_NEXT && ZN_STATE(f)->stream == 0) {
        need->side[f->client] |= ZN_WATCH_BEFORE;
    } else {
        need->side[f->client] |= ZN_WATCH_PAYLOAD;
    }
}

/* Adds the needs of a UDP flow: ZN_WATCH_START means a long header, or a start that
 * analyzer/service recognises. */
static void datagrams_need(const zn_flow *f, zn_watch_need *need)
{
    if (ZN_STATE(f)->protocol != ZN_ANALYZER_QUIC || !f->client_acked || !zn_flow_has_user(f) ||
        !ZN_FACTS(f)->client_marked || zn_service_has_dns_port(&f->tuple)) {
        zn_watch_need_both(need, ZN_WATCH_ALL);
        return;
    }
    need_role(f, need);
    for (unsigned i = 0; i < 2; i++)
        need->side[i] |= f->side[i].udp_type == ZN_UDP_OTHER ? ZN_WATCH_START : ZN_WATCH_PAYLOAD;
}

/* Functions that each add the packets that one analyzer needs of a TCP flow. */
static void (*const analyzers[])(const zn_names *names, const zn_flow *f, zn_watch_need *need) = {
    names_need,
    zn_service_need,
    zn_layer7_need,
};

static void ask_segments(const zn_names *names, const zn_flow *f, zn_watch_need *need)
{
    for (size_t i = 0; i < sizeof analyzers / sizeof analyzers[0]; i++)
        analyzers[i](names, f, need);
    for (unsigned i = 0; i < 2; i++) {
        bool both = (~need->side[i] & (ZN_WATCH_START | ZN_WATCH_BEFORE)) == 0;
        /* Bits of two analyzers, which do not mean what both of one mean. */
        if (both && !need->follows)
            need->side[i] = ((need->side[i] | ZN_WATCH_PAYLOAD) & ~ZN_WATCH_BEFORE) & 0xff;
    }
}

void zn_watch_ask(const zn_names *names, zn_flow *f)
{
    zn_watch_need need = {{0, 0}, UINT32_MAX, false};
    if (f->side[0].packets + f->side[1].packets < ASKED_AFTER) { /* not worth the question */
        f->watch[0] = f->watch[1] = ZN_WATCH_ALL | ZN_FLOW_COUNT_SLOWLY;
        return;
    }
    if (f->tuple.proto == ZN_PROTO_TCP)
        ask_segments(names, f, &need);
    else
        datagrams_need(f, &need);
    f->watch[0] = need.side[0] | ZN_FLOW_COUNT_SLOWLY;
    f->watch[1] = need.side[1] | ZN_FLOW_COUNT_SLOWLY;
    f->watch_left = need.left == UINT32_MAX  ? 0
                    : need.left >= UINT8_MAX ? UINT8_MAX
                                             : (uint8_t)need.left;
}
