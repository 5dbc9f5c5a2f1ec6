/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Peels a frame from the outside, header by header (packet/layers.h), down to the innermost TCP or
 * UDP header.
 *
 * A header that cannot be read ends the packet with a counter. One whose data the snapshot length
 * cut off does not: lengths come from the headers, and the payload is its captured part.
 *
 * packet/decode_fast.h decodes most frames without peeling, and most IP packets that peeling comes
 * to, with the same result.
 *
 * A UDP port of a tunnel may carry another protocol. Until an IP header was read in the tunnel,
 * bytes that do not fit make the packet the plain datagram again.
 */
#include "packet/decode.h"

#include "packet/layers.h"

#define HEADERS_MAX 16u
#define TCP_HEADER_BYTES 20u
#define UDP_HEADER_BYTES 8u

/* Returns true if a port of the datagram is a port of a tunnel. */
static bool may_be_tunnel(const zn_layers *l, zn_cursor udp)
{
    uint32_t ports = zn_cursor_be32(&udp);
    return zn_layers_port(l->ports, (uint16_t)ports) != ZN_HEADER_TRANSPORT ||
           zn_layers_port(l->ports, (uint16_t)(ports >> 16)) != ZN_HEADER_TRANSPORT;
}

/* Continues after an IP header. A fragment ends here, unless it is a first fragment that the
 * capture cut. */
static zn_stat enter_ip(zn_layers *l)
{
    zn_ip *ip = &l->ip;
    if (ZN_UNLIKELY(ip->fragment)) {
        bool cut = zn_cursor_left(&ip->payload) < ip->payload_wire;
        zn_stat why;
        if (!cut)
            return ZN_STAT_FRAGMENTS;
        if (ip->offset != 0)
            return ZN_STAT_DROP_IP_FRAGMENT;
        why = zn_ip_skip_extensions(ip);
        if (why != ZN_STAT_COUNT)
            return why;
        if (ip->offset != 0) /* a fragment of a fragment */
            return ZN_STAT_DROP_IP_FRAGMENT;
    }
    if (ZN_UNLIKELY(ip->authenticated))
        zn_layers_saw(l, ZN_STAT_IN_AH);
    if (ZN_LIKELY(ip->protocol == ZN_PROTO_TCP ||
                  (ip->protocol == ZN_PROTO_UDP && !may_be_tunnel(l, ip->payload))))
        return zn_layers_go(l, ZN_HEADER_TRANSPORT);
    l->c = ip->payload;
    l->missing = ip->payload_wire - (uint32_t)zn_cursor_left(&l->c);
    return zn_layers_protocol(l, ip->protocol);
}

zn_stat zn_peel_ip(zn_layers *l)
{
    zn_stat why;
    const uint8_t *header = l->c.p;
    if (l->in_ip && !zn_layers_nest(l))
        return ZN_STAT_DROP_ENCAPSULATION_DEPTH;
    why = zn_ip_decode(&l->c, zn_layers_wire(l), &l->ip);
    if (why != ZN_STAT_COUNT)
        return why;
    if (ZN_UNLIKELY(l->stack != NULL))
        zn_layer_stack_note(l->stack, ZN_LAYER_IP, header, 0);
    l->in_ip = true;
    l->unsure = false;
    return enter_ip(l);
}

typedef zn_stat peeler(zn_layers *l);

static zn_stat peel_unknown(zn_layers *l)
{
    (void)l;
    return ZN_STAT_DROP_LINK_TYPE;
}

static peeler *const peelers[] = {[ZN_HEADER_UNKNOWN] = peel_unknown,
#define ZN_PEELER(name, function) [ZN_HEADER_##name] = zn_peel_##function,
                                  ZN_HEADERS(ZN_PEELER)
#undef ZN_PEELER
};

/* Notes the header at the cursor, but for an IP header, which its peeler notes, and a type field,
 * which is a part of the header before it. A link's own header is not around anything. */
