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
 * for each period. All times are those of the packets, in ns since the Unix epoch. A function that
 * returns int returns the negative of a zn_err for an error and fills *err, which may be NULL; no
 * message holds a name or an address.
 *
 * Feed frames in batches, best of some hundreds. Of each batch the engine decodes the frames,
 * updates their flows, puts the names that the frames complete to the vote, decides, and writes the
 * released names and the records of the flows that closed. After zn_engine_open memory grows for
 * output only, which gathers until the program takes it, and may be published. When too much has
 * gathered, records wait: zn_engine_waiting returns true, and zn_engine_flush goes on once the
 * program has taken the outputs.
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

/* A view of n bytes at p, which belong to somebody else. With n == 0 p may be anything. */
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

/* A network: all addresses whose first `bits` bits are those of `prefix`. 0 <= bits <= 128; an IPv4
 * /n has 96 + n. */
typedef struct zn_net {
    zn_addr prefix;
    uint32_t bits;
} zn_net;

/*
 * Reads a network such as "10.0.0.0/8" or "2001:db8::/32", or a single address, into *out. Returns
 * 0, or -ZN_ERR_CONFIG for any other text, and for one with bits set after the prefix, as in
 * "10.1.0.0/8".
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

/* Sets of columns of the flow logs, as bits. An engine measures and writes the core set and those
 * of its config. The numbers are those in the header of Tstat's TCP logs. */
enum { ZN_SET_E2E = 1, ZN_SET_LAYER7 = 2, ZN_SET_P2P = 4, ZN_SET_OPTIONS = 8 };

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
    /* The same of config.views[0], and so on: written where that of the engine's own packets is. */
    ZN_OUTPUT_VIEW1_PACKETS,
    ZN_OUTPUT_VIEW1_PACKETS_NG,
    ZN_OUTPUT_VIEW2_PACKETS,
    ZN_OUTPUT_VIEW2_PACKETS_NG,
    ZN_OUTPUT_VIEW3_PACKETS,
    ZN_OUTPUT_VIEW3_PACKETS_NG
} zn_output;

#define ZN_VIEWS_MAX 3 /* zn_packet_view of an engine */

typedef struct zn_engine zn_engine;

/* What the pseudonyms of addresses keep: the internal networks; the prefix tree above blocks, or
 * all of it (Crypto-PAn as published); nothing. */
typedef enum zn_pseudonyms {
    ZN_PSEUDONYMS_NETWORKS,
    ZN_PSEUDONYMS_CRYPTO_PAN,
    ZN_PSEUDONYMS_RANDOM
} zn_pseudonyms;

/* Which records the names in DNS questions, and the addresses of servers that are asked them, vote
 * for. Sources that are forged can cast such votes, through any server that answers them. */
typedef enum zn_dns_votes {
    ZN_DNS_VOTES_OWN, /* those of DNS flows, counted apart; the default */
    ZN_DNS_VOTES_ALL, /* all */
    ZN_DNS_VOTES_NO   /* none: they are shown where z users of other protocols share them */
} zn_dns_votes;

/* A record is coarse when a name of its flow is withheld. What it says of the flow's times: when it
 * began and ended, down to the minute; or only the minute in which it closed. */
typedef enum zn_coarse_end { ZN_COARSE_END_FLOORED, ZN_COARSE_END_NONE } zn_coarse_end;

/* What it says of packets and bytes: the next power of this base, as an integer rounded up. */
typedef enum zn_coarse_steps {
    ZN_COARSE_STEPS_SQRT2,
    ZN_COARSE_STEPS_4,
    ZN_COARSE_STEPS_16
} zn_coarse_steps;

/* What it says of the client. */
typedef enum zn_coarse_client {
    ZN_COARSE_CLIENT_PSEUDONYM,
    ZN_COARSE_CLIENT_NONE
} zn_coarse_client;

/* When records and observations leave. Coarse ones of a minute when it is over, or all of it with
 * times down to the minute, in an order that tells no more; or each as soon as its flow has
 * closed. */
