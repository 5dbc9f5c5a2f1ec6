/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole packet path behind one handle: frames in, anonymised text out.
 *
 *     zn_engine_config config = zn_engine_default_config();
 *     config.outputs = 1u << ZN_OUTPUT_OBSERVATIONS;      a bit for each output wanted
 *     if (zn_engine_open(&engine, &config, &err) != 0)    err.msg says why, for people
 *     zn_engine_feed(engine, frames, n, &err)             again and again; after each call
 *     zn_outputs_take(engine, ZN_OUTPUT_OBSERVATIONS)     gives the text to be written
 *     zn_engine_finish(engine, &err), zn_engine_close(engine)
 *
 * examples/c/monitor.c is a whole program of this kind; examples/c/flows.c writes flow logs, a file
 * for each period. All times are packet times, in ns since the Unix epoch. A function that returns
 * int returns the negative of a zn_err for an error and fills *err, which may be NULL; no message
 * holds a name or an address.
 *
 * Feed frames in batches, best of some hundreds. For each batch the engine decodes the frames and
 * updates their flows. A name that the batch completes becomes a vote, and the engine decides on
 * it. Then the engine writes the released names and the records of the flows that closed. After
 * zn_engine_open, memory grows for output only. Output may be published; it stays in memory until
 * the program takes it. When too much output is in memory, records wait: zn_engine_waiting returns
 * true, and zn_engine_flush continues after the program has taken the outputs.
 *
 * An engine belongs to one thread at a time. Errors are about memory, files, settings and the
 * crypto library, never about packets. After an error zn_engine_close is the only call that may
 * follow.
 */
#ifndef ZANON_ZANON_H
#define ZANON_ZANON_H

#include <zanon/ztable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* View of n bytes at p, which the view does not own. If n is 0, p may be any pointer. */
typedef struct zn_span {
    const uint8_t *p;
    size_t n;
} zn_span;

/* ---- addresses ---- */

/*
 * An IP address of either family: an IPv4 address is its IPv4-mapped IPv6 address (::ffff:a.b.c.d,
 * RFC 4291 2.5.5.2). Bytes are in network order.
 */
typedef struct zn_addr {
    uint8_t byte[16];
} zn_addr;

/* Network: all addresses whose first `bits` bits equal the first bits of `prefix`. 0 <= bits <=
 * 128; an IPv4 /n has 96 + n. */
typedef struct zn_net {
    zn_addr prefix;
    uint32_t bits;
} zn_net;

/*
 * Reads a network such as "10.0.0.0/8" or "2001:db8::/32", or a single address, into *out. Returns
 * 0, or -ZN_ERR_CONFIG for any other text, and for a network with bits set after the prefix, such
 * as "10.1.0.0/8".
 */
ZN_API int zn_net_parse(zn_net *out, const char *text, zn_error *err);

/* ---- frames ---- */

#define ZN_FRAME_MAX ((uint32_t)256 << 10) /* longest frame, in bytes; libpcap's own bound */

/* One captured frame. `data` borrows the memory of the function or program that filled the
 * struct. */
typedef struct zn_frame {
    const uint8_t *data;
    /* ns since the Unix epoch; negative: no time that can be held, the frame is dropped */
    int64_t t_ns;
    uint32_t captured;  /* bytes at data, <= ZN_FRAME_MAX */
    uint32_t wire;      /* bytes on the wire, >= captured */
    uint32_t link_type; /* LINKTYPE_* of the pcap registry */
} zn_frame;

/* ---- the engine ---- */

/* Sets of columns of the flow logs, as bits. An engine measures and writes the core set and the
 * sets of its config. Tstat's TCP logs have the same numbers in their headers, without
 * ZN_SET_LEVELS. */
enum { ZN_SET_E2E = 1, ZN_SET_LAYER7 = 2, ZN_SET_P2P = 4, ZN_SET_OPTIONS = 8, ZN_SET_LEVELS = 32 };