static void note_header(const zn_layers *l)
{
    static const uint8_t kinds[] = {
        [ZN_HEADER_ETHERNET] = ZN_LAYER_ETHERNET, [ZN_HEADER_PPP] = ZN_LAYER_PPP,
        [ZN_HEADER_PPPOE] = ZN_LAYER_PPPOE,       [ZN_HEADER_MPLS] = ZN_LAYER_MPLS,
        [ZN_HEADER_GRE] = ZN_LAYER_GRE,           [ZN_HEADER_ETHERIP] = ZN_LAYER_ETHERIP,
        [ZN_HEADER_VXLAN] = ZN_LAYER_VXLAN,       [ZN_HEADER_GENEVE] = ZN_LAYER_GENEVE,
        [ZN_HEADER_GTP] = ZN_LAYER_GTP,           [ZN_HEADER_L2TP] = ZN_LAYER_L2TP,
        [ZN_HEADER_CAPWAP] = ZN_LAYER_CAPWAP,     [ZN_HEADER_LISP] = ZN_LAYER_LISP,
        [ZN_HEADER_UDP] = ZN_LAYER_UDP,           [ZN_HEADER_TRANSPORT] = ZN_LAYER_NONE};
    bool covers = l->next == ZN_HEADER_MACSEC || l->next == ZN_HEADER_ARISTA ||
                  l->next == ZN_HEADER_TRILL || l->next == ZN_HEADER_NSH ||
                  l->next == ZN_HEADER_PPPOE || l->next == ZN_HEADER_MPLS;
    zn_layer_kind kind = (zn_layer_kind)kinds[l->next];
    if (l->next == ZN_HEADER_ETHERTYPE || l->next == ZN_HEADER_MPLS_UDP ||
        l->next == ZN_HEADER_GRE_UDP || l->next == ZN_HEADER_TEREDO ||
        (l->stack->n == 0 && !covers))
        return;
    zn_layer_stack_note(l->stack, kind == ZN_LAYER_NONE ? ZN_LAYER_OTHER : kind, l->c.p, 0);
}

/* Returns why a header could not be read. */
static zn_stat unreadable(const zn_layers *l)
{
    return l->in_ip ? ZN_STAT_DROP_ENCAPSULATION_MALFORMED : ZN_STAT_DROP_LINK_TRUNCATED;
}

/* Returns true for a reason that shows that the bytes after a tunnel's port are no such
 * tunnel's. */
static bool is_no_tunnel(zn_stat why)
{
    return why == ZN_STAT_DROP_ENCAPSULATION_MALFORMED || why == ZN_STAT_DROP_IP_MALFORMED ||
           why == ZN_STAT_DROP_LINK_TRUNCATED;
}

/* Decodes the next IP packet without peeling. Returns false, and changes nothing of *l, when it is
 * not of that kind. */
static bool take_fast(zn_layers *l, const zn_bucket_key *key, zn_packet *out)
{
    zn_cursor c = l->c;
    zn_span packet = zn_cursor_rest(&c);
    if (!zn_cursor_ok(&c) || packet.n < ZN_FAST_V4_HEADER_BYTES ||
        !(zn_header_u8(packet, 0) == ZN_FAST_V4_START ? zn_decode_fast_v4(packet, key, out)
                                                      : zn_decode_fast_v6(packet, key, out)))
        return false;
    if (l->in_ip && !zn_layers_nest(l))
        return false;
    out->fragment = false;
    l->next = ZN_HEADER_TRANSPORT;
    return true;
}

/* Peels down to the transport header, or to where the row of headers ends. *taken: *out has been
 * decoded already. */
static zn_stat peel_all(zn_layers *l, const zn_bucket_key *key, zn_packet *out, bool *taken)
{
    zn_stat why = ZN_STAT_COUNT;
    unsigned n = l->next == ZN_HEADER_ETHERTYPE; /* the link's header before the type field */
    while (n < HEADERS_MAX && l->next != ZN_HEADER_TRANSPORT) {
        bool at_ip = l->next == ZN_HEADER_IP, at_type = l->next == ZN_HEADER_ETHERTYPE;
        *taken = at_ip && take_fast(l, key, out);
        if (*taken)
            return ZN_STAT_COUNT;
        if (ZN_UNLIKELY(l->stack != NULL) && !at_ip)
            note_header(l);
        why = ZN_LIKELY(at_ip) ? zn_peel_ip(l) : peelers[l->next](l);
        if (ZN_UNLIKELY(!at_ip && !zn_cursor_ok(&l->c)))
            why = unreadable(l);
        if (ZN_UNLIKELY(why != ZN_STAT_COUNT))
            break;
        n += !at_type || l->next == ZN_HEADER_ETHERTYPE; /* a type field is no header, a tag is */
    }
    if (ZN_UNLIKELY(l->unsure) && is_no_tunnel(why)) {
        l->ip = l->plain.ip;
        l->tunnel_count = l->plain.tunnel_count;
        l->seen = l->plain.seen;
        return ZN_STAT_COUNT;
    }
    if (why == ZN_STAT_COUNT && l->next != ZN_HEADER_TRANSPORT)
        return ZN_STAT_DROP_ENCAPSULATION_DEPTH;
    return why;
}

