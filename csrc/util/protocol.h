/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of protocols that more than one folder of csrc/ uses. */
#ifndef ZN_UTIL_PROTOCOL_H
#define ZN_UTIL_PROTOCOL_H

/* Protocol numbers of IP, of the two that flows are tracked of. */
#define ZN_PROTO_TCP 6
#define ZN_PROTO_UDP 17

#define ZN_DNS_PORT 53

#endif
