/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Loaded before libpcap (LD_PRELOAD): frames get the packet time that their MAC addresses carry, in
 * the place of the kernel's stamp. See stamps.py.
 */
#include <dlfcn.h>
#include <pcap/pcap.h>
#include <stdint.h>
#include <stdlib.h>

#define NS_PER_S INT64_C(1000000000)
#define ADDRESSES 12 /* bytes of the two MAC addresses */

typedef int dispatch(pcap_t *, int, pcap_handler, u_char *);

typedef struct receiver {
    pcap_handler take;
    u_char *to;
} receiver;

/* Returns the time in ns: bytes 2 to 5 of either address, the upper half first. */
static int64_t time_in(const u_char *frame)
{
    uint64_t t = 0;
    for (int i = 2; i < 6; i++)
        t = t << 8 | frame[i];
    for (int i = 8; i < 12; i++)
        t = t << 8 | frame[i];
    return (int64_t)t;
}

static void stamp(u_char *of, const struct pcap_pkthdr *header, const u_char *frame)
{
    const receiver *r = (const receiver *)(void *)of;
    struct pcap_pkthdr stamped = *header;
    if (header->caplen >= ADDRESSES) {
        stamped.ts.tv_sec = time_in(frame) / NS_PER_S;
        stamped.ts.tv_usec = time_in(frame) % NS_PER_S; /* the run asks libpcap for ns */
    }
    r->take(r->to, &stamped, frame);
}

int pcap_dispatch(pcap_t *handle, int most, pcap_handler take, u_char *to)
{
    static dispatch *next;
    receiver r = {take, to};
    if (next == NULL)
        *(void **)&next = dlsym(RTLD_NEXT, "pcap_dispatch");
    if (next == NULL)
        abort();
    return next(handle, most, stamp, (u_char *)&r);
}
