/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Captures through the whole engine with any number of workers: drive_engine WORKERS KEY CAPTURE...
 * For each capture and each of some configurations a line says what was put out, as a hash, and
 * what was counted; the lines are the same for any number. Built with -fsanitize=thread it also
 * shows that no two threads meet.
 */
#include "engine/engine.h"
#include "util/hash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CALL_FRAMES 5000 /* neither whole batches nor whole portions */

typedef struct variant {
    const char *name;
    uint32_t max_flows;
    int64_t split_ns;
    bool popularity, dn_hunter, any;
    bool lazy;        /* takes no output until records wait for that */
    int leaves_after; /* calls until it gives up; 0: never */
} variant;

static const variant variants[] = {
    {.name = "plain", .max_flows = 1 << 16},
    {.name = "few flows", .max_flows = 40},
    {.name = "periods", .max_flows = 1 << 16, .split_ns = 60 * ZN_NS_PER_S, .dn_hunter = true},
    {.name = "windows", .max_flows = 1 << 16, .popularity = true},
    {.name = "full", .max_flows = 1 << 16, .any = true, .lazy = true},
    {.name = "left", .max_flows = 1 << 16, .leaves_after = 2},
};

static const zn_hash_key hash_key = {1, 2};
static uint64_t seen; /* of one run */

static void require(int rc, const zn_error *err)
{
    if (rc < 0) {
        fprintf(stderr, "%s\n", err->msg);
        exit(1);
    }
}

static void mix(const void *bytes, size_t n)
{
    uint64_t both[2] = {seen, n == 0 ? 0 : zn_hash64(&hash_key, bytes, n)};
    if (n != 0)
        seen = zn_hash64(&hash_key, both, sizeof both);
}

/* The texts one by one: a hash must not depend on when they were taken. */
static char *texts[ZN_OUTPUT_TEXTS];
static size_t lengths[ZN_OUTPUT_TEXTS];

static void take(zn_engine *e)
{
    zn_outputs *outputs = zn_engine_outputs(e);
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++) {
        const zn_text *text = &outputs->text[i];
        texts[i] = realloc(texts[i], lengths[i] + text->n + 1);
        if (text->n != 0)
            memcpy(texts[i] + lengths[i], text->bytes, text->n);
        lengths[i] += text->n;
    }
    mix(&outputs->mark_count, outputs->mark_count != 0 ? sizeof outputs->mark_count : 0);
    zn_outputs_clear(outputs);
}

static void see_windows(zn_engine *e, zn_source *source, zn_error *err)
{
    zn_popularity_window window;
    while (zn_engine_window(e, &window)) {
        mix(&window.start_ns, sizeof window.start_ns);
        require(zn_engine_run(e, source, 0, err), err);
    }
}

static void run(zn_engine *e, zn_source *source, const variant *v, zn_error *err)
{
    int n = 1;
    for (int calls = 0; n > 0 && (v->leaves_after == 0 || calls < v->leaves_after); calls++) {
        n = zn_engine_run(e, source, CALL_FRAMES, err);
        require(n, err);
        see_windows(e, source, err);
        if (!v->lazy || zn_engine_waiting(e))
            take(e);
        while (zn_engine_waiting(e)) {
            require(zn_engine_flush(e, err), err);
            take(e);
        }
    }
    while ((n = zn_engine_finish(e, err)) > 0)
        take(e);
    require(n, err);
    take(e);
}

static void drive(const variant *v, const char *path, unsigned workers, const char *key)
{
    zn_engine_config config = zn_engine_default_config();
    zn_source source = {0};
    zn_error err = {0};
    zn_engine *e;
    config.z = 5;
    config.window_ns = config.rotate_ns = 10 * 60 * ZN_NS_PER_S;
    config.established = !v->any;
    config.dn_hunter = v->dn_hunter;
    config.sets = ZN_SET_LAYER7 | ZN_SET_E2E | ZN_SET_OPTIONS | ZN_SET_P2P;
    config.outputs = (1u << ZN_OUTPUT_RECORD_ROWS) - 1;
    config.split_ns = v->split_ns;
    config.key_file = key;
    config.max_flows = v->max_flows;
    config.max_tuples = 1 << 20;
    config.max_attributes = 1 << 18;
    config.popularity = v->popularity;
    config.workers = workers;
    seen = 0;
    require(zn_engine_open(&e, &config, &err), &err);
    require(zn_capture_open_path(&source.capture, path, &err), &err);
    run(e, &source, v, &err);
    for (int i = 0; i < ZN_OUTPUT_TEXTS; i++) {
        mix(texts[i], lengths[i]);
        lengths[i] = 0;
    }
    mix(zn_engine_stats(e), sizeof(zn_stats));
    mix(source.link_frames, sizeof source.link_frames);
    if (zn_engine_check(e) != NULL)
        printf("BROKEN: %s\n", zn_engine_check(e));
    printf("%s: %016llx, %llu frames, %llu records\n", v->name, (unsigned long long)seen,
           (unsigned long long)zn_engine_stats(e)->n[ZN_STAT_FRAMES],
           (unsigned long long)zn_engine_stats(e)->n[ZN_STAT_RECORDS]);
    if (v->leaves_after % 2 == 0) /* either may go first */
        zn_capture_close(source.capture);
    zn_engine_close(e);
    if (v->leaves_after % 2 != 0)
        zn_capture_close(source.capture);
}

int main(int count, char **arguments)
{
    unsigned long workers = count > 3 ? strtoul(arguments[1], NULL, 10) : 0;
    if (workers == 0)
        return 2;
    for (int i = 3; i < count; i++)
        for (size_t k = 0; k < sizeof variants / sizeof variants[0]; k++)
            drive(&variants[k], arguments[i], (unsigned)workers, arguments[2]);
    return 0;
}
