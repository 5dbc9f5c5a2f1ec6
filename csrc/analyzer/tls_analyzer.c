/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* TLS over TCP: the server name of a ClientHello. */
#include "analyzer/attributes.h"
#include "analyzer/layer7.h"
#include "analyzer/message_sink.h"
#include "analyzer/parse_state.h"
#include "proto/ascii.h"
#include "proto/tls.h"

#define RECORD_MIN 6u /* bytes by which a ClientHello is recognised */

static bool starts(const zn_packet_context *s, zn_span bytes)
{
    (void)s;
    return zn_tls_may_begin(bytes);
}

static zn_parse read_hello(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    zn_flow *f = s->f;
    zn_tls_hello hello;
    bool again = zn_parse_state_of(f) == ZN_PARSE_NEXT;
    zn_parse result = zn_tls_client_hello(in->bytes, in->missing != 0, &s->names->tls, &hello);
    if (result == ZN_MALFORMED)
        return zn_parse_malformed(s);
    if (result == ZN_NEED_MORE && !again)
        zn_parse_expect(s, ZN_PARSE_BEGUN);
    if (result != ZN_DONE)
        return result;
    *used = (uint32_t)hello.consumed;
    if (in->missing == 0 && zn_ascii_first(in->bytes) == ZN_TLS_CONTENT_HANDSHAKE)
        zn_message_put(s, &(zn_message){.kind = ZN_MESSAGE_TLS_HELLO,
                                        .bytes = zn_ascii_part(in->bytes, 0, hello.consumed),
                                        .seq = in->seq});
    ZN_STATE(f)->protocol = s->analyzer->id & 0x1fu;
    if (again || in->missing != 0)
        zn_parse_end(s->names, f);
    else
        zn_parse_expect(s, ZN_PARSE_NEXT);
    s->names->stats->n[ZN_STAT_HELLOS_ECH] += hello.ech_offered && !ZN_FACTS(f)->ech_offered;
    ZN_FACTS(f)->ech_offered |= hello.ech_offered;
    if (again) {
        zn_names_observed_again(s, hello.name);
        return ZN_DONE;
    }
    (void)zn_names_observed(s, hello.name);
    zn_attributes_see(s, ZN_EXPOSES_CLIENT_HELLO, hello.body);
    zn_layer7_client_hello(s->names, f, in->bytes, &hello.details);
    return ZN_DONE;
}

/* Reads the bytes after a hello: another one, which answers a HelloRetryRequest, or the rest of the
 * handshake. */
static zn_parse read_hello_again(const zn_packet_context *s, const zn_tcp_segment *in,
                                 uint32_t *used)
{
    static const uint8_t change_cipher[] = {ZN_TLS_CONTENT_CHANGE_CIPHER_SPEC, 3, 3, 0, 1, 1};
    zn_cursor c = zn_cursor_over_span(in->bytes, false);
    size_t n = in->bytes.n < sizeof change_cipher ? in->bytes.n : sizeof change_cipher;
    zn_parse result;
    if (memcmp(zn_cursor_take(&c, n).p, change_cipher, n) == 0) {
        *used = (uint32_t)n;
        return n == sizeof change_cipher ? ZN_DONE : ZN_NEED_MORE;
    }
    result = read_hello(s, in, used);
    if (result == ZN_OTHER) {
        zn_parse_end(s->names, s->f);
        *used = (uint32_t)in->bytes.n;
        return ZN_DONE;
    }
    return result;
}

static zn_parse segment(const zn_packet_context *s, const zn_tcp_segment *in, uint32_t *used)
{
    return zn_parse_state_of(s->f) == ZN_PARSE_NEXT ? read_hello_again(s, in, used)
                                                    : read_hello(s, in, used);
}

static void lost(const zn_packet_context *s, zn_segment_end end)
{
    (void)end;
    if (zn_parse_state_of(s->f) == ZN_PARSE_NEXT)
        zn_parse_end(s->names, s->f);
    else
        zn_parse_give_up(s, ZN_STAT_SUPPRESSED_INCOMPLETE);
}

static bool is_client(const zn_packet_context *s, zn_span bytes)
{
    zn_tls_hello hello;
    zn_parse result = zn_tls_client_hello(bytes, true, &s->names->tls, &hello);
    return result != ZN_OTHER && (result != ZN_NEED_MORE || bytes.n >= RECORD_MIN);
}

const zn_analyzer_functions zn_tls_functions = {
    .starts = starts,
    .segment = segment,
    .lost = lost,
    .is_client = is_client,
};
