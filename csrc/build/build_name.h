/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names that builders may write. A builder masks any other text, even if its choice shows names.
 * The gate counts the same texts as names (analyzer/hostname.h).
 */
#ifndef ZN_BUILD_BUILD_NAME_H
#define ZN_BUILD_BUILD_NAME_H

#include "util/cursor.h"

/* Returns true if the text, in any case and without a port, is a host name: letters, digits,
 * hyphens and underscores in labels of at most 63 bytes, at most 253 bytes, with or without a final
 * dot. Returns false for IP addresses, for names of addresses (in-addr.arpa, ip6.arpa), and for
 * names of home networks (.local, home.arpa). */
bool zn_build_name_allowed(zn_span name);

/* Writes the name in lower case into out[name.n] if it is `disclosed` and allowed, or else its
 * mask. */
void zn_build_host_name(zn_span name, bool disclosed, uint8_t *out);

#endif
