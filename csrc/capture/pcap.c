/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * pcap: a header of 24 bytes, then records: 16 bytes, and the captured ones.
 *
 * Ixia's variants have magic numbers of their own and four more bytes in the header. In the
 * variants of Kuznetzov's patches (Linux, 1999) and of Nokia's routers a record's header is longer,
 * and the magic number does not give the length, or is the usual number. Then the first records
 * decide: lengths, times and the further fields must be plausible. A file that can be read as a
 * plain pcap is a plain pcap.
 */
#include "capture/format.h"

#define HEADER_BYTES 24u
#define MAJOR_VERSION 2
#define MINOR_VERSION 4 /* of all variants */
#define RECORD_BYTES ZN_PCAP_RECORD_BYTES
#define KUZNETZOV_BYTES 24u     /* with interface, protocol, packet type, padding */
#define KUZNETZOV_SMP_BYTES 28u /* with two debugging fields and more padding */
#define NOKIA_BYTES 20u
#define RECORDS_TRIED 3
#define WIRE_MAX (UINT32_C(128) << 20)
#define INTERFACE_MAX 10000u /* 1999's machines had fewer */

static const struct variant {
    uint32_t magic;
    uint16_t fraction_ns;
    uint16_t more_header; /* bytes of header after the usual ones */
    /* Lengths of a record's header in the variants with this magic number. The first is the
     * default. */
    uint8_t record_bytes[ZN_RECORD_CHOICES];
} variants[] = {
    {0xa1b2c3d4, 1000, 0, {RECORD_BYTES, KUZNETZOV_BYTES, NOKIA_BYTES}},
    {0xa1b23c4d, 1, 0, {RECORD_BYTES, 0, 0}},
    {0xa1b2cd34, 1000, 0, {KUZNETZOV_BYTES, KUZNETZOV_SMP_BYTES, 0}},
    {0x1c0001ac, 1, 4, {RECORD_BYTES, 0, 0}},
    {0x1c0001ab, 1000, 4, {RECORD_BYTES, 0, 0}},
};

/* Returns the variant of a magic number in either byte order, or NULL. */
static const struct variant *find_variant(zn_span start, bool *big)
{
    zn_cursor c = zn_cursor_over_span(start, true), again = c;
    uint32_t magic = zn_cursor_be32(&c), reversed = zn_cursor_le32(&again);
    for (size_t i = 0; i < sizeof variants / sizeof variants[0]; i++) {
        *big = magic == variants[i].magic;
        if (*big || reversed == variants[i].magic)
            return &variants[i];
    }
    return NULL;
}

static bool is_pcap(zn_span start)
{
    bool big;
    return find_variant(start, &big) != NULL;
}

/* Returns true when the further fields of a variant's record header have possible values. */
static bool fields_fit(const zn_reader *r, zn_cursor *at, uint32_t record_bytes)
{
    uint32_t interface, protocol, kind;
    if (record_bytes == RECORD_BYTES)
        return true;
    interface = zn_reader_u32(r, at);
    if (record_bytes == NOKIA_BYTES) /* 0xXfbfYZ0W in files of routers, 0 in converted ones */
        return (interface & 0x0fff00f0) == 0x0fbf0000 || interface == 0;
    protocol = zn_reader_u16(r, at);
    kind = zn_cursor_u8(at);
    zn_cursor_skip(at, record_bytes - KUZNETZOV_BYTES + 1);
    /* An Ethernet type or one of Linux's own, and its packet type. */
    return interface <= INTERFACE_MAX && kind <= 4 &&
           (protocol >= 0x0600 || protocol <= 0x17 || protocol == 0x60 || protocol == 0x200 ||
            protocol == 0x400);
}

typedef enum fit { FIT_NO, FIT_OPEN, FIT_YES } fit;

/* Checks by the first records whether headers can have this length. FIT_OPEN: more records
 * decide. */
