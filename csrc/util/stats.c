/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "util/stats.h"

static const struct {
    const char *name, *group, *text;
} list[ZN_STAT_COUNT] = {
#define ZN_STAT_TEXTS(name, group, text) {#name, group, text},
    ZN_STATS(ZN_STAT_TEXTS)
#undef ZN_STAT_TEXTS
};

static const char *const old_names[ZN_STAT_COUNT] = {
#define ZN_STAT_OLD_NAME(name, old_name) [ZN_STAT_##name] = #old_name,
    ZN_STAT_ALIASES(ZN_STAT_OLD_NAME)
#undef ZN_STAT_OLD_NAME
};

zn_stat_info zn_stat_describe(size_t i)
{
    ZN_ASSERT(i < ZN_STAT_COUNT);
    return (zn_stat_info){list[i].name, list[i].group, list[i].text, old_names[i]};
}
