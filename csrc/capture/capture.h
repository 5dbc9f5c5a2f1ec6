/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Reads captures from a file, a memory buffer or a stream, in batches of frames that borrow its
 * memory:
 *   pcap    both byte orders, micro- and nanoseconds, Kuznetzov's and Ixia's variants
 *           (draft-ietf-opsawg-pcap);
 *   pcapng  sections, interfaces, EPB, SPB, obsolete PB, if_tsresol, if_tsoffset, both byte orders,
 *           unknown blocks skipped (draft-ietf-opsawg-pcapng);
 *   snoop   RFC 1761.
 *
 * A capture that ends in the middle of a record, or whose next record is absurd, ends there: the
 * frames before it are delivered and zn_capture_warning() says what was found, and where. Only a
 * source that is no capture at all, or cannot be read, is an error.
 */
#ifndef ZN_CAPTURE_CAPTURE_H
#define ZN_CAPTURE_CAPTURE_H

#include "util/cursor.h"
#include "zanon/zanon.h"

typedef struct zn_capture zn_capture;

/*
 * Opens a capture by path: a regular file up to the size that it has now, anything else (a FIFO,
 * /dev/stdin) as a stream. Reads the header. Returns 0, or a negative zn_err with a message that
 * says what is wrong and what to do (ZN_ERR_IO, ZN_ERR_FORMAT, ZN_ERR_CAPACITY); *out is then NULL.
 */
int zn_capture_open_path(zn_capture **out, const char *path, zn_error *err);
/* Reads from a file descriptor as a stream; `start` is what was read from it already (at most 64
 * KiB), `name` stands for it in messages. Does not own fd. */
int zn_capture_open_fd(zn_capture **out, int fd, zn_span start, const char *name, zn_error *err);
/* A signal that came while an opener waited for the header, or 200 ms without a byte, gives
 * -ZN_ERR_IO with os_errno EINTR and leaves *out half open: to be closed, or taken up again here,
 * with nothing lost. */
int zn_capture_open_again(zn_capture **out, zn_error *err);
/* Reads from memory, which must stay valid. */
int zn_capture_open_memory(zn_capture **out, const uint8_t *bytes, size_t n, zn_error *err);
void zn_capture_close(zn_capture *c);

/*
 * Up to `max` (>= 1) next frames into `frames`; they borrow memory until the next call, but see
 * zn_capture_is_mapped. Returns their number, 0 at the end, or a negative zn_err (a read failed in
 * the middle) with *err filled. Fewer than `max` do not mean the end: a stream delivers what it has
 * rather than wait for a full batch, a file what one read brought, or 128 KiB of what is mapped. A
 * signal that comes while it waits, or 200 ms without a byte, gives -ZN_ERR_IO with os_errno EINTR:
 * nothing is lost, the same call can be made again.
 */
int zn_capture_next(zn_capture *c, zn_frame *frames, int max, zn_error *err);

/* Frames stay valid until the capture is closed, so another thread may call zn_capture_next
 * meanwhile: those of memory and of files that can be mapped. */
bool zn_capture_is_mapped(const zn_capture *c);
/* 0; or -ZN_ERR_IO when a file was cut while it was read, and the frames so far, which lie in it,
 * cannot be believed. zn_capture_next asks too, from time to time and at the end, whichever it is;
 * a program that looks at frames after its last call asks once more. */
int zn_capture_check(const zn_capture *c, zn_error *err);

/*
 * The time of the next frame in ns (see zn_frame), which stays the next one. Returns 1, 0 at the
 * end, or a negative zn_err as zn_capture_next does.
 */
int zn_capture_peek(zn_capture *c, int64_t *t_ns, zn_error *err);

/* The stream is what a file is unpacked into: batches do not depend on what came by when. */
void zn_capture_is_unpacked(zn_capture *c);
/* The next call may have to wait for a stream: what came so far should be used before. */
bool zn_capture_may_wait(const zn_capture *c);

/* No other capture of this process has or had it. */
uint64_t zn_capture_number(const zn_capture *c);
/* All its frames are of the same link type. */
bool zn_capture_has_one_link(const zn_capture *c);
/* "pcap", "pcapng" or "snoop". */
const char *zn_capture_format(const zn_capture *c);
/* Bytes consumed so far, and in all (0 when unknown: a stream). */
uint64_t zn_capture_bytes_read(const zn_capture *c);
uint64_t zn_capture_bytes_total(const zn_capture *c);
/* Why the capture ended early, e.g. "record 17 at byte 4096: 1514 bytes wanted, 700 left"; or
 * NULL. */
const char *zn_capture_warning(const zn_capture *c);

#endif