/* The texts that an engine writes. A set of outputs has bit 1u << output for each. */
typedef enum zn_output {
    ZN_OUTPUT_TCP_COMPLETE, /* Tstat's three logs */
    ZN_OUTPUT_TCP_NOCOMPLETE,
    ZN_OUTPUT_UDP_COMPLETE,
    ZN_OUTPUT_JSONL,        /* a flow a line */
    ZN_OUTPUT_OBSERVATIONS, /* JSON Lines: one for each released name, written when it is decided */
    ZN_OUTPUT_CSV,          /* a flow a line */
    ZN_OUTPUT_PACKETS,      /* anonymized packets as a pcap file with times in ns */
    ZN_OUTPUT_PACKETS_NG,   /* the same as a pcapng file */
    /* Packets of config.views[0], and so on. An engine writes a view's pcap or pcapng file if it
     * writes the same format for its own packets. */
    ZN_OUTPUT_VIEW1_PACKETS,
    ZN_OUTPUT_VIEW1_PACKETS_NG,
    ZN_OUTPUT_VIEW2_PACKETS,
    ZN_OUTPUT_VIEW2_PACKETS_NG,
    ZN_OUTPUT_VIEW3_PACKETS,
    ZN_OUTPUT_VIEW3_PACKETS_NG
} zn_output;

#define ZN_VIEWS_MAX 3 /* zn_packet_view of an engine */

typedef struct zn_engine zn_engine;

/* Structure that the pseudonyms of addresses keep: the internal networks; the prefix tree above
 * blocks, or the whole tree (Crypto-PAn as published); no structure. */
typedef enum zn_pseudonyms {
    ZN_PSEUDONYMS_NETWORKS,
    ZN_PSEUDONYMS_CRYPTO_PAN,
    ZN_PSEUDONYMS_RANDOM
} zn_pseudonyms;

/* Records for which DNS questions vote, with their names and with the addresses of the servers that
 * received them. A host that forges its source address can cast such votes through any server that
 * answers. */
typedef enum zn_dns_votes {
    ZN_DNS_VOTES_OWN, /* records of DNS flows, counted apart; the default */
    ZN_DNS_VOTES_ALL, /* all */
    ZN_DNS_VOTES_NO   /* no record: a name is shown if z users of other protocols share it */
} zn_dns_votes;

/* Users that are counted in each window, for zanon-net's own binding. */
typedef enum zn_counted_users {
    ZN_COUNTED_NONE, /* the default */
    ZN_COUNTED_ALL,  /* of names, also by level, and of attributes */
    ZN_COUNTED_NAMES /* of names only */
} zn_counted_users;

/* Times of a coarse record (a record whose flow has a suppressed name): start and end of the flow,
 * rounded down to the minute; or only the minute in which the flow closed. */
typedef enum zn_coarse_end { ZN_COARSE_END_FLOORED, ZN_COARSE_END_NONE } zn_coarse_end;

/* Packets and bytes of a coarse record: the next power of this base, as an integer rounded up. */
typedef enum zn_coarse_steps {
    ZN_COARSE_STEPS_SQRT2,
    ZN_COARSE_STEPS_4,
    ZN_COARSE_STEPS_16
} zn_coarse_steps;

/* Client of a coarse record. */
typedef enum zn_coarse_client {
    ZN_COARSE_CLIENT_PSEUDONYM,
    ZN_COARSE_CLIENT_NONE
} zn_coarse_client;

/* Time at which records and observations leave: the coarse records of a minute when the minute is
 * over; or all records of a minute then, with times rounded down to the minute; or each record when
 * its flow closes. In the first two cases the order of a minute's records is random. */
typedef enum zn_order { ZN_ORDER_MINUTE, ZN_ORDER_MINUTE_ALL, ZN_ORDER_CLOSING } zn_order;

/* Payload of an anonymized packet if no rule shows it: zeros of the same length (ZERO); or no bytes
 * behind the transport header (CUT). KEEP_ENCRYPTED is ZERO except that TLS application data and
 * QUIC's protected packets keep their bytes. */
