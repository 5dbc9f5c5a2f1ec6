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
 * A capture that ends in the middle of a record, or whose next record is not possible, ends there.
 * The frames before that place are delivered, and zn_capture_warning() describes the place and the
 * reason. An error is returned only for a source that is not a capture, or that cannot be read.
 */
#ifndef ZN_CAPTURE_CAPTURE_H
#define ZN_CAPTURE_CAPTURE_H

#include "util/cursor.h"
#include "zanon/zanon.h"

typedef struct zn_capture zn_capture;

/*
 * Opens a capture by path and reads its header: a regular file up to its current size, anything
 * else (a FIFO, /dev/stdin) as a stream. Returns 0; or sets *out to NULL and returns a negative
 * zn_err (ZN_ERR_IO, ZN_ERR_FORMAT, ZN_ERR_CAPACITY), with a message that gives the reason and the
 * remedy. For EINTR see zn_capture_open_again.
 */
int zn_capture_open_path(zn_capture **out, const char *path, zn_error *err);
/* Opens a stream by its file descriptor, which the caller closes, and reads its header. start:
 * bytes that were already read from it, at most 64 KiB. name: its name in messages. Returns as
 * zn_capture_open_path does. */
int zn_capture_open_fd(zn_capture **out, int fd, zn_span start, const char *name, zn_error *err);
/* Goes on with an opener that returned -ZN_ERR_IO with os_errno EINTR and left *out half open: a
 * signal came while it waited for the header, or no byte for 200 ms. Nothing is lost. Instead of
 * this call *out may be closed. Returns as the opener does. An opener with an err of NULL leaves
 * nothing open. */
int zn_capture_open_again(zn_capture **out, zn_error *err);
/* Opens a capture in memory, which must stay valid until it is closed. Returns as above. */
int zn_capture_open_memory(zn_capture **out, const uint8_t *bytes, size_t n, zn_error *err);
/* Closes a capture, also a half open one. NULL is fine. */
void zn_capture_close(zn_capture *c);

/*
 * Reads up to `max` (>= 1) frames into `frames`. They borrow memory until the next call, or as
 * zn_capture_is_mapped says. Returns the number of frames, 0 at the end, or a negative zn_err with
 * *err filled if a read failed. Fewer than `max` frames do not mean the end: a stream delivers its
 * available frames without waiting for a full batch; a file delivers the frames of one read, or of
 * 128 KiB if it is mapped. A signal during a wait, or 200 ms without a byte, gives -ZN_ERR_IO with
 * os_errno EINTR: no frame is lost, and the call can be repeated.
 */
int zn_capture_next(zn_capture *c, zn_frame *frames, int max, zn_error *err);

/* Returns true for memory and for files that can be mapped: their frames stay valid until the
 * capture is closed, so another thread may use them while zn_capture_next is called. */
bool zn_capture_is_mapped(const zn_capture *c);
/* Returns 0, or -ZN_ERR_IO when a file was cut while it was read, so that its frames so far, which
 * lie in it, cannot be believed. zn_capture_next checks this too, from time to time and at every
 * end; a program that looks at frames after its last call checks once more. */
int zn_capture_check(const zn_capture *c, zn_error *err);

/*
 * Sets *t_ns to the time of the next frame, in ns (see zn_frame), and leaves the frame to be read.
 * Returns 1, 0 at the end, or a negative zn_err as zn_capture_next does.
 */
int zn_capture_peek(zn_capture *c, int64_t *t_ns, zn_error *err);

/* Says that a file is being unpacked into the stream: batches then do not depend on how fast that
 * goes. */
void zn_capture_set_unpacked(zn_capture *c);
/* Returns whether the next call may have to wait for a stream: use the frames so far before it. */
bool zn_capture_may_wait(const zn_capture *c);

/* Returns a number that no other capture of this process has or had. */
uint64_t zn_capture_number(const zn_capture *c);
/* Returns whether all frames are of the same link type. */
bool zn_capture_has_one_link(const zn_capture *c);
/* Returns "pcap", "pcapng" or "snoop". */
const char *zn_capture_format(const zn_capture *c);
/* Return the bytes consumed so far, and the bytes in all (0 for a stream). */
uint64_t zn_capture_bytes_read(const zn_capture *c);
uint64_t zn_capture_bytes_total(const zn_capture *c);
/* Returns why the capture ended early, such as "record 17 at byte 4096: 1514 bytes wanted, 700
 * left", or NULL. */
const char *zn_capture_warning(const zn_capture *c);
/* Returns true if no frame is left. */
bool zn_capture_has_ended(const zn_capture *c);
/* Returns whether the end of the source was read; false where a damaged record ended the capture
 * before it, however many of the bytes behind that had come by then. */
bool zn_capture_saw_end(const zn_capture *c);

#endif
