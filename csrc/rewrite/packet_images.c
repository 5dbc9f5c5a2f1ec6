/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "rewrite/packet_images.h"

#include "analyzer/analyzers.h"
#include "build/build_dns.h"
#include "build/build_dtls.h"
#include "build/build_http.h"
#include "build/build_quic.h"
#include "build/build_tls.h"
#include "flow/flow_table.h"
#include "proto/ascii.h"
#include "proto/dns.h"
#include "proto/quic.h"
#include "util/arena.h"

#define IMAGES_MAX (UINT32_C(1) << 18)
#define STEPS_MAX 1024u     /* packets that are searched for the bytes of a late message */
#define IMAGES_PER_SIDE 64u /* of a flow; a handshake has fewer records */
#define SMALL_MAX (UINT32_C(1) << 16)
#define LARGE_MAX (UINT32_C(1) << 12)
/* Bytes behind the newest segment at which no segment is sent again. */
#define FORGET_AFTER (INT32_C(1) << 20)
#define DNS_LENGTH_BYTES 2u
#define QUIC_OPEN_BITS 0x60u /* fixed and spin bit */
#define RECORD_HEADER_BYTES 5u
#define RECORD_BYTES_MAX (16384u + 2048u) /* RFC 5246 6.2.3 */
/* First bits of a short header (RFC 9000 17.3). STUN and DTLS have other bits (RFC 7983 3). */
#define QUIC_FORM_BITS 0xc0u
#define QUIC_SHORT_FORM 0x40u
#define RECORD_TYPE_LAST 24u /* heartbeat */
#define SEGMENT_MAX (UINT32_C(1) << 16)
#define QUIC_SHORT_LEAST 21u /* a packet with a short header: RFC 9001 5.4.2 */
#define DTLS_HELLOS_MAX 8u   /* hellos that an analyzer reads in a flow */

static void take_message(void *of, const zn_packet_context *s, const zn_message *message);