typedef enum zn_packet_payload {
    ZN_PACKET_PAYLOAD_ZERO,
    ZN_PACKET_PAYLOAD_CUT,
    ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED
} zn_packet_payload;

/* Address of a server in an anonymized packet: the real address if z users share it, else a
 * pseudonym for this user (TESTED); always a pseudonym for this user (WITHHELD); or a pseudonym
 * that is the same for all users (LINKABLE). */
typedef enum zn_server_addresses {
    ZN_SERVER_ADDRESSES_TESTED,
    ZN_SERVER_ADDRESSES_WITHHELD,
    ZN_SERVER_ADDRESSES_LINKABLE
} zn_server_addresses;

/* MAC addresses of an anonymized packet: a constant for the user's side and another for the other
 * side; a pseudonym of the packet's IP address; zeros. */
typedef enum zn_packet_macs {
    ZN_PACKET_MACS_ROLE,
    ZN_PACKET_MACS_PSEUDONYM,
    ZN_PACKET_MACS_ZERO
} zn_packet_macs;

/* TCP timestamp option of an anonymized packet: replaced by no-operation options; shifted by a
 * constant of the flow; unchanged. */
typedef enum zn_tcp_timestamps {
    ZN_TCP_TIMESTAMPS_DROP,
    ZN_TCP_TIMESTAMPS_OFFSET,
    ZN_TCP_TIMESTAMPS_KEEP
} zn_tcp_timestamps;

/* Fingerprint of a TLS ClientHello (versions, cipher suites, extensions, groups, ALPN) in an
 * anonymized packet: shown if z users share it; never shown; always shown. */
typedef enum zn_fingerprints {
    ZN_FINGERPRINTS_TESTED,
    ZN_FINGERPRINTS_DROP,
    ZN_FINGERPRINTS_KEEP
} zn_fingerprints;

/* View: a further output of the same packets, by the same decisions, that shows no more than the
 * engine's own output. Each member has the config's value, or a value that shows less. */
typedef struct zn_packet_view {
    uint32_t z; /* users that must share a name; the engine's current z if that is higher */
    zn_packet_payload payload;
    zn_server_addresses server_addresses;
    zn_fingerprints fingerprints;
    int64_t times_ns; /* a multiple of the config's packet_times_ns */
    bool exact;       /* packets of flows with a suppressed name leave, with the name masked */
} zn_packet_view;

/* Tunnel in UDP, for a port that carries it in addition to its assigned port. */
typedef enum zn_tunnel_kind {
    ZN_TUNNEL_VXLAN,
    ZN_TUNNEL_GENEVE,
    ZN_TUNNEL_GTP, /* GTP-U */
    ZN_TUNNEL_TEREDO,
    ZN_TUNNEL_L2TP,
    ZN_TUNNEL_AYIYA,
    ZN_TUNNEL_CAPWAP,
    ZN_TUNNEL_LISP,
    ZN_TUNNEL_MPLS,
    ZN_TUNNEL_TZSP,
    ZN_TUNNEL_HP_ERM,
    ZN_TUNNEL_GRE /* GRE in UDP */
} zn_tunnel_kind;

typedef struct zn_tunnel_port {
    uint16_t port; /* host byte order; neither 0 nor 53 */
    zn_tunnel_kind kind;
} zn_tunnel_port;

/* Statements of lists about a suffix of hostnames, as bits: a rule, a wildcard ("*.") or an
 * exception ("!") of the Public Suffix List; a name that may vote if any suffix has ZN_SUFFIX_ONLY;
 * a name that may not vote. */
enum {
    ZN_SUFFIX_PUBLIC = 1,
    ZN_SUFFIX_WILDCARD = 2,
    ZN_SUFFIX_EXCEPTION = 4,
    ZN_SUFFIX_ONLY = 8,
    ZN_SUFFIX_SKIP = 16
};

/* A suffix of hostnames and the statements of lists about it. A suffix may occur several times. */
typedef struct zn_suffix {
    zn_span name;      /* normalised, such as "example.com", without "*." and "!" */
    uint8_t listed;    /* bits ZN_SUFFIX_* */
    uint16_t category; /* index in zn_engine_config.categories, plus 1; 0: no category */
} zn_suffix;

