/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * z-anonymity (Jha et al. 2020 and 2022, Algorithm 1): may the observation (t, u, a) be released?
 *
 * It may iff at least z distinct users, u included, exposed attribute a in [t - window, t]. The
 * answer comes at once, and an exposure counts for later ones whether it was released or not.
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
 * Users and attributes come as hashes under a secret key, never as they are and never under a hash
 * without a key: an attacker who chose names that collide could make the table slow, or one
 * attribute count for another. 40 bits of a user and 116 of an attribute are stored. Two users
 * taken for one can only suppress.
 *
 * Guarantee, for any order of the input: never ZN_RELEASE where brute force over all observations
 * so far counts fewer than z users. In time order, and while no cap is reached: exactly the answer
 * of brute force. Anything but ZN_RELEASE means: do not publish.
 *
 * Time is that of the observations only. The clock is the largest time so far. A late observation
 * is placed at its true time (at most ZN_ZTABLE_LATE_STEPS users deep), one older than the window
 * is suppressed and not stored; `rebase_after` of those in a row prove that the clock was wrong:
 * the table is emptied and the clock set back.
 *
 * Memory is address space for the caps, laid out by zn_ztable_open, and costs what is touched;
 * nothing is allocated after that, so no later call can fail. With `reserve` all of it is physical
 * memory from the start, zn_ztable_memory_max() bytes, and no observation waits for the kernel to
 * find some. At a cap the oldest entries go first, which can only suppress. Attributes that nobody
 * touched for a window are reclaimed step by step. Each call takes O(1) amortised.
 *
 * Threads: a table belongs to one at a time. The functions that take a const table may run side by
 * side with each other, with nothing else. Different tables share nothing.
 *
 * Functions that return int return 0, or the negative of a zn_err with *err filled;
 * err may be NULL.
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

/* ZN_VERSION of the library that the program runs with. */
ZN_API const char *zn_version(void);

#define ZN_NS_PER_S INT64_C(1000000000)

/* ---- errors ---- */

/* The subject of an error. */
typedef enum zn_err {
    ZN_ERR_OK,
    ZN_ERR_CONFIG,
    ZN_ERR_IO,       /* files and interfaces */
    ZN_ERR_FORMAT,   /* of a capture */
    ZN_ERR_CAPACITY, /* memory, or a limit */
    ZN_ERR_CRYPTO    /* the cryptographic library */
} zn_err;

typedef struct zn_error {
    zn_err code;
    int os_errno; /* errno at the failing call, 0 when no system call failed */
    char msg[256];
} zn_error;

/* ---- keyed hashes ---- */

/* A per-process random secret. */
typedef struct zn_hash_key {
    uint64_t k0, k1;
} zn_hash_key;

/* The 128-bit identity of an attribute: wide enough that two attributes sharing one is not a
 * practical event. */
typedef struct zn_id {
    uint64_t lo, hi;
} zn_id;

/* A fresh random key from the kernel; returns 0, or -ZN_ERR_IO and fills *err. */
ZN_API int zn_hash_key_random(zn_hash_key *key, zn_error *err);

/* SipHash-1-3 of n bytes. */
ZN_API uint64_t zn_hash64(const zn_hash_key *key, const void *bytes, size_t n);
/* SipHash-1-3 with 128-bit output of n bytes; `domain` keeps namespaces apart. */
ZN_API zn_id zn_hash128(const zn_hash_key *key, uint8_t domain, const void *bytes, size_t n);
/* SipHash-1-3 of whole 64-bit words: the fast path for fixed-size keys such as a 5-tuple. */
ZN_API uint64_t zn_hash_words(const zn_hash_key *key, const uint64_t *words, size_t n);

/* ---- the table ---- */

#define ZN_ZTABLE_Z_MAX (UINT32_C(1) << 31)
#define ZN_ZTABLE_WINDOW_MAX_NS ((int64_t)3660 * 86400 * ZN_NS_PER_S) /* ten years */
#define ZN_ZTABLE_TUPLES_MAX (UINT32_C(1) << 31)
#define ZN_ZTABLE_ATTRIBUTES_MAX (UINT32_C(1) << 27)
/* Most users of its attribute that may be newer than a late observation, else it is dropped. */
#define ZN_ZTABLE_LATE_STEPS 64
#define ZN_ZTABLE_BINS 32 /* powers of two that a number of users can reach */

typedef struct zn_ztable zn_ztable;

typedef struct zn_ztable_config {
    size_t size;             /* of this struct, as the program was compiled */
    uint32_t z;              /* 1 .. ZN_ZTABLE_Z_MAX */
    int64_t window_ns;       /* nanoseconds, 1 .. ZN_ZTABLE_WINDOW_MAX_NS */
    uint32_t keep;           /* most recent distinct users stored of each attribute, >= z; 0: all */
    uint32_t max_tuples;     /* (attribute, user) pairs alive at once, 1 .. ZN_ZTABLE_TUPLES_MAX */
    uint32_t max_attributes; /* attributes alive at once, 1 .. ZN_ZTABLE_ATTRIBUTES_MAX */
    int64_t max_jump_ns;     /* larger steps forward are rejected at first; 0: off */
    uint32_t rebase_after;   /* rejected observations in a row that prove the clock wrong; >= 1 */
    bool reserve;            /* all memory of the caps at the start, not as it is used */
} zn_ztable_config;

typedef struct zn_observation {
    int64_t t_ns;    /* ns since the Unix epoch, 0 .. INT64_MAX; negative is ZN_TOO_LATE */
    uint64_t user;   /* keyed hash of the user */
    zn_id attribute; /* keyed hash of the attribute in its namespace */
} zn_observation;

