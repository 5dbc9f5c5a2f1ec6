/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/gate_copy.h"

#include <string.h>

static void keep(zn_span *span, uint8_t *to, size_t room)
{
    ZN_ASSERT(span->n <= room);
    if (span->n != 0)
        memcpy(to, span->p, span->n < room ? span->n : room);
    span->p = to;
}

void zn_gate_keep(zn_record *r, zn_kept_texts *texts)
{
    keep(&r->name, texts->text[0], sizeof texts->text[0]);
    keep(&r->fqdn, texts->text[1], sizeof texts->text[1]);
    keep(&r->certificate, texts->text[2], sizeof texts->text[2]);
    keep(&r->user_agent, texts->text[3], sizeof texts->text[3]);
    keep(&r->http_status, texts->status, sizeof texts->status);
}