int zn_packet_images_init(zn_packet_images *images, zn_error *err)
{
    int rc = zn_slab_init(&images->images, sizeof(zn_image), IMAGES_MAX, err);
    if (rc == 0)
        rc = zn_slab_init(&images->small, ZN_IMAGE_SMALL, SMALL_MAX, err);
    if (rc == 0)
        rc = zn_slab_init(&images->large, ZN_IMAGE_LARGE, LARGE_MAX, err);
    if (rc == 0)
        rc = zn_quic_open(&images->quic, err);
    if (rc != 0)
        return rc;
    images->scratch = zn_block_alloc(ZN_IMAGE_LARGE);
    images->hello = zn_block_alloc(ZN_IMAGE_LARGE);
    images->tls = zn_block_alloc(sizeof *images->tls);
    if (images->scratch == NULL || images->hello == NULL || images->tls == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the payload of packets");
    if (images->policy.keep_encrypted) {
        images->kept = zn_block_alloc(images->gate->plan_count * sizeof *images->kept);
        images->kept_bytes = zn_block_alloc(SEGMENT_MAX);
        if (images->kept == NULL || images->kept_bytes == NULL)
            return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the payload of packets");
    }
    images->wanted = true;
    return 0;
}

void zn_packet_images_listen(zn_packet_images *images)
{
    images->sink = (zn_message_sink){take_message, images};
    images->names->sink = &images->sink;
}

void zn_packet_images_fini(zn_packet_images *images)
{
    zn_slab_fini(&images->images);
    zn_slab_fini(&images->small);
    zn_slab_fini(&images->large);
    zn_quic_close(images->quic);
    zn_block_free(images->scratch, ZN_IMAGE_LARGE);
    zn_block_free(images->hello, ZN_IMAGE_LARGE);
    zn_block_free(images->tls, sizeof *images->tls);
    if (images->kept != NULL)
        zn_block_free(images->kept, images->gate->plan_count * sizeof *images->kept);
    zn_block_free(images->kept_bytes, SEGMENT_MAX);
    memset(images, 0, sizeof *images);
}

size_t zn_packet_images_memory(const zn_packet_images *images)
{
    return zn_slab_bytes(&images->images) + zn_slab_bytes(&images->small) +
           zn_slab_bytes(&images->large);
}

/* ---- the bytes of an image ------------------------------------------------------------------- */

static zn_image *image_at(const zn_packet_images *images, uint32_t image)
{
    return zn_slab_at(&images->images, image);
}

static zn_slab *slab_of(zn_packet_images *images, const zn_image *i)
{
    return i->n <= ZN_IMAGE_SMALL ? &images->small : &images->large;
}

static uint8_t *bytes_of(zn_packet_images *images, zn_image *i)
{
    return i->bytes == 0 ? i->inline_bytes : zn_slab_at(slab_of(images, i), i->bytes);
}

static void free_image(zn_packet_images *images, uint32_t image)
{
    zn_image *i = image_at(images, image);
    zn_wipe(bytes_of(images, i), i->n);
    if (i->bytes != 0)
        zn_slab_give(slab_of(images, i), i->bytes);
    zn_slab_give(&images->images, image);
}

/* Counts a message without an image, whose bytes will be zeros. Returns 0. */
static uint32_t no_image(zn_packet_images *images)
{
    images->gate->stats->n[ZN_STAT_PACKETS_MESSAGES_FULL]++;
    return 0;
}

/* Returns a new image with a copy of the bytes, or 0 if there is no room. */
static uint32_t new_image(zn_packet_images *images, zn_message_kind kind, unsigned side,
                          zn_span bytes)
{
    uint32_t image;
    zn_image *i;
    if (bytes.n == 0)
        return 0;
    image = bytes.n > ZN_IMAGE_LARGE ? 0 : zn_slab_take(&images->images);
    if (image == 0)
        return no_image(images);
    i = image_at(images, image);
    i->n = (uint32_t)bytes.n;
    i->kind = (uint8_t)kind;
    i->side = (uint8_t)side;
    if (bytes.n > ZN_IMAGE_INLINE) {
        i->bytes = zn_slab_take(slab_of(images, i));
        if (i->bytes == 0) {
            zn_slab_give(&images->images, image);
            return no_image(images);
        }
    }
    memcpy(bytes_of(images, i), bytes.p, bytes.n);
    return image;
}

/* ---- packets that come ----------------------------------------------------------------------- */

/* Returns the sequence number with which a packet in the delay line was sent. */
static uint32_t sent_seq(const zn_packet_plan *plan, const zn_delayed *p)
{
    return p->packet.seq - plan->shift.seq[p->sender];
}

/* Returns true if the image is a message of a UDP flow whose parts come in several datagrams. */
static bool is_datagrams(const zn_image *i)
{
    return i->kind == ZN_MESSAGE_QUIC_HELLO || i->kind == ZN_MESSAGE_DTLS_HELLO;
}

/* Returns true if the packet carries, or may carry, a byte of the image. */
static bool carries(const zn_packet_plan *plan, const zn_delayed *p, const zn_image *i)
{
    uint32_t seq = sent_seq(plan, p);
    if (p->sender != i->side || p->payload_bytes == 0)
        return false;
    if (is_datagrams(i))
        return true;
    return zn_seq_ahead(i->seq + i->n, seq) > 0 && zn_seq_ahead(seq + p->payload_bytes, i->seq) > 0;
}

/* Returns true if no packet of the TCP flow has come that ends after the image's first byte. */
static bool is_new(const zn_packet_plan *plan, const zn_image *i)
{
    return !plan->has_data[i->side] || zn_seq_ahead(plan->end_seq[i->side], i->seq) <= 0;
}

/* Sets the due time of a DTLS hello as set_due does. Each datagram from its first fragment on may
 * carry a part of the hello. */
static bool set_due_of_datagrams(const zn_packet_images *images, const zn_packet_plan *plan,
                                 zn_image *i)
{
    uint32_t place = plan->held != 0 ? plan->last_held : ZN_DELAYED_NONE, earlier = i->earlier;
    if (earlier == UINT8_MAX) /* 255 or more datagrams: the first may have left */
        return false;
    i->due_ns = zn_packet_gate_due_after(images->gate, images->clock->now_ns);
    while (earlier != 0 && zn_delay_line_has(images->delay_line, place)) {
        const zn_delayed *p = zn_delay_line_at(images->delay_line, place);
        if (carries(plan, p, i)) {
            earlier--;
            if (p->due_ns < i->due_ns)
                i->due_ns = p->due_ns;
        }
        place = p->before;
    }
    return earlier == 0 && i->due_ns >= images->clock->now_ns;
}

/* Notes that a packet has left or was due: its payload is decided by then. */
static void note_left(zn_packet_plan *plan, const zn_delayed *p)
{
    unsigned side = p->sender;
    uint32_t end;
    if (p->kind != ZN_DELAYED_PACKET || p->payload_bytes == 0)
        return;
    end = sent_seq(plan, p) + p->payload_bytes;
    if (!plan->has_left[side] || zn_seq_ahead(end, plan->left_seq[side]) > 0)
        plan->left_seq[side] = end;
    plan->has_left[side] = true;
}

/* Notes the packets up to this place as packets that have left, because they were due. They leave
 * at the end of a batch, and batches must not change the output. Each packet is looked at once. */
static void note_due(const zn_packet_images *images, zn_packet_plan *plan, uint32_t newest)
{
    for (uint32_t place = newest;
         place != plan->due_noted && zn_delay_line_has(images->delay_line, place);) {
        const zn_delayed *p = zn_delay_line_at(images->delay_line, place);
        note_left(plan, p);
        place = p->before;
    }
    plan->due_noted = newest;
}

/* Sets the time of the verdict on an image, whose last packet is not in the delay line yet. Returns
 * false if a packet that ends after the image's start has left or was due before now. Returns false
 * also if this is unknown: after a leap of the side's numbers, or if the search takes too long. */
static bool set_due(const zn_packet_images *images, zn_packet_plan *plan, zn_image *i)
{
    int64_t now_ns = images->clock->now_ns;
    uint32_t place = plan->held != 0 ? plan->last_held : ZN_DELAYED_NONE, steps = 0;
    if (i->kind == ZN_MESSAGE_DTLS_HELLO)
        return set_due_of_datagrams(images, plan, i);
    if (plan->leapt[i->side])
        return false;
    i->due_ns = zn_packet_gate_due_after(images->gate, now_ns);
    if (!is_datagrams(i) && is_new(plan, i))
        return true;
    while (zn_delay_line_has(images->delay_line, place)) {
        const zn_delayed *p = zn_delay_line_at(images->delay_line, place);
        if (p->due_ns < now_ns) {
            note_due(images, plan, place);
            break;
        }
        if (++steps > STEPS_MAX)
            return false;
        if (carries(plan, p, i) && p->due_ns < i->due_ns)
            i->due_ns = p->due_ns;
        place = p->before;
    }
    return !plan->has_left[i->side] ||
           (i->kind != ZN_MESSAGE_QUIC_HELLO && zn_seq_ahead(plan->left_seq[i->side], i->seq) <= 0);
}

/* Frees the oldest image of a side, so that no packet has to walk a long list. */
static void drop_oldest(zn_packet_images *images, zn_packet_plan *plan, unsigned side)
{
    uint32_t *link = &plan->image[side];
    while (image_at(images, *link)->next != 0)
        link = &image_at(images, *link)->next;
    if (image_at(images, *link)->state == ZN_IMAGE_RAW) /* nothing of the image has left */
        (void)no_image(images);
    free_image(images, *link);
    *link = 0;
    plan->images[side]--;
}

/* Adds an image to the shown bytes of a side's stream. */
static void add_image(zn_packet_images *images, uint32_t flow, uint32_t image)
{
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    zn_image *i;
    if (image == 0)
        return;
    i = image_at(images, image);
    if (!set_due(images, plan, i)) {
        images->gate->stats->n[ZN_STAT_PACKETS_DEADLINE_MISSED]++;
        free_image(images, image);
        return;
    }
    i->next = plan->image[i->side];
    plan->image[i->side] = image;
    if (++plan->images[i->side] > IMAGES_PER_SIDE)
        drop_oldest(images, plan, i->side);
}

static bool is_hello(unsigned kind)
{
    return kind == ZN_MESSAGE_TLS_HELLO || kind == ZN_MESSAGE_QUIC_HELLO ||
           kind == ZN_MESSAGE_DTLS_HELLO;
}

static bool has_evidence(const zn_packet_images *images, const zn_flow *f)
{
    return !images->names->roles->established || f->client_acked;
}

/* Casts the vote for a fingerprint if its client is proven now. */
static void vote_fingerprint(zn_packet_images *images, uint32_t flow, const zn_flow *f,
                             uint32_t entry, int64_t t_ns)
{
    zn_name_entry *e = zn_name_store_at(images->names->name_store, entry);
    if (e->state == ZN_ENTRY_PENDING && has_evidence(images, f) &&
        zn_roles_may_vote(images->names->roles, f) &&
        zn_votes_cast(images->names->votes, ZN_VOTE_FINGERPRINT, t_ns, flow, entry)) {
        e->state = ZN_ENTRY_VOTED;
        zn_name_store_voted(images->names->name_store, entry);
    }
}

/* Makes the fingerprint of a flow's first hello an attribute that z users have to share. Returns
 * its entry for each hello with this fingerprint, and 0 for any other hello, for whose fingerprint
 * there is no vote. */
static uint32_t see_fingerprint(zn_packet_images *images, const zn_packet_context *s,
                                const zn_message *m)
{
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, s->flow);
    zn_build_fingerprint fingerprint;
    zn_id id;
    bool read;
    if (images->policy.fingerprints != ZN_FINGERPRINTS_TESTED)
        return 0;
    if (m->kind == ZN_MESSAGE_TLS_HELLO)
        read = zn_build_tls_fingerprint(m->bytes, images->tls, &fingerprint);
    else if (m->kind == ZN_MESSAGE_QUIC_HELLO)
        read = zn_build_tls_fingerprint_message(m->bytes, &fingerprint);
    else
        read = zn_build_tls_fingerprint_datagram(m->bytes, &fingerprint);
    if (!read)
        return 0;
    id = zn_votes_id(s->names->votes, ZN_VOTE_FINGERPRINT,
                     (zn_span){fingerprint.bytes, fingerprint.n});
    if (plan->fingerprint != 0)
        return zn_id_equal(zn_name_store_at(s->names->name_store, plan->fingerprint)->id, id)
                   ? plan->fingerprint
                   : 0;
    plan->fingerprint = zn_name_store_add_secondary(s->names->name_store);
    if (plan->fingerprint == 0)
        return 0;
    zn_name_store_at(s->names->name_store, plan->fingerprint)->id = id;
    if (has_evidence(images, s->f))
        vote_fingerprint(images, s->flow, s->f, plan->fingerprint, s->p->t_ns);
    else
        (void)zn_votes_cast(s->names->votes, ZN_VOTE_PEEK, s->p->t_ns, s->flow, plan->fingerprint);
    return plan->fingerprint;
}

