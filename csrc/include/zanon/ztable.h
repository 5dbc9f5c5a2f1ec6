/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * z-anonymity (Jha et al. 2020 and 2022, Algorithm 1): may the observation (t, u, a), user u
 * exposed attribute a at time t, be released?
 *
 * It may iff at least z distinct users, u included, exposed a in [t - window, t]. The answer comes
 * at once. An exposure counts for later observations, released or not.
 *
 * To embed it: link libzanon (`make lib`; pkg-config name `zanon`), include <zanon/ztable.h>:
 *
 *     zn_hash_key key;                        secret, one for the life of the table
 *     zn_ztable_config config = zn_ztable_default_config(20, 3600 * ZN_NS_PER_S);
 *     zn_ztable *table;
 *     zn_error err;
 *     if (zn_hash_key_random(&key, &err) != 0 || zn_ztable_open(&table, &config, &err) != 0)
 *         ... err.msg says why ...
 *     zn_observation o = {t_ns, zn_hash64(&key, user, user_bytes),
 *                         zn_hash128(&key, 0, attribute, attribute_bytes)};
 *     if (zn_ztable_observe(table, &o) == ZN_RELEASE)
 *         ... (t, u, a) may be published ...
 *     zn_ztable_close(table);
 *
 * examples/c/ztable.c is a whole program of this kind.
 *
 * Users and attributes come as hashes under a secret key, never in clear and never under a hash
 * without a key: an attacker who chose names that collide could make the table slow, or have one
 * attribute count for another. The table stores 40 bits of a user and 112 of an attribute. Two
 * users whose 40 bits are equal count as one, which can only suppress.
 *
 * Guarantee, for any order of the input: never ZN_RELEASE where brute force over all observations
 * so far counts fewer than z users. In time order, and while no cap is reached: exactly the answer
 * of brute force. Any answer but ZN_RELEASE means: do not publish.
 *
 * Time comes from the observations only. The clock is the largest time so far. A late observation
 * is stored at its true place, unless more than ZN_ZTABLE_LATE_STEPS users of its attribute are
 * newer. An observation older than the window is suppressed and not stored. `rebase_after` of such
 * observations in a row prove that the clock was wrong: the table is emptied and the clock set
 * back.
 *
 * zn_ztable_open reserves address space for the caps; physical memory is taken where the table
 * touches it. Nothing is allocated after that, so no later call can fail. With `reserve` the table
 * takes all its memory at the start, zn_ztable_memory_max() bytes, and no observation waits for the
 * kernel to map memory. At a cap the oldest entries are dropped first, which can only suppress.
 * Attributes without an exposure in the last window are reclaimed step by step. Each call takes
 * O(1) amortised.
 *
 * Threads: a table belongs to one thread at a time. Functions that take a const table may run at
 * the same time as each other, but not at the same time as other functions. Different tables share
 * nothing.
 *
 * Functions that return int return 0, or the negative of a zn_err with *err filled; err may be
 * NULL.
 */
#ifndef ZANON_ZTABLE_H
#define ZANON_ZTABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ZN_VERSION_MAJOR 0
#define ZN_VERSION_MINOR 1
#define ZN_VERSION_PATCH 0
#define ZN_VERSION "0.1.0"

/* Marks the functions that a shared library exports. */
#ifndef ZN_API
#define ZN_API __attribute__((visibility("default")))
#endif

