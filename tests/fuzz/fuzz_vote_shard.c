/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The counter of a shard. With a first byte below 0x80 the rest are steps: messages of three probes
 * with a few votes each, decisions, probes that leave, dumps and loads. Traps on an answer that is
 * not for a message, on a message that is taken though its rules are not the first one's, on a yes
 * to a vote that fewer than z users share and that has no lease, and on a dump that is not taken.
 * With another first byte the rest is a dump, whose checksums are made right.
 */
#include "count/vote_leases.h"
#include "count/vote_shard.h"

#include <stdlib.h>

#define PROBES 3
#define Z 2
#define UNIT ZN_LEASE_UNIT_NS
#define WINDOW (20 * UNIT)
#define VOTES_MAX 2000
#define STEP_BYTES 4
#define CHECKSUM 8
#define SETTINGS 77
#define LIMITS_END 80 /* of a dump's settings */
#define OTHER_RULES_STEP 254

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const zn_hash_key of_shard = {UINT64_C(0x656e2d6e6f6e617a), UINT64_C(0x647268732f312f74)};
static const zn_hash_key of_table = {UINT64_C(0x656e2d6e6f6e617a), UINT64_C(0x706d75642f312f74)};

typedef struct run {
    zn_vote_shard *shard;
    zn_vote_writer writer;
    uint64_t sequence[PROBES];
    size_t n; /* votes that count and leases, so far */
    zn_counted_vote seen[VOTES_MAX];
} run;

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static uint32_t users_of(const run *r, const zn_counted_vote *vote)
{
    bool counted[8] = {false};
    uint32_t users = 0;
    for (size_t i = 0; i < r->n; i++) {
        const zn_counted_vote *v = r->seen + i;
        bool apart = (v->kind == ZN_COUNTED_DNS_ADDR) != (vote->kind == ZN_COUNTED_DNS_ADDR);
        if (v->kind == ZN_COUNTED_LEASE) {
            if (v->id.lo == vote->id.lo && vote->t_ns >= v->t_ns &&
                vote->t_ns <= v->t_ns + (int64_t)v->user * UNIT)
                return Z;
            continue;
        }
        if (!apart && v->id.lo == vote->id.lo && v->t_ns <= vote->t_ns &&
            v->t_ns >= vote->t_ns - WINDOW && !counted[v->user & 7]) {
            counted[v->user & 7] = true;
            users++;
        }
    }
    return users;
}

static void take_answers(run *r)
{
    size_t n;
    const zn_counted_vote *released;
    while ((n = zn_vote_shard_answer_bytes(r->shard)) != 0) {
        uint8_t *out = malloc(n);
        zn_vote_header header;
        zn_span bits;
        require(out != NULL);
        zn_vote_shard_take_answer(r->shard, out);
        require(zn_answers_read(&header, &bits, (zn_span){out, n}, NULL) == 0);
        require(header.probe < PROBES && header.sequence <= r->sequence[header.probe]);
        free(out);
    }
    released = zn_vote_shard_releases(r->shard, &n);
    for (size_t i = 0; i < n; i++)
        require(users_of(r, released + i) >= Z);
    zn_vote_shard_clear_releases(r->shard);
}

/* A message of a probe with up to seven votes, which the step's bytes spread over time. */
static void put(run *r, const uint8_t *step)
{
    uint64_t probe = step[0] % PROBES;
    zn_vote_header header = {.probe = probe, .sequence = r->sequence[probe] + 1};
    uint8_t out[1024];
    size_t seen = r->n;
    bool taken;
    zn_vote_rules rules = {32, 56, step[1] == OTHER_RULES_STEP, 0, false, 7};
    header.settings = SETTINGS;
    header.rules = zn_vote_rules_pack(&rules);
    header.watermark_ns = step[1] == 255 ? ZN_VOTE_WATERMARK_END : step[1] * UNIT;
    for (uint32_t i = 0; i < (step[3] & 7u) && r->n < VOTES_MAX; i++) {
        zn_counted_vote vote = {((int64_t)step[1] + step[2] % 16 - (int64_t)i) * UNIT,
                                i,
                                {step[2] / 16 % 4 + UINT64_C(1), UINT64_C(1) << 56},
                                (uint8_t)(step[3] >> 3 & 7) + 1};
        if (vote.t_ns < 0)
            continue;
        if (step[2] / 64 == 3)
            vote.kind = vote.kind % 2 != 0 ? ZN_COUNTED_LEASE : ZN_COUNTED_ONLY;
        require(zn_vote_writer_add(&r->writer, &vote));
        if (vote.kind == ZN_COUNTED_NAME || vote.kind == ZN_COUNTED_ADDR ||
            vote.kind == ZN_COUNTED_DNS_ADDR || vote.kind >= ZN_COUNTED_LEASE)
            r->seen[r->n++] = vote;
    }
    require(zn_vote_writer_bytes(&r->writer) <= sizeof out);
    zn_span message = {out, zn_vote_writer_finish(&r->writer, &header, out, NULL)};
    if (zn_vote_shard_put(r->shard, message, 0, &taken, NULL) == 0) {
        require(taken && zn_vote_shard_rules(r->shard) == header.rules);
        r->sequence[probe]++;
        require(zn_vote_shard_put(r->shard, message, 0, &taken, NULL) == 0 && !taken);
    } else {
        r->n = seen;
    }
}

