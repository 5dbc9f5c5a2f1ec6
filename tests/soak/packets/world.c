/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "world.h"

#include <string.h>

#define SECOND INT64_C(1000000000)
#define MS (SECOND / 1000)
#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* Each label begins with these, so that a search stops seldom. */
#define MARK "zq"
#define MARK_BYTES 2
/* All letters but those of masks (`x`, `.invalid`) and of the field X-Padding. */
static const char letters[] = "bcefhjkmoqrstuwyz";

bool world_is_label_letter(uint8_t byte)
{
    return byte != 0 && strchr(letters, byte | 0x20) != NULL;
}

static void draw_names(world *w, dice *d)
{
    static const char suffixes[][WORLD_SUFFIX + 1] = {
        [WORLD_NAME_PLAIN] = ".example",
        [WORLD_NAME_HOME] = ".a.local",
        [WORLD_NAME_INVALID] = ".exam le",
    };
    for (uint32_t n = 0; n < w->names; n++) {
        uint8_t *name = w->name[n];
        uint32_t chance = dice_below(d, 100);
        w->name_kind[n] = chance < 2   ? WORLD_NAME_INVALID
                          : chance < 4 ? WORLD_NAME_HOME
                                       : WORLD_NAME_PLAIN;
        memcpy(name, MARK, MARK_BYTES);
        /* The number makes labels differ in whatever part of them is shown. */
        for (uint32_t i = MARK_BYTES, left = n; i < WORLD_LABEL; i++, left /= LENGTH(letters) - 1)
            name[i] =
                (uint8_t)letters[i < MARK_BYTES + 3 ? left % (LENGTH(letters) - 1)
                                                    : dice_below(d, (uint32_t)LENGTH(letters) - 1)];
        memcpy(name + WORLD_LABEL, suffixes[w->name_kind[n]], WORLD_SUFFIX);
    }
}

int world_find(const world *w, const uint8_t *text)
{
    uint32_t n = 0;
    for (int i = 2; i >= 0; i--) {
        const char *at = strchr(letters, text[MARK_BYTES + i] | 0x20);
        if (text[MARK_BYTES + i] == 0 || at == NULL)
            return -1;
        n = n * ((uint32_t)LENGTH(letters) - 1) + (uint32_t)(at - letters);
    }
    if (n >= w->names)
        return -1;
    for (int i = 0; i < WORLD_LABEL; i++)
        if ((text[i] | 0x20) != w->name[n][i])
            return -1;
    return (int)n;
}

static void draw_times(world *w, dice *d)
{
    int64_t least_ns = w->engine.hold_ns == SECOND ? MS / 2 : MS / 500;
    int64_t window_ns;
    w->gap_ns = least_ns << dice_below(d, 6);
    w->pause_ns = w->gap_ns << dice_below(d, 8);
    if (dice_percent(d, 30)) /* about the hold itself */
        w->pause_ns = w->engine.hold_ns + w->engine.hold_ns / 4;
    if (w->pause_ns > 200 * w->gap_ns || w->pause_ns < 1000)
        w->pause_ns = 20 * w->gap_ns;
    window_ns = w->gap_ns * w->names * w->engine.z / 4 * (1 + dice_below(d, 8));
    if (window_ns < 8 * w->pause_ns && dice_percent(d, 80))
        w->pause_ns = window_ns / 8 > 1000 ? window_ns / 8 : 1000;
    w->engine.window_ns = window_ns;
    w->engine.rotate_ns = window_ns * (8 << dice_below(d, 4)); /* keys cost more than frames */
    if (w->order != WORLD_IN_ORDER)
        w->late_ns = w->order == WORLD_LATE ? window_ns / 3 : window_ns * 2;
    if (w->late_ns > 100 * w->gap_ns && dice_percent(d, 50))
        w->late_ns = 100 * w->gap_ns;
}

void world_draw(world *w, uint64_t seed, uint64_t round)
{
    static const int64_t holds[] = {0, MS, SECOND};
    static const uint32_t batches[] = {512, 512, 512, 256, 64, 7};
    static const uint32_t names[] = {24, 60, 150, WORLD_NAMES};
    dice d = {seed + round * UINT64_C(0x5851f42d4c957f2d)};
    memset(w, 0, sizeof *w);
    w->seed = dice_roll(&d);
    w->engine = zn_engine_default_config();
    w->engine.outputs = 1u << ZN_OUTPUT_PACKETS;
    w->engine.hold_ns = holds[round % LENGTH(holds)];
    w->engine.exact = round / LENGTH(holds) % 2 != 0;
    w->engine.payload =
        round / 2 % 2 == 0 ? ZN_PACKET_PAYLOAD_ZERO : ZN_PACKET_PAYLOAD_KEEP_ENCRYPTED;
    w->order = dice_percent(&d, 50) ? WORLD_IN_ORDER : (world_order)dice_below(&d, WORLD_ORDERS);
    w->engine.z = 2 + dice_below(&d, 5);
    w->engine.dns_votes = (zn_dns_votes)dice_below(&d, 3);
    w->engine.keep_client_port = true; /* tells frames of the output apart */
    w->engine.hold_bytes = dice_percent(&d, 80) ? UINT64_C(64) << 20 : 0;
    w->engine.max_flows = UINT32_C(1) << 17;
    w->engine.max_tuples = w->engine.max_attributes = UINT32_C(1) << 18;
    w->users = 8 + dice_below(&d, WORLD_USERS - 8);
    w->names = names[dice_below(&d, LENGTH(names))];
    w->batch = batches[dice_below(&d, LENGTH(batches))];
    w->outer_users = dice_percent(&d, 50);
    draw_names(w, &d);
    draw_times(w, &d);
}
