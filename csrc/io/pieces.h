/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file's bytes piece by piece, each read by whichever thread has nothing else to do: copying out of
 * the page cache is the largest part of what an ordinary packet costs.
 *
 * A piece becomes the current one when it is taken. What was made of it in a call stays valid until
 * as many further calls have ended as were agreed on.
 */
#ifndef ZN_IO_PIECES_H
#define ZN_IO_PIECES_H

#include "base/cursor.h"
#include "base/pool.h"

#include <sys/types.h>

#define ZN_PIECE_BYTES ((size_t)256 << 10) /* stay in the second-level cache until they are used */
#define ZN_PIECES_CALLS 16                 /* most calls for which a piece can stay */
#define ZN_PIECES_AHEAD 2                  /* read before they are asked for */

typedef struct zn_pieces zn_pieces;

/*
 * Pieces of the open file `fd`, which stays the caller's, from byte `from` up to byte `total`. `first`
 * becomes theirs, a block of zn_pieces_buffer_bytes() that holds what was read before and is the current piece's
 * buffer. 0, or -ZN_ERR_CAPACITY.
 */
int zn_pieces_open(zn_pieces **out, int fd, uint64_t from, uint64_t total, uint8_t *first,
                   zn_error *err);
/* NULL is fine. No thread may be at work on them: zn_pieces_rest. */
void zn_pieces_close(zn_pieces *p);
size_t zn_pieces_buffer_bytes(void);

/* From now on others read ahead, and what is made of a piece stays for `calls` (1 .. ZN_PIECES_CALLS). */
void zn_pieces_share(zn_pieces *p, zn_pool *pool, unsigned calls);
/* Nobody reads any more when this returns; until they are shared again, the caller does. */
void zn_pieces_rest(zn_pieces *p);
/* A call ends, which has made something of the current piece. */
void zn_pieces_lend(zn_pieces *p);

/*
 * The unread bytes, which are the end of the current piece, followed by the next one: *unread. Returns
 * how many bytes came; fewer than up to `total` and than ZN_PIECE_BYTES only where the file has become
 * shorter. -1 and errno where it cannot be read; then it can be asked again.
 */
ssize_t zn_pieces_next(zn_pieces *p, zn_cursor *unread);

#endif
