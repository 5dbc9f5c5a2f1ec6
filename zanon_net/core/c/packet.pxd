# SPDX-FileCopyrightText: The zanon_net authors
# SPDX-License-Identifier: Apache-2.0
# csrc/packet

cdef extern from "packet/packet.h" nogil:
    ctypedef struct zn_tuple:
        zn_addr addr[2]
        uint16_t port[2]
        uint32_t proto
    ctypedef struct zn_tunnel:
        zn_addr end[2]
    ctypedef struct zn_tunnel_ports:
        pass
    ctypedef struct zn_packet_outer:
        const zn_tunnel_ports *ports
        zn_tunnel tunnels[3]
        bint wants_layers
    ctypedef struct zn_packet:
        zn_tuple tuple
        uint64_t hash
        uint8_t sender, ttl, tcp_flags, fragment
        uint16_t window
        uint32_t seq, ack, payload_len
        zn_span payload
        uint32_t encapsulations
        uint8_t tunnel_count
        zn_packet_outer *outer


cdef extern from "packet/layers.h" nogil:
    bint zn_tunnel_ports_add(zn_tunnel_ports *ports, uint16_t port, unsigned kind)


cdef extern from "packet/decode.h" nogil:
    ctypedef struct zn_packet_input:
        zn_span bytes
        uint32_t wire
        uint32_t link_type
    ctypedef struct zn_fragment:
        zn_addr src
        zn_addr dst
        uint32_t id
        uint16_t offset
        uint8_t protocol
        bint more "more"
        zn_span bytes
    zn_stat zn_packet_decode(const zn_packet_input *source, const zn_bucket_key *key,
                             zn_packet *out, zn_fragment *fragment)
