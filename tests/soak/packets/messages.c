/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "messages.h"

#include <string.h>

typedef struct message_template {
    uint8_t bytes[MESSAGE_MAX];
    uint32_t n;
    uint32_t name; /* offset, 0: none */
    bool labels;   /* the name is in DNS's form */
} message_template;

static message_template templates[FORMS];

/* ---- writing --------------------------------------------------------------------------------- */

static void put(message_template *m, const void *bytes, size_t n)
{
    memcpy(m->bytes + m->n, bytes, n);
    m->n += (uint32_t)n;
}

static void put_text(message_template *m, const char *text)
{
    put(m, text, strlen(text));
}

static void put_number(message_template *m, uint32_t value, unsigned bytes)
{
    while (bytes-- > 0)
        m->bytes[m->n++] = (uint8_t)(value >> 8 * bytes);
}

static void put_filler(message_template *m, uint32_t n)
{
    memset(m->bytes + m->n, 0xa5, n);
    m->n += n;
}

/* Writes a length of so many bytes that is known when `end_length` is called with its place. */
static uint32_t begin_length(message_template *m, unsigned bytes)
{
    put_number(m, 0, bytes);
    return m->n;
}

static void end_length(message_template *m, uint32_t place, unsigned bytes)
{
    uint32_t end = m->n, length = end - place;
    m->n = place - bytes;
    put_number(m, length, bytes);
    m->n = end;
}

static void put_name(message_template *m)
{
    m->name = m->n;
    put_filler(m, WORLD_NAME + m->labels);
}

/* ---- TLS ------------------------------------------------------------------------------------- */

static void put_extension(message_template *m, uint16_t type, uint32_t n)
{
    put_number(m, type, 2);
    put_number(m, n, 2);
    put_filler(m, n);
}

static void put_server_name(message_template *m)
{
    put_number(m, 0, 2);
    put_number(m, WORLD_NAME + 5, 2);
    put_number(m, WORLD_NAME + 3, 2);
    put_number(m, 0, 1);
    put_number(m, WORLD_NAME, 2);
    put_name(m);
}

/* Writes the message, with so many bytes of other extensions before and behind the name. */
static void put_hello(message_template *m, uint32_t before, uint32_t behind)
{
    static const uint8_t suites[] = {0, 4, 0x13, 1, 0x13, 2, 1, 0};
    static const uint8_t versions[] = {0, 43, 0, 3, 2, 3, 4};
    static const uint8_t protocols[] = {0, 16, 0, 5, 0, 3, 2, 'h', '2'};
    uint32_t message, extensions;
    put_number(m, 1, 1);
    message = begin_length(m, 3);
    put_number(m, 0x0303, 2);
    put_filler(m, 32);
    put_number(m, 32, 1);
    put_filler(m, 32);
    put(m, suites, sizeof suites);
    extensions = begin_length(m, 2);
    put_extension(m, 0x1a1a, before);
    put_server_name(m);
    put(m, versions, sizeof versions);
    put(m, protocols, sizeof protocols);
    put_extension(m, 0x2a2a, behind);
    end_length(m, extensions, 2);
    end_length(m, message, 3);
}

static void make_hello(message_form form, uint32_t before, uint32_t behind)
{
    message_template *m = &templates[form];
    uint32_t record;
    put_number(m, 0x160301, 3);
    record = begin_length(m, 2);
    put_hello(m, before, behind);
    end_length(m, record, 2);
}

static void make_server_hello(message_form form)
{
    static const uint8_t retry[] = {0xcf, 0x21, 0xad, 0x74, 0xe5, 0x9a, 0x61, 0x11,
                                    0xbe, 0x1d, 0x8c, 0x02, 0x1e, 0x65, 0xb8, 0x91,
                                    0xc2, 0xa2, 0x11, 0x16, 0x7a, 0xbb, 0x8c, 0x5e,
                                    0x07, 0x9e, 0x09, 0xe2, 0xc8, 0xa8, 0x33, 0x9c};
    static const uint8_t rest[] = {0, 0x13, 1, 0, 0, 6, 0, 43, 0, 2, 3, 4};
    message_template *m = &templates[form];
    uint32_t record, message;
    put_number(m, 0x160303, 3);
    record = begin_length(m, 2);
    put_number(m, 2, 1);
    message = begin_length(m, 3);
    put_number(m, 0x0303, 2);
    if (form == FORM_HELLO_RETRY)
        put(m, retry, sizeof retry);
    else
        put_filler(m, sizeof retry);
    put(m, rest, sizeof rest);
    end_length(m, message, 3);
    end_length(m, record, 2);
}