#ifdef __cplusplus
extern "C" {
#endif

/* Returns the ZN_VERSION of the library that the program runs with. */
ZN_API const char *zn_version(void);

#define ZN_NS_PER_S INT64_C(1000000000)

/* ---- errors ---- */

/* The subject of an error. */
typedef enum zn_err {
    ZN_ERR_OK,
    ZN_ERR_CONFIG,
    ZN_ERR_IO,       /* files, interfaces and the system's random bytes */
    ZN_ERR_FORMAT,   /* a file that is no capture, or a damaged one */
    ZN_ERR_CAPACITY, /* memory, or a limit */
    ZN_ERR_CRYPTO    /* the cryptographic library */
} zn_err;

typedef struct zn_error {
    zn_err code;
    int os_errno; /* errno of the system call that failed, 0 when none did */
    char msg[256];
} zn_error;

/* ---- keyed hashes ---- */

/* The secret of a keyed hash: random, and never stored. */
typedef struct zn_hash_key {
    uint64_t k0, k1;
} zn_hash_key;

/* Keyed hash that identifies an attribute. With 128 bits no two attributes have the same hash in
 * practice. */
typedef struct zn_id {
    uint64_t lo, hi;
} zn_id;

/* Fills *key with random bytes from the kernel. Returns 0, or -ZN_ERR_IO with *err filled. */
ZN_API int zn_hash_key_random(zn_hash_key *key, zn_error *err);

/* Returns the SipHash-1-3 of n bytes. */
ZN_API uint64_t zn_hash64(const zn_hash_key *key, const void *bytes, size_t n);
/* Returns the 128-bit SipHash-1-3 of n bytes. Equal bytes in different domains have different
 * hashes. */
ZN_API zn_id zn_hash128(const zn_hash_key *key, uint8_t domain, const void *bytes, size_t n);
/* Returns the SipHash-1-3 of n 64-bit words: faster than zn_hash64 for keys of fixed size, such as
 * a 5-tuple. */
ZN_API uint64_t zn_hash_words(const zn_hash_key *key, const uint64_t *words, size_t n);

/* ---- the table ---- */

#define ZN_ZTABLE_Z_MAX (UINT32_C(1) << 31)
#define ZN_ZTABLE_WINDOW_MAX_NS ((int64_t)3660 * 86400 * ZN_NS_PER_S) /* ten years */
#define ZN_ZTABLE_TUPLES_MAX (UINT32_C(1) << 31)
#define ZN_ZTABLE_ATTRIBUTES_MAX (UINT32_C(1) << 27)
/* Largest number of newer users of the attribute with which a late observation is still stored. */
#define ZN_ZTABLE_LATE_STEPS 64
/* bins of a histogram of users per attribute, one bin for each power of two */
#define ZN_ZTABLE_BINS 32

typedef struct zn_ztable zn_ztable;

typedef struct zn_ztable_config {
    size_t size;             /* of this struct, as the program was compiled */
    uint32_t z;              /* 1 .. ZN_ZTABLE_Z_MAX */
    int64_t window_ns;       /* ns for which an exposure counts, 1 .. ZN_ZTABLE_WINDOW_MAX_NS */
    uint32_t keep;           /* latest distinct users that are stored per attribute, >= z; 0: all */
    uint32_t max_tuples;     /* (attribute, user) pairs alive at once, 1 .. ZN_ZTABLE_TUPLES_MAX */
    uint32_t max_attributes; /* attributes alive at once, 1 .. ZN_ZTABLE_ATTRIBUTES_MAX */
    /* ns; larger steps forward are rejected at first; 0: no step is rejected */
    int64_t max_jump_ns;
    uint32_t rebase_after; /* rejected observations in a row that prove the clock wrong; >= 1 */
    bool reserve;          /* take all memory of the caps at the start, not as it is used */
} zn_ztable_config;

typedef struct zn_observation {
    int64_t t_ns;    /* ns since the Unix epoch; a negative time gives ZN_TOO_LATE */
    uint64_t user;   /* keyed hash of the user */
    zn_id attribute; /* keyed hash of the attribute in its namespace */
} zn_observation;

/* Answer to an observation: release, or the reason for suppression. */
typedef enum zn_decision {
    ZN_RELEASE,   /* at least z users: may be published */
    ZN_BELOW_Z,   /* stored, and too few users so far */
    ZN_TOO_LATE,  /* older than the window, or a step forward not confirmed yet: not stored */
    ZN_LATE_DEEP, /* late, and too many users of its attribute are newer: not stored */
    ZN_NO_ROOM    /* a cap left no space for it: not stored */
} zn_decision;

/* Counts since the table was opened. Each observation is in one of released, below_z, too_late,
 * late_deep and no_room. */
typedef struct zn_ztable_stats {
    uint64_t observations, released, below_z, too_late;
    uint64_t late; /* older than the clock but inside the window: stored and decided */
    uint64_t late_deep, no_room;
    uint64_t clock_jumps;        /* times the clock was rebased and the table emptied */
    uint64_t evicted;            /* entries still in the window that were dropped at a cap */
    uint64_t tuples, attributes; /* alive now */
} zn_ztable_stats;

/* Fills the first `size` bytes of *config as zn_ztable_default_config does. `size` is sizeof
 * *config when the program is compiled, and is written to config->size. */
ZN_API void zn_ztable_config_init(zn_ztable_config *config, size_t size, uint32_t z,
                                  int64_t window_ns);

/*
 * Returns a config with this z and window (ns): all users are stored, no step of the clock is too
 * large, 256 rejected observations in a row set it back, and the caps are 2^26 tuples and 2^24
 * attributes.
 */
static inline zn_ztable_config zn_ztable_default_config(uint32_t z, int64_t window_ns)
{
    zn_ztable_config config;
    zn_ztable_config_init(&config, sizeof config, z, window_ns);
    return config;
}

/*
 * Sets the caps of *config to the largest with which a table with this `keep` never uses more than
 * `bytes` bytes of memory, whatever the input; with four times as many tuples as attributes.
 * Typical input uses a small part of that; only an adversary who fills every kind of storage uses
 * all. Returns 0, or -ZN_ERR_CONFIG when `bytes` is too little for any table, or the rest of
 * *config is wrong.
 */
ZN_API int zn_ztable_fit_caps(zn_ztable_config *config, size_t bytes, zn_error *err);

/*
 * Opens an empty table by *config, which is copied, and puts it into *out; the caller closes it.
 * Returns 0, or with *out NULL: -ZN_ERR_CONFIG for values out of range, -ZN_ERR_CAPACITY when the
 * system has no memory, or less than `reserve` takes, -ZN_ERR_IO when it has no random bytes.
 */
ZN_API int zn_ztable_open(zn_ztable **out, const zn_ztable_config *config, zn_error *err);
/* Frees the table. NULL is fine. */
ZN_API void zn_ztable_close(zn_ztable *t);

/* Stores an observation and returns whether it may be released. */
ZN_API zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o);
/*
 * Stores n observations in their order and writes a zn_decision for o[i] to decisions[i]. Faster
 * than zn_ztable_observe if n is a dozen or more.
 */