/* Returns true if a DNS message is about a name that the flow's client asked for. The verdict on
 * the flow's names covers no other name. */
static bool is_about_flow(const zn_packet_images *images, const zn_flow *f, zn_span message)
{
    zn_dns_question question;
    return zn_dns_question_parse(message, true, &question) == ZN_DONE && question.opcode == 0 &&
           !question.name_odd &&
           zn_names_has(images->names, f, ZN_SOURCE_DNS,
                        (zn_span){question.name, question.name_bytes});
}

static void take_datagram(zn_packet_images *images, const zn_packet_context *s, const zn_message *m)
{
    zn_image *i;
    if (images->datagram != 0) /* its packet was not queued */
        free_image(images, images->datagram);
    images->datagram = 0;
    if (m->kind != ZN_MESSAGE_DNS || is_about_flow(images, s->f, m->bytes))
        images->datagram = new_image(images, m->kind, s->p->sender, m->bytes);
    images->datagram_flow = s->flow;
    if (images->datagram == 0)
        return;
    i = image_at(images, images->datagram);
    i->due_ns = zn_packet_gate_due_after(images->gate, images->clock->now_ns);
    if (m->key_id.n != 0 && m->key_id.n <= sizeof i->key_id) {
        memcpy(i->key_id, m->key_id.p, m->key_id.n);
        i->key_id_bytes = (uint8_t)m->key_id.n;
    }
}

