/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/record_copy.h"

#include <string.h>

static void copy(zn_span *span, uint8_t *to, size_t cap)
{
    size_t n = span->n < cap ? span->n : cap;
    ZN_ASSERT(span->n <= cap);
    if (n != 0)
        memcpy(to, span->p, n);
    *span = (zn_span){to, n};
}

void zn_record_copy(zn_record *r, zn_record_texts *texts)
{
    copy(&r->name, texts->text[0], sizeof texts->text[0]);
    copy(&r->fqdn, texts->text[1], sizeof texts->text[1]);
    copy(&r->certificate, texts->text[2], sizeof texts->text[2]);
    copy(&r->user_agent, texts->text[3], sizeof texts->text[3]);
    copy(&r->http_status, texts->status, sizeof texts->status);
}
