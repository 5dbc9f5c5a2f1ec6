/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Conversations in which a user exposes names, as plans: which frames come when, and with which of
 * them a name and the evidence for its user are there. The plan is the generator's own word for
 * what the contract calls an exposure; no parser looks at the frames for it.
 */
#ifndef TALK_H
#define TALK_H

#include "messages.h"

#define TALK_NAMES 4
#define TALK_MESSAGES 6
#define TALK_PIECES 15 /* into which a stream is cut */
#define TALK_QUIC_POOL 64
#define TALK_QUIC_DATAGRAM 1200

typedef enum talk_kind { TALK_DNS, TALK_DNS_TCP, TALK_HTTP, TALK_TLS, TALK_QUIC } talk_kind;

typedef enum talk_tunnel {
    TUNNEL_NONE,
    TUNNEL_VLAN,
    TUNNEL_QINQ,
    TUNNEL_MPLS,
    TUNNEL_PPPOE,
    TUNNEL_GRE, /* from here on, over IPv4 */
    TUNNEL_VXLAN,
    TUNNEL_IP,
    TUNNELS
} talk_tunnel;

/* A name that a conversation exposes, and what the oracle said of it. Times by the packet clock. */
typedef struct talk_name {
    uint16_t name;
    bool never;         /* must not be shown, and does not count */
    int64_t known_ns;   /* it was there */
    int64_t allowed_ns; /* the oracle let it out */
    int64_t sure_ns;    /* the same by exposures whose times are known */
    int64_t denied_ns;  /* it was not let out by those when it counted itself */
} talk_name;

typedef struct talk_message {
    uint8_t form;
    uint8_t name;         /* of the talk's */
    uint32_t start;       /* in the client's stream */
    int64_t whole_ns;     /* all of its bytes were there */
    int64_t first_due_ns; /* of the first frame with a byte of it */
} talk_message;

typedef struct talk {
    uint8_t kind, user, tunnel;
    bool outer;  /* the tunnel's end is the user */
    bool upper;  /* letters of its names */
    bool proven; /* there is evidence that the user is real, or may be */
    bool loose;  /* when its names and evidence are there is only known within bounds */
    bool wrong_ack;
    uint8_t names, messages, pieces, quic;
    uint16_t client_port, server_port;
    uint32_t host;        /* bits of the client's address below the user's */
    uint32_t server;      /* its address */
    uint32_t server_said; /* bytes of its stream */
    uint32_t waiting;     /* frames that have not come, or may still leave */
    int64_t from_ns, until_ns;
    uint16_t cut[TALK_PIECES + 1]; /* ends of the pieces, from 0 on */
    talk_name name[TALK_NAMES];
    talk_message message[TALK_MESSAGES];
} talk;

typedef enum step_kind {
    STEP_SYN,
    STEP_SYN_ACK,
    STEP_ACK,
    STEP_BYTES, /* of the client's stream */
    STEP_SERVER,
    STEP_FIN,
    STEP_RST,
    STEP_QUERY,
    STEP_ANSWER,
    STEP_INITIAL, /* of the client */
    STEP_QUIC_ANSWER,
    STEP_QUIC_PROOF
} step_kind;

/* A frame that is to come. */
typedef struct step {
    int64_t at_ns;
    uint32_t talk;
    uint8_t kind;
    uint8_t message;   /* of a datagram; of the server, its form */
    uint8_t votes;     /* bit by name of the talk: it and the evidence are there */
    uint8_t peeks;     /* the same: it is, and no evidence yet */
    uint8_t whole;     /* bit by message: all of its bytes are there */
    bool begins;       /* of a loose talk: the first with a byte that counts */
    uint16_t spoiled;  /* 1 + offset of a byte that is another one in this copy; 0: none */
    uint32_t from, to; /* of the stream; of an Initial, which pieces, and their order */
} step;

typedef struct steps {
    step *at;
    uint32_t n, room;
} steps;

/* Plans conversation `number`, which begins at about at_ns, in the place `place`, and appends its
 * frames in the order in which they come. */
void talk_plan(talk *t, uint32_t place, uint64_t number, const world *w, dice *d, int64_t at_ns,
               steps *out);

#endif