/* Returns why a transport header that does not fit its bytes is not decoded. */
static zn_stat misfit(const zn_ip *ip, const zn_cursor *c)
{
    if (ip->fragment)
        return ZN_STAT_DROP_IP_FRAGMENT;
    return c->state == ZN_CURSOR_SHORT ? ZN_STAT_DROP_TRANSPORT_TRUNCATED
                                       : ZN_STAT_DROP_TRANSPORT_MALFORMED;
}

/* Takes the next n bytes, or as many of them as were captured. */
static zn_span take_captured(zn_cursor *c, size_t n)
{
    size_t left = zn_cursor_left(c);
    return zn_cursor_take(c, n < left ? n : left);
}

static zn_stat decode_tcp(const zn_ip *ip, uint16_t port[2], zn_packet *out)
{
    zn_cursor c = ip->payload;
    uint32_t header;
    uint16_t offset_and_flags;

    port[0] = zn_cursor_be16(&c);
    port[1] = zn_cursor_be16(&c);
    out->seq = zn_cursor_be32(&c);
    out->ack = zn_cursor_be32(&c);
    offset_and_flags = zn_cursor_be16(&c);
    out->window = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 4);
    header = (uint32_t)(offset_and_flags >> 12) * 4u;
    if (!zn_cursor_ok(&c))
        return misfit(ip, &c);
    if (header < TCP_HEADER_BYTES)
        return ZN_STAT_DROP_TRANSPORT_MALFORMED;
    if (header > ip->payload_wire)
        return misfit(ip, &c);
    out->tcp_flags = (uint8_t)offset_and_flags;
    out->options = (uint8_t)take_captured(&c, header - TCP_HEADER_BYTES).n;
    zn_packet_set_payload(out, zn_cursor_rest(&c));
    out->payload_len = ip->payload_wire - header;
    return ZN_STAT_COUNT;
}

static zn_stat decode_udp(const zn_ip *ip, uint16_t port[2], zn_packet *out)
{
    zn_cursor c = ip->payload;
    uint32_t length;

    port[0] = zn_cursor_be16(&c);
    port[1] = zn_cursor_be16(&c);
    length = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 2);
    if (!zn_cursor_ok(&c))
        return misfit(ip, &c);
    if (length == 0 || (ip->fragment && length > ip->payload_wire)) /* a jumbogram (RFC 2675) */
        length = ip->payload_wire;
    /* A receiver drops a datagram that is longer than the packet that it came in, and so does
     * this. */
    if (length < UDP_HEADER_BYTES || length > ip->payload_wire)
        return ZN_STAT_DROP_TRANSPORT_MALFORMED;
    out->seq = out->ack = 0;
    out->window = 0;
    out->tcp_flags = 0;
    out->options = 0;
    out->payload_len = length - UDP_HEADER_BYTES;
    zn_packet_set_payload(out, take_captured(&c, out->payload_len));
    return ZN_STAT_COUNT;
}

/* Copies the fields of the IP header to *out. */
static void set_ip(const zn_ip *ip, uint32_t ports, const zn_bucket_key *key, zn_packet *out)
{
    zn_addr_words src, dst;
    out->ttl = ip->ttl;
    out->ip_id = ip->v6 ? 0 : (uint16_t)ip->id;
    out->ip_bytes = ip->headers;
    out->fragment = ip->fragment;
    memcpy(&src, ip->src.byte, sizeof src);
    memcpy(&dst, ip->dst.byte, sizeof dst);
    zn_packet_set_tuple(out, src, dst, ports, ip->protocol, key);
}