#define ZN_CATEGORY_MAX 64 /* bytes of a category */

/* A category of hostnames. */
typedef struct zn_category {
    zn_span name; /* 1 to ZN_CATEGORY_MAX bytes from 0x21 to 0x7e, without ':', ',', '"' and '\\' */
    bool skipped; /* names of the category may not vote */
} zn_category;

/* Levels of generalization, as bits: a name that fewer than z users share is published as its
 * registered domain or its category, and an address as its autonomous system (AS) or its country,
 * if at least z users are behind this label. */
enum { ZN_LEVEL_DOMAIN = 1, ZN_LEVEL_CATEGORY = 2, ZN_LEVEL_AS = 4, ZN_LEVEL_COUNTRY = 8 };

/* Row of a table of networks: the addresses from `first` up to the next row. */
typedef struct zn_network {
    zn_addr first;
    uint32_t as_number; /* 0: no AS */
    char country[2];    /* two letters; zeros: no country */
} zn_network;

typedef struct zn_engine_config {
    size_t size;           /* bytes of this struct when the program was compiled */
    uint32_t z;            /* users that must share a name, 1 .. ZN_ZTABLE_Z_MAX */
    int64_t window_ns;     /* ns for which an exposure counts, 1 .. ZN_ZTABLE_WINDOW_MAX_NS */
    int64_t rotate_ns;     /* ns for which a key is used (an epoch), > 0 */
    bool established;      /* a vote needs evidence that its client is real, such as a handshake */
    bool exact;            /* measurements stay exact even if a name is suppressed */
    bool keep_client_port; /* logs show client ports; false: logs show 0 */
    bool dn_hunter;        /* flows get the names that DNS responses gave for their servers */
    unsigned sets;         /* bits ZN_SET_*: column sets besides the core */
    uint32_t outputs;      /* bits 1u << ZN_OUTPUT_*: the texts to write */
    /* ns of the outputs' periods, >= 0, aligned to the Unix epoch; 0: no periods. Use whole
     * minutes, because shorter periods show times that coarse records hide. */
    int64_t split_ns;
    const zn_net *internal; /* networks of the users; NULL: the private ranges; copied */
    size_t internal_count;
    const zn_span *never; /* normalised suffixes whose names are never released; copied */
    size_t never_count;
    uint8_t user_v4_bits, user_v6_bits; /* prefix lengths that identify a user, such as 32 and 56 */
    const char *key_file; /* path of a file that `zanon-net key new` made; NULL: random keys */
    /* open flows, 1 .. 2^31; at the limit the flow that was idle for longest is closed */
    uint32_t max_flows;
    uint32_t max_tuples, max_attributes; /* caps of the z-table, as in zn_ztable_config */
    uint32_t z_max;                      /* largest z that zn_engine_set_z takes, if above z */
    zn_counted_users popularity;
    unsigned workers; /* threads that share the work, including the caller's: 1 .. 64 */
    zn_dns_votes dns_votes;
    zn_pseudonyms pseudonyms;
    /* prefix lengths of the blocks that ZN_PSEUDONYMS_CRYPTO_PAN keeps: 1 .. 32 and 1 .. 128 */
    uint8_t block_v4_bits, block_v6_bits;
    zn_coarse_end coarse_end;
    zn_coarse_steps coarse_steps;
    zn_coarse_client coarse_client;
    /* Rounding in observations and in records that are not coarse. The sets E2E and OPTIONS refuse
     * both settings, because their columns would show more. */
    int64_t times_ns; /* ns; times are rounded down to multiples; 0: exact */
    unsigned digits;  /* leading digits that counts above 99 keep: 2; 0: all digits */
    zn_order order;
    /* Delay line of packet outputs: a packet leaves hold_ns (0 .. 10 s) of packet time after it
     * came, or when the delay line has hold_bytes. A packet whose flow is undecided then does not
     * leave. */
    int64_t hold_ns;
    uint64_t hold_bytes;
    zn_packet_payload payload;
    /* pseudonyms of clients are the pseudonyms in logs; false: they lie in the blocks of private
     * and reserved addresses */
    bool wide_addresses;
    zn_server_addresses server_addresses;
    zn_packet_macs macs;
    zn_tcp_timestamps tcp_timestamps;
    bool keep_ttl; /* false: the TTL is raised to 64, 128 or 255 */
    zn_fingerprints fingerprints;
    /* packets of TCP flows with a suppressed name leave, with positions and lengths rounded up to
     * 16 KiB; not with `exact` */
    bool coarse_suppressed;
    int64_t packet_times_ns; /* ns, >= 1; times of packets are rounded down to multiples */
    /* packets keep their tags, labels, sessions and tunnels, with pseudonyms of their identifiers
     * and addresses; false: these headers are removed */
    bool keep_encapsulation;
    const zn_packet_view *views; /* at most ZN_VIEWS_MAX; copied */
    size_t view_count;
    /* For zanon-net's own binding: name of this probe, if a counter of all probes decides its
     * votes; NULL: the engine decides. The engine waits for answers for count_hold_ns of packet
     * time. With count_rows, lines of observations are in the vote messages, to be sealed. With
     * count_leases, a name is released at once if the probe's own users suffice; not with
     * count_rows, because the counter then writes the lines. A generation of the votes' hashes
     * lasts count_rotate_ns, at least a window and two epochs; 0: for ever. If count_secret is set,
     * it is copied, and is the random key of the hashes. It is for processes of one run, whose
     * votes stay in the memory of the run. */
    const char *count_probe;
    int64_t count_hold_ns;
    bool count_rows;
    bool count_leases;
    int64_t count_rotate_ns;
    const zn_hash_key *count_secret;
    const zn_tunnel_port *tunnel_ports; /* at most 16; copied */
    size_t tunnel_port_count;
    /* Caps against invented users; 0: no cap. A vote that a cap refuses does not count, so that a
     * cap can only suppress. Not with count_probe, and not if z is 1. */
    uint32_t max_per_prefix;     /* users of a network that count for a name or an address */
    uint8_t cap_v4_bits;         /* prefix lengths of these networks: 1 .. user_v4_bits */
    uint8_t cap_v6_bits;         /* 1 .. user_v6_bits */
    uint32_t max_names_per_user; /* names for which a user counts in a window */
    int64_t min_user_age_ns;     /* ns after which a user counts since it was first seen */
    const zn_suffix *suffixes;   /* suffixes in lists of names; copied */
    size_t suffix_count;
    const zn_category *categories; /* copied */
    size_t category_count;
    /* bits ZN_LEVEL_*; 0: no labels. Excludes packets, count_probe, and a z or z_max above 1000. */
    unsigned levels;
    const zn_network *networks; /* in the order of addresses, for AS and country; copied */
    size_t network_count;
    /* For zanon-net's own binding: attributes besides names that vote and have columns of their
     * own, bits of zn_attribute; 0: none. Excludes packets, levels and count_probe. */
    unsigned attributes;
} zn_engine_config;

