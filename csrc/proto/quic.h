/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * QUIC packets as anybody on the path can read them: long headers (RFC 9000 17.2, RFC 9369 3, RFC
 * 8999), the Initial protection whose keys follow from the client's first Destination Connection ID
 * (RFC 9001 5), and the CRYPTO frames inside.
 *
 * The versions that are read are v1, v2, the drafts 22 to 34 and mvfst's. Of others only the
 * connection IDs are known. Opening an Initial proves its form, nothing about its sender: its keys
 * are public.
 */
#ifndef ZN_PROTO_QUIC_H
#define ZN_PROTO_QUIC_H

#include "util/cursor.h"

#define ZN_QUIC_LONG_FORM 0x80u /* bit of the first byte: a long header (RFC 8999 5.1) */
#define ZN_QUIC_ID_MAX 20       /* RFC 9000 17.2: a connection ID of the versions read here */
#define ZN_QUIC_TAG_BYTES 16
#define ZN_QUIC_CRYPTO_FRAMES                                                                      \
    128 /* CRYPTO frames looked at in one packet; browsers send about ten */

typedef enum zn_quic_type {
    ZN_QUIC_INITIAL,
    ZN_QUIC_ZERO_RTT,
    ZN_QUIC_HANDSHAKE,
    ZN_QUIC_RETRY,
    ZN_QUIC_NEGOTIATION, /* Version Negotiation */
    ZN_QUIC_FOREIGN      /* of a version that is not read */
} zn_quic_type;

/* A packet with a long header. Spans borrow the datagram. */
typedef struct zn_quic_packet {
    zn_quic_type type;
    uint32_t version;
    zn_span dcid, scid; /* destination and source connection ID */
    zn_span header; /* Initial: from the first byte up to the packet number. Retry: up to its tag */
    zn_span sealed; /* Initial: the packet number and all bytes after it. Retry: its tag */
    bool cut;       /* the capture lacks its end */
} zn_quic_packet;

/* Types of the frames that an Initial may hold (RFC 9000 12.4, 19). */
enum {
    ZN_QUIC_FRAME_PADDING = 0x00,
    ZN_QUIC_FRAME_PING = 0x01,
    ZN_QUIC_FRAME_ACK = 0x02,
    ZN_QUIC_FRAME_ACK_ECN = 0x03,
    ZN_QUIC_FRAME_CRYPTO = 0x06,
    ZN_QUIC_FRAME_CONNECTION_CLOSE = 0x1c
};

/* A frame of any of these types; PADDING frames in a row are one. */
typedef struct zn_quic_frame {
    uint8_t type;
    uint64_t offset; /* CRYPTO: of `data` in the handshake stream; else 0 */
    zn_span bytes;   /* all of it */
    /* last bytes of the frame: CRYPTO: bytes of the stream; CONNECTION_CLOSE: the reason */
    zn_span data;
} zn_quic_frame;

/* A CRYPTO frame: bytes at an offset of the handshake stream (RFC 9000 19.6). */
typedef struct zn_quic_crypto_frame {
    uint64_t offset;
    zn_span bytes;
} zn_quic_crypto_frame;

typedef struct zn_quic_crypto_frames {
    size_t n;
    zn_quic_crypto_frame frame[ZN_QUIC_CRYPTO_FRAMES]; /* by offset; none is empty */
} zn_quic_crypto_frames;

/* A variable-length integer (RFC 9000 16); 0 when it is not all there. */
uint64_t zn_quic_varint(zn_cursor *c);
/* The bytes after a variable-length length, all of which must be there. */
zn_span zn_quic_vector(zn_cursor *c);

/*
 * The next packet of a datagram (several may be coalesced); the cursor then stands after it.
 * The fixed bit is not asked for: peers may agree to send it at random (RFC 9287). Returns ZN_DONE
 * with *out; ZN_OTHER when no long header follows: the datagram's end, a short header or another
 * protocol; ZN_NEED_MORE when the capture cut the header; ZN_MALFORMED.
 */
zn_parse zn_quic_next_packet(zn_cursor *datagram, zn_quic_packet *out);
/* True when a packet with a short header that is addressed to `dcid` stands at the cursor. */
bool zn_quic_is_short(zn_cursor datagram, zn_span dcid);

/* Reads the frame at the cursor, which is not at its end. The cursor fails at a frame that an
 * Initial may not contain, or with a wrong inner length; *out is then not valid. */
void zn_quic_next_frame(zn_cursor *plain, zn_quic_frame *out);

/* The CRYPTO frames of an Initial's plaintext. ZN_DONE, or ZN_MALFORMED for a frame that no Initial
 * may hold, a wrong inner length, no frame at all, or more than ZN_QUIC_CRYPTO_FRAMES. */
zn_parse zn_quic_read_frames(zn_span plain, zn_quic_crypto_frames *out);

/* Returns the user agent that Google's clients send (0x3129, not registered) in the transport
 * parameters of their ClientHello (RFC 9000 18), as sent. Returns an empty span if there is no user
 * agent, if there are two, or if the parameters are malformed. Borrows `parameters`. */
zn_span zn_quic_user_agent(zn_span parameters);

#endif
