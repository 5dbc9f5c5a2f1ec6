/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A regular file in memory: all of it has addresses, and the part that is read at a time has pages
 * of the page cache, without a copy. Pages are asked for ahead of reading, some 2 MiB at once, and
 * given back after it; a part that was given back can still be read, at the price of a fault a
 * page.
 *
 * A file that becomes shorter than what was read of it makes what was read worthless: its end may
 * have read as zeros. zn_file_map_check finds that.
 */
#ifndef ZN_CAPTURE_MAPPED_FILE_H
#define ZN_CAPTURE_MAPPED_FILE_H

#include "util/cursor.h"

typedef struct zn_file_map {
    const uint8_t *bytes; /* NULL: nothing is mapped */
    uint64_t total;
    uint64_t populated, released; /* how far from the start */
    uint8_t *reserved;            /* addresses, among which `bytes` is on a huge page's boundary */
    size_t reserved_bytes;
    int fd, guard;
} zn_file_map;

/* Maps the first `total` (>= 1) bytes of the open file `fd`, which stays the caller's and open.
 * False where that is not possible: not in this file system, addresses are limited, or no guard
 * (capture/sigbus_guard.h). */
bool zn_file_map_open(zn_file_map *m, int fd, uint64_t total);
/* One that was never opened is zeroed. */
void zn_file_map_close(zn_file_map *m);

/* The next part gets its pages: how many bytes it has, 0 at the end of the file, which may come
 * before `total` now; or -1 and errno. */
int64_t zn_file_map_next(zn_file_map *m);
/* 0; or -1 when what was read so far cannot be believed, and errno: ESTALE: the file is shorter
 * now; EIO: some of it was missing or could not be read. */
int zn_file_map_check(const zn_file_map *m);
/* The same, as far as it is known without asking the system. */
bool zn_file_map_is_cut(const zn_file_map *m);

#endif
