/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The table of attributes that a flow exposes besides its name, such as the protocols of its TLS
 * client. Each attribute is a namespace of its own: it votes and is released like a name, and its
 * counts are apart from all other counts.
 */
#ifndef ZN_UTIL_ATTRIBUTES_H
#define ZN_UTIL_ATTRIBUTES_H

/*
 * X(a, ID, word, column, message, reader, description), in the order of columns.
 *
 * word         name of the attribute in settings, observations and the manifest
 * column       name of its column in logs
 * message      message that contains it, a zn_exposing_message
 * reader       zn_read_<reader> of proto/attribute_readers.h reads it from the message
 * description  meaning of the column, for people
 *
 * `a` is for the macro that is passed.
 */
#define ZN_ATTRIBUTES(X, a)                                                                        \
    X(a, ALPN, "alpn", "alpn", CLIENT_HELLO, alpn,                                                 \
      "protocols that the client's TLS hello offers (ALPN), if z users share this list")           \
    X(a, JA4, "ja4", "ja4", CLIENT_HELLO, ja4,                                                     \
      "JA4 fingerprint of the client's TLS hello, if z users share it")                            \
    X(a, EHLO, "ehlo", "ehlo", CLIENT_TEXT, ehlo,                                                  \
      "host that the mail client names in EHLO or HELO (SMTP), if z users share it")               \
    X(a, SIP, "sip", "sip", CLIENT_TEXT, sip,                                                      \
      "host in the request URI of the client's SIP request, if z users share it")                  \
    X(a, STUN, "stun", "stun", STUN_REQUEST, stun,                                                 \
      "software that the client names in its STUN request, if z users share it")                   \
    X(a, USER_AGENT, "user-agent", "user_agent", USER_AGENT, user_agent,                           \
      "User-Agent of the client's first HTTP request that has it, if z users share it")            \
    X(a, CERT_SAN, "cert-san", "cert_san", CERTIFICATE, cert_san,                                  \
      "first DNS name of the certificate that the server showed, if z users share it")             \
    X(a, CERT_ISSUER, "cert-issuer", "cert_issuer", CERTIFICATE, cert_issuer,                      \
      "issuer of the certificate that the server showed, if z users share it")

/* Messages that analyzers pass to the readers of attributes. */
typedef enum zn_exposing_message {
    ZN_EXPOSES_CLIENT_HELLO, /* body of a ClientHello of TLS or DTLS, from its version on */
    ZN_EXPOSES_CLIENT_TEXT,  /* client's bytes that no analyzer of names recognised */
    ZN_EXPOSES_STUN_REQUEST, /* a datagram, or the first message of a TCP client */
    ZN_EXPOSES_USER_AGENT,   /* value of the User-Agent field of a request of HTTP */
    ZN_EXPOSES_CERTIFICATE   /* first certificate of a TLS server, up to TLS 1.2 */
} zn_exposing_message;

typedef enum zn_attribute {
#define ZN_ATTRIBUTE_ID(a, ID, ...) ZN_ATTRIBUTE_##ID,
    ZN_ATTRIBUTES(ZN_ATTRIBUTE_ID, )
#undef ZN_ATTRIBUTE_ID
        ZN_ATTRIBUTE_COUNT
} zn_attribute;

#define ZN_ATTRIBUTES_ALL ((1u << ZN_ATTRIBUTE_COUNT) - 1)

/* Returns the word of an attribute. */
static inline const char *zn_attribute_word(unsigned attribute)
{
    static const char *const words[] = {
#define ZN_ATTRIBUTE_WORD(a, ID, word, ...) word,
        ZN_ATTRIBUTES(ZN_ATTRIBUTE_WORD, )
#undef ZN_ATTRIBUTE_WORD
    };
    return words[attribute];
}

#endif