/* Makes the image of a message. fingerprint is the entry of a hello's fingerprint. */
static void keep_message(zn_packet_images *images, const zn_packet_context *s, const zn_message *m,
                         uint32_t fingerprint)
{
    unsigned side = m->kind == ZN_MESSAGE_TLS_FLIGHT ? 1u - s->f->client : s->f->client;
    uint32_t image;
    if (m->kind == ZN_MESSAGE_DNS || m->kind == ZN_MESSAGE_QUIC || m->kind == ZN_MESSAGE_DTLS) {
        take_datagram(images, s, m);
        return;
    }
    if (m->kind == ZN_MESSAGE_DNS_TCP &&
        !is_about_flow(images, s->f, zn_span_after(m->bytes, DNS_LENGTH_BYTES)))
        return;
    image = new_image(images, m->kind, side, m->bytes);
    if (image != 0) {
        image_at(images, image)->seq = m->seq;
        image_at(images, image)->earlier = m->earlier;
        image_at(images, image)->entry = is_hello(m->kind) ? fingerprint : m->entry;
        add_image(images, s->flow, image);
    }
    if (m->kind == ZN_MESSAGE_TLS_HELLO) {
        zn_packet_plan *plan = zn_packet_gate_plan(images->gate, s->flow);
        plan->record_seq[side] = m->seq + (uint32_t)m->bytes.n;
        plan->reads_records[side] = true;
        if (images->kept != NULL)
            zn_kept_records_begin(&images->kept[s->flow], side, plan->record_seq[side]);
    }
}

static void take_message(void *of, const zn_packet_context *s, const zn_message *m)
{
    zn_packet_images *images = of;
    uint32_t fingerprint = is_hello(m->kind) ? see_fingerprint(images, s, m) : 0;
    for (; images != NULL; images = images->next)
        keep_message(images, s, m, fingerprint);
}

/* Returns the length in the TLS record header at the start of the bytes; 0: no such header. */
static uint32_t record_bytes(zn_span bytes, bool *data)
{
    zn_cursor c = zn_cursor_over_span(bytes, true);
    uint8_t type = zn_cursor_u8(&c), major = zn_cursor_u8(&c), minor = zn_cursor_u8(&c);
    uint32_t n = zn_cursor_be16(&c);
    *data = type == ZN_TLS_CONTENT_APPLICATION_DATA;
    if (!zn_cursor_ok(&c) || type < ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC || type > RECORD_TYPE_LAST ||
        major != 3 || minor > 4 || n == 0 || n > RECORD_BYTES_MAX)
        return 0;
    return n;
}

/* Shows the headers of the records that start in this segment, until both sides have sent
 * application data. */
static void read_records(zn_packet_images *images, uint32_t flow, const zn_packet *p)
{
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    unsigned side = p->sender, made = 0;
    while (plan->reads_records[side]) {
        int32_t offset = zn_seq_ahead(plan->record_seq[side], p->seq);
        uint32_t n, image;
        zn_span header;
        bool data;
        if (offset < 0 || (uint32_t)offset >= p->payload.n)
            return;
        header = zn_ascii_part(p->payload, (size_t)offset, (size_t)offset + RECORD_HEADER_BYTES);
        n = record_bytes(header, &data);
        plan->reads_records[side] = n != 0;
        if (n == 0)
            return;
        image = made++ < IMAGES_PER_SIDE ? new_image(images, ZN_MESSAGE_HEADER, side, header)
                                         : no_image(images);
        if (image != 0) {
            image_at(images, image)->seq = plan->record_seq[side];
            image_at(images, image)->state = ZN_IMAGE_BUILT;
            add_image(images, flow, image);
        }
        plan->saw_data[side] |= data;
        plan->record_seq[side] += RECORD_HEADER_BYTES + n;
        if (plan->saw_data[0] && plan->saw_data[1])
            plan->reads_records[0] = plan->reads_records[1] = false;
    }
}

/* Returns true if bytes begin with a DNS response of n bytes, or with its captured part. */
static bool begins_answer(zn_span bytes, uint32_t n)
{
    zn_dns_question question;
    return zn_dns_question_parse(zn_span_first(bytes, n), bytes.n >= n, &question) == ZN_DONE &&
           question.response;
}

/* Shows the DNS messages of a server that lie whole in a segment, and only the length of other
 * messages. A reader takes a length of zero for a malformed message. */
