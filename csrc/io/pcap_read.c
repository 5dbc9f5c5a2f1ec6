/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Batches of frames, whatever the format, and the pcap format itself: a header of 24 bytes, then
 * records of 16 bytes and the captured ones.
 */
#include "io/pcap_read.h"

#include "base/arena.h"
#include "io/capture_internal.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#define PCAP_HEADER_BYTES 24
#define PCAP_RECORD_BYTES 16
#define PCAP_MICROSECONDS 0xa1b2c3d4u
#define PCAP_NANOSECONDS 0xa1b23c4du
#define PCAP_MAJOR_VERSION 2
#define PCAPNG_SECTION 0x0a0d0d0au
#define PREFETCH_BYTES 3072 /* far enough ahead for memory to answer, near enough to be used */

/* Formats that are told apart only to say what they are, by their first four bytes. */
static const struct known_magic {
    uint32_t magic, mask;
    const char *what;
} known_magics[] = {
    {0x1f8b0000, 0xffff0000, "compressed with gzip: unpack it first (gzip -d)"},
    {0x28b52ffd, 0xffffffff, "compressed with zstd: unpack it first (zstd -d)"},
    {0xfd377a58, 0xffffffff, "compressed with xz: unpack it first (xz -d)"},
    {0x425a6800, 0xffffff00, "compressed with bzip2: unpack it first (bzip2 -d)"},
    {0x04224d18, 0xffffffff, "compressed with lz4: unpack it first (lz4 -d)"},
    {0x504b0304, 0xffffffff, "a ZIP archive: unpack it first (unzip)"},
    {0xa1b2cd34, 0xffffffff, "a modified (Kuznetzov) pcap; convert it with editcap -F pcap"},
    {0x34cdb2a1, 0xffffffff, "a modified (Kuznetzov) pcap; convert it with editcap -F pcap"},
    {0x1c0001ac, 0xffffffff, "an Ixia hardware pcap; convert it with editcap -F pcap"},
    {0xac01001c, 0xffffffff, "an Ixia hardware pcap; convert it with editcap -F pcap"},
    {0x1c0001ab, 0xffffffff, "an Ixia software pcap; convert it with editcap -F pcap"},
    {0xab01001c, 0xffffffff, "an Ixia software pcap; convert it with editcap -F pcap"},
    {0x736e6f6f, 0xffffffff, "a snoop capture; convert it with editcap -F pcap"},
    {0x474d4255, 0xffffffff, "a Network Monitor capture; convert it with editcap -F pcap"},
    {0x52545353, 0xffffffff, "a Network Monitor capture; convert it with editcap -F pcap"},
};

zn_step zn_capture_end(zn_capture *c, const char *format, ...)
{
    uint64_t start = zn_byte_source_offset(&c->source) - c->skipped;
    int n = snprintf(c->warning, sizeof c->warning,
                     "%s %llu at byte %llu: ", c->pcapng ? "block" : "record",
                     (unsigned long long)c->records + 1, (unsigned long long)start);
    va_list args;
    va_start(args, format);
    if (n > 0 && (size_t)n < sizeof c->warning)
        (void)vsnprintf(c->warning + n, sizeof c->warning - (size_t)n, format, args);
    va_end(args);
    return ZN_STEP_END;
}