typedef enum zn_order { ZN_ORDER_MINUTE, ZN_ORDER_MINUTE_ALL, ZN_ORDER_CLOSING } zn_order;

/* The payload of an anonymized packet where no rule shows it: zeros of the same length; or the
 * captured bytes end behind the transport header. KEEP_ENCRYPTED: as ZERO, but TLS application data
 * and QUIC's protected packets stay as they are. */
typedef enum zn_packet_payload {
    ZN_PACKET_PAYLOAD_ZERO,
    ZN_PACKET_PAYLOAD_CUT,
    ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED
} zn_packet_payload;

/* The address of a server in an anonymized packet: itself where z users share it, else a pseudonym
 * of this user's; a pseudonym of this user's always; or one that all users share. */
typedef enum zn_server_addresses {
    ZN_SERVER_ADDRESSES_TESTED,
    ZN_SERVER_ADDRESSES_WITHHELD,
    ZN_SERVER_ADDRESSES_LINKABLE
} zn_server_addresses;

/* The MAC addresses of an anonymized packet: one for the user's side and one for the other; a
 * pseudonym of the IP address beside it; zeros. */
typedef enum zn_packet_macs {
    ZN_PACKET_MACS_ROLE,
    ZN_PACKET_MACS_PSEUDONYM,
    ZN_PACKET_MACS_ZERO
} zn_packet_macs;

/* The timestamp option of TCP in an anonymized packet: no-operation options in its place; shifted
 * by a constant of the flow; as it was. */
typedef enum zn_tcp_timestamps {
    ZN_TCP_TIMESTAMPS_DROP,
    ZN_TCP_TIMESTAMPS_OFFSET,
    ZN_TCP_TIMESTAMPS_KEEP
} zn_tcp_timestamps;

/* The fingerprint of a TLS ClientHello (versions, cipher suites, extensions, groups, ALPN) in an
 * anonymized packet: shown where z users share it; never; always. */
typedef enum zn_fingerprints {
    ZN_FINGERPRINTS_TESTED,
    ZN_FINGERPRINTS_DROP,
    ZN_FINGERPRINTS_KEEP
} zn_fingerprints;

/* A view: a further output of the same packets, by the same decisions, that shows no more than the
 * engine's own. Each member is what the config has, or less. */
typedef struct zn_packet_view {
    uint32_t z; /* how many users must share a name; the current z where that is higher */
    zn_packet_payload payload;
    zn_server_addresses server_addresses;
    zn_fingerprints fingerprints;
    int64_t times_ns; /* a multiple of the config's packet_times_ns */
    bool exact;       /* packets of flows with a withheld name leave, with it masked */
} zn_packet_view;

/* A tunnel in UDP, and a port that carries it beside the port that was assigned to it. */
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
    ZN_TUNNEL_HP_ERM
} zn_tunnel_kind;

typedef struct zn_tunnel_port {
    uint16_t port; /* host byte order; neither 0 nor 53 */
    zn_tunnel_kind kind;
} zn_tunnel_port;

