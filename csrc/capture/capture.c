/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads batches of frames from a capture of any format.
 */
#include "capture/capture.h"

#include "capture/format.h"
#include "util/arena.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>

struct zn_capture {
    zn_reader reader;
    const zn_format *format; /* NULL until it is known */
    uint64_t number;         /* zn_capture_number */
    bool ended;
    bool peeked;   /* `next` was read ahead */
    bool unpacked; /* zn_capture_set_unpacked */
    zn_frame next;
};

static const zn_format *const formats[] = {&zn_format_pcap, &zn_format_pcapng, &zn_format_snoop};

/* Files that are often taken for captures, by their first four bytes. */
static const struct known_magic {
    uint32_t magic, mask;
    const char *what;
} known_magics[] = {
    {0x1f8b0000, 0xffff0000, "compressed with gzip: unpack it first (gzip -d)"},
    {0x28b52ffd, 0xffffffff, "compressed with zstd: unpack it first (zstd -d)"},
    {0xfd377a58, 0xffffffff, "compressed with xz: unpack it first (xz -d)"},
    {0x425a6800, 0xffffff00, "compressed with bzip2: unpack it first (bzip2 -d)"},
    {0x04224d18, 0xffffffff, "compressed with lz4: unpack it first (lz4 -d)"},
    {0x02214c18, 0xffffffff, "compressed with lz4: unpack it first (lz4 -d)"},
    {0x504b0304, 0xffffffff, "a ZIP archive: unpack it first (unzip)"},
    {0x474d4255, 0xffffffff, "a Network Monitor capture; convert it with editcap -F pcap"},
    {0x52545353, 0xffffffff, "a Network Monitor capture; convert it with editcap -F pcap"},
};

/* The place of the word "ustar" in a tar archive's first entry. */
#define TAR_WORD_AT 257
#define TAR_WORD "ustar"

static bool is_tar(zn_cursor at)
{
    zn_span word;
    zn_cursor_skip(&at, TAR_WORD_AT);
    word = zn_cursor_take(&at, sizeof TAR_WORD - 1);
    return word.n != 0 && memcmp(word.p, TAR_WORD, word.n) == 0;
}

/* Fails with a message that names the kind of file found. A pipe may have delivered four bytes
 * only, so this waits for the bytes that show a tar archive. */
static int refuse_magic(zn_capture *c, uint32_t magic, zn_error *err)
{
    int rc;
    for (size_t i = 0; i < sizeof known_magics / sizeof known_magics[0]; i++)
        if ((magic & known_magics[i].mask) == known_magics[i].magic)
            return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is %s", c->reader.source.name,
                           known_magics[i].what);
    rc = zn_reader_require(&c->reader, TAR_WORD_AT + sizeof TAR_WORD - 1, err);
    if (rc < 0)
        return rc;
    if (is_tar(c->reader.source.pending))
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is a tar archive: unpack it first (tar -xf)",
                       c->reader.source.name);
    return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is not a capture: neither pcap, pcapng nor snoop",
                   c->reader.source.name);
}

/* Finds the format by the first bytes, and reads its header. */
static int read_header(zn_capture *c, zn_error *err)
{
    zn_cursor at;
    int rc = zn_reader_require(&c->reader, sizeof(uint32_t), err);
    size_t left = zn_cursor_left(&c->reader.source.pending);
    if (rc < 0)
        return rc;
    if (left == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is empty", c->reader.source.name);
    if (rc == 0)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is too short to be a capture: %zu bytes",
                       c->reader.source.name, left);
    at = c->reader.source.pending;
    for (size_t i = 0; i < sizeof formats / sizeof formats[0]; i++) {
        zn_cursor start = at;
        if (!formats[i]->is(zn_cursor_take(&start, sizeof(uint32_t))))
            continue;
        c->format = formats[i];
        c->reader.unit = c->format->unit;
        return c->format->open(&c->reader, err);
    }
    return refuse_magic(c, zn_cursor_be32(&at), err);
}

/* The second half of every opener. rc: how opening the source went. */
static int finish_open(zn_capture **out, zn_capture *c, int rc, zn_error *err)
{
    bool opened = rc == 0;
    if (opened)
        rc = read_header(c, err);
    if (rc == 0 || (opened && err != NULL && err->code == ZN_ERR_IO && err->os_errno == EINTR))
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
    static _Atomic uint64_t opened;
    zn_capture *c = zn_heap_alloc(sizeof *c);
    *out = NULL;
    if (c == NULL)
        (void)zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a capture");
    else
        c->number = atomic_fetch_add(&opened, 1) + 1;
    return c;
}

int zn_capture_open_path(zn_capture **out, const char *path, zn_error *err)
{
    zn_capture *c = new_capture(out, err);
    if (c == NULL)
        return -ZN_ERR_CAPACITY;
    return finish_open(out, c, zn_byte_source_open_path(&c->reader.source, path, err), err);
}

