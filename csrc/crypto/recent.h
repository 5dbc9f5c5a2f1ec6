/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The pseudonyms that were made last under one key, by address: most flows are of a client that others
 * were of. Each address has one place, which it takes from the one that was there; whoever forces such
 * meetings gains nothing but that both are encrypted again. Wiped with the key, without which it would
 * still tell who is who.
 */
#ifndef ZN_CRYPTO_RECENT_H
#define ZN_CRYPTO_RECENT_H

#include "base/addr.h"

#define ZN_RECENT_BITS 15 /* 2^15 addresses: 1 MiB, of which it costs what is touched */

typedef struct zn_recent zn_recent;

/* NULL when there is no memory. */
zn_recent *zn_recent_open(void);
void zn_recent_close(zn_recent *r);
/* Forgets all, in a way the compiler keeps. */
void zn_recent_wipe(zn_recent *r);
/* Fetches where an address is looked for. */
void zn_recent_prefetch(const zn_recent *r, const zn_addr *real);
/* Whether the address's pseudonym is there, and then *pseudonym. */
bool zn_recent_find(const zn_recent *r, const zn_addr *real, zn_addr *pseudonym);
void zn_recent_keep(zn_recent *r, const zn_addr *real, const zn_addr *pseudonym);

#endif
