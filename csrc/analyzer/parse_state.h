/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* What a TCP flow's client is expected to send next, and which analyzer expects it. */
#ifndef ZN_ANALYZER_PARSE_STATE_H
#define ZN_ANALYZER_PARSE_STATE_H

#include "analyzer/analyzer.h"

/* The low bits of zn_flow_state.parse; above them is the id of the analyzer. */
typedef enum zn_parse_state {
    ZN_PARSE_SEARCH,  /* nothing recognised yet */
    ZN_PARSE_OFF,     /* nothing more to find */
    ZN_PARSE_BEGUN,   /* in the middle of what may be the analyzer's message */
    ZN_PARSE_BETWEEN, /* a message was read; any other may follow, also after unknown bytes */
    /* From here on only the analyzer reads what follows. */
    ZN_PARSE_NEXT, /* what starts at watch_seq; bytes further on do not matter */
    ZN_PARSE_OWN   /* this one and those above it: as the analyzer means them */
} zn_parse_state;

#define ZN_PARSE_STATE_BITS 3

static inline uint8_t zn_parse_state_of(const zn_flow *f)
{
    return ZN_STATE(f)->parse & ((1u << ZN_PARSE_STATE_BITS) - 1);
}

/* The analyzer that the parse state is of; row 0, which has no functions: none. */
static inline const zn_analyzer *zn_parse_analyzer(const zn_names *names, const zn_flow *f)
{
    return &names->analyzers[ZN_STATE(f)->parse >> ZN_PARSE_STATE_BITS];
}

/* Sets a state of this analyzer's; one above ZN_PARSE_OWN is ZN_PARSE_OWN + 1 or + 2. */
static inline void zn_parse_expect(const zn_packet_context *s, unsigned state)
{
    ZN_STATE(s->f)->parse = (uint8_t)((unsigned)s->analyzer->id << ZN_PARSE_STATE_BITS | state);
}

/* Nothing more is read; frees what reading has taken. */
void zn_parse_end(zn_names *names, zn_flow *f);
/* The message that the flow is in the middle of is given up and counts as suppressed. */
void zn_parse_give_up(const zn_packet_context *s, zn_stat why);
/* A message of this analyzer is malformed: ZN_MALFORMED, and nothing more is read. */
zn_parse zn_parse_malformed(const zn_packet_context *s);

#endif
