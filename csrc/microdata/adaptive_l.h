/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Value of l for the repairs of each window, by the entropy of the sensitive values: Appendix B of
 * the paper that microdata/groups.h implements.
 *
 * The paper contradicts itself: in its text l rises when the entropy falls, and in line 4 of its
 * Algorithm A1 l falls with the entropy. Both variants are here, by name. The paper's hysteresis
 * compares a window with the previous window, so that a slow drift has no effect; here it compares
 * with the window of the last change. l moves between l_min and l_max, and the rule guarantees
 * l_min in any case.
 */
#ifndef ZN_MICRODATA_ADAPTIVE_L_H
#define ZN_MICRODATA_ADAPTIVE_L_H

#include "util/base.h"

/* Direction of l when the entropy falls. */
typedef enum zn_adaptive_way { ZN_ADAPTIVE_UP, ZN_ADAPTIVE_DOWN } zn_adaptive_way;

typedef struct zn_adaptive_l_config {
    uint32_t l_min, l_max; /* 1 <= l_min <= l_max */
    zn_adaptive_way way;
    double alpha;   /* weight of the newest window in the mean, above 0, up to 1 */
    double band;    /* least change of the normalized entropy that changes l, 0 to 1 */
    uint32_t dwell; /* windows that l stays at least */
} zn_adaptive_l_config;

#define ZN_ADAPTIVE_ALPHA 0.3
#define ZN_ADAPTIVE_BAND 0.05
#define ZN_ADAPTIVE_DWELL 5u

/* The state; a copy of it goes on from there. */
typedef struct zn_adaptive_l {
    zn_adaptive_l_config config;
    double entropy;    /* mean, natural logarithm */
    double normalized; /* of the window of the last change */
    uint32_t values;   /* most that a window had so far */
    uint32_t l;
    uint64_t windows, changed; /* windows so far, and their number at the last change */
} zn_adaptive_l;

/* Begins at l_min. Returns 0, or -ZN_ERR_CONFIG for numbers out of range. */
int zn_adaptive_l_init(zn_adaptive_l *a, const zn_adaptive_l_config *config, zn_error *err);

/*
 * Takes the entropy of the next window in, and how many values it has; returns its l. The first
 * window that has two values decides at once; before it l is l_min.
 */
uint32_t zn_adaptive_l_next(zn_adaptive_l *a, double entropy, uint32_t values);

#endif