/* ---- HTTP and DNS ---------------------------------------------------------------------------- */

static void make_request(message_form form, uint32_t before)
{
    message_template *m = &templates[form];
    put_text(m, "GET /");
    for (uint32_t i = 0; i < before; i++)
        put_text(m, "p");
    put_text(m, " HTTP/1.1\r\nHost: "); /* the field keeps its place in a built head */
    put_name(m);
    put_text(m, "\r\nAccept: */*\r\nConnection: keep-alive\r\n\r\n");
}

static void make_dns(message_form form, bool answer, bool tcp)
{
    message_template *m = &templates[form];
    uint32_t length = 0;
    m->labels = true;
    if (tcp)
        length = begin_length(m, 2);
    put_number(m, 0x1234, 2);
    put_number(m, answer ? 0x8180 : 0x0100, 2);
    put_number(m, 0x00010000, 4);
    put_number(m, 0, 4);
    put_name(m);
    put_number(m, 0, 1);
    put_number(m, 0x00010001, 4);
    if (tcp)
        end_length(m, length, 2);
}

/* ---- all ------------------------------------------------------------------------------------- */

void messages_init(void)
{
    static const uint8_t change_cipher[] = {0x14, 3, 3, 0, 1, 1}, data[] = {0x17, 3, 3, 0, 40};
    memset(templates, 0, sizeof templates);
    make_hello(FORM_HELLO, 4, 60);
    make_hello(FORM_HELLO_PADDED, 400, 20);
    make_hello(FORM_HELLO_LARGE, 700, 900);
    put_hello(&templates[FORM_BARE_HELLO], 100, 120);
    put_hello(&templates[FORM_BARE_HELLO_LARGE], 600, 700);
    put(&templates[FORM_CHANGE_CIPHER], change_cipher, sizeof change_cipher);
    put(&templates[FORM_APPLICATION_DATA], data, sizeof data);
    put_filler(&templates[FORM_APPLICATION_DATA], 40);
    make_request(FORM_REQUEST, 8);
    make_request(FORM_REQUEST_LONG, 500);
    make_dns(FORM_DNS, false, false);
    make_dns(FORM_DNS_ANSWER, true, false);
    make_dns(FORM_DNS_TCP, false, true);
    make_dns(FORM_DNS_TCP_ANSWER, true, true);
    make_server_hello(FORM_SERVER_HELLO);
    make_server_hello(FORM_HELLO_RETRY);
    put_text(&templates[FORM_RESPONSE], "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
}

uint32_t message_bytes(message_form form)
{
    return templates[form].n;
}

uint32_t message_label(message_form form)
{
    return templates[form].name + templates[form].labels;
}

/* Writes the name as the form has it. Returns its bytes. */
static uint32_t spell(const message_template *m, const uint8_t name[WORLD_NAME], bool upper,
                      uint8_t *out)
{
    uint8_t *text = out + m->labels;
    memcpy(text, name, WORLD_NAME);
    for (int i = 0; upper && i < WORLD_LABEL; i += 2)
        text[i] ^= 0x20;
    if (!m->labels)
        return WORLD_NAME;
    for (uint32_t i = WORLD_NAME, length = 0; i-- > 0; length++)
        if (text[i] == '.') {
            text[i] = (uint8_t)length;
            length = UINT32_MAX; /* 0 at the next byte */
        }
    out[0] = WORLD_LABEL;
    return WORLD_NAME + 1;
}

void message_write(message_form form, const uint8_t name[WORLD_NAME], bool upper, uint32_t from,
                   uint32_t to, uint8_t *out)
{
    const message_template *m = &templates[form];
    uint8_t spelled[WORLD_NAME + 1];
    uint32_t n, first, end;
    memcpy(out, m->bytes + from, to - from);
    if (m->name == 0)
        return;
    n = spell(m, name, upper, spelled);
    first = from > m->name ? from : m->name;
    end = to < m->name + n ? to : m->name + n;
    if (first < end)
        memcpy(out + (first - from), spelled + (first - m->name), end - first);
}
