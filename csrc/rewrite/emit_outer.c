/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/emit_outer.h"

#include "packet/layers.h"

#define MPLS_LABEL_SHIFT 12u
#define MPLS_BOTTOM 0x100u
#define VLAN_ID 0x0fffu

enum { GRE_CHECKSUM_OR_ROUTES = 0xc000, GRE_KEY = 0x2000, GRE_VERSION = 0x0007 };
enum { GRE_ERSPAN = 0x88be, GRE_WCCP = 0x883e };
enum { L2TP_LENGTH = 0x4000, VXLAN_NEXT = 0x04, LISP_INSTANCE = 0x08 };

/* Headers that were made so far. */
typedef struct outer {
    zn_packet_output *of;
    const zn_addr *user;
    const zn_tunnel_ports *ports;
    zn_addr cut; /* the user's prefix */
    zn_build_encapsulation made;
    unsigned n, addresses;
    bool stripped; /* true if headers were left out */
} outer;

/* Leaves out all headers so far. */
static void strip(outer *o)
{
    memset(&o->made, 0, sizeof o->made);
    o->n = o->addresses = 0;
    o->stripped = true;
}

/* Adds a header. Leaves out the headers before it if it cannot follow the last of them. */
static void add(outer *o, const zn_build_layer *l)
{
    bool starts = l->kind == ZN_LAYER_VLAN || l->kind == ZN_LAYER_MPLS ||
                  l->kind == ZN_LAYER_PPPOE || l->kind == ZN_LAYER_IP;
    if (o->n != 0 &&
        (o->n == ZN_LAYERS_MAX || !zn_build_layer_follows(&o->made.layer[o->n - 1], l)))
        strip(o);
    if (o->n != 0 || starts)
        o->made.layer[o->n++] = *l;
    else /* the frame has its own Ethernet header, and no other kind can be first */
        o->stripped = true;
}

/* ---- replacements of fields ------------------------------------------------------------------ */

static uint8_t ttl_of(const outer *o, uint8_t ttl)
{
    return o->of->keep_ttl ? ttl : ttl <= 64 ? 64 : ttl <= 128 ? 128 : 255;
}

static uint32_t id_of(const outer *o, zn_packet_id_kind kind, uint32_t id)
{
    uint32_t out;
    (void)zn_packet_keys_layer_id(o->of->gate.keys, kind, id,
                                  &out); /* cannot fail in an epoch that was entered */
    return out;
}

/* Makes the pseudonym of an address. Returns false if that fails. */
static bool make_address(const outer *o, const zn_addr *real, zn_addr *out)
{
    const zn_packet_gate *g = &o->of->gate;
    const zn_roles *roles = g->policy->roles;
    bool internal = zn_packet_address_is_internal(roles, real);
    bool linkable = g->server_addresses == ZN_SERVER_ADDRESSES_LINKABLE;
    if (zn_packet_address_is_open(real)) {
        *out = *real;
        return true;
    }
    if (internal || zn_addr_equal(real, o->user))
        return zn_packet_keys_client(g->keys, real, internal, out) == 0;
    return zn_packet_keys_pair(g->keys, linkable ? NULL : &o->cut, real, out) == 0;
}

/* Returns the replacement of a port. The port of a tunnel's protocol stays. Other ports stay under
 * no option, because they are often a hash of the addresses and ports inside (RFC 7348 5). */
static uint32_t port_of(const outer *o, uint16_t port)
{
    uint16_t out = port;
    if (zn_layers_port(o->ports, port) == ZN_HEADER_TRANSPORT)
        (void)zn_packet_keys_port(o->of->gate.keys, &o->cut, port, &out); /* 0 if it fails */
    return out;
}

/* ---- one header ------------------------------------------------------------------------------ */

static void take_vlan(outer *o, zn_cursor c, uint16_t ethertype)
{
    uint32_t tag = zn_cursor_be16(&c);
    zn_build_layer l = {.kind = ZN_LAYER_VLAN, .number = ethertype};
    l.id = (tag & ~VLAN_ID) | id_of(o, ZN_PACKET_ID_VLAN, tag & VLAN_ID);
    add(o, &l);
}

/* Adds a header for each label. next is the header that the decoder found behind the labels. */
static void take_mpls(outer *o, zn_cursor c, zn_span next)
{
    static const zn_build_layer control = {.kind = ZN_LAYER_CONTROL};
    uint32_t entry;
    do {
        zn_build_layer l = {.kind = ZN_LAYER_MPLS};
        entry = zn_cursor_be32(&c);
        l.id = id_of(o, ZN_PACKET_ID_MPLS, entry >> MPLS_LABEL_SHIFT) << MPLS_LABEL_SHIFT;
        l.id |= (entry & 0xf00) | ttl_of(o, (uint8_t)entry);
        add(o, &l);
    } while ((entry & MPLS_BOTTOM) == 0 && zn_cursor_ok(&c));
    if (next.n != 0 && next.n + 4 == zn_cursor_left(&c))
        add(o, &control);
}

