/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The whole packet path behind one handle: frames in, anonymised text out.
 *
 *     zn_engine_config config = zn_engine_default_config();
 *     config.outputs = 1u << ZN_OUTPUT_OBSERVATIONS;      what to make, see outputs.h
 *     if (zn_engine_open(&engine, &config, &err) != 0)    err.msg says why, for people
 *     zn_engine_feed(engine, frames, n, &err)             again and again; then read and empty
 *     zn_engine_outputs(engine)                           until it is over:
 *     zn_engine_finish(engine, &err), zn_engine_close(engine)
 *
 * examples/c/monitor.c is a whole program of this kind. Times are ns since the Unix epoch, of the
 * packets. A function that returns int returns the negative of a zn_err (util/base.h) for an error,
 * and fills *err, which may be NULL; no message holds a name or an address.
 *
 * Frames are taken in batches. Each batch is decoded, its flows are updated, the names it completes
 * are put to the vote, decided, and written together with the records of the flows that closed.
 * Nothing is allocated on the way but room for output, which gathers until the caller takes it and
 * may be published. When it is full, records wait: zn_engine_waiting tells, zn_engine_flush goes
 * on.
 *
 * An engine belongs to one thread at a time. With config.workers it has others of its own, made by
 * the first call that has work for them; between two calls they touch nothing, and what a source
 * gave them ahead of its turn is taken by the next zn_engine_run with the same source.
 * zn_engine_feed takes its frames without them. What is put out is the same for any number. Errors
 * are about us (memory, the crypto library, reading a source), never about packets. After ZN_ERR_IO
 * from zn_engine_run the engine is as it was; after any other error it only takes zn_engine_close.
 */
#ifndef ZN_ENGINE_ENGINE_H
#define ZN_ENGINE_ENGINE_H

#include "anonymity/popularity.h"
#include "anonymity/ztable.h"
#include "engine/outputs.h"
#include "engine/profile_stage.h"
#include "engine/source.h"
#include "util/addr.h"
#include "util/column_sets.h"
#include "util/pool.h"
#include "util/stats.h"
#include "util/text.h"

typedef struct zn_engine zn_engine;

typedef struct zn_engine_config {
    uint32_t z;             /* users that must share a name, 1 .. ZN_ZTABLE_Z_MAX */
    int64_t window_ns;      /* for how long an exposure counts, 1 .. ZN_ZTABLE_WINDOW_MAX_NS */
    int64_t rotate_ns;      /* length of a key's epoch, > 0 */
    bool established;       /* votes need evidence that the client is real */
    bool dns_votes;         /* DNS names take part */
    bool exact;             /* exact measurements beside suppressed names */
    bool keep_client_port;  /* client ports as they are, instead of 0 */
    bool dn_hunter;         /* names of DNS responses for the flows that follow them */
    unsigned sets;          /* ZN_SET_*: columns beside the core */
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
    unsigned workers; /* threads that share the work, the caller's among them: 1 .. ZN_POOL_MAX */
} zn_engine_config;

/* The defaults of the command, with no output chosen. */
zn_engine_config zn_engine_default_config(void);

/* A new engine at *out, to be closed by the caller; copies *config. 0, or with *out NULL:
 * -ZN_ERR_CONFIG for a value out of range or a key file that holds no key or that others may read,
 * -ZN_ERR_IO for one that cannot be read, -ZN_ERR_CAPACITY without memory, -ZN_ERR_CRYPTO where
 * libcrypto or the system's random numbers fail. */
int zn_engine_open(zn_engine **out, const zn_engine_config *config, zn_error *err);
/* Wipes the keys and gives all memory back; NULL is fine. */
void zn_engine_close(zn_engine *e);

/* Takes n frames, any n, whose bytes are borrowed for the call. 0 or a negative zn_err. */
int zn_engine_feed(zn_engine *e, const zn_frame *frames, size_t n, zn_error *err);
/* Takes up to max_frames from a source, first those that a call before had read and left, of which
 * it takes all; of a stream, what is there. What is decided together does not depend on how many
 * each call takes: of a file a batch ends when it is full, and with the file. Returns how many
 * frames it was busy with; 0 at the source's end, or a negative zn_err. It returns early where the
 * outputs are full, and with config.popularity where a window has ended (zn_engine_window); what
 * was read already is taken by the next call, which with 0 max_frames takes only that; a call with
 * another source forgets it. */
int zn_engine_run(zn_engine *e, zn_source *source, int max_frames, zn_error *err);
/* No packet came for quiet_ns since the last one: closes what has been idle for too long and puts
 * out the records. The packet clock stays. 0, 1 or a negative zn_err, as below. */
int zn_engine_idle(zn_engine *e, int64_t quiet_ns, zn_error *err);
/* End of input: closes every flow and puts its record out. 0, 1 when the outputs are to be taken
 * and it is to be called again, or a negative zn_err. Frames that are taken later open new flows,
 * which the next call closes. */
int zn_engine_finish(zn_engine *e, zn_error *err);
/* Puts out what did not fit before. 0, 1 or a negative zn_err, as above. */
int zn_engine_flush(zn_engine *e, zn_error *err);

/* Where it is at work now, of what zn_engine_run reads; another thread may ask. */
zn_profile_stage zn_engine_profile_stage(const zn_engine *e);

/* What was put out, to be taken and cleared by the caller. */
zn_outputs *zn_engine_outputs(zn_engine *e);
/* Records wait for the outputs to be taken. */
bool zn_engine_waiting(const zn_engine *e);

/*
 * The window that has ended: true when there is one, until zn_engine_run is called again; after
 * zn_engine_finish, the one that the end of input cut. Its counts are of distinct users a name, in
 * no order: as many as window->bins add up to, of which up to `cap` are written; returns how many.
 */
bool zn_engine_window(const zn_engine *e, zn_popularity_window *window);
size_t zn_engine_window_counts(const zn_engine *e, uint32_t *out, size_t cap);
/* Changes z for the votes of frames not taken yet, up to z_max. 0, or -ZN_ERR_CONFIG. */
int zn_engine_set_z(zn_engine *e, uint32_t z, zn_error *err);

const zn_stats *zn_engine_stats(const zn_engine *e);
zn_ztable_stats zn_engine_table_stats(const zn_engine *e);
/* Distinct users seen; a lower bound once *saturated. */
uint64_t zn_engine_users(const zn_engine *e, bool *saturated);
/* The earliest and the latest time of any frame; false when there was none. */
bool zn_engine_time_range(const zn_engine *e, int64_t *first_ns, int64_t *last_ns);
/* Bytes of memory in use. */
size_t zn_engine_memory(const zn_engine *e);
/* Of that what the flow table takes, for *live flows; and what it takes when it is full. */
size_t zn_engine_flow_memory(const zn_engine *e, uint32_t *live);
size_t zn_engine_flow_memory_max(const zn_engine *e);
/* Checks every table's invariants; NULL, or what is broken. Slow: for tests. */
const char *zn_engine_check(const zn_engine *e);

#endif
