/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that hold a secret: only their owner may read them.
 */
#ifndef ZN_CRYPTO_KEY_FILE_H
#define ZN_CRYPTO_KEY_FILE_H

#include "util/base.h"

/* Words with which messages name a kind of key file. */
typedef struct zn_key_file_kind {
    const char *name; /* "key file" */
    const char *make; /* the command that makes one */
} zn_key_file_kind;

/*
 * Reads at most `cap` bytes of the file at `path` into text; a file that fills all of it may be
 * longer. It must be a regular file that only its owner may read (mode 0600 or stricter), or a
 * credential that systemd keeps for this unit (root's, mode 0440, in $CREDENTIALS_DIRECTORY).
 * Returns 0 and sets *n, or returns -ZN_ERR_CONFIG / -ZN_ERR_IO with *err filled.
 */
int zn_key_file_read(const char *path, const zn_key_file_kind *kind, char *text, size_t cap,
                     size_t *n, zn_error *err);

#endif
