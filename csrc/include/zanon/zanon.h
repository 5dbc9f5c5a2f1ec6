/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole packet path by one handle: frames in, anonymised text out.
 *
 *     zn_engine_config config = zn_engine_default_config();
 *     config.outputs = 1u << ZN_OUTPUT_OBSERVATIONS;      what to make, of zn_output
 *     if (zn_engine_open(&engine, &config, &err) != 0)    err.msg says why, for people
 *     zn_engine_feed(engine, frames, n, &err)             again and again, and each time
 *     zn_outputs_take(engine, ZN_OUTPUT_OBSERVATIONS)     write what it put out; at the end
 *     zn_engine_finish(engine, &err), zn_engine_close(engine)
 *
 * examples/c/monitor.c is a whole program of this kind. Times are ns since the Unix epoch, of the
 * packets. A function that returns int returns the negative of a zn_err for an error, and fills
 * *err, which may be NULL; no message holds a name or an address.
 *
 * Frames are taken in batches, best of some hundreds. Each batch is decoded, its flows are updated,
 * the names it completes are put to the vote, decided, and written together with the records of the
 * flows that closed. Nothing is allocated on the way but space for output, which gathers until the
 * program takes it and may be published. When it is full, records wait: zn_engine_waiting says so,
 * zn_engine_flush goes on.
 *
 * An engine belongs to one thread at a time. Errors are about us (memory, the crypto library),
 * never about packets. After an error an engine only takes zn_engine_close.
 */
#ifndef ZANON_ZANON_H
#define ZANON_ZANON_H

#include <zanon/ztable.h>

#ifdef __cplusplus
extern "C" {
#endif

/* Borrowed bytes. n == 0 means none; p may then be anything. */
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

/* A network: the first `bits` bits (0..128, an IPv4 /n being 96 + n) of `prefix` count. */
typedef struct zn_net {
    zn_addr prefix;
    uint32_t bits;
} zn_net;

/*
 * Reads a network such as "10.0.0.0/8" or "2001:db8::/32", or a single address, into *out. 0, or
 * -ZN_ERR_CONFIG for any other text; also where bits after the prefix are set, as in "10.1.0.0/8".
 */
ZN_API int zn_net_parse(zn_net *out, const char *text, zn_error *err);

/* ---- frames ---- */

#define ZN_FRAME_MAX ((uint32_t)256 << 10) /* longest frame accepted; libpcap's own bound */

/* One captured frame; `data` borrows memory of who gives it. */
typedef struct zn_frame {
    const uint8_t *data;
    int64_t t_ns;       /* ns since the Unix epoch; negative: none, or none that can be held */
    uint32_t captured;  /* bytes at data */
    uint32_t wire;      /* bytes on the wire, >= captured */
    uint32_t link_type; /* LINKTYPE_* of the pcap registry */
} zn_frame;

/* ---- the engine ---- */

/* Sets of columns of the flow logs, as bits: what is measured and what is written. The numbers are
 * those in the header of Tstat's TCP logs. The core set is always there. */
enum { ZN_SET_E2E = 1, ZN_SET_LAYER7 = 2, ZN_SET_P2P = 4, ZN_SET_OPTIONS = 8 };

/* Texts that an engine puts out. As bits (1 << output) in a set of outputs. */
typedef enum zn_output {
    ZN_OUTPUT_TCP_COMPLETE, /* Tstat's three logs */
    ZN_OUTPUT_TCP_NOCOMPLETE,
    ZN_OUTPUT_UDP_COMPLETE,
    ZN_OUTPUT_JSONL,        /* a flow a line */
    ZN_OUTPUT_OBSERVATIONS, /* JSON Lines: a released name each, at its decision */
    ZN_OUTPUT_CSV           /* a flow a line */
} zn_output;

typedef struct zn_engine zn_engine;

typedef struct zn_engine_config {
    size_t size;            /* of this struct, as the program was compiled */
    uint32_t z;             /* users that must share a name, 1 .. ZN_ZTABLE_Z_MAX */
    int64_t window_ns;      /* for how long an exposure counts, 1 .. ZN_ZTABLE_WINDOW_MAX_NS */
    int64_t rotate_ns;      /* length of a key's epoch, > 0 */
    bool established;       /* votes need evidence that the client is real */
    bool dns_votes;         /* DNS names take part */
    bool exact;             /* exact measurements also where a name is withheld */
    bool keep_client_port;  /* client ports as they are, instead of 0 */
    bool dn_hunter;         /* names of DNS responses for the flows that follow them */
    unsigned sets;          /* ZN_SET_*: columns besides the core */
    uint32_t outputs;       /* bits: 1 << ZN_OUTPUT_* */
    int64_t split_ns;       /* periods of outputs, aligned to the Unix epoch; 0: one for all */
    const zn_net *internal; /* the users' networks; NULL: private ranges; copied */
    size_t internal_count;
    const zn_span *never; /* normalised suffixes that are never released; copied */
    size_t never_count;
    uint8_t user_v4_bits, user_v6_bits; /* prefix lengths that make a user, e.g. 32 and 64 */
    const char *key_file; /* one that `zanon-net key new` made; NULL: ephemeral keys */
    uint32_t max_flows;   /* open at a time; then those idle for longest are closed */
    uint32_t max_tuples, max_attributes; /* of the z-table, as in zn_ztable_config */
    uint32_t z_max;                      /* the largest that zn_engine_set_z may set; 0: z stays */
    bool popularity;  /* stop at the end of each window, for its counts to be read */
    unsigned workers; /* threads that share the work, the caller's among them: 1 .. 64 */
} zn_engine_config;

/* Fills the first `size` bytes of *config as zn_engine_default_config says. */
ZN_API void zn_engine_config_init(zn_engine_config *config, size_t size);

/* The defaults of the command, with no output chosen. */
static inline zn_engine_config zn_engine_default_config(void)
{
    zn_engine_config config;
    zn_engine_config_init(&config, sizeof config);
    return config;
}

/* A new engine at *out, to be closed by the caller; copies *config. 0, or with *out NULL:
 * -ZN_ERR_CONFIG for a value out of range or a key file that holds no key or that others may read,
 * -ZN_ERR_IO for one that cannot be read, -ZN_ERR_CAPACITY without memory, -ZN_ERR_CRYPTO where
 * libcrypto or the system's random numbers fail. */
ZN_API int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err);
/* Wipes the keys and gives all memory back; NULL is fine. */
ZN_API void zn_engine_close(zn_engine *e);