static void read_answers(zn_packet_images *images, uint32_t flow, const zn_flow *f,
                         const zn_packet *p)
{
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    unsigned side = p->sender, made = 0;
    if (plan->record_seq[side] == 0 && !plan->saw_data[side])
        plan->record_seq[side] = p->seq;
    while (plan->record_seq[side] != 0) {
        int32_t offset = zn_seq_ahead(plan->record_seq[side], p->seq);
        zn_span rest = {NULL, 0};
        zn_cursor c;
        uint32_t n, image;
        bool whole;
        if (offset >= 0)
            rest = zn_ascii_part(p->payload, (size_t)offset, p->payload.n);
        c = zn_cursor_over_span(rest, true);
        n = DNS_LENGTH_BYTES + zn_cursor_be16(&c);
        if (!zn_cursor_ok(&c))
            return;
        if (!begins_answer(zn_cursor_rest(&c), n - DNS_LENGTH_BYTES)) {
            plan->record_seq[side] = 0;
            plan->saw_data[side] = true; /* the stream is not DNS */
            return;
        }
        whole = n <= rest.n && is_about_flow(images, f, zn_span_part(rest, DNS_LENGTH_BYTES, n));
        image = made++ < IMAGES_PER_SIDE
                    ? new_image(images, whole ? ZN_MESSAGE_DNS_TCP : ZN_MESSAGE_HEADER, side,
                                zn_span_first(rest, whole ? n : DNS_LENGTH_BYTES))
                    : no_image(images);
        if (image != 0) {
            image_at(images, image)->seq = plan->record_seq[side];
            if (!whole)
                image_at(images, image)->state = ZN_IMAGE_BUILT;
            add_image(images, flow, image);
        }
        plan->record_seq[side] += n;
    }
}

/* Returns true if a segment of a server begins with an HTTP response. */
static bool begins_response(const zn_packet *p)
{
    static const uint8_t version[] = "HTTP/1.";
    zn_span start = zn_packet_start(p);
    return start.n >= sizeof version - 1 && memcmp(start.p, version, sizeof version - 1) == 0;
}

/* Takes a segment of the server, whose protocol the client's message showed. */
static void see_server(zn_packet_images *images, uint32_t flow, const zn_flow *f,
                       const zn_packet *p)
{
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    unsigned side = p->sender, protocol = ZN_STATE(f)->protocol;
    uint32_t image;
    bool data;
    if (protocol == ZN_ANALYZER_TLS && plan->reads_records[1u - side] &&
        record_bytes(zn_ascii_part(p->payload, 0, RECORD_HEADER_BYTES), &data) != 0 &&
        plan->record_seq[side] == 0) {
        plan->record_seq[side] = p->seq;
        plan->reads_records[side] = true;
        read_records(images, flow, p);
    }
    if (protocol == ZN_ANALYZER_DNS)
        read_answers(images, flow, f, p);
    if (protocol != ZN_ANALYZER_HTTP || !begins_response(p))
        return;
    image = new_image(images, ZN_MESSAGE_HTTP_RESPONSE, side,
                      zn_span_first(p->payload, ZN_IMAGE_SMALL));
    if (image == 0)
        return;
    image_at(images, image)->seq = p->seq;
    add_image(images, flow, image);
}

/* Returns the image of a datagram whose bytes are kept; 0: none. Only QUIC packets with a short
 * header are kept, if the client of their connection is proven. */
static uint32_t keep_datagram(zn_packet_images *images, const zn_flow *f, const zn_packet *p)
{
    uint32_t image;
    if (images->kept == NULL || p->payload.n < QUIC_SHORT_LEAST || !f->client_acked ||
        ZN_STATE(f)->protocol != ZN_ANALYZER_QUIC ||
        (zn_ascii_first(zn_packet_start(p)) & QUIC_FORM_BITS) != QUIC_SHORT_FORM)
        return 0;
    image = new_image(images, ZN_MESSAGE_ENCRYPTED, p->sender, p->payload);
    if (image != 0)
        image_at(images, image)->state = ZN_IMAGE_BUILT;
    return image;
}

/* Returns an image of the encrypted records in a segment, with zeros between the records; 0 if the
 * segment has no such record. */
static uint32_t keep_records(zn_packet_images *images, uint32_t flow, const zn_flow *f,
                             const zn_packet *p)
{
    zn_span payload = zn_span_first(p->payload, SEGMENT_MAX);
    uint32_t image = 0;
    if (images->kept == NULL || !images->kept[flow].begun)
        return 0;
    memset(images->kept_bytes, 0, payload.n);
    if (zn_kept_records_take(&images->kept[flow], p->sender, f->client, p->seq, payload,
                             images->kept_bytes))
        image = new_image(images, ZN_MESSAGE_ENCRYPTED, p->sender,
                          (zn_span){images->kept_bytes, payload.n});
    if (image != 0)
        image_at(images, image)->state = ZN_IMAGE_BUILT;
    return image;
}

/* Returns the image of a QUIC packet with a short header that no analyzer looked into. It shows the
 * unprotected bits of the first byte (RFC 9000 17.3.1). */
static uint32_t see_short_header(zn_packet_images *images, const zn_flow *f, const zn_packet *p)
{
    uint8_t first = zn_ascii_first(zn_packet_start(p));
    uint32_t image;
    if (p->tuple.proto != ZN_PROTO_UDP || ZN_STATE(f)->protocol != ZN_ANALYZER_QUIC ||
        p->payload.n == 0 || (first & ZN_QUIC_LONG_FORM) != 0)
        return 0;
    first &= QUIC_OPEN_BITS;
    image = new_image(images, ZN_MESSAGE_HEADER, p->sender, (zn_span){&first, 1});
    if (image != 0)
        image_at(images, image)->state = ZN_IMAGE_BUILT;
    return image;
}

