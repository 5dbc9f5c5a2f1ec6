/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Which names a builder writes at all, whatever it was told of them: only what the release counts
 * as a name (analyzer/hostname.h).
 */
#ifndef ZN_BUILD_BUILD_NAME_H
#define ZN_BUILD_BUILD_NAME_H

#include "util/cursor.h"

/* Returns whether the text, in any case and without a port, is a host's name: letters, digits,
 * hyphens and underscores in labels of at most 63 bytes, 253 in all, with or without a final dot.
 * False for IP addresses and for names that stand for one or for a home: in-addr.arpa, ip6.arpa,
 * .local and home.arpa. */
bool zn_build_name_allowed(zn_span name);

/* Writes into out[name.n] the name in lower case if it is `disclosed` and allowed, or else its
 * mask. */
void zn_build_host_name(zn_span name, bool disclosed, uint8_t *out);

#endif