/* Takes n frames, any n, whose bytes are borrowed for the call. 0 or a negative zn_err. */
ZN_API int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err);
/* No packet came for quiet_ns since the last one: closes what has been idle for too long and puts
 * out the records. The packet clock stays. 0, 1 or a negative zn_err, as below. */
ZN_API int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err);
/* End of input: closes every flow and puts its record out. 0, 1 when the outputs are to be taken
 * and it is to be called again, or a negative zn_err. Frames that are taken later open new flows,
 * which the next call closes. */
ZN_API int zn_engine_finish(zn_engine *e, zn_error *err);
/* Puts out what did not fit before. 0, 1 or a negative zn_err, as above. */
ZN_API int zn_engine_flush(zn_engine *e, zn_error *err);

/*
 * Takes what was put out as `output`, whole lines that may be published. They lie in the engine's
 * memory until its next call; n is 0 when there are none. Periods (split_ns) are not told apart.
 */
ZN_API zn_span zn_outputs_take(zn_engine *e, zn_output output);
/* Records wait for the outputs to be taken. */
ZN_API bool zn_engine_waiting(const zn_engine *e);
/* Changes z for the votes of frames not taken yet, up to z_max. 0, or -ZN_ERR_CONFIG. */
ZN_API int zn_engine_set_z(zn_engine *e, uint32_t z, zn_error *err);

ZN_API zn_ztable_stats zn_engine_table_stats(const zn_engine *e);
/* Distinct users seen; a lower bound once *saturated. */
ZN_API uint64_t zn_engine_users(const zn_engine *e, bool *saturated);
/* The earliest and the latest time of any frame; false when there was none. */
ZN_API bool zn_engine_time_range(const zn_engine *e, int64_t *first_ns, int64_t *last_ns);
/* Bytes of memory in use. */
ZN_API size_t zn_engine_memory(const zn_engine *e);

#ifdef __cplusplus
}
#endif

#endif