typedef struct zn_engine_config {
    size_t size;           /* of this struct, as the program was compiled */
    uint32_t z;            /* how many users must share a name, 1 .. ZN_ZTABLE_Z_MAX */
    int64_t window_ns;     /* ns for which an exposure counts, 1 .. ZN_ZTABLE_WINDOW_MAX_NS */
    int64_t rotate_ns;     /* ns for which a key is used (an epoch), > 0 */
    bool established;      /* a vote needs evidence that its client is real, such as a handshake */
    bool exact;            /* measurements stay exact even where a name is withheld */
    bool keep_client_port; /* logs show client ports; false: 0 in their place */
    bool dn_hunter;        /* flows get the names that DNS responses gave for their servers */
    unsigned sets;         /* bits ZN_SET_*: column sets besides the core */
    uint32_t outputs;      /* bits 1u << ZN_OUTPUT_*: the texts to write */
    /* ns of the outputs' periods, >= 0, aligned to the Unix epoch; 0: no periods. Take whole
     * minutes: shorter periods show times that coarse records withhold. */
    int64_t split_ns;
    const zn_net *internal; /* the users' networks; NULL: the private ranges; copied */
    size_t internal_count;
    const zn_span *never; /* normalised suffixes whose names are never released; copied */
    size_t never_count;
    uint8_t user_v4_bits, user_v6_bits; /* prefix lengths that make a user, such as 32 and 56 */
    const char *key_file; /* path of a file that `zanon-net key new` made; NULL: random keys */
    /* flows open at a time, 1 .. 2^31; beyond, those idle for longest are closed */
    uint32_t max_flows;
    uint32_t max_tuples, max_attributes; /* caps of the z-table, as in zn_ztable_config */
    uint32_t z_max;                      /* largest that zn_engine_set_z takes, if above z */
    bool popularity;                     /* for zanon-net's own binding: count users by window */
    unsigned workers; /* threads that share the work, the caller's among them: 1 .. 64 */
    zn_dns_votes dns_votes;
    zn_pseudonyms pseudonyms;
    /* prefix lengths of the blocks that ZN_PSEUDONYMS_CRYPTO_PAN keeps: 1 .. 32 and 1 .. 128 */
    uint8_t block_v4_bits, block_v6_bits;
    zn_coarse_end coarse_end;
    zn_coarse_steps coarse_steps;
    zn_coarse_client coarse_client;
    /* In all other records, and in observations. Either is refused with the sets E2E and OPTIONS,
     * whose columns would say more. */
    int64_t times_ns; /* times are multiples of so many ns, rounded down; 0: exact */
    unsigned digits;  /* counts above 99 keep so many leading digits: 2; 0: all */
    zn_order order;
    /* Of the outputs of packets. They leave hold_ns (0 .. 10 s) of packet time after they came, or
     * when they fill hold_bytes: what is not decided by then is withheld. */
    int64_t hold_ns;
    uint64_t hold_bytes;
    zn_packet_payload payload;
    bool wide_addresses; /* pseudonyms of clients as in logs; false: in the blocks of private and
                            reserved addresses */
    zn_server_addresses server_addresses;
    zn_packet_macs macs;
    zn_tcp_timestamps tcp_timestamps;
    bool keep_ttl; /* false: 64, 128 or 255, the next above */
    zn_fingerprints fingerprints;
    /* packets of TCP flows whose name is suppressed leave, too, with positions and lengths rounded
     * up to 16 KiB; not with `exact` */
    bool coarse_suppressed;
    int64_t packet_times_ns; /* times are multiples of so many ns, rounded down: >= 1 */
    /* tags, labels, sessions and tunnels are around the packet, with pseudonyms of their
     * identifiers and addresses; false: they are not there */
    bool keep_encapsulation;
    const zn_packet_view *views; /* at most ZN_VIEWS_MAX; copied */
    size_t view_count;
    /* For zanon-net's own binding: name of this probe, whose votes a counter of all probes decides;
     * NULL: the engine does. How long it is waited for, in ns of packet time. Whether the lines of
     * observations come with the votes, to be sealed. Whether names are released at once that the
     * probe's own users suffice for; not with lines, which the counter hands on. How long a
     * generation of the votes' hashes lasts, a window and two epochs at least; 0: for ever. */
    const char *count_probe;
    int64_t count_hold_ns;
    bool count_rows;
    bool count_leases;
    int64_t count_rotate_ns;
    const zn_tunnel_port *tunnel_ports; /* at most 16; copied */
    size_t tunnel_port_count;
} zn_engine_config;

/* Fills the first `size` bytes of *config with the defaults. `size` is sizeof *config where the
 * program is compiled, and goes into config->size. */
ZN_API void zn_engine_config_init(zn_engine_config *config, size_t size);

