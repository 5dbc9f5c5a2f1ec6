/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What left against what may leave. Each frame that goes in is noted with its labels; each packet
 * that comes out is found among them, by its time and ports, and every letter of a label in it has
 * to be one that the oracle let out by the time of the verdict: the packet clock when the first
 * frame with a byte of the message came, and the hold.
 */
#ifndef JUDGE_H
#define JUDGE_H

#include "exposures.h"
#include "frames.h"

#define JUDGE_TALKS (1u << 15) /* at a time */
#define JUDGE_FRAMES (1u << 16)

typedef struct tally {
    uint64_t cases, frames, left, rounds;
    uint64_t shown; /* parts of labels, wherever they were */
    uint64_t shown_in[TALK_QUIC + 1];
    uint64_t expected; /* of those of which the oracle knows exactly, that have to be shown */
    uint64_t missed;   /* and were not */
    uint64_t wrong;    /* shown, though the oracle did not let them out */
    uint64_t strange;  /* packets that never went in, or in another order; no Initial */
} tally;

typedef struct judge judge;

/* `z` is the oracle's. */
judge *judge_open(const world *w, quic_pool *pool, uint32_t z, tally *sum);
void judge_close(judge *j);
/* A place for another conversation: the last one there must be over. */
talk *judge_new_talk(judge *j, uint32_t place);
const talk *judge_talk(const judge *j, uint32_t place);
/* A frame of the step goes in at t_ns. */
void judge_goes_in(judge *j, const step *s, int64_t t_ns, const frame_labels *labels);
/* All frames that went in have been decided on. */
void judge_decide(judge *j);
/* A packet left. */
void judge_left(judge *j, const zn_frame *packet);
/* All packets that were due have left; `all`: all that ever will. */
void judge_none_left(judge *j, bool all);

#endif