int zn_capture_require(zn_capture *c, size_t n, zn_error *err)
{
    size_t left;
    while ((left = zn_cursor_left(&c->source.unread)) < n) {
        int rc = zn_byte_source_refill(&c->source, err);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

static zn_step pcap_step(zn_capture *c, zn_frame *frame)
{
    zn_cursor at = c->source.unread;
    uint32_t seconds = zn_capture_u32(c, &at), fraction = zn_capture_u32(c, &at);
    uint32_t captured = zn_capture_u32(c, &at), wire = zn_capture_u32(c, &at);
    zn_span data;
    if (!zn_cursor_ok(&at))
        return zn_capture_want(c, PCAP_RECORD_BYTES);
    /* Before version 2.4 the lengths stood the other way round, in 2.3 only sometimes. */
    if (c->minor_version < 3 || (c->minor_version == 3 && captured > wire)) {
        uint32_t first = captured;
        captured = wire;
        wire = first;
    }
    if (captured > ZN_FRAME_MAX)
        return zn_capture_end(c, "a frame of %u bytes, more than %u", captured, ZN_FRAME_MAX);
    data = zn_cursor_take(&at, captured);
    if (!zn_cursor_ok(&at))
        return zn_capture_want(c, PCAP_RECORD_BYTES + captured);
    c->source.unread = at;
    frame->data = data.p;
    frame->t_ns = (int64_t)seconds * ZN_NS_PER_S + (int64_t)fraction * c->fraction_ns;
    frame->captured = captured;
    frame->wire = wire < captured ? captured : wire;
    frame->link_type = c->link_type;
    return ZN_STEP_FRAME;
}

static int pcap_open(zn_capture *c, bool nanoseconds, zn_error *err)
{
    zn_cursor at;
    uint16_t major;
    int rc = zn_capture_require(c, PCAP_HEADER_BYTES, err);
    if (rc < 0)
        return rc;
    if (rc == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is too short: %zu bytes, a pcap header has %d",
                       c->source.name, zn_cursor_left(&c->source.unread), PCAP_HEADER_BYTES);
    at = c->source.unread;
    zn_cursor_skip(&at, 4);
    major = zn_capture_u16(c, &at);
    c->minor_version = zn_capture_u16(c, &at);
    if (major != PCAP_MAJOR_VERSION)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is a pcap of version %u, which is not known",
                       c->source.name, major);
    zn_cursor_skip(&at, 12); /* time zone, accuracy, snapshot length: nobody fills or keeps them */
    c->link_type = zn_capture_u32(c, &at) & 0xffff; /* the rest tells about a trailing FCS */
    c->fraction_ns = nanoseconds ? 1 : 1000;
    c->source.unread = at;
    return 0;
}

static int refuse_magic(const zn_capture *c, uint32_t magic, zn_error *err)
{
    for (size_t i = 0; i < sizeof known_magics / sizeof known_magics[0]; i++)
        if ((magic & known_magics[i].mask) == known_magics[i].magic)
            return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is %s", c->source.name, known_magics[i].what);
    return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is not a capture: neither pcap nor pcapng",
                   c->source.name);
}

