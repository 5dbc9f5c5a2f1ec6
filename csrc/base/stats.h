/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every counter of a run, in one list: X(NAME, "group", "text"). The enum, the manifest and the
 * summary come from it. Nothing is lost without a counter that says why.
 */
#ifndef ZN_BASE_STATS_H
#define ZN_BASE_STATS_H

#include "base/base.h"

#define ZN_STATS(X)                                                                                \
    X(FRAMES, "read", "frames")                                                                    \
    X(BYTES_CAPTURED, "read", "bytes captured")                                                    \
    X(BYTES_WIRE, "read", "bytes on the wire")                                                     \
    X(FRAMES_FILTERED, "read", "frames left out by the filter")                                    \
    X(FRAMES_CUT, "read", "frames cut by the snapshot length")                                     \
    X(PACKETS_TCP, "read", "TCP segments")                                                         \
    X(PACKETS_UDP, "read", "UDP datagrams")                                                        \
    X(DROP_LINK_TYPE, "drop", "link type not decoded")                                             \
    X(DROP_LINK_TRUNCATED, "drop", "link header truncated")                                        \
    X(DROP_VLAN_DEPTH, "drop", "more than two VLAN tags")                                          \
    X(DROP_NOT_IP, "drop", "neither IPv4 nor IPv6")                                                \
    X(DROP_IP_TRUNCATED, "drop", "IP header truncated")                                            \
    X(DROP_IP_MALFORMED, "drop", "IP header malformed")                                            \
    X(DROP_IP_FRAGMENT, "drop", "IP fragment without transport header")                            \
    X(DROP_IP_ENCAPSULATED, "drop", "IP encapsulation not decoded")                                \
    X(DROP_NOT_TCP_UDP, "drop", "neither TCP nor UDP")                                             \
    X(DROP_TRANSPORT_TRUNCATED, "drop", "transport header truncated")                              \
    X(DROP_TRANSPORT_MALFORMED, "drop", "transport header malformed")                              \
    X(DROP_TIMESTAMP, "drop", "timestamp before 1970 or after 2262")                               \
    X(DROP_FLOW_TABLE_FULL, "drop", "flow table full")                                             \
    X(DROP_FLOW_CLOSED, "drop", "stray segment: no flow is open")                                  \
    X(FLOWS_TCP, "flow", "TCP flows opened")                                                       \
    X(FLOWS_UDP, "flow", "UDP flows opened")                                                       \
    X(FLOWS_MIDSTREAM, "flow", "TCP flows seen without their SYN")                                 \
    X(FLOWS_CLOSED, "flow", "flows closed")                                                        \
    X(FLOWS_EXTERNAL, "flow", "flows with no internal endpoint, not emitted")                      \
    X(FLOWS_INTERNAL_BOTH, "flow", "flows between two internal endpoints")                         \
    X(RECORDS, "flow", "flow records written")                                                     \
    X(NAMES_TLS, "name", "names seen in TLS")                                                      \
    X(NAMES_HTTP, "name", "names seen in HTTP")                                                    \
    X(NAMES_DNS, "name", "names seen in DNS")                                                      \
    X(NAMES_QUIC, "name", "names seen in QUIC")                                                    \
    X(NAMES_REPEATED, "name", "repeated by the same flow, no second vote")                         \
    X(NAMES_ADDRESS, "name", "IP literals in place of a name")                                     \
    X(HELLOS_WITHOUT_NAME, "name", "hellos and requests that carry no name")                       \
    X(HELLOS_ECH, "name", "hellos that offer ECH")                                                 \
    X(QUIC_INITIALS, "name", "QUIC Initials opened")                                               \
    X(QUIC_NOT_AUTHENTIC, "name", "QUIC Initials that do not authenticate, not used")              \
    X(QUIC_VERSION_UNKNOWN, "name", "QUIC packets of a version that is not read")                  \
    X(OBSERVATIONS, "decision", "name observations")                                               \
    X(RELEASED, "decision", "names released")                                                      \
    X(SUPPRESSED_BELOW_Z, "suppressed", "exposed by fewer than z users")                           \
    X(SUPPRESSED_TOO_LATE, "suppressed", "older than the window, or out of order")                 \
    X(SUPPRESSED_UNCONFIRMED, "suppressed", "no evidence that the client is real")                 \
    X(SUPPRESSED_INVALID, "suppressed", "not a valid hostname")                                    \
    X(SUPPRESSED_INCOMPLETE, "suppressed", "never seen whole")                                     \
    X(SUPPRESSED_CONFLICT, "suppressed", "conflicting copies of the same bytes")                   \
    X(SUPPRESSED_NEVER_LIST, "suppressed", "on the never list")                                    \
    X(SUPPRESSED_HOME_NAME, "suppressed", "address or home spelled as a name")                     \
    X(SUPPRESSED_DNS_VOTES, "suppressed", "DNS kept out of the vote")                              \
    X(SUPPRESSED_OUTSIDE, "suppressed", "flow opened from outside: its host does not vote")        \
    X(SUPPRESSED_QUIC_VERSION, "suppressed", "in a QUIC version that is not read")                 \
    X(SUPPRESSED_CAPACITY, "suppressed", "a table was full")                                       \
    X(ADDR_OBSERVATIONS, "address", "server address observations")                                 \
    X(ADDR_RELEASED, "address", "server addresses released")                                       \
    X(ADDR_SUPPRESSED, "address", "server addresses suppressed")                                   \
    X(ADDR_CLIENTS_FULL, "address", "client set full: server addresses withheld")                  \
    X(CLOCK_LATE, "clock", "packets behind the newest one")                                        \
    X(CLOCK_REFUSED, "clock", "packets too far behind")                                            \
    X(CLOCK_JUMPS, "clock", "clock rebased")                                                       \
    X(STREAMS_FULL, "capacity", "stream buffers ran out")                                          \
    X(DATAGRAMS_FULL, "capacity", "entries for QUIC and DTLS ran out")                             \
    X(HEADER_TABLES_FULL, "capacity", "HTTP/2 header tables ran out")                              \
    X(NAMES_FULL, "capacity", "name entries ran out")                                              \
    X(GAPS_FULL, "capacity", "sequence gaps ran out")

typedef enum zn_stat {
#define ZN_STAT_ENUM(name, group, text) ZN_STAT_##name,
    ZN_STATS(ZN_STAT_ENUM)
#undef ZN_STAT_ENUM
        ZN_STAT_COUNT
} zn_stat;

typedef struct zn_stats {
    uint64_t n[ZN_STAT_COUNT];
} zn_stats;

/* One list entry: its name (the manifest has it in lower case), its group, its text. */
typedef struct zn_stat_info {
    const char *name, *group, *text;
} zn_stat_info;

/* Entry `i` of the list, 0 <= i < ZN_STAT_COUNT. */
const zn_stat_info *zn_stat_describe(size_t i);

#endif
