/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "build/build.h"

#define MASKED_MIN 10u /* shorter names have no room for a label before the suffix */
#define LABEL_MAX 63u

void zn_build_masked_name(uint8_t *out, size_t n)
{
    static const uint8_t suffix[] = {'.', 'i', 'n', 'v', 'a', 'l', 'i', 'd'};
    size_t run = n < MASKED_MIN ? n : n - sizeof suffix;
    for (size_t i = 0; i < run; i++)
        out[i] = i % LABEL_MAX == LABEL_MAX - 1 && i + 1 < run ? '.' : 'x';
    if (run < n)
        memcpy(out + run, suffix, sizeof suffix);
}
