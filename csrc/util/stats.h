/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Every counter of a run, in one list: X(NAME, "group", "text"). The enum, the manifest and the
 * summary come from it. No frame or name is lost without a counter that says why.
 */
#ifndef ZN_UTIL_STATS_H
#define ZN_UTIL_STATS_H

#include "util/base.h"

#define ZN_STATS(X)                                                                                \
    X(FRAMES, "read", "frames")                                                                    \
    X(BYTES_CAPTURED, "read", "bytes captured")                                                    \
    X(BYTES_WIRE, "read", "bytes on the wire")                                                     \
    X(FRAMES_FILTERED, "read", "frames left out by the filter")                                    \
    X(FRAMES_CUT, "read", "frames cut by the snapshot length")                                     \
    X(FRAMES_MERGED, "read", "frames longer than the MTU, merged by an offload")                   \
    X(PACKETS_TCP, "read", "TCP segments")                                                         \
    X(PACKETS_UDP, "read", "UDP datagrams")                                                        \
    X(PACKETS_OTHER, "read", "IP packets of other protocols, where packets leave")                 \
    X(FRAGMENTS, "read", "IP fragments")                                                           \
    X(DATAGRAMS, "read", "datagrams put together from fragments")                                  \
    X(DROP_LINK_TYPE, "drop", "link type not decoded")                                             \
    X(DROP_LINK_TRUNCATED, "drop", "link header truncated")                                        \
    X(DROP_LINK_FRAGMENT, "drop", "fragment of a link layer, not put together")                    \
    X(DROP_ENCRYPTED, "drop", "encrypted below the transport layer")                               \
    X(DROP_ENCAPSULATION_DEPTH, "drop", "too many headers inside each other")                      \
    X(DROP_ENCAPSULATION_MALFORMED, "drop", "tunnel header malformed or truncated")                \
    X(DROP_NOT_IP, "drop", "neither IPv4 nor IPv6")                                                \
    X(DROP_IP_TRUNCATED, "drop", "IP header truncated")                                            \
    X(DROP_IP_MALFORMED, "drop", "IP header malformed")                                            \
    X(DROP_IP_FRAGMENT, "drop", "IP fragment cut by the snapshot length")                          \
    X(DROP_FRAGMENT_OVERLAP, "drop", "IP fragments that contradict each other")                    \
    X(DROP_FRAGMENT_INCOMPLETE, "drop", "IP fragments whose rest never came")                      \
    X(DROP_FRAGMENT_EVICTED, "drop", "IP fragments for which there was no room")                   \
    X(DROP_IP_ENCAPSULATED, "drop", "IP encapsulation not decoded")                                \
    X(DROP_NOT_TCP_UDP, "drop", "neither TCP nor UDP")                                             \
    X(DROP_TRANSPORT_TRUNCATED, "drop", "transport header truncated")                              \
    X(DROP_TRANSPORT_MALFORMED, "drop", "transport header malformed")                              \
    X(DROP_TIMESTAMP, "drop", "timestamp before 1970 or after 2262")                               \
    X(DROP_FLOW_TABLE_FULL, "drop", "flow table full")                                             \
    X(DROP_FLOW_CLOSED, "drop", "stray segment: no flow is open")                                  \
    X(IN_VLAN, "encapsulation", "802.1Q or 802.1ad tag")                                           \
    X(IN_PBB, "encapsulation", "802.1ah backbone bridge")                                          \
    X(IN_SWITCH_TAG, "encapsulation",                                                              \
      "switch tag (VN-Tag, 802.1BR, 802.1CB, HSR, SGT, DSA, Arista)")                              \
    X(IN_FABRIC, "encapsulation", "FabricPath or TRILL")                                           \
    X(IN_MACSEC, "encapsulation", "MACsec")                                                        \
    X(IN_MPLS, "encapsulation", "MPLS")                                                            \
    X(IN_PSEUDOWIRE, "encapsulation", "Ethernet pseudowire")                                       \
    X(IN_LLC, "encapsulation", "LLC")                                                              \
    X(IN_WIFI, "encapsulation", "802.11")                                                          \
    X(IN_AMSDU, "encapsulation", "A-MSDU, of which the first packet is read")                      \
    X(IN_PPP, "encapsulation", "PPP")                                                              \
    X(IN_PPPOE, "encapsulation", "PPPoE")                                                          \
    X(IN_IP_IN_IP, "encapsulation", "IP in IP (4in4, 4in6, 6in4, 6in6)")                           \
    X(IN_AH, "encapsulation", "IPsec AH")                                                          \
    X(IN_GRE, "encapsulation", "GRE")                                                              \
    X(IN_ERSPAN, "encapsulation", "ERSPAN")                                                        \
    X(IN_ETHERIP, "encapsulation", "Ethernet in IP")                                               \
    X(IN_NSH, "encapsulation", "NSH")                                                              \
    X(IN_VXLAN, "encapsulation", "VXLAN")                                                          \
    X(IN_GENEVE, "encapsulation", "Geneve")                                                        \
    X(IN_GTP, "encapsulation", "GTP-U")                                                            \
    X(IN_TEREDO, "encapsulation", "Teredo")                                                        \
    X(IN_L2TP, "encapsulation", "L2TP")                                                            \
    X(IN_AYIYA, "encapsulation", "AYIYA")                                                          \
    X(IN_CAPWAP, "encapsulation", "CAPWAP")                                                        \
    X(IN_LISP, "encapsulation", "LISP")                                                            \
    X(IN_TZSP, "encapsulation", "TZSP")                                                            \
    X(IN_HP_ERM, "encapsulation", "HP ERM")                                                        \
    X(TUNNEL_MISMATCH, "flow", "packets that came by another tunnel than their flow")              \
    X(FLOWS_TCP, "flow", "TCP flows opened")                                                       \
    X(FLOWS_UDP, "flow", "UDP flows opened")                                                       \
    X(FLOWS_MIDSTREAM, "flow", "TCP flows seen without their SYN")                                 \
    X(FLOWS_ONE_SIDED, "flow", "TCP flows with data from one side, nothing from the other")        \
    X(FLOWS_CLOSED, "flow", "flows closed")                                                        \
    X(FLOWS_EXTERNAL, "flow", "flows with no internal endpoint, not emitted")                      \
    X(FLOWS_INTERNAL_BOTH, "flow", "flows between two internal endpoints")                         \
    X(FLOWS_EVICTED, "flow", "closed early to make room for others")                               \
    X(RECORDS, "flow", "flow records written")                                                     \
    X(RECORDS_MIDSTREAM, "flow",                                                                   \
      "of them flows joined after their start, which Tstat's logs leave out")                      \
    X(RECORDS_HELD, "flow",                                                                        \
      "of them those that wait for their minute to end; lost if a run fails")                      \
    X(STATUS_READABLE, "status", "a name was read")                                                \
    X(STATUS_ECH, "status", "ECH offered: a name read is the outer one")                           \
    X(STATUS_TRUNCATED, "status", "a hello, request or question never seen whole")                 \
    X(STATUS_INVALID, "status", "a name that is not valid, or contradictory copies")               \
    X(STATUS_UNSUPPORTED, "status", "a version that is not read, or no room")                      \
    X(STATUS_UNREAD, "status", "unread: no name, and bytes of the client that may have held one")  \
    X(STATUS_NONE, "status", "no name")                                                            \
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
    X(NAMES_AFTER_GAPS, "name", "gaps in a client's bytes passed over: each may hide a name")      \
    X(OBSERVATIONS, "decision", "name observations")                                               \
    X(RELEASED, "decision", "names released")                                                      \
    X(RELEASES_BY_NEW_USERS, "decision",                                                           \
      "of them to users first seen less than a window before (with --min-user-age)")               \
    X(GENERALIZED, "decision", "names below z published as a domain or a category")                \
    X(GENERALIZED_DOMAIN, "generalized", "names of all sources published as a domain")             \
    X(GENERALIZED_CATEGORY, "generalized", "names of all sources published as a category")         \
    X(GENERALIZED_AS, "generalized", "server addresses published as an autonomous system")         \
    X(GENERALIZED_COUNTRY, "generalized", "server addresses published as a country")               \
    X(SUPPRESSED_BELOW_Z, "suppressed", "exposed by fewer than z users")                           \
    X(SUPPRESSED_TOO_LATE, "suppressed", "older than the window, or out of order")                 \
    X(SUPPRESSED_UNCONFIRMED, "suppressed", "no evidence that the client is real")                 \
    X(SUPPRESSED_INVALID, "suppressed", "not a valid hostname")                                    \
    X(SUPPRESSED_INCOMPLETE, "suppressed", "never seen whole")                                     \
    X(SUPPRESSED_CONFLICT, "suppressed", "conflicting copies of the same bytes")                   \
    X(SUPPRESSED_NEVER_LIST, "suppressed", "on the never list")                                    \
    X(SUPPRESSED_NOT_LISTED, "suppressed", "not on the list of --only")                            \
    X(SUPPRESSED_SKIPPED, "suppressed", "on a list of --skip, or in a category of it")             \
    X(SUPPRESSED_HOME_NAME, "suppressed", "address or home spelled as a name")                     \
    X(SUPPRESSED_OUTSIDE, "suppressed", "flow opened from outside: its host does not vote")        \
    X(SUPPRESSED_QUIC_VERSION, "suppressed", "in a QUIC version that is not read")                 \
    X(SUPPRESSED_CAPACITY, "suppressed", "a table was full")                                       \
    X(SUPPRESSED_USER_CAP, "suppressed", "user with as many names as --max-names-per-user")        \
    X(SUPPRESSED_PREFIX_CAP, "suppressed", "network with as many users as --max-per-prefix")       \
    X(SUPPRESSED_NEW_USER, "suppressed", "user younger than --min-user-age")                       \
    X(SUPPRESSED_UNREAD, "suppressed", "flow without a name whose bytes could not be read")        \
    X(SUPPRESSED_UNANSWERED, "suppressed", "the counter of all probes did not answer in time")     \
    X(DNS_OBSERVATIONS, "dns", "names in DNS that count apart")                                    \
    X(DNS_RELEASED, "dns", "of them released")                                                     \
    X(DNS_GENERALIZED, "dns", "of them published as a domain or a category")                       \
    X(DNS_SUPPRESSED, "dns", "of them suppressed: exposed by fewer than z users, or too late")     \
    X(ADDR_OBSERVATIONS, "address", "server address observations")                                 \
    X(ADDR_RELEASED, "address", "server addresses released")                                       \
    X(ADDR_GENERALIZED, "address", "server addresses published as an AS or a country")             \
    X(ADDR_SUPPRESSED, "address", "server addresses suppressed")                                   \
    X(ADDR_CLIENT_SET_INCOMPLETE, "address",                                                       \
      "clients not all known, more than fit or time went back: server addresses withheld")         \
    X(CERTIFICATES, "certificate", "server certificates with a host's name")                       \
    X(CERTIFICATES_RELEASED, "certificate", "their names released")                                \
    X(CERTIFICATES_SUPPRESSED, "certificate", "their names suppressed, for whatever reason")       \
    X(AGENTS, "agent", "user agents in QUIC hellos")                                               \
    X(AGENTS_RELEASED, "agent", "user agents released")                                            \
    X(AGENTS_SUPPRESSED, "agent", "user agents suppressed, for whatever reason")                   \
    X(QUESTIONS, "count", "votes, questions and clients for a counter of probes, hashed")          \
    X(QUESTIONS_UNANSWERED, "count", "of them given up: no answer in time, so no")                 \
    X(ANSWERS_LATE, "count", "answers that came after that, not used")                             \
    X(MARKS_DROPPED, "count", "clients the counter was not told of, away too long to be told")     \
    X(PACKETS_PASSED, "packet", "packets that left anonymized")                                    \
    X(PACKETS_MASKED, "packet", "packets that left with a withheld name masked, or coarse")        \
    X(PACKETS_DROPPED_NO_FLOW, "packet", "not emitted: of no flow")                                \
    X(PACKETS_DROPPED_LOCAL, "packet", "not emitted: an address that is not one host's own")       \
    X(PACKETS_DROPPED_NO_USER, "packet", "not emitted: of a flow without an internal endpoint")    \
    X(PACKETS_DROPPED_SUPPRESSED, "packet", "not emitted: a name of the flow is suppressed")       \
    X(PACKETS_DROPPED_UNCONFIRMED, "packet", "not emitted: a name without evidence of its client") \
    X(PACKETS_DROPPED_INVALID, "packet", "not emitted: a name that is not valid or was not read")  \
    X(PACKETS_DROPPED_UNDECIDED, "packet", "not emitted: whether to withhold a name was open")     \
    X(PACKETS_DROPPED_FRAGMENT, "packet",                                                          \
      "not emitted: fragments not of UDP, or not whole in time")                                   \
    X(PACKETS_DROPPED_CUT, "packet", "not emitted: the snapshot length cut its headers")           \
    X(PACKETS_DROPPED_CAPACITY, "packet", "not emitted: a table was full")                         \
    X(PACKETS_HOLD_EARLY, "packet", "left before their time, as the hold was full")                \
    X(PACKETS_DEADLINE_MISSED, "packet",                                                           \
      "names decided after packets with them had left, or may have")                               \
    X(PACKETS_FLOWS_TURNED, "packet", "flows whose packets ceased: a later name was withheld")     \
    X(PACKETS_SERVERS_RELEASED, "packet", "flows with their server's address")                     \
    X(PACKETS_SERVERS_PAIR, "packet", "flows with a pseudonym of their server's address")          \
    X(PACKETS_NAMES_BY_VOTE, "packet", "names by which flows passed: their own votes")             \
    X(PACKETS_NAMES_BY_PEEK, "packet", "names by which flows passed: others share them")           \
    X(PACKETS_NAMES_MASKED, "packet", "messages that left with their names masked")                \
    X(PACKETS_FINGERPRINTS, "packet", "TLS hellos that left with their fingerprint")               \
    X(PACKETS_CERTIFICATES_NAMED, "packet", "synthetic certificates with the original's name")     \
    X(PACKETS_CERTIFICATES_UNNAMED, "packet", "synthetic certificates without a name")             \
    X(PACKETS_EPOCHS, "packet", "epochs in which flows of packets began")                          \
    X(PACKETS_RESEALED, "packet", "QUIC Initials that were sealed anew")                           \
    X(PACKETS_MESSAGES_FULL, "packet", "messages that left as zeros: there was no room for them")  \
    X(PACKETS_STRIPPED, "packet",                                                                  \
      "packets without all the headers around them, which were to stay")                           \
    X(PACKETS_BYTES_KEPT, "packet", "bytes of headers that packets left with")                     \
    X(PACKETS_BYTES_ZEROED, "packet", "bytes of payload: zeros or cut, but for shown messages")    \
    X(CLOCK_LATE, "clock", "packets behind the newest one")                                        \
    X(CLOCK_REJECTED, "clock", "packets too far behind")                                           \
    X(CLOCK_REBASED, "clock", "clock set anew by 256 packets in a row")                            \
    X(OBSERVATIONS_HELD, "capacity", "observations that wait likewise")                            \
    X(HOLD_FULL, "capacity",                                                                       \
      "records and observations that left before their minute ended, without client")              \
    X(STREAMS_FULL, "capacity", "stream buffers ran out")                                          \
    X(STREAMS_HALF_FULL, "capacity", "early pieces of later requests not waited for")              \
    X(BODIES_LOST, "capacity", "request bodies whose end was not found: no later request is read") \
    X(DATAGRAMS_FULL, "capacity", "entries for QUIC and DTLS ran out")                             \
    X(DTLS_HELLOS_LIMIT, "capacity", "DTLS hellos after the eighth of their flow, not read")       \
    X(QUIC_ANSWERS_LIMIT, "capacity", "QUIC packets of a server after the 32nd tried for its ID")  \
    X(QUIC_IDS_LIMIT, "capacity", "flows whose client sent more than eight QUIC IDs of its own")   \
    X(HEADER_TABLES_FULL, "capacity", "HTTP/2 header tables ran out")                              \
    X(NAMES_FULL, "capacity", "name entries ran out")                                              \
    X(GAPS_FULL, "capacity", "sequence gaps ran out")                                              \
    X(SEGMENTS_FULL, "capacity", "segments in flight ran out")