static fit records_fit(const zn_reader *r, uint32_t record_bytes)
{
    zn_cursor at = r->source.pending, end = at;
    unsigned whole = 0;
    while (whole < RECORDS_TRIED && zn_cursor_left(&at) >= record_bytes) {
        uint32_t fraction, captured, wire;
        zn_cursor_skip(&at, 4);
        fraction = zn_reader_u32(r, &at);
        captured = zn_reader_u32(r, &at);
        wire = zn_reader_u32(r, &at);
        if (fraction >= 1000000 || captured > ZN_FRAME_MAX || captured > wire || wire > WIRE_MAX)
            return FIT_NO;
        if (!fields_fit(r, &at, record_bytes))
            return FIT_NO;
        if (zn_cursor_left(&at) < captured)
            break;
        zn_cursor_skip(&at, captured);
        end = at;
        whole++;
    }
    if (whole == RECORDS_TRIED)
        return FIT_YES;
    if (zn_byte_source_may_grow(&r->source))
        return FIT_OPEN;
    return zn_cursor_left(&end) == 0 ? FIT_YES : FIT_NO;
}

/*
 * Sets r->record_bytes to the first length that fits, or to the default. Returns false when more
 * records must come first: the choice does not depend on the portions in which a stream delivers
 * them.
 */
static bool choose_record_bytes(zn_reader *r)
{
    const uint8_t *choice = r->record_choices;
    fit first = choice[1] == 0 ? FIT_YES : records_fit(r, choice[0]);
    bool open = false;
    for (size_t i = 1; first != FIT_YES && i < ZN_RECORD_CHOICES && choice[i] != 0; i++) {
        fit next = records_fit(r, choice[i]);
        if (next == FIT_YES && first == FIT_NO && !open) {
            r->record_bytes = choice[i];
            return true;
        }
        open |= next != FIT_NO;
    }
    if (!open || first == FIT_YES)
        r->record_bytes = choice[0];
    return r->record_bytes != 0;
}

static int pcap_open(zn_reader *r, zn_error *err)
{
    zn_cursor at = r->source.pending;
    const struct variant *v = find_variant(zn_cursor_take(&at, 4), &r->big);
    uint32_t header = HEADER_BYTES + v->more_header;
    uint16_t major;
    int rc = zn_reader_require(r, header, err);
    if (rc < 0)
        return rc;
    at = r->source.pending;
    if (zn_cursor_left(&at) < header)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is too short: %zu bytes, a pcap header has %u",
                       r->source.name, zn_cursor_left(&at), header);
    zn_cursor_skip(&at, 4);
    major = zn_reader_u16(r, &at);
    r->minor_version = zn_reader_u16(r, &at);
    if (major != MAJOR_VERSION)
        return zn_fail(err, ZN_ERR_FORMAT, 0, "%s is a pcap of version %u, which is not known",
                       r->source.name, major);
    zn_cursor_skip(&at, 12); /* time zone, accuracy and snapshot length are not used */
    r->link_type = zn_reader_u32(r, &at) & 0xffff; /* the rest is about a trailing FCS */
    zn_cursor_skip(&at, v->more_header);
    r->fraction_ns = v->fraction_ns;
    r->may_prefetch = zn_pcap_prefetch_pays();
    r->source.pending = at;
    memcpy(r->record_choices, v->record_bytes, sizeof r->record_choices);
    r->record_bytes = r->minor_version == MINOR_VERSION ? 0 : v->record_bytes[0];
    return 0;
}

static bool is_zero(zn_span bytes)
{
    uint8_t seen = 0;
    for (size_t i = 0; i < bytes.n; i++)
        seen |= zn_header_u8(bytes, i);
    return seen == 0;
}

/*
 * Judges a record without a frame, whose header ends at `at`. The end of a file is zeros if its
 * host lost power while a program wrote it, and the zeros may begin inside a header. ZN_STEP_NONE:
 * the record is an empty frame.
 */
static zn_step judge_empty_record(zn_reader *r, zn_cursor at, bool time_is_zero)
{
    zn_span next;
    if (!time_is_zero && zn_cursor_left(&at) < r->record_bytes &&
        zn_byte_source_may_grow(&r->source))
        return zn_reader_want(r, 2 * r->record_bytes);
    next = zn_span_first(zn_cursor_rest(&at), r->record_bytes);
    if (time_is_zero || (next.n != 0 && is_zero(next)))
        return zn_reader_end(
            r, "zeros where a record should be, as in a file that was not written to its end");
    return ZN_STEP_NONE;
}

