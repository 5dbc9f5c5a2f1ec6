/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "microdata/adaptive_l.h"

#include <math.h>

/* Even values have the entropy log n by definition, and a little less by rounding. */
#define ROUNDING 1e-9

int zn_adaptive_l_init(zn_adaptive_l *a, const zn_adaptive_l_config *config, zn_error *err)
{
    if (config->l_min < 1 || config->l_max < config->l_min)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "l cannot adapt from %u up to %u", config->l_min,
                       config->l_max);
    if (!(config->alpha > 0 && config->alpha <= 1) || !(config->band >= 0 && config->band <= 1))
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "alpha must be above 0 and up to 1, the band from 0 to 1");
    *a = (zn_adaptive_l){.config = *config, .l = config->l_min};
    return 0;
}

/* The l that an entropy, as a share of the largest, asks for. */
static uint32_t wanted(const zn_adaptive_l_config *c, double normalized)
{
    double share = c->way == ZN_ADAPTIVE_UP ? 1 - normalized : normalized;
    double l = c->l_min + (c->l_max - c->l_min) * share + ROUNDING;
    if (!(l >= c->l_min))
        return c->l_min;
    return l < c->l_max ? (uint32_t)l : c->l_max;
}

uint32_t zn_adaptive_l_next(zn_adaptive_l *a, double entropy, uint32_t values)
{
    bool first = a->values < 2;
    double normalized;
    if (values > a->values)
        a->values = values;
    if (a->values < 2)
        return a->l;
    a->windows++;
    a->entropy = first ? entropy : a->config.alpha * entropy + (1 - a->config.alpha) * a->entropy;
    normalized = a->entropy / log(a->values);
    if (normalized > 1)
        normalized = 1;
    if (!first && (a->windows - a->changed < a->config.dwell ||
                   fabs(normalized - a->normalized) < a->config.band))
        return a->l;
    a->l = wanted(&a->config, normalized);
    a->normalized = normalized;
    a->changed = a->windows;
    return a->l;
}