/* Returns the DSCP and ECN bits. Sets *whole if the packet must not be fragmented. */
static uint16_t service_of(zn_cursor c, bool v6, bool *whole)
{
    uint16_t word = zn_cursor_be16(&c);
    zn_cursor_skip(&c, 4);
    *whole = !v6 && (zn_cursor_u8(&c) & 0x40) != 0;
    return v6 ? word >> 4 & 0xff : word & 0xff;
}

static void take_ip(outer *o, zn_cursor c)
{
    zn_build_layer l = {.kind = ZN_LAYER_IP};
    zn_cursor start = c;
    zn_tuple ends = {.port = {0, 0}};
    zn_addr made[2];
    zn_ip ip;
    bool whole;
    if (zn_ip_decode(&c, UINT16_MAX, &ip) != ZN_STAT_COUNT ||
        o->addresses == ZN_BUILD_OUTER_ADDRESSES) {
        strip(o);
        return;
    }
    ends.addr[0] = ip.src;
    ends.addr[1] = ip.dst;
    if (zn_packet_is_local(&ends) || zn_addr_is_v4(&ip.src) == ip.v6 ||
        zn_addr_is_v4(&ip.dst) == ip.v6 || !make_address(o, &ip.src, &made[0]) ||
        !make_address(o, &ip.dst, &made[1])) {
        strip(o);
        return;
    }
    l.number = (uint16_t)(service_of(start, ip.v6, &whole) << 8 | ttl_of(o, ip.ttl));
    l.flags = (ip.v6 ? ZN_BUILD_LAYER_V6 : 0u) | (whole ? ZN_BUILD_LAYER_DONT_FRAGMENT : 0u);
    add(o, &l);
    memcpy(&o->made.address[o->addresses], made, sizeof made);
    o->addresses += 2;
}

static void take_udp(outer *o, zn_cursor c)
{
    zn_build_layer l = {.kind = ZN_LAYER_UDP};
    uint16_t source = zn_cursor_be16(&c), destination = zn_cursor_be16(&c);
    l.id = port_of(o, source) << 16 | port_of(o, destination);
    add(o, &l);
}

static void take_gre(outer *o, zn_cursor c)
{
    zn_build_layer l = {.kind = ZN_LAYER_GRE};
    uint16_t flags = zn_cursor_be16(&c), type = zn_cursor_be16(&c);
    if ((flags & GRE_VERSION) != 0 || type == GRE_ERSPAN || type == GRE_WCCP) {
        strip(o);
        return;
    }
    if ((flags & GRE_CHECKSUM_OR_ROUTES) != 0)
        zn_cursor_skip(&c, 4);
    if ((flags & GRE_KEY) != 0) {
        l.flags = ZN_BUILD_LAYER_HAS_ID;
        l.id = id_of(o, ZN_PACKET_ID_GRE, zn_cursor_be32(&c));
    }
    add(o, &l);
}

static void take_l2tp(outer *o, zn_cursor c)
{
    zn_build_layer l = {.kind = ZN_LAYER_L2TP};
    uint16_t flags = zn_cursor_be16(&c);
    if ((flags & L2TP_LENGTH) != 0)
        zn_cursor_skip(&c, 2);
    l.id = id_of(o, ZN_PACKET_ID_L2TP_TUNNEL, zn_cursor_be16(&c)) << 16;
    l.id |= id_of(o, ZN_PACKET_ID_L2TP_SESSION, zn_cursor_be16(&c));
    add(o, &l);
}