static void reload(run *r)
{
    zn_text dump = {0};
    zn_vote_shard *again;
    zn_vote_shard_decide(r->shard, zn_vote_shard_watermark(r->shard));
    take_answers(r);
    require(zn_vote_shard_dump(r->shard, &dump, NULL) == 0);
    require(zn_vote_shard_load(&again, (zn_span){(uint8_t *)dump.bytes, dump.n}, NULL) == 0);
    zn_vote_shard_close(r->shard);
    r->shard = again;
    zn_text_fini(&dump);
}

static void run_steps(const uint8_t *data, size_t size)
{
    static run r;
    zn_vote_shard_config config;
    memset(&r, 0, sizeof r);
    zn_vote_shard_config_init(&config, Z, WINDOW);
    config.table.keep = size % 2 != 0 ? Z : 0;
    config.settings = SETTINGS;
    config.rotate_ns = 50 * UNIT;
    config.max_lag_ns = size % 3 == 0 ? 5 * UNIT : 0;
    config.max_pending = 60;
    config.max_clients = 3;
    config.max_probes = PROBES;
    config.max_leases = 2;
    config.table.max_tuples = config.table.max_attributes = 1000;
    config.keep_releases = true;
    require(zn_vote_shard_open(&r.shard, &config, NULL) == 0);
    require(zn_vote_writer_init(&r.writer, 16, NULL) == 0);
    for (; size >= STEP_BYTES; size -= STEP_BYTES, data += STEP_BYTES) {
        if (data[3] < 0xc0)
            put(&r, data);
        else if (data[3] < 0xf0)
            zn_vote_shard_decide(r.shard,
                                 data[3] & 1 ? zn_vote_shard_watermark(r.shard) : data[1] * UNIT);
        else if (data[3] < 0xf8)
            (void)zn_vote_shard_forget_probe(r.shard, data[0] % PROBES);
        else
            reload(&r);
        take_answers(&r);
    }
    zn_vote_shard_decide(r.shard, ZN_VOTE_WATERMARK_END);
    take_answers(&r);
    require(zn_vote_shard_pending(r.shard) == 0);
    require(zn_ztable_check(zn_vote_shard_table(r.shard)) == NULL);
    zn_vote_writer_fini(&r.writer);
    zn_vote_shard_close(r.shard);
}

/* Sets small limits, as large ones only take time to lay out: tuples, attributes, clients, probes,
 * leases. */
static void limit(uint8_t *dump, size_t n)
{
    if (n < LIMITS_END)
        return;
    (void)zn_le_put(dump + 24, 1000, 4);
    (void)zn_le_put(dump + 28, 1000, 4);
    (void)zn_le_put(dump + 64, 10, 4);
    (void)zn_le_put(dump + 72, 4, 4);
    (void)zn_le_put(dump + 76, 4, 4);
}

/* The table's snapshot is the last part of a dump, behind its length. */
static void seal(uint8_t *dump, size_t n)
{
    for (size_t at = 0; at + 8 + CHECKSUM < n; at++) {
        uint64_t length = zn_le_get(dump + at, 8);
        if (length >= CHECKSUM && length == n - CHECKSUM - at - 8) {
            uint8_t *table = dump + at + 8;
            (void)zn_le_put(table + length - CHECKSUM,
                            zn_hash64(&of_table, table, length - CHECKSUM), CHECKSUM);
        }
    }
    (void)zn_le_put(dump + n - CHECKSUM, zn_hash64(&of_shard, dump, n - CHECKSUM), CHECKSUM);
}

static void load_dump(const uint8_t *data, size_t size)
{
    zn_vote_shard *shard;
    uint8_t *copy = malloc(size + CHECKSUM);
    if (copy == NULL)
        return;
    memcpy(copy, data, size);
    limit(copy, size);
    if (size >= CHECKSUM)
        seal(copy, size);
    if (zn_vote_shard_load(&shard, (zn_span){copy, size}, NULL) == 0) {
        require(zn_ztable_check(zn_vote_shard_table(shard)) == NULL);
        zn_vote_shard_decide(shard, ZN_VOTE_WATERMARK_END);
        require(zn_vote_shard_pending(shard) == 0);
        require(zn_ztable_check(zn_vote_shard_table(shard)) == NULL);
        zn_vote_shard_close(shard);
    }
    free(copy);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 1)
        return 0;
    if (data[0] < 0x80)
        run_steps(data + 1, size - 1);
    else
        load_dump(data + 1, size - 1);
    return 0;
}