/* Takes a packet of the flow. Returns the image of its payload; 0: no image of its own. */
static uint32_t see_packet(zn_packet_images *images, uint32_t flow, const zn_packet *p)
{
    const zn_flow *f = zn_flow_entry(images->names->flows, flow);
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    uint32_t datagram = images->datagram_flow == flow ? images->datagram : 0;
    if (ZN_UNLIKELY(images->datagram != 0) && datagram == 0)
        free_image(images, images->datagram);
    images->datagram = 0;
    if (ZN_UNLIKELY(plan->fingerprint != 0))
        vote_fingerprint(images, flow, f, plan->fingerprint, p->t_ns);
    if (p->tuple.proto != ZN_PROTO_TCP) {
        uint32_t kept = keep_datagram(images, f, p);
        if (kept != 0 && datagram != 0)
            free_image(images, datagram);
        datagram = kept != 0 ? kept : datagram;
        return datagram != 0 ? datagram : see_short_header(images, f, p);
    }
    if (p->payload.n == 0 || (p->tcp_flags & (ZN_TCP_SYN | ZN_TCP_RST)) != 0)
        return 0;
    if (plan->reads_records[p->sender])
        read_records(images, flow, p);
    else if (p->sender != f->client)
        see_server(images, flow, f, p);
    return keep_records(images, flow, f, p);
}

/* Notes the end of the data of a side, and leaps of its numbers. After a leap, the order of two
 * numbers is unknown. */
static void note_end(zn_packet_plan *plan, const zn_packet *p)
{
    unsigned side = p->sender;
    uint32_t end = p->seq + p->payload_len;
    int32_t step;
    if (p->tuple.proto != ZN_PROTO_TCP || p->payload_len == 0)
        return;
    step = plan->has_data[side] ? zn_seq_ahead(end, plan->end_seq[side]) : 0;
    plan->leapt[side] |= step > FORGET_AFTER || step < -FORGET_AFTER;
    if (!plan->has_data[side] || step > 0)
        plan->end_seq[side] = end;
    plan->has_data[side] = true;
}

uint32_t zn_packet_images_come(zn_packet_images *images, uint32_t flow, const zn_packet *p)
{
    uint32_t image = see_packet(images, flow, p);
    note_end(zn_packet_gate_plan(images->gate, flow), p);
    return image;
}

void zn_packet_images_pass(zn_packet_images *images, uint32_t flow, const zn_packet *p)
{
    uint32_t image = zn_packet_images_come(images, flow, p);
    if (image != 0)
        free_image(images, image);
}

uint32_t zn_packet_images_keep(zn_packet_images *images, zn_message_kind kind, zn_span bytes)
{
    return new_image(images, kind, 0, bytes);
}

zn_span zn_packet_images_raw(zn_packet_images *images, uint32_t image)
{
    zn_image *i;
    if (image == 0)
        return (zn_span){NULL, 0};
    i = image_at(images, image);
    return (zn_span){bytes_of(images, i), i->n};
}

void zn_packet_images_left(zn_packet_images *images, const zn_delayed *p)
{
    if (p->image != 0)
        free_image(images, p->image);
    note_left(zn_packet_gate_plan(images->gate, p->flow), p);
}

/* ---- packets that leave ---------------------------------------------------------------------- */

/* Context in which the builder of a DNS message maps addresses. */
typedef struct dns_context {
    const zn_packet_images *images;
    const zn_flow *f;
    zn_addr user;
} dns_context;

/* Maps an address in an answer as the packets of this user's flows to the address show it. */
static void map_address(void *of, const zn_addr *real, zn_addr *out)
{
    const dns_context *context = of;
    const zn_roles *roles = context->images->names->roles;
    zn_packet_keys *keys = context->images->gate->keys;
    int rc;
    if (zn_addr_is_special(real))
        return;
    if (zn_nets_contain(roles->internal, roles->internal_count, real))
        rc = zn_packet_keys_client(keys, real, true, out);
    else
        rc = zn_packet_keys_pair(keys, &context->user, real, out);
    if (rc != 0)
        *out = (zn_addr){{0}};
}

static bool build_dns(const zn_packet_images *images, const zn_flow *f, bool name, zn_span in,
                      uint8_t *out)
{
    const zn_roles *roles = images->names->roles;
    dns_context context = {images, f, {{0}}};
    zn_build_dns_choice choice = {.name = name, .map = map_address, .context = &context};
    context.user = zn_addr_cut(zn_flow_user(images->names->flows, f), roles->user_v4_bits,
                               roles->user_v6_bits);
    if (images->gate->server_addresses == ZN_SERVER_ADDRESSES_LINKABLE ||
        zn_packet_keys_enter(images->gate->keys,
                             zn_flow_epoch(images->names->flows, f, roles->rotate_ns)) != 0)
        choice.map = NULL;
    return zn_build_dns(in, &choice, out);
}

static zn_span built_hello(zn_packet_images *images, uint32_t flow, const zn_packet_plan *plan,
                           unsigned side);