/* Returns the command's defaults, with no output chosen. */
static inline zn_engine_config zn_engine_default_config(void)
{
    zn_engine_config config;
    zn_engine_config_init(&config, sizeof config);
    return config;
}

/* Opens an engine by *config, which is copied, and puts it into *out; the caller closes it. Returns
 * 0, or with *out NULL: -ZN_ERR_CONFIG for a value out of range and for a key file without a key or
 * one that others may read, -ZN_ERR_IO for a key file that cannot be read, -ZN_ERR_CAPACITY without
 * memory, -ZN_ERR_CRYPTO when libcrypto or the system's random numbers fail. */
ZN_API int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err);
/* Wipes the keys and frees the engine. NULL is fine. */
ZN_API void zn_engine_close(zn_engine *e);

/* Takes n frames in their order, any n; borrows their bytes for the call. Decides on all names that
 * they complete. Returns 0 or a negative zn_err. */
ZN_API int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err);
/* Takes note that no packet came for quiet_ns (> 0) since the last one: closes the flows that have
 * been idle for too long and writes their records, and those that waited for the end of a minute
 * that is over by then. The packet clock stays. Returns 0, or 1 or a negative zn_err as
 * zn_engine_flush does. */
ZN_API int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err);
/* Ends the input: closes every flow and writes its record. Returns 0, 1 when the program has to
 * take the outputs and call again, or a negative zn_err. Frames fed after it open new flows, which
 * the next call closes. */
ZN_API int zn_engine_finish(zn_engine *e, zn_error *err);
/* Writes the records that wait. Returns 0 when none waits any more, 1 when the program has to take
 * the outputs and call again, or a negative zn_err. */
ZN_API int zn_engine_flush(zn_engine *e, zn_error *err);

/*
 * Returns the text that has gathered of `output`, whole lines that may be published, and empties
 * it. The bytes lie in the engine's memory until it takes frames again, is idle, flushed or
 * finished. n is 0 when there are none.
 *
 * With split_ns these are lines of one period; before the first packet there are none. A program
 * takes each of its outputs, calls zn_outputs_next_period, and does both again while that returns
 * true. So it knows the period of each line, and when the files of a period are whole.
 */
ZN_API zn_span zn_outputs_take(zn_engine *e, zn_output output);
/* Puts the next anonymized packets, of ZN_OUTPUT_PACKETS, into out[0 .. max - 1], in their order,
 * and how many into *n: it takes what zn_outputs_take would have returned, frame by frame. Their
 * bytes lie in the engine's memory as long as that text would. Returns 1 where more wait, for
 * another call, else 0; *n is 0 where that output was not asked for. */
ZN_API int zn_engine_take_packets(zn_engine *e, zn_frame *out, size_t max, size_t *n);
/* The same for config.views[view]. */
ZN_API int zn_engine_take_view_packets(zn_engine *e, unsigned view, zn_frame *out, size_t max,
                                       size_t *n);
/* Returns true when a packet began another period: *start_ns is its start, zn_outputs_take goes on
 * with its lines, and the period before gets no more of them. False while the period goes on, and
 * without split_ns. */
ZN_API bool zn_outputs_next_period(zn_engine *e, int64_t *start_ns);
/* Returns the line that a file of `output` begins with; n is 0 where there is none. The bytes lie
 * in the engine's memory until zn_engine_close. */
ZN_API zn_span zn_outputs_header(const zn_engine *e, zn_output output);
/* Returns true when records wait for the program to take the outputs. */
ZN_API bool zn_engine_waiting(const zn_engine *e);
/* Changes z for the votes of frames fed from now on. Returns 0, or -ZN_ERR_CONFIG for a z of 0 or
 * above z_max: z is then as before, and the engine may go on. */
ZN_API int zn_engine_set_z(zn_engine *e, uint32_t z, zn_error *err);

/* Returns the counts of the engine's z-table. */
ZN_API zn_ztable_stats zn_engine_table_stats(const zn_engine *e);
/* Returns how many distinct users were seen. *saturated: it is a lower bound. */
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