ZN_API void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n,
                                    uint8_t *decisions);

/* Observations as columns. Users and attributes are plain numbers that are not hashed yet. */
typedef struct zn_columns {
    const int64_t *t_ns;
    const uint64_t *user, *attribute;
    uint8_t domain; /* namespace of the attributes */
} zn_columns;

/*
 * Hashes n observations into out[n], several at a time: the user is zn_hash_words() of the number,
 * the attribute zn_hash128() of its eight bytes in `domain`.
 */
ZN_API void zn_observations_hash(const zn_hash_key *key, const zn_columns *in, size_t n,
                                 zn_observation *out);
/*
 * Hashes n observations and decides on them as zn_ztable_observe_batch does: the fastest way for
 * thousands at a time, since the hashes stay in the nearest cache.
 */
ZN_API void zn_ztable_observe_columns(zn_ztable *t, const zn_hash_key *key, const zn_columns *in,
                                      size_t n, uint8_t *decisions);

/* Returns the number of distinct users that exposed `attribute` in the window that ends at the
 * table's clock, at most `keep`. */
ZN_API uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute);
/* Returns the number of distinct users in the window that ends at t_ns. If t_ns is after the clock,
 * the number assumes that no further observation comes. If t_ns is before the clock, the number can
 * be too small. */
