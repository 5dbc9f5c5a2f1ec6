/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/format.h"

#include <stdarg.h>
#include <stdio.h>

/* Bytes that are prefetched at a time: four batches, so that places are rarely looked for and the
 * first bytes of records stay in the second-level cache. Each batch ends with a whole record, and
 * so a little after its length, for which the rest leaves space where records have usual
 * lengths. */
#define PREFETCHED (4 * ZN_BYTE_SOURCE_TAKEN + ((size_t)8 << 10))

zn_step zn_reader_end(zn_reader *r, const char *format, ...)
{
    uint64_t start = zn_byte_source_offset(&r->source) - r->skipped;
    int n = snprintf(r->warning, sizeof r->warning, "%s %llu at byte %llu: ", r->unit,
                     (unsigned long long)r->records + 1, (unsigned long long)start);
    va_list args;
    va_start(args, format);
    if (n > 0 && (size_t)n < sizeof r->warning)
        (void)vsnprintf(r->warning + n, sizeof r->warning - (size_t)n, format, args);
    va_end(args);
    return ZN_STEP_END;
}

int zn_reader_require(zn_reader *r, size_t n, zn_error *err)
{
    size_t left;
    while ((left = zn_cursor_left(&r->source.pending)) < n) {
        int rc = zn_byte_source_refill(&r->source, err);
        if (rc <= 0)
            return rc;
    }
    return 1;
}

/* Returns true when records are long and stay where they are, and this processor is faster when
 * only their heads are prefetched. */
static bool is_prefetched(const zn_reader *r)
{
    return r->mean_record >= ZN_PCAP_PREFETCH_LEAST && r->mean_record <= ZN_PCAP_PREFETCH_MOST &&
           r->may_prefetch && zn_byte_source_is_mapped(&r->source);
}

const uint8_t *zn_reader_prefetch(const zn_reader *r, zn_prefetch_kind kind, zn_span rest,
                                  const uint8_t *pause)
{
    zn_span first = zn_span_first(rest, PREFETCHED);
    if (!is_prefetched(r) || r->source.fetched >= pause)
        return r->source.fetched;
    (void)zn_pcap_prefetch(first, kind);
    return first.p + first.n;
}

void zn_reader_took(zn_reader *r, int n, zn_span rest, const uint8_t *fetched)
{
    size_t bytes = zn_cursor_left(&r->source.pending) - rest.n;
    if (n != 0)
        r->mean_record = (uint32_t)(bytes / (unsigned)n);
    r->source.fetched = fetched;
    zn_cursor_skip(&r->source.pending, bytes);
}