static bool build_quic(zn_packet_images *images, uint32_t flow, const zn_flow *f, const zn_image *i,
                       zn_span in, uint8_t *out)
{
    const zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    zn_span key_id = {i->key_id, i->key_id_bytes};
    zn_build_quic_choice choice = {.sender =
                                       i->side == f->client ? ZN_QUIC_CLIENT : ZN_QUIC_SERVER};
    if (key_id.n != 0)
        choice.key_id = &key_id;
    if (i->side == f->client)
        choice.crypto = built_hello(images, flow, plan, i->side);
    images->gate->stats->n[ZN_STAT_PACKETS_RESEALED] +=
        zn_build_quic_datagram(images->quic, in, true, &choice, out);
    return true;
}

static bool build_dtls(zn_packet_images *images, uint32_t flow, const zn_image *i, zn_span in,
                       uint8_t *out);

static bool build_flight(const zn_packet_images *images, zn_span in, zn_span common_name,
                         uint8_t *out)
{
    zn_stats *stats = images->gate->stats;
    zn_build_certificates made;
    bool built = zn_build_server_flight(in, common_name, images->tls, out, &made);
    stats->n[ZN_STAT_PACKETS_CERTIFICATES_NAMED] += made.named;
    stats->n[ZN_STAT_PACKETS_CERTIFICATES_UNNAMED] += made.unnamed;
    return built;
}

static void count_message(const zn_packet_images *images, const zn_image *i,
                          const zn_build_choice *choice)
{
    zn_stats *stats = images->gate->stats;
    bool hello = is_hello(i->kind);
    bool named = hello || i->kind == ZN_MESSAGE_HTTP_REQUEST || i->kind == ZN_MESSAGE_DNS ||
                 i->kind == ZN_MESSAGE_DNS_TCP;
    stats->n[ZN_STAT_PACKETS_NAMES_MASKED] += named && !choice->name;
    stats->n[ZN_STAT_PACKETS_FINGERPRINTS] += hello && choice->fingerprint;
}

/* Builds the part of a raw message that may leave into out, which is zero. Returns false if nothing
 * may leave. */
static bool build_message(zn_packet_images *images, uint32_t flow, const zn_image *i, zn_span in,
                          uint8_t *out)
{
    const zn_flow *f = zn_flow_entry(images->names->flows, flow);
    zn_fingerprints fingerprints = images->policy.fingerprints;
    zn_build_choice choice = {.name = zn_packet_gate_shows_names(images->gate, flow, i->due_ns),
                              .fingerprint =
                                  fingerprints == ZN_FINGERPRINTS_KEEP ||
                                  (fingerprints == ZN_FINGERPRINTS_TESTED &&
                                   zn_packet_gate_shows(images->gate, i->entry, i->due_ns))};
    zn_span name = {NULL, 0};
    if (!choice.name && !images->policy.exact)
        return false;
    count_message(images, i, &choice);
    switch ((zn_message_kind)i->kind) {
    case ZN_MESSAGE_TLS_HELLO:
        return zn_build_client_hello(in, &choice, images->tls, out);
    case ZN_MESSAGE_QUIC_HELLO:
        return zn_build_client_hello_message(in, &choice, out);
    case ZN_MESSAGE_TLS_FLIGHT:
        if (choice.name && zn_packet_gate_shows(images->gate, i->entry, i->due_ns))
            name = zn_name_store_text(images->names->name_store, i->entry);
        return build_flight(images, in, name, out);
    case ZN_MESSAGE_HTTP_REQUEST:
        return zn_build_http_request(in, &choice, out);
    case ZN_MESSAGE_HTTP_RESPONSE:
        return zn_build_http_response(in, out);
    case ZN_MESSAGE_DNS_TCP:
        memcpy(out, in.p, DNS_LENGTH_BYTES);
        return build_dns(images, f, choice.name, zn_span_after(in, DNS_LENGTH_BYTES),
                         out + DNS_LENGTH_BYTES);
    case ZN_MESSAGE_DNS:
        return build_dns(images, f, choice.name, in, out);
    case ZN_MESSAGE_QUIC:
        return build_quic(images, flow, f, i, in, out);
    case ZN_MESSAGE_DTLS_HELLO:
        return zn_build_client_hello_datagram(in, &choice, out);
    case ZN_MESSAGE_DTLS:
        return build_dtls(images, flow, i, in, out);
    case ZN_MESSAGE_HEADER:
    case ZN_MESSAGE_ICMP:
    case ZN_MESSAGE_ENCRYPTED:
        break;
    }
    return false;
}

/* Returns the bytes of an image that may leave, with zeros in place of other bytes. */
static const uint8_t *built(zn_packet_images *images, uint32_t flow, zn_image *i)
{
    uint8_t *bytes = bytes_of(images, i);
    bool datagram = i->kind == ZN_MESSAGE_QUIC || i->kind == ZN_MESSAGE_DTLS;
    uint8_t *out = datagram ? images->scratch : images->hello;
    if (i->state == ZN_IMAGE_BUILT)
        return bytes;
    memset(out, 0, i->n);
    if (build_message(images, flow, i, (zn_span){bytes, i->n}, out))
        memcpy(bytes, out, i->n);
    else
        memset(bytes, 0, i->n);
    zn_wipe(out, i->n);
    i->state = ZN_IMAGE_BUILT;
    return bytes;
}

