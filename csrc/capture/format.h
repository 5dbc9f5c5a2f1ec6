/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The common ground of the readers of capture formats. Each format is a zn_format, which capture.c
 * finds by the first bytes. A step reads one record or block from the pending bytes, or leaves them
 * untouched and says how many it needs. A format's file calls functions of this header and none of
 * capture.c.
 */
#ifndef ZN_CAPTURE_FORMAT_H
#define ZN_CAPTURE_FORMAT_H

#include "capture/byte_source.h"
#include "capture/pcap_prefetch.h"
#include "zanon/zanon.h"

typedef enum zn_step {
    ZN_STEP_FRAME, /* *frame was filled */
    ZN_STEP_NONE,  /* something other than a frame was read: go on */
    ZN_STEP_MORE,  /* the record or block needs r->wanted bytes */
    ZN_STEP_END    /* the capture ends here; r->warning says why */
} zn_step;

/* An interface of a pcapng section, and how its ticks become nanoseconds. */
typedef struct zn_interface {
    uint32_t link_type;
    uint32_t snaplen; /* 0: no limit */
    uint64_t multiply, divide;
    uint32_t shift; /* ns = ticks * multiply / divide >> shift */
    int64_t offset_s;
    uint64_t plain_ticks; /* for ticks up to this number, ns = ticks * multiply; 0: never */
} zn_interface;

#define ZN_RECORD_CHOICES 3 /* most lengths that a record's header can have */

/* A capture being read in some format. */
typedef struct zn_reader {
    zn_byte_source source;
    const char *unit; /* as in zn_format */
    bool big;         /* numbers are big-endian */
    uint64_t records; /* records or blocks read whole */
    uint32_t wanted;  /* bytes that the next record or block needs, from its start */

    /* pcap and snoop */
    uint32_t link_type;
    uint32_t fraction_ns;  /* ns in one unit of a timestamp's fraction */
    uint32_t record_bytes; /* length of a record's header; 0: not chosen yet */
    uint8_t record_choices[ZN_RECORD_CHOICES];
    uint16_t minor_version;

    /* pcap and pcapng */
    bool may_prefetch;    /* zn_pcap_prefetch_pays */
    uint32_t mean_record; /* mean length of the records that were read together last */

    /* pcapng: the current section's interfaces, and the block that is being skipped */
    zn_interface *interfaces;
    uint32_t interface_count;
    uint32_t skipped; /* bytes consumed of the block that is skipped; 0: none is */
    uint32_t block_bytes;

    char warning[192];
} zn_reader;

/* A capture format. */
typedef struct zn_format {
    const char *name;
    const char *unit; /* what a capture is a sequence of, for messages */
    bool one_link;    /* all frames of a capture are of the same link type */
    /* Returns true for the first four bytes of a capture of this format, or for fewer of a shorter
     * one. */
    bool (*is)(zn_span start);
    /* Reads the header. Returns 0, or a negative zn_err. With EINTR it can be called again. */
    int (*open)(zn_reader *r, zn_error *err);
    zn_step (*step)(zn_reader *r, zn_frame *frame);
    /* Reads up to `max` records as `step` would, while they are plain frames and pending, up to
     * zn_byte_source_pause; returns how many. NULL: the format has no such fast path. */
    int (*read)(zn_reader *r, zn_frame *frames, int max);
    void (*close)(zn_reader *r); /* frees what `open` has allocated; NULL: nothing */
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

/* Says that the next record or block needs this many bytes from its start on. */
static inline zn_step zn_reader_want(zn_reader *r, uint32_t bytes)
{
    r->wanted = bytes;
    return ZN_STEP_MORE;
}

/* Ends the capture at the current record or block, with a warning as printf would write it. */
zn_step zn_reader_end(zn_reader *r, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Refills until n bytes are pending or the source ends. Returns 1, 0 at the end, or a negative
 * zn_err. */
int zn_reader_require(zn_reader *r, size_t n, zn_error *err);

/* Prefetches, if that saves time, the first bytes of the next records: the records in `rest`, which
 * is pending, up to `pause` and some bytes beyond, unless they were prefetched before. Returns the
 * end of the prefetched part. */
const uint8_t *zn_reader_prefetch(const zn_reader *r, zn_prefetch_kind kind, zn_span rest,
                                  const uint8_t *pause);
/* Takes note, after zn_reader_prefetch, that n records or blocks were read: `rest` is pending now,
 * and memory is prefetched up to `fetched`. */
void zn_reader_took(zn_reader *r, int n, zn_span rest, const uint8_t *fetched);

#endif
