/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A regular file in memory: all of it has addresses, and the part that is being read has pages of
 * the page cache, without a copy. Pages are asked for ahead of reading, some 2 MiB at once, and
 * given back after it. A part that was given back can still be read, at the price of a page fault
 * each page.
 *
 * When a file becomes shorter than the part that was read, all that was read of it is worthless,
 * because its end may have read as zeros. zn_file_map_check finds that.
 */
#ifndef ZN_CAPTURE_MAPPED_FILE_H
#define ZN_CAPTURE_MAPPED_FILE_H

#include "util/cursor.h"

typedef struct zn_file_map {
    const uint8_t *bytes; /* NULL: nothing is mapped */
    uint64_t total;
    uint64_t populated, released; /* ends of the parts that have, and had, pages; from the start */
    /* addresses, of which `bytes` is the first on a huge page's boundary */
    uint8_t *reserved;
    size_t reserved_bytes;
    int fd, guard;
} zn_file_map;

/* Maps the first `total` (>= 1) bytes of the open file `fd`, which stays the caller's and must stay
 * open. Returns false where that is not possible: in this file system, under a limit of addresses,
 * or without a guard (capture/sigbus_guard.h). */
bool zn_file_map_open(zn_file_map *m, int fd, uint64_t total);
/* Unmaps the file. A zeroed map is fine. */
void zn_file_map_close(zn_file_map *m);

/* Asks for the pages of the next part. Returns how many bytes it has, 0 at the end of the file,
 * which may come before `total` now; or -1 and errno. */
int64_t zn_file_map_next(zn_file_map *m);
/* Returns 0, or -1 if the bytes read so far are not reliable. errno is ESTALE if the file is
 * shorter now, and EIO if a part of it was missing or could not be read. */
int zn_file_map_check(const zn_file_map *m);
/* Returns true when it is known, without asking the system, that they cannot be believed. */
bool zn_file_map_is_cut(const zn_file_map *m);

#endif