/* Finds the format by the first four bytes, and reads its header. */
static int read_header(zn_capture *c, zn_error *err)
{
    zn_cursor at;
    uint32_t magic, reversed;
    int rc = zn_capture_require(c, sizeof magic, err);
    size_t left = zn_cursor_left(&c->source.unread);
    if (rc < 0)
        return rc;
    if (left == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is empty", c->source.name);
    if (rc == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is too short to be a capture: %zu bytes",
                       c->source.name, left);
    at = c->source.unread;
    magic = zn_cursor_be32(&at);
    at = c->source.unread;
    reversed = zn_cursor_le32(&at);
    if (magic == PCAPNG_SECTION)
        return zn_pcapng_open(c, err);
    c->big = magic == PCAP_MICROSECONDS || magic == PCAP_NANOSECONDS;
    if (c->big || reversed == PCAP_MICROSECONDS || reversed == PCAP_NANOSECONDS)
        return pcap_open(c, magic == PCAP_NANOSECONDS || reversed == PCAP_NANOSECONDS, err);
    return refuse_magic(c, magic, err);
}

/* The second half of every opener: the source is open, or rc says why not. */
static int finish_open(zn_capture **out, zn_capture *c, int rc, zn_error *err)
{
    if (rc == 0)
        rc = read_header(c, err);
    if (rc == 0 || (err != NULL && err->code == ZN_ERR_IO && err->os_errno == EINTR))
        *out = c;
    else
        zn_capture_close(c);
    return rc;
}

int zn_capture_open_again(zn_capture **out, zn_error *err)
{
    zn_capture *c = *out;
    *out = NULL;
    return finish_open(out, c, 0, err);
}

static zn_capture *new_capture(zn_capture **out, zn_error *err)
{
    zn_capture *c = zn_heap_alloc(sizeof *c);
    *out = NULL;
    if (c == NULL)
        (void)zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a capture");
    return c;
}

int zn_capture_open_path(zn_capture **out, const char *path, zn_error *err)
{
    zn_capture *c = new_capture(out, err);
    if (c == NULL)
        return -ZN_ERR_CAPACITY;
    return finish_open(out, c, zn_byte_source_open_path(&c->source, path, err), err);
}

int zn_capture_open_fd(zn_capture **out, int fd, const char *name, zn_error *err)
{
    zn_capture *c = new_capture(out, err);
    if (c == NULL)
        return -ZN_ERR_CAPACITY;
    return finish_open(out, c, zn_byte_source_open_fd(&c->source, fd, name, err), err);
}

int zn_capture_open_memory(zn_capture **out, const uint8_t *bytes, size_t n, zn_error *err)
{
    zn_capture *c = new_capture(out, err);
    if (c == NULL)
        return -ZN_ERR_CAPACITY;
    zn_byte_source_open_memory(&c->source, bytes, n);
    return finish_open(out, c, 0, err);
}

void zn_capture_close(zn_capture *c)
{
    if (c == NULL)
        return;
    zn_pcapng_close(c);
    zn_byte_source_close(&c->source);
    zn_heap_free(c);
}

/* The source has no more bytes: a clean end between records, or one in the middle. */
static void end_of_source(zn_capture *c)
{
    uint64_t left = zn_cursor_left(&c->source.unread) + c->skipped;
    c->ended = true;
    if (left != 0)
        (void)zn_capture_end(c, "%u bytes wanted, %llu left", c->wanted, (unsigned long long)left);
}

/* Frames that can be read without waiting: their number; *last is how the last step ended. */
static int read_batch(zn_capture *c, zn_frame *frames, int max, zn_step *last)
{
    int n = 0;
    do {
        *last = c->pcapng ? zn_pcapng_step(c, &frames[n]) : pcap_step(c, &frames[n]);
        if (*last != ZN_STEP_FRAME)
            continue;
        c->records++;
        n++;
        if (zn_cursor_left(&c->source.unread) > PREFETCH_BYTES)
            ZN_PREFETCH(c->source.unread.p + PREFETCH_BYTES);
        if (zn_byte_source_offset(&c->source) >= c->source.batch_end)
            break;
    } while (n < max && *last <= ZN_STEP_NONE);
    return n;
}

int zn_capture_next(zn_capture *c, zn_frame *frames, int max, zn_error *err)
{
    int rc;
    if (c->ended)
        return 0;
    rc = zn_byte_source_begin(&c->source, err);
    if (rc < 0)
        return rc;
    if (rc > 0) {
        (void)zn_capture_end(c, "the file became shorter while it was read");
        c->ended = true;
        return 0;
    }
    for (;;) {
        zn_step last;
        int n = read_batch(c, frames, max, &last);
        c->ended = last == ZN_STEP_END;
        if (n > 0 || c->ended)
            return n;
        rc = zn_byte_source_refill(&c->source, err);
        if (rc < 0)
            return rc;
        if (rc == 0) {
            end_of_source(c);
            return 0;
        }
    }
}

const char *zn_capture_format(const zn_capture *c)
{
    return c->pcapng ? "pcapng" : "pcap";
}

uint64_t zn_capture_bytes_read(const zn_capture *c)
{
    return zn_byte_source_offset(&c->source);
}

uint64_t zn_capture_bytes_total(const zn_capture *c)
{
    return c->source.total;
}

const char *zn_capture_warning(const zn_capture *c)
{
    return c->warning[0] != '\0' ? c->warning : NULL;
}
