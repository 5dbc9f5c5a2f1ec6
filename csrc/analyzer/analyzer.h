/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An analyzer reads one protocol in the bytes of a flow and reports the names to analyzer/names. It
 * is a row of the table in analyzer/analyzers.h and the functions below.
 *
 * TCP: the client's stream is read message by message, however segments cut it. An analyzer gets
 * bytes that start where a message may start, and returns where the next one starts. UDP: an
 * analyzer gets datagrams.
 */
#ifndef ZN_ANALYZER_ANALYZER_H
#define ZN_ANALYZER_ANALYZER_H

#include "analyzer/names.h"

/* The bytes that follow a segment in the client's stream. */
typedef enum zn_segment_end {
    ZN_SEGMENT_OPEN, /* they may come */
    ZN_SEGMENT_CUT,  /* none that were captured */
    ZN_SEGMENT_HOLE  /* some that will not come, then others */
} zn_segment_end;

/* Bytes of the client at a known place of its stream. */
typedef struct zn_tcp_segment {
    zn_span bytes;
    uint32_t seq;
    uint32_t missing; /* bytes that the snapshot length cut off after them */
    zn_segment_end end;
} zn_tcp_segment;

/* The functions of an analyzer; NULL where it needs none. */
typedef struct zn_analyzer_functions {
    /* Returns false where the bytes do not start a message of the protocol. Cheap, and called
     * before the others. NULL: any bytes may start one. */
    bool (*starts)(const zn_packet_context *s, zn_span bytes);

    /*
     * TCP. Reads the message at the start of the segment and sets the flow's parse state. ZN_DONE:
     * the next message starts *used bytes further on, maybe after the segment's end. ZN_NEED_MORE:
     * the message is not whole. ZN_OTHER: the bytes are not a message of the protocol.
     * ZN_MALFORMED: the analyzer called zn_parse_malformed.
     */
    zn_parse (*segment)(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used);
    /* Handles bytes that were not captured; `end` says whether captured bytes follow. Sets the
     * parse state to the next message that can be read. NULL: the message in progress is
     * abandoned. */
    void (*lost)(const zn_packet_context *s, zn_segment_end end);
    /* Returns whether the bytes show their sender to be a client of the protocol. */
    bool (*is_client)(const zn_packet_context *s, zn_span bytes);
    /* Returns whether a message surely starts these bytes, the first ones behind a hole that began
     * between two messages; else nothing more is read. Segments that come before such a hole is
     * filled are waited for. NULL: what follows a message does not matter, or is searched. */
    bool (*resumes)(zn_span bytes);
    /* Takes note that no analyzer recognised the bytes where the next message has to start, and
     * sets the parse state. NULL: the starts of the next segments are searched. */
    void (*unrecognised)(const zn_packet_context *s);
    /* Frees what names->state keeps of a stream of which nothing more is read. */
    void (*end)(void *state, zn_flow *f);

    /* UDP. Reads a datagram; returns false if it is not of the protocol. An analyzer with
     * state_bytes has that many bytes for the flow (zn_names_datagram) from the first datagram that
     * passes starts(), and gets all later datagrams. */
    bool (*datagram)(const zn_packet_context *s);
    size_t state_bytes;
    /* Returns whether an echo of the datagram would look like the evidence that its sender is
     * real. */
    bool (*may_answer)(const zn_packet_context *s);
    /* Notes a datagram, in a flow of the protocol, that anybody may have sent. NULL: it is treated
     * like a datagram that no analyzer reads. */
    void (*disregard)(const zn_packet_context *s);
    /* Finish a flow that closed, and free what is kept of it when its record is written; called
     * only where there is a state. s->p has no payload, and the time of the client's last bytes. */
    void (*closed)(const zn_packet_context *s);
    void (*forget)(zn_names *names, zn_flow *f);

    /* Make names->state of the analyzer (0, or a negative zn_err with *err filled), free it, and
     * return its bytes of memory. */
    int (*open)(void **state, uint32_t max_flows, zn_error *err);
    void (*close)(void *state);
    size_t (*memory)(const void *state);
} zn_analyzer_functions;

enum { ZN_OVER_TCP = 1, ZN_OVER_UDP = 2, ZN_OVER_BOTH = 3 };

/* A row of the table. */
struct zn_analyzer {
    const char *name;
    const zn_analyzer_functions *functions;
    uint16_t port;      /* the only port on which it is looked for; 0: any */
    uint8_t id;         /* zn_flow_state.protocol of a flow that it recognised */
    uint8_t transports; /* ZN_OVER_* */
    zn_name_source source;
    zn_stat seen; /* the counter of its names */
};

/* Returns whether one of the ports is the analyzer's. */
static inline bool zn_analyzer_has_port(const zn_analyzer *a, const zn_tuple *tuple)
{
    return tuple->port[0] == a->port || tuple->port[1] == a->port;
}

/* The state that this analyzer keeps for all flows. */
static inline void *zn_analyzer_state(const zn_packet_context *s)
{
    return s->names->state[s->analyzer->id];
}

#endif