static zn_step pcap_step(zn_reader *r, zn_frame *frame)
{
    zn_cursor at = r->source.pending;
    uint32_t seconds, fraction, captured, wire;
    zn_span data;
    if (r->record_bytes == 0 && !choose_record_bytes(r))
        return zn_reader_want(r, RECORD_BYTES);
    seconds = zn_reader_u32(r, &at);
    fraction = zn_reader_u32(r, &at);
    captured = zn_reader_u32(r, &at);
    wire = zn_reader_u32(r, &at);
    zn_cursor_skip(&at, r->record_bytes - RECORD_BYTES);
    if (!zn_cursor_ok(&at))
        return zn_reader_want(r, r->record_bytes);
    /* Before version 2.4 the lengths were the other way round, in 2.3 only sometimes. */
    if (r->minor_version < 3 || (r->minor_version == 3 && captured > wire)) {
        uint32_t first = captured;
        captured = wire;
        wire = first;
    }
    if (captured > ZN_FRAME_MAX)
        return zn_reader_end(r, "a frame of %u bytes, more than %u", captured, ZN_FRAME_MAX);
    if (captured == 0 && wire == 0) {
        zn_step step = judge_empty_record(r, at, seconds == 0 && fraction == 0);
        if (step != ZN_STEP_NONE)
            return step;
    }
    data = zn_cursor_take(&at, captured);
    if (!zn_cursor_ok(&at))
        return zn_reader_want(r, r->record_bytes + captured);
    r->source.pending = at;
    frame->data = data.p;
    frame->t_ns = (int64_t)seconds * ZN_NS_PER_S + (int64_t)fraction * r->fraction_ns;
    frame->captured = captured;
    frame->wire = wire < captured ? captured : wire;
    frame->link_type = r->link_type;
    return ZN_STEP_FRAME;
}

/* Reads a record as nearly all files have it from the start of *rest, and moves that past it; false
 * for any other record, among them a record without bytes. */
static inline bool read_record(zn_span *rest, uint32_t fraction_ns, zn_frame *frame)
{
    zn_span header = *rest, data;
    uint32_t captured, wire;
    if (header.n < RECORD_BYTES)
        return false;
    captured = zn_header_le32(header, 8);
    wire = zn_header_le32(header, 12);
    data = zn_span_after(header, RECORD_BYTES);
    if (captured - 1 >= ZN_FRAME_MAX || captured > data.n)
        return false;
    *rest = zn_span_after(data, captured);
    frame->data = data.p;
    frame->t_ns = (int64_t)zn_header_le32(header, 0) * ZN_NS_PER_S +
                  (int64_t)zn_header_le32(header, 4) * fraction_ns;
    frame->captured = captured;
    frame->wire = wire < captured ? captured : wire;
    return true;
}

static int pcap_read(zn_reader *r, zn_frame *frames, int max)
{
    uint32_t fraction_ns = r->fraction_ns, link_type = r->link_type;
    zn_cursor at = r->source.pending;
    zn_span rest = zn_cursor_rest(&at);
    const uint8_t *fetched, *pause = zn_byte_source_pause(&r->source);
    int n = 0;
    if (r->record_bytes == 0)
        (void)choose_record_bytes(r);
    if (r->big || r->record_bytes != RECORD_BYTES || r->minor_version != MINOR_VERSION)
        return 0;
    fetched = zn_reader_prefetch(r, ZN_PREFETCH_PCAP, rest, pause);
    while (n < max && rest.p < pause && read_record(&rest, fraction_ns, &frames[n])) {
        frames[n++].link_type = link_type;
        fetched = zn_span_fetch(rest, ZN_BYTE_SOURCE_FETCHED, fetched);
    }
    zn_reader_took(r, n, rest, fetched);
    return n;
}

const zn_format zn_format_pcap = {.name = "pcap",
                                  .unit = "record",
                                  .one_link = true,
                                  .is = is_pcap,
                                  .open = pcap_open,
                                  .step = pcap_step,
                                  .read = pcap_read};