/* Why an observation was or was not released. */
typedef enum zn_decision {
    ZN_RELEASE,   /* at least z users: may be published */
    ZN_BELOW_Z,   /* stored, and too few users so far */
    ZN_TOO_LATE,  /* older than the window, or rejected as a jump: not stored */
    ZN_LATE_DEEP, /* late and too deep in its list: not stored */
    ZN_NO_ROOM    /* a cap left no space for it: not stored */
} zn_decision;

/* Since it was opened: each observation is released, below_z, too_late, late_deep or no_room. */
typedef struct zn_ztable_stats {
    uint64_t observations, released, below_z, too_late;
    uint64_t late; /* before the clock and inside the window: decided all the same */
    uint64_t late_deep, no_room;
    uint64_t clock_jumps;        /* times the clock was rebased and the table emptied */
    uint64_t evicted;            /* live entries thrown out at a cap */
    uint64_t tuples, attributes; /* alive now */
} zn_ztable_stats;

/* Fills the first `size` bytes of *config as zn_ztable_default_config says. */
ZN_API void zn_ztable_config_init(zn_ztable_config *config, size_t size, uint32_t z,
                                  int64_t window_ns);

/*
 * z and window as given, all users stored, no limit to jumps, a rebase after 256 rejected; caps of
 * 2^26 tuples and 2^24 attributes.
 */
static inline zn_ztable_config zn_ztable_default_config(uint32_t z, int64_t window_ns)
{
    zn_ztable_config config;
    zn_ztable_config_init(&config, sizeof config, z, window_ns);
    return config;
}

/*
 * Sets the caps of *config to the largest with which no input can make a table with the `keep` of
 * *config use more than `bytes` bytes of memory; four times as many tuples as attributes. What is
 * typical takes a small part of that: an adversary who brings every form of storage to its largest
 * takes all. -ZN_ERR_CONFIG when that is not enough for any table, or the rest of *config is wrong.
 */
ZN_API int zn_ztable_fit_caps(zn_ztable_config *config, size_t bytes, zn_error *err);

/*
 * A new, empty table at *out, to be closed by the caller. Copies *config. -ZN_ERR_CONFIG for values
 * out of range, -ZN_ERR_CAPACITY when the system has no memory, or less left than `reserve` takes,
 * -ZN_ERR_IO when it has no random bytes; *out is NULL then.
 */
ZN_API int zn_ztable_open(zn_ztable **out, const zn_ztable_config *config, zn_error *err);
/* Gives all memory back; NULL is fine. */
ZN_API void zn_ztable_close(zn_ztable *t);

/* Takes an observation in and decides on it. */
ZN_API zn_decision zn_ztable_observe(zn_ztable *t, const zn_observation *o);
/*
 * The same for n observations in their order, faster when they come by the dozen or more:
 * decisions[i], a zn_decision, belongs to o[i].
 */
ZN_API void zn_ztable_observe_batch(zn_ztable *t, const zn_observation *o, size_t n,
                                    uint8_t *decisions);

/* Observations whose users and attributes are plain numbers, not hashed yet. */
typedef struct zn_columns {
    const int64_t *t_ns;
    const uint64_t *user, *attribute;
    uint8_t domain; /* namespace of the attributes */
} zn_columns;

/*
 * Hashes n of them into out[n], several at a time: the user is zn_hash_words() of the number, the
 * attribute zn_hash128() of its eight bytes in `domain`.
 */
ZN_API void zn_observations_hash(const zn_hash_key *key, const zn_columns *in, size_t n,
                                 zn_observation *out);
/*
 * Hashes n of them and takes them in as zn_ztable_observe_batch does: the fastest for thousands at
 * a time, since what is hashed stays in the nearest cache.
 */
ZN_API void zn_ztable_observe_columns(zn_ztable *t, const zn_hash_key *key, const zn_columns *in,
                                      size_t n, uint8_t *decisions);

/* Distinct users of `attribute` in the window that ends at the table's clock; saturates at keep. */
ZN_API uint64_t zn_ztable_count(const zn_ztable *t, zn_id attribute);
/* The same in the window that ends at t_ns, of which the table's clock may know nothing: it moves
 * with observations only. Before the clock it can be less than there were. */
ZN_API uint64_t zn_ztable_count_at(const zn_ztable *t, zn_id attribute, int64_t t_ns);
/*
 * How many users each attribute has in the window that ends at the clock, in no order; of
 * attributes without a user nothing. Writes at most cap of these numbers and returns how many;
 * there are at most as many as attributes alive. Walks over everything.
 */
ZN_API size_t zn_ztable_counts(const zn_ztable *t, uint32_t *out, size_t cap);
/* The same as ZN_ZTABLE_BINS numbers: of attributes with 2^j to 2^(j+1) - 1 users, by j. */
ZN_API void zn_ztable_histogram(const zn_ztable *t, uint64_t *bins);
/* Changes z for what comes; -ZN_ERR_CONFIG, and z as before, when out of range or above keep. */
ZN_API int zn_ztable_set_z(zn_ztable *t, uint32_t z, zn_error *err);
/*
 * Forgets every exposure and the clock, and gives their memory back (reserved memory is cleared);
 * counters and z stay.
 */
ZN_API void zn_ztable_clear(zn_ztable *t);

ZN_API zn_ztable_stats zn_ztable_get_stats(const zn_ztable *t);
/* Bytes of memory the table has touched and not given back; reserved memory counts as touched. */
ZN_API size_t zn_ztable_memory(const zn_ztable *t);
/* Bytes that zn_ztable_memory can ever reach, whatever the input. */
ZN_API size_t zn_ztable_memory_max(const zn_ztable *t);
/* Checks every invariant; NULL, or what is broken. Slow: for tests. */
ZN_API const char *zn_ztable_check(const zn_ztable *t);

#ifdef __cplusplus
}
#endif

#endif