ZN_API uint64_t zn_ztable_count_at(const zn_ztable *t, zn_id attribute, int64_t t_ns);
/*
 * Writes the number of users of each attribute in the window that ends at the clock: at most `cap`
 * numbers, in no order, without attributes that have no user. Returns the count of numbers written,
 * at most the number of live attributes. Reads the whole table.
 */
ZN_API size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap);
/* Sets bins[j], for j < ZN_ZTABLE_BINS, to the number of attributes with 2^j to 2^(j+1) - 1
 * users. */
ZN_API void zn_ztable_histogram(const zn_ztable *t, uint64_t *bins);
/* Changes z for later observations. Returns 0, or -ZN_ERR_CONFIG for a z out of range or above
 * `keep`: z is then unchanged. */
ZN_API int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err);
/*
 * Deletes every exposure, resets the clock and frees their memory (reserved memory is cleared).
 * Counters and z stay.
 */
ZN_API void zn_ztable_clear(zn_ztable *t);

/*
 * ---- snapshots ----
 * A snapshot has the state that decides: settings, clock, counters, and for each attribute the
 * users of the window that ends at the clock. A table restored from it keeps the guarantee above
 * over all observations before and after the snapshot. In time order, and while no cap is reached,
 * both tables give the same answers. Answers to late observations may differ, because the tables
 * drop expired exposures at different times. A snapshot has the hashes but not their key: a program
 * that continues must hash with the same key. A snapshot shows which users share which attributes,
 * by hash: the program that stores it must encrypt it.
 */

/* Least number of bytes that a step of an export needs. */
#define ZN_ZTABLE_EXPORT_MIN 256

/* Position of an export: all zeros before the first step. Its members belong to the library. */
typedef struct zn_ztable_cursor {
    uint64_t checksum[4], bytes, word; /* of the bytes written so far, and the last of them */
    uint64_t attributes, tuples;
    uint32_t part, kind, slot;
    uint32_t next, left; /* of the current attribute: the next user, and the number of users left */
} zn_ztable_cursor;

/*
 * Writes the next part of a snapshot, at most `cap` (>= ZN_ZTABLE_EXPORT_MIN) bytes. Returns the
 * number of bytes written, 0 if the snapshot is complete. The table must not change between the
 * steps.
 */
ZN_API size_t zn_ztable_export(const zn_ztable *t, zn_ztable_cursor *cursor, void *out, size_t cap);
/*
 * Fills the first config->size bytes of *config with the settings of the table from which the
 * snapshot was taken. A table opened with them can import the snapshot. Returns 0, or
 * -ZN_ERR_FORMAT if the bytes are not a snapshot of this version or are damaged.
 */
ZN_API int zn_ztable_snapshot_config(const void *snapshot, size_t n, zn_ztable_config *config,
                                     zn_error *err);
/*
 * Imports a snapshot into a table without observations, and checks every value that it reads.
 * Returns 0. On an error the table is empty, and the result is: -ZN_ERR_FORMAT if the bytes are not
 * a snapshot or are damaged; -ZN_ERR_CONFIG if z, window or keep differ from the table's;
 * -ZN_ERR_CAPACITY if the table's caps are too small.
 */
ZN_API int zn_ztable_import(zn_ztable *t, const void *snapshot, size_t n, zn_error *err);

/* Returns the counts since the table was opened. */
ZN_API zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t);
/* Returns the bytes of memory that the table uses; reserved memory counts. */
ZN_API size_t zn_ztable_memory(const zn_ztable *t);
/* Returns the largest value that zn_ztable_memory can return, for any input. */
ZN_API size_t zn_ztable_memory_max(const zn_ztable *t);
/* Checks every invariant. Returns NULL, or a text that names the broken invariant. Slow; for
 * tests. */
ZN_API const char *zn_ztable_check(const zn_ztable *t);

#ifdef __cplusplus
}
#endif

#endif
