/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of protocols that more than one floor has to know. */
#ifndef ZN_UTIL_PROTOCOL_H
#define ZN_UTIL_PROTOCOL_H

/* IP protocols of the flows that are tracked. */
#define ZN_PROTO_TCP 6
#define ZN_PROTO_UDP 17

#define ZN_DNS_PORT 53

#endif