/* Counters that had another name in the version before: X(NAME, OLD_NAME). The manifest has both
 * for one version. */
#define ZN_STAT_ALIASES(X)                                                                         \
    X(TUNNEL_MISMATCH, OTHER_TUNNEL)                                                               \
    X(FLOWS_EVICTED, FLOWS_EARLY)                                                                  \
    X(STATUS_UNSUPPORTED, STATUS_UNREAD)                                                           \
    X(ADDR_CLIENT_SET_INCOMPLETE, ADDR_CLIENTS_FULL)                                               \
    X(CLOCK_REJECTED, CLOCK_REFUSED)                                                               \
    X(DTLS_HELLOS_LIMIT, DTLS_HELLOS_MANY)                                                         \
    X(QUIC_ANSWERS_LIMIT, QUIC_ANSWERS_MANY)                                                       \
    X(QUIC_IDS_LIMIT, QUIC_IDS_MANY)

typedef enum zn_stat {
#define ZN_STAT_ENUM(name, group, text) ZN_STAT_##name,
    ZN_STATS(ZN_STAT_ENUM)
#undef ZN_STAT_ENUM
        ZN_STAT_COUNT
} zn_stat;

/* The counters of encapsulations follow each other; zn_packet.encapsulations has a bit for each. */
#define ZN_STAT_IN_FIRST ZN_STAT_IN_VLAN
#define ZN_STAT_IN_LAST ZN_STAT_IN_HP_ERM
_Static_assert(ZN_STAT_IN_LAST - ZN_STAT_IN_FIRST < 32, "each encapsulation has its bit");

typedef struct zn_stats {
    uint64_t n[ZN_STAT_COUNT];
} zn_stats;

/* A counter: its name (in lower case in the manifest), its group, its text, and its name in the
 * version before, NULL if that was the same. */
typedef struct zn_stat_info {
    const char *name, *group, *text, *old_name;
} zn_stat_info;

/* Returns the i-th counter of the list, 0 <= i < ZN_STAT_COUNT. */
zn_stat_info zn_stat_describe(size_t i);

#endif