/* Adds a header of a kind that has at most one field, at a fixed place. */
static void take_simple(outer *o, zn_cursor c, zn_layer_kind kind)
{
    zn_build_layer l = {.kind = (uint8_t)kind};
    uint8_t first = zn_cursor_u8(&c);
    switch (kind) {
    case ZN_LAYER_PPPOE:
        zn_cursor_skip(&c, 1);
        l.number = (uint16_t)id_of(o, ZN_PACKET_ID_PPPOE, zn_cursor_be16(&c));
        break;
    case ZN_LAYER_PPP:
        l.flags = first == 0xff ? ZN_BUILD_LAYER_FRAMED : 0;
        break;
    case ZN_LAYER_VXLAN:
    case ZN_LAYER_GENEVE:
        zn_cursor_skip(&c, 3);
        l.id = id_of(o, ZN_PACKET_ID_VXLAN, zn_cursor_be24(&c));
        if (kind == ZN_LAYER_VXLAN && (first & VXLAN_NEXT) != 0)
            l.flags = ZN_BUILD_LAYER_NEXT;
        break;
    case ZN_LAYER_GTP:
        zn_cursor_skip(&c, 3);
        l.id = id_of(o, ZN_PACKET_ID_GTP, zn_cursor_be32(&c));
        break;
    case ZN_LAYER_LISP:
        zn_cursor_skip(&c, 3);
        if ((first & LISP_INSTANCE) != 0) {
            l.flags = ZN_BUILD_LAYER_HAS_ID;
            l.id = id_of(o, ZN_PACKET_ID_LISP, zn_cursor_be24(&c));
        }
        break;
    default: /* their fields are constant, or follow from the frame */
        break;
    }
    add(o, &l);
}

/* ---- all headers -----------------------------------------------------------------------------*/

static zn_span from_layer(const zn_layer_stack *s, uint32_t i)
{
    return i < s->n ? zn_span_after(s->bytes, s->layer[i].at) : (zn_span){NULL, 0};
}

static void take_layer(outer *o, const zn_layer_stack *s, uint32_t i)
{
    zn_cursor c = zn_cursor_over_span(from_layer(s, i), false);
    zn_layer_kind kind = (zn_layer_kind)s->layer[i].kind;
    switch (kind) {
    case ZN_LAYER_VLAN:
        take_vlan(o, c, s->layer[i].number);
        break;
    case ZN_LAYER_MPLS:
        take_mpls(o, c, from_layer(s, i + 1));
        break;
    case ZN_LAYER_IP:
        take_ip(o, c);
        break;
    case ZN_LAYER_UDP:
        take_udp(o, c);
        break;
    case ZN_LAYER_GRE:
        take_gre(o, c);
        break;
    case ZN_LAYER_L2TP:
        take_l2tp(o, c);
        break;
    case ZN_LAYER_NONE:
    case ZN_LAYER_OTHER:
        strip(o);
        break;
    default:
        take_simple(o, c, kind);
        break;
    }
}

/* Returns true if the length does not fit into the length field of a header. */
static bool is_too_long(const outer *o, const zn_packet *p)
{
    uint32_t transport = p->tuple.proto == ZN_PROTO_TCP   ? 20u + p->options
                         : p->tuple.proto == ZN_PROTO_UDP ? ZN_BUILD_UDP_BYTES
                                                          : 0;
    uint32_t bytes = zn_build_encapsulation_bytes(&o->made) + transport + p->payload_len;
    bool has_length = false;
    bytes += zn_addr_is_v4(&p->tuple.addr[0]) ? 20 : 40;
    for (unsigned i = 0; i < o->n; i++)
        has_length |=
            o->made.layer[i].kind == ZN_LAYER_IP || o->made.layer[i].kind == ZN_LAYER_PPPOE;
    return has_length && bytes > UINT16_MAX;
}

/* Leaves out the headers if the packet cannot follow the last of them. */
static void fit_packet(outer *o, const zn_packet *p)
{
    bool v4 = zn_addr_is_v4(&p->tuple.addr[0]);
    zn_build_layer packet = {.kind = ZN_LAYER_IP, .flags = v4 ? 0 : ZN_BUILD_LAYER_V6};
    if (o->n != 0 &&
        (is_too_long(o, p) || !zn_build_layer_follows(&o->made.layer[o->n - 1], &packet)))
        strip(o);
}

void zn_delay_outer(zn_packet_output *of, const zn_packet *p, const zn_addr *user, int64_t epoch,
                    zn_delayed *entry)
{
    const zn_roles *roles = of->gate.policy->roles;
    const zn_layer_stack *s = &p->outer->layers;
    outer o = {.of = of,
               .user = user,
               .ports = p->outer->ports,
               .cut = zn_addr_cut(user, roles->user_v4_bits, roles->user_v6_bits)};
    bool ready = zn_packet_keys_enter(of->gate.keys, epoch) == 0;
    for (uint32_t i = 0; i < s->n && ready; i++)
        take_layer(&o, s, i);
    fit_packet(&o, p);
    if (o.n != 0)
        zn_delay_line_add_outer(&of->delay_line, entry, &o.made);
    of->stats->n[ZN_STAT_PACKETS_STRIPPED] += o.stripped || !ready;
}
