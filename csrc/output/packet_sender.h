/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends frames out of a network interface by a packet socket that receives nothing (packet(7)).
 * Frames go straight to the driver's queue (PACKET_QDISC_BYPASS), so that the system's own queues
 * neither reorder nor drop them uncounted; programs that capture on the same interface do not see
 * them.
 *
 * A TCP segment above the MTU, such as the receive offloads of a card make, leaves as segments of
 * the MTU. Their checksums are right also for a program on this machine. A datagram above the MTU
 * does not leave, because the datagrams from which it was merged are unknown.
 */
#ifndef ZN_OUTPUT_PACKET_SENDER_H
#define ZN_OUTPUT_PACKET_SENDER_H

#include "zanon/zanon.h"

typedef struct zn_packet_sender zn_packet_sender;

/* Counts of frames; each frame that was to be sent is in one count. */
typedef struct zn_packet_sender_counts {
    uint64_t sent;     /* left whole, perhaps as several segments */
    uint64_t bytes;    /* of those, as their records have them */
    uint64_t full;     /* dropped, or a part of them: the queue was full, or there was no carrier */
    uint64_t oversize; /* dropped: above the MTU, and not to be cut */
    uint64_t error;    /* dropped: rejected by the system, cut in the record, or behind the end */
} zn_packet_sender_counts;

/*
 * Opens a sender on an Ethernet interface, which must be up, and neither changes its mode nor reads
 * from it. patience_ns: ns for which a frame waits for space if the queue is full; 0: it does not
 * wait. If a frame waited in vain, later frames of that call do not wait. Returns 0, or with *out
 * NULL: -ZN_ERR_IO (os_errno EPERM: CAP_NET_RAW is missing; ENODEV: no such interface; ENETDOWN: it
 * is down), -ZN_ERR_CONFIG for an interface that is not Ethernet, -ZN_ERR_CAPACITY without memory.
 */
int zn_packet_sender_open(zn_packet_sender **out, const char *interface, int64_t patience_ns,
                          zn_error *err);
/* Closes it. NULL is fine. */
void zn_packet_sender_close(zn_packet_sender *s);

/*
 * Sends the frames of `records`, which zn_packet_file_put wrote for pcap; borrows them for the
 * call. Allocates nothing. Data is no error: a frame that does not leave is counted. Returns 0, or
 * -ZN_ERR_IO when the interface is down or gone; the frames left are then counted as errors.
 */
int zn_packet_sender_send(zn_packet_sender *s, zn_span records, zn_error *err);

zn_packet_sender_counts zn_packet_sender_get_counts(const zn_packet_sender *s);
/* Returns whether the interface has an IP address now, so that its system sends there, too. */
bool zn_packet_sender_has_address(const zn_packet_sender *s);

#endif
