/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * 802.11 data frames, bare or after the header of a radio (radiotap, Prism, AVS, PPI).
 *
 * Only data frames carry packets. A protected one counts as encrypted, unless LLC in clear follows:
 * captures that the adapter decrypted keep the Protected flag.
 */
#include "packet/layers.h"

/* Frame control: bits of its first byte, then of its second. */
enum {
    TYPE_MASK = 0x0f,
    TYPE_DATA = 0x08, /* with version 0 */
    SUBTYPE_NO_DATA = 0x40,
    SUBTYPE_QOS = 0x80,
    TO_AND_FROM_AP = 0x03,
    PROTECTED = 0x40,
    ORDER = 0x80
};

enum { RADIOTAP_TIME = 1u << 0, RADIOTAP_FLAGS = 1u << 1, RADIOTAP_MORE = 1u << 31 };
#define RADIOTAP_FLAG_PADDED 0x20 /* the 802.11 header fills whole words */

#define QOS_AMSDU 0x80
#define WIFI_HEADER_BYTES 24u
#define PRISM_BYTES 144u
#define AVS_MAGIC UINT32_C(0x80211000)

/* Returns true when LLC in clear lies at the cursor. */
static bool looks_like_llc(zn_cursor c)
{
    return zn_cursor_be24(&c) == 0xaaaa03;
}

/* A frame, and how its header is laid out. */
typedef struct wifi_frame {
    uint8_t kind, flags; /* the two bytes of frame control */
    bool padded;         /* the header fills whole words */
    bool swapped;        /* 16-bit numbers are big-endian, frame control included */
} wifi_frame;

static uint16_t number(const wifi_frame *f, zn_cursor *c)
{
    return f->swapped ? zn_cursor_be16(c) : zn_cursor_le16(c);
}

/* Reads from after the frame control to LLC: a header of 24 bytes, and fields that flags and
 * subtype add. */
static zn_stat data_frame(zn_layers *l, const wifi_frame *f)
{
    uint32_t added = 0;
    uint16_t fragment, qos = 0;
    zn_layers_saw(l, ZN_STAT_IN_WIFI);
    zn_cursor_skip(&l->c, 20); /* duration, three addresses */
    fragment = number(f, &l->c) & 0x0f;
    if ((f->flags & TO_AND_FROM_AP) == TO_AND_FROM_AP) {
        added += 6; /* a fourth address */
        zn_cursor_skip(&l->c, 6);
    }
    if ((f->kind & SUBTYPE_QOS) != 0) {
        added += 2;
        qos = number(f, &l->c);
        if ((f->flags & ORDER) != 0) { /* HT control */
            added += 4;
            zn_cursor_skip(&l->c, 4);
        }
    }
    if (f->padded)
        zn_cursor_skip(&l->c, (0u - (WIFI_HEADER_BYTES + added)) & 3u);
    if ((f->flags & PROTECTED) != 0 && !looks_like_llc(l->c))
        return ZN_STAT_DROP_ENCRYPTED;
    if (fragment != 0)
        return ZN_STAT_DROP_LINK_FRAGMENT;
    if ((qos & QOS_AMSDU) != 0) {
        uint16_t length;
        zn_layers_saw(l, ZN_STAT_IN_AMSDU);
        zn_cursor_skip(&l->c, 12); /* destination, source */
        length = zn_cursor_be16(&l->c);
        zn_layers_narrow(l, length);
    }
    return zn_layers_go(l, ZN_HEADER_LLC);
}

static bool carries_data(uint8_t kind)
{
    return (kind & TYPE_MASK) == TYPE_DATA && (kind & SUBTYPE_NO_DATA) == 0;
}

static zn_stat wifi(zn_layers *l, bool padded)
{
    uint8_t kind = zn_cursor_u8(&l->c);
    wifi_frame f = {kind, zn_cursor_u8(&l->c), padded, false};
    return carries_data(kind) ? data_frame(l, &f) : ZN_STAT_DROP_NOT_IP;
}

zn_stat zn_peel_wifi(zn_layers *l)
{
    return wifi(l, false);
}

zn_stat zn_peel_wifi_swapped(zn_layers *l)
{
    zn_cursor peek = l->c;
    uint8_t first = zn_cursor_u8(&peek);
    wifi_frame f = {zn_cursor_u8(&peek), first, false, true};
    if ((first & TYPE_MASK) == TYPE_DATA || !carries_data(f.kind))
        return wifi(l, false);
    l->c = peek;
    return data_frame(l, &f);
}

/* www.radiotap.org: a length, words whose bits say which fields follow, the fields. */
zn_stat zn_peel_radiotap(zn_layers *l)
{
    zn_cursor fields;
    uint16_t length;
    uint32_t present, word, at = 8;
    uint8_t flags = 0;
    zn_cursor_skip(&l->c, 2);
    length = zn_cursor_le16(&l->c);
    if (length < 8)
        return ZN_STAT_DROP_LINK_TRUNCATED;
    fields = zn_cursor_sub(&l->c, length - 4u);
    present = word = zn_cursor_le32(&fields);
    while ((word & RADIOTAP_MORE) != 0 && zn_cursor_ok(&fields)) {
        word = zn_cursor_le32(&fields);
        at += 4;
    }
    if ((present & RADIOTAP_TIME) != 0)
        zn_cursor_skip(&fields, 8u + ((0u - at) & 7u)); /* aligned as C would */
    if ((present & RADIOTAP_FLAGS) != 0)
        flags = zn_cursor_u8(&fields);
    return wifi(l, (flags & RADIOTAP_FLAG_PADDED) != 0);
}

/* Prism's header has a length in the byte order of the machine, AVS's a magic number and a
 * length. */
zn_stat zn_peel_prism(zn_layers *l)
{
    uint32_t first = zn_cursor_be32(&l->c);
    uint32_t length = zn_cursor_be32(&l->c);
    if ((first & 0xfffff000) != AVS_MAGIC && length != PRISM_BYTES) {
        length = __builtin_bswap32(length);
        if (length != PRISM_BYTES)
            return ZN_STAT_DROP_LINK_TRUNCATED;
    }
    if (length < 8)
        return ZN_STAT_DROP_LINK_TRUNCATED;
    zn_cursor_skip(&l->c, length - 8u);
    return zn_layers_go(l, ZN_HEADER_WIFI);
}

/* Per-Packet Information: a header with its length and the link type of the frame after it. */
zn_stat zn_peel_ppi(zn_layers *l)
{
    uint16_t length;
    uint32_t link_type;
    zn_cursor_skip(&l->c, 2);
    length = zn_cursor_le16(&l->c);
    link_type = zn_cursor_le32(&l->c);
    if (length < 8)
        return ZN_STAT_DROP_LINK_TRUNCATED;
    zn_cursor_skip(&l->c, length - 8u);
    return zn_layers_link(l, link_type);
}
