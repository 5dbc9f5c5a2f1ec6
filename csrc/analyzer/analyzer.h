/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * An analyzer: what reads one protocol in the bytes of a flow and reports names downwards, to
 * analyzer/names. It is a row of the table in analyzer/analyzers.h and the functions here.
 *
 * TCP: a client's stream is read message by message, whatever segments they came in; an analyzer
 * gets bytes that start where a message may, and says where the next one does. UDP: an analyzer
 * gets datagrams.
 */
#ifndef ZN_ANALYZER_ANALYZER_H
#define ZN_ANALYZER_ANALYZER_H

#include "analyzer/names.h"

/* What follows a segment in the client's stream. */
typedef enum zn_segment_end {
    ZN_SEGMENT_OPEN, /* more may come */
    ZN_SEGMENT_CUT,  /* nothing that was captured */
    ZN_SEGMENT_HOLE  /* bytes that were not captured, and then others */
} zn_segment_end;

/* Bytes of the client at a known place of its stream. */
typedef struct zn_tcp_segment {
    zn_span bytes;
    uint32_t seq;
    uint32_t missing; /* bytes that the snapshot length cut off after them */
    zn_segment_end end;
    bool after_hole; /* it may begin with the rest of a message that was lost */
} zn_tcp_segment;

/* What an analyzer does. Functions that it has no use for are NULL. */
typedef struct zn_analyzer_functions {
    /* False where the bytes do not start a message of the protocol; cheap, and asked first. NULL:
     * they may always. */
    bool (*starts)(const zn_packet_context *s, zn_span bytes);

    /*
     * TCP. Reads the message at the start of the segment and sets the flow's parse state.
     * ZN_DONE: the next message starts *used bytes further on, maybe after the segment's end.
     * ZN_NEED_MORE: the message is not whole. ZN_OTHER: it is none of the protocol. ZN_MALFORMED:
     * by zn_parse_malformed.
     */
    zn_parse (*segment)(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used);
    /* The next bytes were not captured; `end` says whether others follow them. Sets the parse
     * state to what can still be read. NULL: the message in progress is given up. */
    void (*lost)(const zn_packet_context *s, zn_segment_end end);
    /* Whether the sender of these bytes is a client of the protocol. */
    bool (*is_client)(const zn_packet_context *s, zn_span bytes);
    /* Whether a message starts these bytes, which follow others that nobody read: its start is
     * unlike the body of another. NULL: cannot be known; such bytes are passed over. */
    bool (*resumes)(zn_span bytes);
    /* Where in bytes that begin in the middle of something a message starts; 0: nowhere. */
    size_t (*find_start)(zn_span bytes);
    /* Nothing of the stream will be read any more: frees what names->state keeps of it. */
    void (*end)(void *state, zn_flow *f);

    /* UDP. Reads a datagram; false when it is none of the protocol. With state_bytes, the analyzer
     * has zn_names_datagram from the first datagram that passes starts() on, and gets all that
     * follow. */
    bool (*datagram)(const zn_packet_context *s);
    size_t state_bytes;
    /* Whether an echo of the datagram would be evidence of its sender. */
    bool (*may_answer)(const zn_packet_context *s);
    /* Notes a datagram of the protocol's flow that anybody may have sent. NULL: as one that is not
     * read. */
    void (*disregard)(const zn_packet_context *s);
    /* The flow closed, or its record is written; only where there is a state. s->p has the time of
     * the client's last bytes, and none. */
    void (*closed)(const zn_packet_context *s);
    void (*forget)(zn_names *names, zn_flow *f);

    /* Makes, frees, and measures names->state of the analyzer. */
    int (*open)(void **state, uint32_t max_flows, zn_error *err);
    void (*close)(void *state);
    size_t (*memory)(const void *state);
} zn_analyzer_functions;

enum { ZN_OVER_TCP = 1, ZN_OVER_UDP = 2, ZN_OVER_BOTH = 3 };

/* A row of the table. */
struct zn_analyzer {
    const char *name;
    const zn_analyzer_functions *functions;
    uint16_t port;      /* looked for on this port alone; 0: on all */
    uint8_t id;         /* zn_flow_state.protocol of a flow that it recognised */
    uint8_t transports; /* ZN_OVER_* */
    zn_name_source source;
    zn_stat seen; /* counts its names */
};

/* One of the ports is the analyzer's. */
static inline bool zn_analyzer_has_port(const zn_analyzer *a, const zn_tuple *tuple)
{
    return tuple->port[0] == a->port || tuple->port[1] == a->port;
}

/* What this analyzer keeps for all flows. */
static inline void *zn_analyzer_state(const zn_packet_context *s)
{
    return s->names->state[s->analyzer->id];
}

#endif
