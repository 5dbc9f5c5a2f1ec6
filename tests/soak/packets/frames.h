/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The bytes of the frames of conversations, and where in them labels of names are.
 */
#ifndef FRAMES_H
#define FRAMES_H

#include "quic_pool.h"
#include "talk.h"

#define FRAME_BYTES_MAX 4096
#define FRAME_PARTS 6

/* A part of a label, in a frame's payload, or in an Initial's plaintext. */
typedef struct frame_part {
    uint16_t at;
    uint8_t n, message;
} frame_part;

typedef struct frame_labels {
    uint8_t n;
    bool sealed;     /* the payload is an Initial of the client */
    uint8_t touched; /* bit by message: a byte of it is in the frame */
    frame_part part[FRAME_PARTS];
} frame_labels;

/* Writes the frame of a step. Returns its length. */
uint32_t frame_write(const world *w, quic_pool *pool, const talk *t, const step *s, uint8_t *out,
                     frame_labels *labels);

#endif
