/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The transport parameters that a QUIC client sends in its ClientHello (RFC 9000 18). */
#ifndef ZN_PROTO_QUIC_PARAMETERS_H
#define ZN_PROTO_QUIC_PARAMETERS_H

#include "util/cursor.h"

/* The user agent that Google's clients tell (0x3129, not registered), as sent; empty when there is
 * none, when there are two, or when the parameters are malformed. Borrows. */
zn_span zn_quic_user_agent(zn_span parameters);

#endif
