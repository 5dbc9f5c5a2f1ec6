/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture: every byte of every frame must be readable. */
#include "capture/capture.h"
#include "util/hash.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const zn_hash_key key = {1, 2};
    uint64_t touched = 0;
    zn_frame frames[7];
    zn_capture *c;
    int n;
    if (zn_capture_open_memory(&c, data, size, NULL) != 0)
        return 0;
    while ((n = zn_capture_next(c, frames, 7, NULL)) > 0)
        for (const zn_frame *f = frames; f < frames + n; f++) {
            if (f->captured > ZN_FRAME_MAX || f->wire < f->captured || f->t_ns < -1)
                __builtin_trap();
            touched |= zn_hash64(&key, f->data, f->captured);
        }
    zn_capture_close(c);
    return (int)(touched & 0);
}
