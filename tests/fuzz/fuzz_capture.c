/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a capture: every byte of every frame must be readable. */
#include "io/pcap_read.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t n)
{
    zn_frame frames[7];
    zn_capture *c;
    volatile uint8_t sum = 0;
    int count;
    if (zn_capture_open_memory(&c, bytes, n, NULL) != 0)
        return 0;
    while ((count = zn_capture_next(c, frames, 7, NULL)) > 0)
        for (int i = 0; i < count; i++)
            for (uint32_t k = 0; k < frames[i].captured; k++)
                sum = (uint8_t)(sum + frames[i].data[k]);
    zn_capture_close(c);
    return 0;
}