/* Returns the stream of CRYPTO frames with which a client's Initials leave; empty: none. */
static zn_span built_hello(zn_packet_images *images, uint32_t flow, const zn_packet_plan *plan,
                           unsigned side)
{
    for (uint32_t n = plan->image[side]; n != 0; n = image_at(images, n)->next) {
        zn_image *i = image_at(images, n);
        if (i->kind == ZN_MESSAGE_QUIC_HELLO)
            return (zn_span){built(images, flow, i), i->n};
    }
    return (zn_span){NULL, 0};
}

/* Builds a datagram with fragments of hellos that were read. A hello with a later verdict than the
 * datagram belongs to other fragments with the same number. */
static bool build_dtls(zn_packet_images *images, uint32_t flow, const zn_image *i, zn_span in,
                       uint8_t *out)
{
    const zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    zn_build_dtls_hello hellos[DTLS_HELLOS_MAX];
    size_t count = 0;
    for (uint32_t n = plan->image[i->side]; n != 0 && count < DTLS_HELLOS_MAX;
         n = image_at(images, n)->next) {
        zn_image *hello = image_at(images, n);
        if (hello->kind == ZN_MESSAGE_DTLS_HELLO && hello->due_ns <= i->due_ns)
            hellos[count++] =
                (zn_build_dtls_hello){(uint16_t)hello->seq, {built(images, flow, hello), hello->n}};
    }
    return zn_build_dtls_datagram(in, hellos, count, out);
}

/* Adds the part of an image that lies in the n bytes from `seq` on to their shown part. */
static void show_part(zn_packet_images *images, uint32_t flow, zn_image *i, uint32_t seq,
                      uint32_t n, uint8_t *payload, zn_written_part *written)
{
    int32_t offset = zn_seq_ahead(i->seq, seq);
    uint32_t skip = offset < 0 ? 0u - (uint32_t)offset : 0, at = offset > 0 ? (uint32_t)offset : 0;
    uint32_t end;
    if (skip >= i->n || at >= n)
        return;
    end = i->n - skip < n - at ? at + (i->n - skip) : n;
    if (written->end == 0)
        *written = (zn_written_part){at, at};
    if (at > written->end)
        memset(payload + written->end, 0, at - written->end);
    if (end < written->from)
        memset(payload + end, 0, written->from - end);
    memcpy(payload + at, built(images, flow, i) + skip, end - at);
    written->from = at < written->from ? at : written->from;
    written->end = end > written->end ? end : written->end;
}

static bool is_kept_segment(const zn_packet_images *images, const zn_delayed *p)
{
    return p->proto == ZN_PROTO_TCP && image_at(images, p->image)->kind == ZN_MESSAGE_ENCRYPTED;
}

/* Adds the kept bytes of a segment to the bytes that its stream's images show. The images are zeros
 * in encrypted records, and the kept bytes are zeros elsewhere. */
static void add_kept(zn_packet_images *images, const zn_delayed *p, uint8_t *payload,
                     zn_written_part *written)
{
    zn_image *i = image_at(images, p->image);
    const uint8_t *kept = bytes_of(images, i);
    uint32_t n = i->n < p->payload_bytes ? i->n : p->payload_bytes;
    memset(payload, 0, written->from);
    memset(payload + written->end, 0, p->payload_bytes - written->end);
    *written = (zn_written_part){0, p->payload_bytes};
    for (uint32_t at = 0; at < n; at++)
        payload[at] |= kept[at];
}

zn_written_part zn_packet_images_show(zn_packet_images *images, const zn_delayed *p,
                                      uint8_t *payload)
{
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, p->flow);
    uint32_t seq = sent_seq(plan, p), *link = &plan->image[p->sender];
    zn_written_part written = {0, 0};
    if (p->payload_bytes == 0)
        return written;
    if (p->image != 0 && !is_kept_segment(images, p)) {
        zn_image *i = image_at(images, p->image);
        written.end = i->n < p->payload_bytes ? i->n : p->payload_bytes;
        memcpy(payload, built(images, p->flow, i), written.end);
        return written;
    }
    while (*link != 0) {
        uint32_t image = *link;
        zn_image *i = image_at(images, image);
        if (is_datagrams(i)) {
            link = &i->next;
        } else if (zn_seq_ahead(seq, i->seq) > FORGET_AFTER) {
            *link = i->next;
            free_image(images, image);
            plan->images[p->sender]--;
        } else {
            show_part(images, p->flow, i, seq, p->payload_bytes, payload, &written);
            link = &i->next;
        }
    }
    if (p->image != 0)
        add_kept(images, p, payload, &written);
    return written;
}

void zn_packet_images_forget(zn_packet_images *images, uint32_t flow)
{
    zn_packet_plan *plan = zn_packet_gate_plan(images->gate, flow);
    for (unsigned side = 0; side < 2; side++) {
        plan->images[side] = 0;
        while (plan->image[side] != 0) {
            uint32_t image = plan->image[side];
            plan->image[side] = image_at(images, image)->next;
            free_image(images, image);
        }
    }
    if (images->kept != NULL)
        images->kept[flow] = (zn_kept_records){0};
    zn_name_store_forget_secondary(images->names->name_store, plan->fingerprint);
    plan->fingerprint = 0;
}