int zn_capture_open_fd(zn_capture **out, int fd, zn_span start, const char *name, zn_error *err)
{
    zn_capture *c = new_capture(out, err);
    int rc;
    if (c == NULL)
        return -ZN_ERR_CAPACITY;
    rc = zn_byte_source_open_fd(&c->reader.source, fd, name, err);
    if (rc == 0)
        zn_byte_source_put_back(&c->reader.source, start);
    return finish_open(out, c, rc, err);
}

int zn_capture_open_memory(zn_capture **out, const uint8_t *bytes, size_t n, zn_error *err)
{
    zn_capture *c = new_capture(out, err);
    if (c == NULL)
        return -ZN_ERR_CAPACITY;
    zn_byte_source_open_memory(&c->reader.source, bytes, n);
    return finish_open(out, c, 0, err);
}

void zn_capture_close(zn_capture *c)
{
    if (c == NULL)
        return;
    if (c->format != NULL && c->format->close != NULL)
        c->format->close(&c->reader);
    zn_byte_source_close(&c->reader.source);
    zn_heap_free(c);
}

/* Ends the capture where the source has no more bytes, with a warning in the middle of a record. */
static void end_of_source(zn_capture *c)
{
    uint64_t left = zn_cursor_left(&c->reader.source.pending) + c->reader.skipped;
    c->ended = true;
    if (zn_byte_source_shrank(&c->reader.source))
        (void)zn_reader_end(&c->reader, "the file became shorter while it was read");
    else if (left != 0)
        (void)zn_reader_end(&c->reader, "%u bytes wanted, %llu left", c->reader.wanted,
                            (unsigned long long)left);
}

/* Reads frames without waiting and returns how many; *last is how the last step ended. */
static int read_batch(zn_capture *c, zn_frame *frames, int max, zn_step *last)
{
    const uint8_t *pause = zn_byte_source_pause(&c->reader.source);
    int n = c->format->read == NULL ? 0 : c->format->read(&c->reader, frames, max);
    c->reader.records += (uint64_t)n;
    *last = ZN_STEP_FRAME;
    while (n < max && *last <= ZN_STEP_NONE && (n == 0 || c->reader.source.pending.p < pause)) {
        *last = c->format->step(&c->reader, &frames[n]);
        if (*last != ZN_STEP_FRAME)
            continue;
        c->reader.records++;
        n++;
    }
    return n;
}

bool zn_capture_is_mapped(const zn_capture *c)
{
    return zn_byte_source_is_mapped(&c->reader.source);
}

int zn_capture_check(const zn_capture *c, zn_error *err)
{
    return zn_byte_source_check(&c->reader.source, err);
}

int zn_capture_next(zn_capture *c, zn_frame *frames, int max, zn_error *err)
{
    int rc;
    if (c->ended && !c->peeked) /* missing bytes of a cut file may have ended it */
        return zn_byte_source_check(&c->reader.source, err);
    if (c->peeked) {
        frames[0] = c->next;
        c->peeked = false;
        return 1;
    }
    for (;;) {
        bool may_grow = zn_byte_source_may_grow(&c->reader.source);
        zn_step last;
        int n = read_batch(c, frames, max, &last);
        c->ended = last == ZN_STEP_END;
        if (zn_byte_source_is_cut(&c->reader.source))
            return zn_byte_source_check(&c->reader.source, err);
        if (n > 0)
            return n;
        if (c->ended)
            return zn_byte_source_check(&c->reader.source, err);
        rc = zn_byte_source_refill(&c->reader.source, err);
        if (rc < 0)
            return rc;
        if (rc == 0 && !may_grow) { /* the last step already knew that no more would come */
            rc = zn_byte_source_check(&c->reader.source, err);
            if (rc == 0)
                end_of_source(c);
            return rc;
        }
    }
}

int zn_capture_peek(zn_capture *c, int64_t *t_ns, zn_error *err)
{
    if (!c->peeked) {
        int rc = zn_capture_next(c, &c->next, 1, err);
        if (rc <= 0)
            return rc;
        c->peeked = true;
    }
    *t_ns = c->next.t_ns;
    return 1;
}

uint64_t zn_capture_number(const zn_capture *c)
{
    return c->number;
}

bool zn_capture_has_one_link(const zn_capture *c)
{
    return c->format->one_link;
}

const char *zn_capture_format(const zn_capture *c)
{
    return c->format->name;
}

uint64_t zn_capture_bytes_read(const zn_capture *c)
{
    return zn_byte_source_offset(&c->reader.source);
}

void zn_capture_set_unpacked(zn_capture *c)
{
    c->unpacked = true;
}

bool zn_capture_may_wait(const zn_capture *c)
{
    return zn_byte_source_may_grow(&c->reader.source) && !c->reader.source.is_file && !c->unpacked;
}

uint64_t zn_capture_bytes_total(const zn_capture *c)
{
    return c->reader.source.total;
}

const char *zn_capture_warning(const zn_capture *c)
{
    return c->reader.warning[0] != '\0' ? c->reader.warning : NULL;
}

bool zn_capture_has_ended(const zn_capture *c)
{
    return c->ended && !c->peeked;
}

bool zn_capture_saw_end(const zn_capture *c)
{
    return c->reader.source.at_end;
}
