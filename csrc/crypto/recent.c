/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/recent.h"

#include "base/arena.h"

#include <openssl/crypto.h>
#include <string.h>

#define PLACES ((size_t)1 << ZN_RECENT_BITS)
#define ODD_1                                                                                      \
    UINT64_C(0x9e3779b97f4a7c15) /* of the golden ratio's bits, and the square root of 2's */
#define ODD_2 UINT64_C(0x6a09e667f3bcc909)

typedef struct place {
    uint64_t real[2]; /* zero: nothing, so the unspecified address is never here */
    zn_addr pseudonym;
} place;

struct zn_recent {
    place places[PLACES];
    bool used;
};

zn_recent *zn_recent_open(void)
{
    return zn_block_alloc(sizeof(zn_recent));
}

void zn_recent_close(zn_recent *r)
{
    if (r == NULL)
        return;
    zn_recent_wipe(r);
    zn_block_free(r, sizeof *r);
}

void zn_recent_wipe(zn_recent *r)
{
    if (r->used)
        OPENSSL_cleanse(r->places, sizeof r->places);
    r->used = false;
}

static inline size_t place_of(const uint64_t word[2])
{
    uint64_t mixed = word[0] * ODD_1 ^ word[1] * ODD_2;
    return (size_t)((mixed ^ mixed >> 32) * ODD_1 >> (64 - ZN_RECENT_BITS));
}

void zn_recent_prefetch(const zn_recent *r, const zn_addr *real)
{
    uint64_t word[2];
    memcpy(word, real->byte, sizeof word);
    ZN_PREFETCH_WRITE(&r->places[place_of(word)]);
}

bool zn_recent_find(const zn_recent *r, const zn_addr *real, zn_addr *pseudonym)
{
    uint64_t word[2];
    const place *p;
    memcpy(word, real->byte, sizeof word);
    p = &r->places[place_of(word)];
    if (((p->real[0] ^ word[0]) | (p->real[1] ^ word[1])) != 0 || (word[0] | word[1]) == 0)
        return false;
    *pseudonym = p->pseudonym;
    return true;
}

void zn_recent_keep(zn_recent *r, const zn_addr *real, const zn_addr *pseudonym)
{
    uint64_t word[2];
    place *p;
    memcpy(word, real->byte, sizeof word);
    p = &r->places[place_of(word)];
    memcpy(p->real, word, sizeof word);
    p->pseudonym = *pseudonym;
    r->used = true;
}
