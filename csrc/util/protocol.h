/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of protocols that more than one folder of csrc/ uses. */
#ifndef ZN_UTIL_PROTOCOL_H
#define ZN_UTIL_PROTOCOL_H

/* IP's numbers of TCP and UDP, whose flows are tracked. */
#define ZN_PROTO_TCP 6
#define ZN_PROTO_UDP 17

#define ZN_DNS_PORT 53

#endif