/* Fills the first `size` bytes of *config with the defaults. `size` is sizeof *config when the
 * program is compiled, and is written to config->size. */
ZN_API void zn_engine_config_init(zn_engine_config *config, size_t size);

/* Returns the command's defaults, with no output chosen. */
static inline zn_engine_config zn_engine_default_config(void)
{
    zn_engine_config config;
    zn_engine_config_init(&config, sizeof config);
    return config;
}

/* Opens an engine by *config, which is copied, and puts it into *out; the caller closes it. Returns
 * 0, or sets *out to NULL and returns: -ZN_ERR_CONFIG for a value out of range, and for a key file
 * that has no key or that other users may read; -ZN_ERR_IO for a key file that cannot be read;
 * -ZN_ERR_CAPACITY without memory; -ZN_ERR_CRYPTO if libcrypto or the system's random numbers
 * fail. */
ZN_API int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err);
/* Wipes the keys and frees the engine. NULL is fine. */
ZN_API void zn_engine_close(zn_engine *e);

/* Processes n frames (any n) in their order; borrows their bytes for the call. Decides on all names
 * that the frames complete. Returns 0 or a negative zn_err. */
ZN_API int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err);
/* Notes that no packet came for quiet_ns (> 0) since the last packet. Closes the flows that have
 * been idle for too long and writes their records. Writes also the records that waited for a minute
 * that is now over. The packet clock stays. Returns 0, or 1 or a negative zn_err as zn_engine_flush
 * does. */
