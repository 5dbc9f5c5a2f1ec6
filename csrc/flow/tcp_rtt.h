/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The path of a TCP flow as its segments show it: round-trip times, hop limits, options, windows,
 * and why segments came again or out of order. Only in flow tables with ZN_SET_E2E or
 * ZN_SET_OPTIONS.
 *
 * Each direction has a list of the segments that it sent, ordered by sequence number. An
 * acknowledgement of exactly a segment's end gives a round-trip time, unless the segment, or an
 * earlier one after it, was sent again (Karn and Partridge, 1987). Acknowledged neighbours merge,
 * so a list is as long as what is in flight. A segment that does not extend the list is classified
 * by the rules of Mellia, Meo, Muscariello and Rossi, "Passive analysis of TCP anomalies" (Computer
 * Networks, 2008).
 */
#ifndef ZN_FLOW_TCP_RTT_H
#define ZN_FLOW_TCP_RTT_H

#include "packet/packet.h"
#include "util/arena.h"
#include "util/stats.h"

#define ZN_PATH_SEGMENTS 100 /* of a direction; beyond, the oldest merges into its neighbour */

/* Why a segment did not extend what its sender had sent. */
typedef enum zn_anomaly {
    ZN_IN_SEQUENCE,
    ZN_RETRANSMITTED_RTO, /* by timeout */
    ZN_RETRANSMITTED_FAST,
    ZN_REORDERED,
    ZN_DUPLICATED, /* by the network: the same IP packet again */
    ZN_FLOW_CONTROL,
    ZN_UNNEEDED_RTO, /* retransmitted although acknowledged */
    ZN_UNNEEDED_FAST,
    ZN_ANOMALY_UNKNOWN,
    ZN_ANOMALIES
} zn_anomaly;

typedef struct zn_path_side {
    uint64_t rtt_sum_ns;
    double rtt_squares; /* sum of squares, ns^2 */
    int64_t rtt_min_ns, rtt_max_ns;
    uint32_t rtt_count; /* round-trip times of segments that this side sent */
    uint32_t sacks;     /* segments with SACK blocks */
    uint32_t segment_max, segment_min;
    uint32_t window_max, window_min, window_zero, window; /* window: the last one, scaled */
    uint32_t flight_max, flight_min;                      /* bytes sent and not acknowledged */
    uint32_t flight_first; /* bytes sent before the first acknowledgement of data */
    /* last acknowledgement of this side; before the first, the other side's ISN */
    uint32_t ack;
    uint32_t anomalies[ZN_ANOMALIES];
    uint32_t first, last; /* segments, 0: none */
    uint16_t segments;
    uint16_t mss; /* option, 0: none */
    uint8_t ttl_min, ttl_max;
    uint8_t scale; /* window scale option */
    bool scale_seen : 1;
    bool timestamps : 1;
    bool sack_permitted : 1;
    bool data_acked : 1;  /* the other side acknowledged more than the SYN */
    bool flags_moved : 1; /* SYN or FIN came again with another sequence number */
} zn_path_side;

typedef struct zn_tcp_path {
    zn_path_side side[2]; /* by tuple index */
} zn_tcp_path;

/* A segment, with what flow/tcp knows of it and its flow before it counts the flags. */
typedef struct zn_path_segment {
    const zn_packet *packet;
    bool again, out_of_order;
    bool moved;    /* SYN or FIN with another sequence number than before */
    bool both_syn; /* both sides' SYNs were seen, this segment's included */
    uint32_t other_isn;
} zn_path_segment;

/* Counts a segment. `slab` holds the lists; a full one is counted in *stats. */
void zn_tcp_path_count(zn_slab *slab, zn_stats *stats, zn_tcp_path *path,
                       const zn_path_segment *segment);
/* Frees the lists. */
void zn_tcp_path_close(zn_slab *slab, zn_tcp_path *path);
/* Returns the size of a list entry in bytes, for the slab. */
size_t zn_tcp_path_entry_bytes(void);

/* Return mean and standard deviation of a side's round-trip times, in ns; 0 without samples, and a
 * deviation of 0 with fewer than three. */
int64_t zn_path_rtt_mean(const zn_path_side *side);
int64_t zn_path_rtt_deviation(const zn_path_side *side);

#endif
