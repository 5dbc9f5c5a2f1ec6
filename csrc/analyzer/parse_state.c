/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/parse_state.h"

void zn_parse_end(zn_names *names, zn_flow *f)
{
    const zn_analyzer *a = zn_parse_analyzer(names, f);
    if (a->functions->end != NULL)
        a->functions->end(names->state[a->id], f);
    ZN_STATE(f)->parse = ZN_PARSE_OFF;
}

void zn_parse_give_up(const zn_packet_context *s, zn_stat why)
{
    zn_packet_context of = *s;
    of.analyzer = zn_parse_analyzer(s->names, s->f);
    zn_names_rejected(&of, why);
    zn_parse_end(s->names, s->f);
}

zn_parse zn_parse_malformed(const zn_packet_context *s)
{
    zn_names_rejected(s, ZN_STAT_SUPPRESSED_INVALID);
    zn_parse_end(s->names, s->f);
    return ZN_MALFORMED;
}