ZN_API int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err);
/* Ends the input: closes every flow and writes its record. Returns 0; or 1 if the program has to
 * take the outputs and call again; or a negative zn_err. Frames that are fed later open new flows,
 * which the next call closes. */
ZN_API int zn_engine_finish(zn_engine *e, zn_error *err);
/* Writes the records that wait. Returns 0 if all are written; or 1 if the program has to take the
 * outputs and call again; or a negative zn_err. */
ZN_API int zn_engine_flush(zn_engine *e, zn_error *err);

/*
 * Returns the text of `output` so far, and removes it from the engine. The text has whole lines
 * that may be published. Its bytes stay in the engine's memory until the next call of feed, idle,
 * flush or finish. n is 0 if there is no text.
 *
 * With split_ns the text has lines of one period only, and no lines before the first packet. A
 * program takes each of its outputs, calls zn_outputs_next_period, and repeats both while that
 * function returns true. So it knows the period of each line, and when the files of a period are
 * whole.
 */
ZN_API zn_span zn_outputs_take(zn_engine *e, zn_output output);
/* Writes the next anonymized packets of ZN_OUTPUT_PACKETS to out[0 .. max - 1], in their order, and
 * their count to *n. It takes the bytes that zn_outputs_take would have returned, frame by frame,
 * and they stay in memory as long. Returns 1 if more packets wait for another call, else 0. *n is 0
 * if the config does not have this output. */
ZN_API int zn_engine_take_packets(zn_engine *e, zn_frame *out, size_t max, size_t *n);
/* Writes the next packets of config.views[view], as zn_engine_take_packets does. */
ZN_API int zn_engine_take_view_packets(zn_engine *e, unsigned view, zn_frame *out, size_t max,
                                       size_t *n);
/* Returns true if a packet began another period. *start_ns is then the start of the new period,
 * zn_outputs_take continues with its lines, and the previous period is complete. Returns false
 * during a period, and without split_ns. */
ZN_API bool zn_outputs_next_period(zn_engine *e, int64_t *start_ns);
/* Returns the first line of a file of `output`; n is 0 if the format has no such line. The bytes
 * stay in the engine's memory until zn_engine_close. */
ZN_API zn_span zn_outputs_header(const zn_engine *e, zn_output output);
/* Returns true when records wait for the program to take the outputs. */
ZN_API bool zn_engine_waiting(const zn_engine *e);
/* Changes z for the votes of frames fed from now on. Returns 0, or -ZN_ERR_CONFIG for a z of 0 or
 * above z_max; z is then unchanged, and the engine may be used further. */
ZN_API int zn_engine_set_z(zn_engine *e, uint32_t z, zn_error *err);

/* Returns the counts of the engine's z-table. */
ZN_API zn_ztable_stats zn_engine_table_stats(const zn_engine *e);
/* Returns the number of distinct users seen. If *saturated is true, the number is a lower bound. */
ZN_API uint64_t zn_engine_users(const zn_engine *e, bool *saturated);
/* Sets the earliest and the latest time of all frames, in ns since the Unix epoch; returns false
 * when no frame had a time. */
ZN_API bool zn_engine_time_range(const zn_engine *e, int64_t *first_ns, int64_t *last_ns);
/* Returns the bytes of memory in use. */
ZN_API size_t zn_engine_memory(const zn_engine *e);

#ifdef __cplusplus
}
#endif

#endif
