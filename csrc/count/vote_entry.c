/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "count/vote_entry.h"

#define MAGIC_BYTES 4

static const char magic[ZN_ENTRY_KINDS][MAGIC_BYTES] = {
    [ZN_ENTRY_COUNTED] = {'Z', 'N', 'V', 'M'}, /* the message's own */
    [ZN_ENTRY_UNCOUNTED] = {'Z', 'N', 'V', 'U'},
    [ZN_ENTRY_GONE] = {'Z', 'N', 'V', 'G'},
    [ZN_ENTRY_ALL_PRESENT] = {'Z', 'N', 'V', 'P'},
};

void zn_vote_entry_write(zn_text *out, const zn_vote_entry *entry)
{
    if (entry->kind != ZN_ENTRY_COUNTED)
        zn_text_bytes(out, magic[entry->kind], MAGIC_BYTES);
    if (entry->kind == ZN_ENTRY_GONE)
        zn_text_le(out, entry->session, sizeof entry->session);
    else
        zn_text_span(out, entry->message);
}

int zn_vote_entry_read(zn_vote_entry *out, zn_span bytes, zn_error *err)
{
    static const zn_vote_entry none;
    int kind = 0;
    *out = none;
    while (bytes.n >= MAGIC_BYTES && kind < ZN_ENTRY_KINDS &&
           memcmp(bytes.p, magic[kind], MAGIC_BYTES) != 0)
        kind++;
    out->kind = (zn_vote_entry_kind)kind;
    if (kind == ZN_ENTRY_COUNTED) {
        out->message = bytes;
    } else {
        out->message.p = bytes.p + MAGIC_BYTES;
        out->message.n = bytes.n - MAGIC_BYTES;
    }
    if (kind == ZN_ENTRY_GONE && out->message.n == sizeof out->session) {
        out->session = zn_le_get(out->message.p, sizeof out->session);
        out->message.n = 0;
    } else if (bytes.n < MAGIC_BYTES || kind == ZN_ENTRY_KINDS || kind == ZN_ENTRY_GONE ||
               (kind == ZN_ENTRY_ALL_PRESENT && out->message.n != 0)) {
        return zn_fail(err, ZN_ERR_FORMAT, 0, "this is no entry of a log of votes");
    }
    return 0;
}
