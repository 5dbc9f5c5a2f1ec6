/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The message that a TCP flow's client is expected to send next, and the analyzer that expects
 * it. */
#ifndef ZN_ANALYZER_PARSE_STATE_H
#define ZN_ANALYZER_PARSE_STATE_H

#include "analyzer/analyzer.h"

/* The low bits of zn_flow_state.parse; above them is the id of the analyzer. */
typedef enum zn_parse_state {
    ZN_PARSE_SEARCH,  /* nothing recognised yet */
    ZN_PARSE_OFF,     /* nothing more to find */
    ZN_PARSE_BEGUN,   /* in the middle of a possible message of the analyzer */
    ZN_PARSE_BETWEEN, /* a message was read; one of any analyzer may start at watch_seq */
    /* In the states below only the analyzer reads the next bytes. */
    ZN_PARSE_NEXT, /* a message may start at watch_seq; bytes further on do not matter */
    ZN_PARSE_OWN   /* this state and those above it mean what the analyzer says */
} zn_parse_state;

#define ZN_PARSE_STATE_BITS 3

static inline uint8_t zn_parse_state_of(const zn_flow *f)
{
    return ZN_STATE(f)->parse & ((1u << ZN_PARSE_STATE_BITS) - 1);
}

/* Returns the analyzer of the parse state, or row 0, which has no functions. */
static inline const zn_analyzer *zn_parse_analyzer(const zn_names *names, const zn_flow *f)
{
    return &names->analyzers[ZN_STATE(f)->parse >> ZN_PARSE_STATE_BITS];
}

/* Sets a state of this analyzer; those above ZN_PARSE_OWN are ZN_PARSE_OWN + 1 and + 2. */
static inline void zn_parse_expect(const zn_packet_context *s, unsigned state)
{
    ZN_STATE(s->f)->parse = (uint8_t)((unsigned)s->analyzer->id << ZN_PARSE_STATE_BITS | state);
}

/* Ends reading, and frees what it has taken. */
void zn_parse_end(zn_names *names, zn_flow *f);
/* Gives up the message in progress, which is suppressed as `why`, and ends reading. */
void zn_parse_give_up(const zn_packet_context *s, zn_stat why);
/* Rejects a malformed message of this analyzer, and ends reading. Returns ZN_MALFORMED. */
zn_parse zn_parse_malformed(const zn_packet_context *s);

#endif