/* Fills in a packet of another protocol than TCP and UDP. */
static void take_other(const zn_ip *ip, const zn_bucket_key *key, zn_packet *out)
{
    zn_cursor c = ip->payload;
    out->seq = out->ack = 0;
    out->window = 0;
    out->tcp_flags = 0;
    out->options = 0;
    out->payload_len = ip->payload_wire;
    zn_packet_set_payload(out, zn_cursor_rest(&c));
    set_ip(ip, 0, key, out);
}

/* Peels to the end, if `why` is ZN_STAT_COUNT, and decodes the transport header or the fragment
 * there. */
static zn_stat finish(zn_layers *l, zn_stat why, const zn_bucket_key *key, zn_packet *out,
                      zn_fragment *fragment)
{
    const zn_ip *ip = &l->ip;
    uint16_t port[2];
    bool taken = false;
    if (why == ZN_STAT_COUNT)
        why = peel_all(l, key, out, &taken);
    out->encapsulations = l->seen;
    out->tunnel_count = (uint8_t)l->tunnel_count;
    if (ZN_UNLIKELY(l->tunnel_count != 0))
        memcpy(out->outer->tunnels, l->tunnels, l->tunnel_count * sizeof l->tunnels[0]);
    if (ZN_UNLIKELY(l->stack != NULL) && !taken)
        zn_layer_stack_end(l->stack);
    if (why == ZN_STAT_FRAGMENTS) {
        zn_cursor rest = ip->payload;
        *fragment = (zn_fragment){ip->src, ip->dst, ip->id,   ip->offset,  ip->protocol,
                                  ip->ttl, ip->v6,  ip->more, ip->headers, zn_cursor_rest(&rest)};
    }
    if (why == ZN_STAT_DROP_NOT_TCP_UDP)
        take_other(ip, key, out);
    if (taken || why != ZN_STAT_COUNT)
        return why;
    why = ip->protocol == ZN_PROTO_TCP ? decode_tcp(ip, port, out) : decode_udp(ip, port, out);
    if (why != ZN_STAT_COUNT)
        return why;
    set_ip(ip, (uint32_t)port[0] << 16 | port[1], key, out);
    return ZN_STAT_COUNT;
}

/* Starts the layers of a frame. bytes: the bytes in which the headers lie. */
static void start(zn_layers *l, const zn_packet *out, zn_span bytes)
{
    l->stack = out->outer->wants_layers ? &out->outer->layers : NULL;
    if (ZN_UNLIKELY(l->stack != NULL))
        zn_layer_stack_start(l->stack, bytes);
    l->ports = out->outer->ports;
    l->seen = 0;
    l->tunnel_count = 0;
    l->in_ip = false;
    l->unsure = false;
}

zn_stat zn_packet_peel(const zn_packet_input *in, const zn_bucket_key *key, zn_packet *out,
                       zn_fragment *fragment)
{
    uint32_t captured = (uint32_t)in->bytes.n;
    uint32_t wire = in->wire > captured ? in->wire : captured;
    zn_layers l;
    zn_stat why;
    start(&l, out, in->bytes);
    l.c = zn_cursor_over_span(in->bytes, wire == captured);
    l.missing = wire - captured;
    why = zn_layers_link(&l, in->link_type);
    return finish(&l, why, key, out, fragment);
}

zn_stat zn_packet_decode_datagram(const zn_fragment *datagram, const zn_bucket_key *key,
                                  zn_packet *out, zn_fragment *fragment)
{
    zn_layers l;
    zn_stat why;
    start(&l, out, datagram->bytes);
    l.tunnel_count = out->tunnel_count;
    memcpy(l.tunnels, out->outer->tunnels, out->tunnel_count * sizeof l.tunnels[0]);
    l.in_ip = true;
    l.ip = (zn_ip){.src = datagram->src,
                   .dst = datagram->dst,
                   .id = datagram->id,
                   .payload = zn_cursor_over_span(datagram->bytes, true),
                   .payload_wire = (uint32_t)datagram->bytes.n,
                   .protocol = datagram->protocol,
                   .ttl = datagram->ttl,
                   .v6 = datagram->v6};
    l.c = l.ip.payload;
    zn_layers_note(&l, ZN_LAYER_OTHER, 0); /* the headers around the fragments */
    why = zn_ip_skip_extensions(&l.ip);
    if (why == ZN_STAT_COUNT)
        why = enter_ip(&l);
    return finish(&l, why, key, out, fragment);
}
