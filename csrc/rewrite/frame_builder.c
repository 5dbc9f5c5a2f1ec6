/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/frame_builder.h"

#include "util/arena.h"

#define PORTIONS 8u /* most portions that are being filled or written */
#define PORTION_FRAMES 256u
#define FRAMES_AHEAD 8u /* frames between the prefetch of a frame and its use */

struct zn_frame_portion {
    zn_job job; /* job of one task, which writes the frames */
    uint32_t n;
    zn_planned_frame frames[PORTION_FRAMES];
};

static const uint8_t zero_mac[ZN_BUILD_MAC_BYTES];
static const uint8_t role_macs[2][ZN_BUILD_MAC_BYTES] = {{2, 0, 0, 0, 0, 1}, {2, 0, 0, 0, 0, 2}};

/* Writes the MAC address of an end whose IP address in the packet is `address`. */
static void make_mac(zn_packet_macs macs, bool inside, const zn_addr *address,
                     uint8_t out[ZN_BUILD_MAC_BYTES])
{
    switch (macs) {
    case ZN_PACKET_MACS_ROLE:
        memcpy(out, role_macs[inside ? 0 : 1], ZN_BUILD_MAC_BYTES);
        break;
    case ZN_PACKET_MACS_PSEUDONYM: /* locally administered address with bits of the IP address */
        out[0] = 2;
        out[1] = inside ? 1 : 2;
        memcpy(out + 2, address->byte + sizeof address->byte - 4, 4);
        break;
    case ZN_PACKET_MACS_ZERO:
        memcpy(out, zero_mac, ZN_BUILD_MAC_BYTES);
        break;
    }
}

/* Writes zeros around the shown part of a payload. Returns the sum of the whole payload. */
static uint32_t write_payload(const zn_planned_frame *f, uint8_t *payload, uint32_t bytes)
{
    uint32_t from = f->written_from, end = f->written_end;
    if (from == end) {
        memset(payload, 0, bytes);
        return 0;
    }
    memset(payload, 0, from);
    memset(payload + end, 0, bytes - end);
    from -= from % 2; /* the sum adds words of two bytes */
    return zn_build_sum(0, payload + from, end - from);
}

static void write_frame(const zn_planned_frame *f)
{
    uint8_t mac[2][ZN_BUILD_MAC_BYTES];
    zn_build_headers h = f->headers;
    uint32_t headers = zn_planned_frame_headers(f), sum = 0;
    uint32_t outer = headers - zn_build_headers_bytes(&h);
    zn_packet_file_frame record = zn_planned_frame_record(f, headers);
    uint8_t *at = zn_packet_file_put(f->pcapng, &record, f->at);
    make_mac((zn_packet_macs)f->macs, f->from_inside, &h.src, mac[0]);
    make_mac((zn_packet_macs)f->macs, !f->from_inside, &h.dst, mac[1]);
    h.mac[0] = mac[0];
    h.mac[1] = mac[1];
    h.options = f->options;
    if (record.captured > headers)
        sum = write_payload(f, at + headers, record.captured - headers);
    (void)zn_build_headers_put(&h, sum, at + outer);
    if (outer != 0)
        zn_build_encapsulation_put(&f->outer, &h, sum, at);
}

static void write_portion(void *of, uint32_t task)
{
    const zn_frame_portion *portion = of;
    (void)task;
    for (uint32_t i = 0; i < portion->n; i++)
        write_frame(&portion->frames[i]);
}

int zn_frame_builder_init(zn_frame_builder *b, zn_pool *pool, zn_error *err)
{
    b->ring = zn_block_alloc(PORTIONS * sizeof *b->ring);
    if (b->ring == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for packets that leave");
    b->pool = pool;
    for (uint32_t i = 0; i < PORTIONS; i++) {
        b->ring[i].job.run = write_portion;
        b->ring[i].job.of = &b->ring[i];
    }
    return 0;
}

void zn_frame_builder_fini(zn_frame_builder *b)
{
    zn_block_free(b->ring, PORTIONS * sizeof *b->ring);
    memset(b, 0, sizeof *b);
}

size_t zn_frame_builder_memory(const zn_frame_builder *b)
{
    return b->ring == NULL ? 0 : PORTIONS * sizeof *b->ring;
}

/* Lets a thread write the current portion, and begins the next portion. */
static void start_portion(zn_frame_builder *b)
{
    zn_pool_start(b->pool, &b->ring[b->current].job, 1, true);
    b->current = (b->current + 1) % PORTIONS;
    zn_pool_finish(b->pool, &b->ring[b->current].job);
    b->ring[b->current].n = 0;
}

zn_planned_frame *zn_frame_builder_next(zn_frame_builder *b, bool async)
{
    zn_frame_portion *portion;
    if (!async)
        return &b->frame;
    portion = &b->ring[b->current];
    /* the frame is in the cache of another processor */
    if (portion->n + FRAMES_AHEAD < PORTION_FRAMES) {
        ZN_PREFETCH_WRITE(&portion->frames[portion->n + FRAMES_AHEAD].headers);
        ZN_PREFETCH_WRITE(&portion->frames[portion->n + FRAMES_AHEAD].t_ns);
    }
    return &portion->frames[portion->n];
}

void zn_frame_builder_put(zn_frame_builder *b, bool async)
{
    if (!async)
        write_frame(&b->frame);
    else if (++b->ring[b->current].n == PORTION_FRAMES)
        start_portion(b);
}

void zn_frame_builder_wait(zn_frame_builder *b)
{
    if (b->pool == NULL)
        return;
    if (b->ring[b->current].n != 0)
        start_portion(b);
    for (uint32_t i = 0; i < PORTIONS; i++)
        zn_pool_finish(b->pool, &b->ring[i].job);
}
