/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The messages of conversations: each form is the same bytes but for its name.
 */
#ifndef MESSAGES_H
#define MESSAGES_H

#include "world.h"

#define MESSAGE_MAX 2048

typedef enum message_form {
    FORM_HELLO,        /* TLS ClientHello in its record */
    FORM_HELLO_PADDED, /* the name far behind */
    FORM_HELLO_LARGE,  /* of more than one segment */
    FORM_CHANGE_CIPHER,
    FORM_APPLICATION_DATA,
    FORM_REQUEST, /* head of HTTP/1.1 */
    FORM_REQUEST_LONG,
    FORM_DNS,
    FORM_DNS_ANSWER,
    FORM_DNS_TCP, /* the same two with their length */
    FORM_DNS_TCP_ANSWER,
    FORM_BARE_HELLO, /* ClientHello without a record, for QUIC */
    FORM_BARE_HELLO_LARGE,
    FORM_SERVER_HELLO,
    FORM_HELLO_RETRY,
    FORM_RESPONSE,
    FORMS
} message_form;

/* Makes the forms. */
void messages_init(void);
uint32_t message_bytes(message_form form);
/* Where the first label of the name is; 0: the form has no name. */
uint32_t message_label(message_form form);
/* Writes the bytes from `from` to `to` of a message with this name, of which every second letter is
 * in upper case if asked for. */
void message_write(message_form form, const uint8_t name[WORLD_NAME], bool upper, uint32_t from,
                   uint32_t to, uint8_t *out);

#endif
