/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The floor under the readers of capture formats. Each format is a zn_format, which capture.c finds
 * by the first bytes. A step takes one record or block from the pending bytes, or leaves them
 * untouched and says how many it needs. A format's file calls what is here, nothing of capture.c.
 */
#ifndef ZN_CAPTURE_FORMAT_H
#define ZN_CAPTURE_FORMAT_H

#include "capture/byte_source.h"
#include "capture/pcap_prefetch.h"
#include "zanon/zanon.h"

typedef enum zn_step {
    ZN_STEP_FRAME, /* *frame was filled */
    ZN_STEP_NONE,  /* something else was read: go on */
    ZN_STEP_MORE,  /* the record or block is not whole: r->wanted */
    ZN_STEP_END    /* the capture ends here: r->warning */
} zn_step;

/* An interface of a pcapng section, and how its ticks become nanoseconds. */
typedef struct zn_interface {
    uint32_t link_type;
    uint32_t snaplen; /* 0: no limit */
    uint64_t multiply, divide;
    uint32_t shift; /* ns = ticks * multiply / divide >> shift */
    int64_t offset_s;
    uint64_t plain_ticks; /* up to so many, ns = ticks * multiply; 0: not at all */
} zn_interface;

#define ZN_RECORD_CHOICES 3 /* lengths that a record's header can have */

/* A capture being read in some format. */
typedef struct zn_reader {
    zn_byte_source source;
    const char *unit; /* zn_format's */
    bool big;         /* numbers are big-endian */
    uint64_t records; /* records or blocks read whole */
    uint32_t wanted;  /* bytes the next record or block needs, counted from its start */

    /* pcap and snoop */
    uint32_t link_type;
    uint32_t fraction_ns;  /* ns in one unit of a timestamp's fraction */
    uint32_t record_bytes; /* a record's header; 0: to be chosen */
    uint8_t record_choices[ZN_RECORD_CHOICES];
    uint16_t minor_version;

    /* pcap and pcapng */
    bool may_prefetch;    /* zn_pcap_prefetch_pays */
    uint32_t mean_record; /* bytes of a record, of those that were taken together last */

    /* pcapng: the current section's interfaces, and the block that is being skipped */
    zn_interface *interfaces;
    uint32_t interface_count;
    uint32_t skipped; /* bytes of the block consumed so far; 0: none is being skipped */
    uint32_t block_bytes;

    char warning[192];
} zn_reader;

/* A capture format. */
typedef struct zn_format {
    const char *name;
    const char *unit; /* what it is a sequence of, in messages */
    bool one_link;    /* all frames of a capture are of the same link type */
    /* True when a capture that starts with these bytes (at least 4, but for a shorter one) is
     * one. */
    bool (*is)(zn_span start);
    /* Reads the header; 0 or a negative zn_err. */
    int (*open)(zn_reader *r, zn_error *err);
    zn_step (*step)(zn_reader *r, zn_frame *frame);
    /* Takes up to `max` records as `step` would, as long as they are plain frames and at hand, up
     * to zn_byte_source_pause; returns how many. NULL: there is no such short way. */
    int (*read)(zn_reader *r, zn_frame *frames, int max);
    void (*close)(zn_reader *r); /* frees what open has made; NULL: nothing */
} zn_format;

extern const zn_format zn_format_pcap, zn_format_pcapng, zn_format_snoop;

static inline uint16_t zn_reader_u16(const zn_reader *r, zn_cursor *at)
{
    return r->big ? zn_cursor_be16(at) : zn_cursor_le16(at);
}

static inline uint32_t zn_reader_u32(const zn_reader *r, zn_cursor *at)
{
    return r->big ? zn_cursor_be32(at) : zn_cursor_le32(at);
}

/* The next record or block needs this many bytes from its start on. */
static inline zn_step zn_reader_want(zn_reader *r, uint32_t bytes)
{
    r->wanted = bytes;
    return ZN_STEP_MORE;
}

/* Ends the capture at the current record or block, with a reason. */
zn_step zn_reader_end(zn_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Reads at least until n bytes are at hand, or the source ends: 1, 0, or a negative zn_err. */
int zn_reader_require(zn_reader *r, size_t n, zn_error *err);

/* Where it pays, asks memory for the first bytes of the records to be read next: of `rest`, which
 * is pending, up to `pause`, and of more of it, unless that was done. Returns up to where memory
 * was asked. */
const uint8_t *zn_reader_prefetch(const zn_reader *r, zn_prefetch_kind kind, zn_span rest,
                                  const uint8_t *pause);
/* After that: n records or blocks were taken, `rest` is pending now, and memory was asked up to
 * `fetched`. */
void zn_reader_took(zn_reader *r, int n, zn_span rest, const uint8_t *fetched);

#endif
