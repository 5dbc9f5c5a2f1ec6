/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/nameless_flow.h"

#include "analyzer/parse_state.h"

/* Returns whether all bytes of the client up to the segment's end were read, and begin nothing. */
static bool is_read(const zn_flow *f, const zn_packet *p)
{
    return ZN_STATE(f)->parse == ZN_PARSE_SEARCH && ZN_STATE(f)->stream == 0 && !f->names_dropped &&
           f->watch_seq == p->seq + p->payload_len;
}

bool zn_nameless_flow_see(zn_nameless *n, const zn_flow *f, const zn_packet *p)
{
    bool from_client = p->sender == f->client;
    bool first = p->seq == f->side[p->sender].isn + 1;
    if (p->payload.n == 0 || (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_RST)) != 0 || f->midstream ||
        (from_client && !is_read(f, p)))
        return false;
    if (from_client)
        zn_nameless_hear(n, p->payload);
    if (first)
        zn_nameless_open(n, p->payload, from_client);
    return n->known;
}
