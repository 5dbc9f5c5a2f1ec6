/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/stats.h"

static const zn_stat_info list[ZN_STAT_COUNT] = {
#define ZN_STAT_INFO(name, group, text) {#name, group, text},
    ZN_STATS(ZN_STAT_INFO)
#undef ZN_STAT_INFO
};

const zn_stat_info *zn_stat_describe(size_t i)
{
    return i < ZN_STAT_COUNT ? &list[i] : NULL;
}
