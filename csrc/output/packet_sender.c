/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "output/packet_sender.h"

#include "output/packet_file.h"
#include "util/arena.h"

#ifdef __linux__

#include <errno.h>
#include <ifaddrs.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define BATCH 64u                   /* frames of one system call */
#define SEND_BUFFER_BYTES (8 << 20) /* frames that wait in the driver's queue */
#define RETRY_NS 50000              /* between two attempts to send a frame that waits */
#define ETHERNET_BYTES 14u          /* header */
#define IPV4_BYTES 20u              /* header without options */
#define IPV6_BYTES 40u              /* header */
#define TCP_BYTES 20u               /* header without options */
#define HEADERS_MAX (ETHERNET_BYTES + 60u + 60u)
/* Fields of IPv4 (RFC 791) and IPv6 (RFC 8200), and of TCP (RFC 9293): where they begin. */
#define IPV4_LENGTH 2u
#define IPV4_ID 4u
#define IPV4_FRAGMENT 6u
#define IPV4_PROTOCOL 9u
#define IPV4_CHECKSUM 10u
#define IPV4_ADDRESSES 12u
#define IPV6_LENGTH 4u
#define IPV6_PROTOCOL 6u
#define IPV6_ADDRESSES 8u
#define TCP_SEQUENCE 4u
#define TCP_OFFSET 12u
#define TCP_FLAGS 13u
#define TCP_CHECKSUM 16u
#define NO_FRAGMENTS 0x4000u  /* a bit of IPV4_FRAGMENT */
#define FRAGMENT_BITS 0x3fffu /* of a fragment: more of them, or an offset */
#define FIN 0x01u
#define SYN 0x02u
#define PSH 0x08u
#define CWR 0x80u

/* A frame with one TCP segment: where its headers begin and end, and what differs in its parts. */
typedef struct segment {
    size_t transport, payload; /* offsets in the frame */
    bool is_v6;
    bool counts_ids; /* each packet has an IPv4 id of its own, as fragments of it might come */
    uint16_t id;
    uint32_t sequence;
    uint8_t flags;
} segment;

/* A frame on its way, or a part of one. */
typedef struct slot {
    bool is_last;          /* of its frame */
    uint32_t frame_bytes;  /* of the whole frame */
    struct iovec parts[2]; /* the frame; or headers of its own and a part of the payload */
    uint8_t headers[HEADERS_MAX];
} slot;

struct zn_packet_sender {
    int fd;
    char interface[IFNAMSIZ];
    bool gives_up; /* a frame of this call waited in vain */
    uint32_t mtu;
    int64_t patience_ns;
    int64_t waited_ns; /* of the frame that waits now */
    zn_packet_sender_counts counts;
    unsigned waiting; /* slots in use */
    slot slots[BATCH];
    struct mmsghdr messages[BATCH];
};

/* ---- open ---- */

static struct ifreq about(const zn_packet_sender *s)
{
    struct ifreq request = {0};
    memcpy(request.ifr_name, s->interface, sizeof request.ifr_name);
    return request;
}

static bool is_up(const zn_packet_sender *s)
{
    struct ifreq request = about(s);
    return ioctl(s->fd, SIOCGIFFLAGS, &request) == 0 && (request.ifr_flags & IFF_UP) != 0;
}

static void read_mtu(zn_packet_sender *s)
{
    struct ifreq request = about(s);
    if (ioctl(s->fd, SIOCGIFMTU, &request) == 0 && request.ifr_mtu > 0)
        s->mtu = (uint32_t)request.ifr_mtu;
}

/* Makes space for frames in the driver's queue; more than the system's limit needs a privilege. */
static void set_buffer(const zn_packet_sender *s)
{
    const int bytes = SEND_BUFFER_BYTES;
    if (setsockopt(s->fd, SOL_SOCKET, SO_SNDBUFFORCE, &bytes, sizeof bytes) != 0)
        (void)setsockopt(s->fd, SOL_SOCKET, SO_SNDBUF, &bytes, sizeof bytes);
}

static int check_interface(const zn_packet_sender *s, int *index, zn_error *err)
{
    struct ifreq request = about(s);
    if (ioctl(s->fd, SIOCGIFINDEX, &request) != 0)
        return zn_fail(err, ZN_ERR_IO, ENODEV, "there is no interface %.32s", s->interface);
    *index = request.ifr_ifindex;
    if (ioctl(s->fd, SIOCGIFHWADDR, &request) != 0 || request.ifr_hwaddr.sa_family != ARPHRD_ETHER)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "interface %.32s is not Ethernet: packets cannot be sent there",
                       s->interface);
    if (!is_up(s))
        return zn_fail(err, ZN_ERR_IO, ENETDOWN,
                       "interface %.32s is down; bring it up: ip link set dev %.32s up",
                       s->interface, s->interface);
    return 0;
}

static int open_socket(zn_packet_sender *s, zn_error *err)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET};
    const int yes = 1;
    int rc;
    s->fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0); /* protocol 0: it receives nothing */
    if (s->fd < 0 && (errno == EPERM || errno == EACCES))
        return zn_fail(err, ZN_ERR_IO, EPERM,
                       "interface %.32s cannot be opened: the capability CAP_NET_RAW is missing",
                       s->interface);
    if (s->fd < 0)
        return zn_fail(err, ZN_ERR_IO, errno, "interface %.32s cannot be opened: %s", s->interface,
                       strerror(errno));
    rc = check_interface(s, &to.sll_ifindex, err);
    if (rc != 0)
        return rc;
    if (setsockopt(s->fd, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof yes) != 0 ||
        bind(s->fd, (const struct sockaddr *)&to, sizeof to) != 0)
        return zn_fail(err, ZN_ERR_IO, errno, "interface %.32s cannot be opened: %s", s->interface,
                       strerror(errno));
    set_buffer(s);
    read_mtu(s);
    return 0;
}

int zn_packet_sender_open(zn_packet_sender **out, const char *interface, int64_t patience_ns,
                          zn_error *err)
{
    const size_t n = strnlen(interface, IFNAMSIZ);
    zn_packet_sender *s;
    int rc;
    *out = NULL;
    if (n == 0 || n == IFNAMSIZ)
        return zn_fail(err, ZN_ERR_IO, ENODEV, "there is no interface %.32s", interface);
    s = zn_heap_alloc(sizeof *s);
    if (s == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an interface");
    memcpy(s->interface, interface, n);
    s->patience_ns = patience_ns;
    rc = open_socket(s, err);
    if (rc != 0) {
        zn_packet_sender_close(s);
        return rc;
    }
    for (unsigned i = 0; i < BATCH; i++)
        s->messages[i].msg_hdr.msg_iov = s->slots[i].parts;
    *out = s;
    return 0;
}

void zn_packet_sender_close(zn_packet_sender *s)
{
    if (s == NULL)
        return;
    if (s->fd >= 0)
        (void)close(s->fd);
    zn_heap_free(s);
}

/* ---- segments above the MTU ---- */

/* Reads the IP header of a frame that holds one TCP segment and nothing behind it; returns false
 * for any other. */
static bool read_ipv4(zn_cursor *c, segment *out)
{
    const size_t left = zn_cursor_left(c);
    zn_span header = zn_cursor_take(c, IPV4_BYTES);
    size_t n;
    if (!zn_cursor_ok(c))
        return false;
    n = (zn_header_u8(header, 0) & 0xfu) * (size_t)4;
    if (zn_header_u8(header, 0) >> 4 != 4 || n < IPV4_BYTES ||
        zn_header_be16(header, IPV4_LENGTH) != left ||
        (zn_header_be16(header, IPV4_FRAGMENT) & FRAGMENT_BITS) != 0 ||
        zn_header_u8(header, IPV4_PROTOCOL) != IPPROTO_TCP)
        return false;
    zn_cursor_skip(c, n - IPV4_BYTES);
    out->id = zn_header_be16(header, IPV4_ID);
    out->counts_ids = (zn_header_be16(header, IPV4_FRAGMENT) & NO_FRAGMENTS) == 0;
    out->transport = ETHERNET_BYTES + n;
    return true;
}

static bool read_ipv6(zn_cursor *c, segment *out)
{
    const size_t left = zn_cursor_left(c);
    zn_span header = zn_cursor_take(c, IPV6_BYTES);
    if (!zn_cursor_ok(c) || zn_header_u8(header, 0) >> 4 != 6 ||
        zn_header_be16(header, IPV6_LENGTH) + (size_t)IPV6_BYTES != left ||
        zn_header_u8(header, IPV6_PROTOCOL) != IPPROTO_TCP)
        return false;
    out->is_v6 = true;
    out->transport = ETHERNET_BYTES + IPV6_BYTES;
    return true;
}

/* Reads the headers of a TCP segment with payload; returns false for other frames. */
static bool read_segment(const zn_frame *frame, segment *out)
{
    zn_cursor c = zn_cursor_over(frame->data, frame->captured, true);
    zn_span header = zn_cursor_take(&c, ETHERNET_BYTES);
    uint16_t type;
    size_t n;
    if (!zn_cursor_ok(&c))
        return false;
    *out = (segment){0};
    type = zn_header_be16(header, 12);
    if (!(type == 0x0800 && read_ipv4(&c, out)) && !(type == 0x86dd && read_ipv6(&c, out)))
        return false;
    header = zn_cursor_take(&c, TCP_BYTES);
    if (!zn_cursor_ok(&c))
        return false;
    n = (zn_header_u8(header, TCP_OFFSET) >> 4) * (size_t)4;
    out->sequence = zn_header_be32(header, TCP_SEQUENCE);
    out->flags = zn_header_u8(header, TCP_FLAGS);
    out->payload = out->transport + n;
    return n >= TCP_BYTES && out->payload < frame->captured && (out->flags & SYN) == 0;
}

static void set_be16(uint8_t *at, size_t value)
{
    at[0] = (uint8_t)(value >> 8);
    at[1] = (uint8_t)value;
}

/* Adds bytes to a checksum's sum in the byte order of this machine (RFC 1071, 2). All bytes before
 * them are of even number. */
static uint64_t add(uint64_t sum, const uint8_t *bytes, size_t n)
{
    uint32_t word;
    size_t i = 0;
    for (; i + sizeof word <= n; i += sizeof word) {
        memcpy(&word, bytes + i, sizeof word);
        sum += word;
    }
    word = 0;
    memcpy(&word, bytes + i, n - i);
    return sum + word;
}

static void set_checksum(uint8_t *at, uint64_t sum)
{
    uint16_t value;
    while (sum >> 16 != 0)
        sum = (sum & 0xffff) + (sum >> 16);
    value = (uint16_t)~sum;
    memcpy(at, &value, sizeof value);
}

static uint64_t pseudo_header(const uint8_t *ip, bool is_v6, size_t bytes)
{
    uint8_t rest[4] = {0, IPPROTO_TCP};
    uint64_t sum = is_v6 ? add(0, ip + IPV6_ADDRESSES, 32) : add(0, ip + IPV4_ADDRESSES, 8);
    set_be16(rest + 2, bytes);
    return add(sum, rest, sizeof rest);
}

/* Fills a slot with the part of a segment's payload at `at`, the `index`-th, of n bytes. */
static void put_part(slot *to, const zn_frame *frame, const segment *whole, size_t at, size_t n,
                     size_t index)
{
    const uint8_t *payload = frame->data + whole->payload + at;
    const size_t headers = whole->payload - ETHERNET_BYTES;
    const uint32_t sequence = htobe32(whole->sequence + (uint32_t)at);
    uint8_t *ip = to->headers + ETHERNET_BYTES, *tcp = to->headers + whole->transport;
    uint64_t sum;
    memcpy(to->headers, frame->data, whole->payload);
    to->is_last = whole->payload + at + n == frame->captured;
    if (whole->is_v6) {
        set_be16(ip + IPV6_LENGTH, headers + n - IPV6_BYTES);
    } else {
        set_be16(ip + IPV4_LENGTH, headers + n);
        set_be16(ip + IPV4_ID, whole->id + (whole->counts_ids ? index : 0));
        set_be16(ip + IPV4_CHECKSUM, 0);
        set_checksum(ip + IPV4_CHECKSUM, add(0, ip, whole->transport - ETHERNET_BYTES));
    }
    memcpy(tcp + TCP_SEQUENCE, &sequence, sizeof sequence);
    if (index != 0)
        tcp[TCP_FLAGS] &= (uint8_t)~CWR;
    if (!to->is_last)
        tcp[TCP_FLAGS] &= (uint8_t)~(FIN | PSH);
    set_be16(tcp + TCP_CHECKSUM, 0);
    sum = pseudo_header(ip, whole->is_v6, whole->payload - whole->transport + n);
    sum = add(sum, tcp, whole->payload - whole->transport);
    set_checksum(tcp + TCP_CHECKSUM, add(sum, payload, n));
    to->parts[0] = (struct iovec){to->headers, whole->payload};
    to->parts[1] = (struct iovec){(uint8_t *)(uintptr_t)payload, n};
}

/* Puts a TCP segment above the MTU into slots, which are all free, as several; returns false for a
 * frame that cannot be cut. */
static bool put_segments(zn_packet_sender *s, const zn_frame *frame)
{
    segment whole;
    size_t headers, most, bytes;
    if (!read_segment(frame, &whole))
        return false;
    headers = whole.payload - ETHERNET_BYTES;
    bytes = frame->captured - whole.payload;
    most = s->mtu > headers ? s->mtu - headers : 0;
    if (whole.payload > HEADERS_MAX || bytes > most * BATCH)
        return false;
    for (size_t at = 0; at < bytes; at += most) {
        slot *to = &s->slots[s->waiting];
        put_part(to, frame, &whole, at, bytes - at < most ? bytes - at : most, s->waiting);
        to->frame_bytes = frame->captured;
        s->messages[s->waiting++].msg_hdr.msg_iovlen = 2;
    }
    return true;
}

/* ---- send ---- */

static bool is_long(const zn_packet_sender *s, const zn_frame *frame)
{
    return frame->captured > s->mtu + ETHERNET_BYTES;
}

/* Puts a frame into the next slot, or counts it as an error. All slots are free for a long one. */
static void put_frame(zn_packet_sender *s, const zn_frame *frame)
{
    slot *to = &s->slots[s->waiting];
    if (frame->captured != frame->wire || frame->captured < ETHERNET_BYTES) {
        s->counts.error++;
        return;
    }
    if (is_long(s, frame) && put_segments(s, frame))
        return;
    /* The system rejects what is too long, and knows of tags. */
    to->parts[0] = (struct iovec){(uint8_t *)(uintptr_t)frame->data, frame->captured};
    to->frame_bytes = frame->captured;
    to->is_last = true;
    s->messages[s->waiting++].msg_hdr.msg_iovlen = 1;
}

/* Waits for space in the queue; returns false when the frame at hand has waited long enough. */
static bool wait_for_space(zn_packet_sender *s)
{
    const struct timespec some = {0, RETRY_NS};
    if (s->gives_up || s->waited_ns >= s->patience_ns) {
        s->gives_up = true;
        return false;
    }
    s->waited_ns += RETRY_NS;
    (void)nanosleep(&some, NULL);
    return true;
}

static int gone(const zn_packet_sender *s, int number, zn_error *err)
{
    const char *what = number == ENETDOWN ? "went down" : "is gone";
    return zn_fail(err, ZN_ERR_IO, number, "interface %.32s %s: no packets can be sent there",
                   s->interface, what);
}

/* Handles the errno of the frame that the system did not take. Sets *done when the frame is
 * counted; otherwise it is to be tried again. Returns 0, or a negative zn_err. */
static int explain(zn_packet_sender *s, int number, bool *done, zn_error *err)
{
    *done = true;
    switch (number) {
    case EINTR:
        *done = false;
        return 0;
    case ENOBUFS:
    case EAGAIN:
        *done = !wait_for_space(s);
        s->counts.full += *done;
        return 0;
    case EMSGSIZE: /* above the MTU */
        s->counts.oversize++;
        return 0;
    case ENETDOWN: /* reported once for each time that it went down, also if it came up again */
        *done = false;
        return is_up(s) ? 0 : gone(s, number, err);
    case ENXIO:
    case ENODEV:
        *done = false;
        return gone(s, number, err);
    default:
        s->counts.error++;
        return 0;
    }
}

static void count_sent(zn_packet_sender *s, unsigned from, unsigned n)
{
    for (unsigned i = from; i < from + n; i++)
        if (s->slots[i].is_last) {
            s->counts.sent++;
            s->counts.bytes += s->slots[i].frame_bytes;
        }
    s->waited_ns = 0;
}

/* Sends what is in the slots. On an error the rest is counted. */
static int flush(zn_packet_sender *s, zn_error *err)
{
    unsigned at = 0;
    int rc = 0;
    while (rc == 0 && at < s->waiting) {
        int n = sendmmsg(s->fd, s->messages + at, s->waiting - at, MSG_DONTWAIT);
        bool done = false;
        if (n > 0) {
            count_sent(s, at, (unsigned)n);
            at += (unsigned)n;
            continue;
        }
        rc = explain(s, n < 0 ? errno : EAGAIN, &done, err);
        if (done) {
            s->waited_ns = 0;
            while (!s->slots[at++].is_last) /* the rest of a frame stays, too */
                ;
        }
    }
    for (; at < s->waiting; at++)
        s->counts.error += s->slots[at].is_last;
    s->waiting = 0;
    return rc;
}

int zn_packet_sender_send(zn_packet_sender *s, zn_span records, zn_error *err)
{
    zn_frame frame;
    size_t at = 0;
    int rc = 0;
    s->gives_up = false;
    s->waited_ns = 0;
    read_mtu(s);
    while (zn_packet_file_next(records, &at, &frame)) {
        if (rc == 0 && is_long(s, &frame))
            rc = flush(s, err);
        if (rc != 0) {
            s->counts.error++;
            continue;
        }
        put_frame(s, &frame);
        if (s->waiting == BATCH)
            rc = flush(s, err);
    }
    return rc == 0 ? flush(s, err) : rc;
}

zn_packet_sender_counts zn_packet_sender_get_counts(const zn_packet_sender *s)
{
    return s->counts;
}

bool zn_packet_sender_has_address(const zn_packet_sender *s)
{
    struct ifaddrs *all;
    bool has = false;
    if (getifaddrs(&all) != 0)
        return false;
    for (const struct ifaddrs *one = all; one != NULL && !has; one = one->ifa_next)
        has = one->ifa_addr != NULL && strcmp(one->ifa_name, s->interface) == 0 &&
              (one->ifa_addr->sa_family == AF_INET || one->ifa_addr->sa_family == AF_INET6);
    freeifaddrs(all);
    return has;
}

#else

int zn_packet_sender_open(zn_packet_sender **out, const char *interface, int64_t patience_ns,
                          zn_error *err)
{
    (void)patience_ns;
    *out = NULL;
    return zn_fail(err, ZN_ERR_CONFIG, 0,
                   "interface %.32s: packets can only be sent to interfaces on Linux", interface);
}

void zn_packet_sender_close(zn_packet_sender *s)
{
    (void)s;
}

int zn_packet_sender_send(zn_packet_sender *s, zn_span records, zn_error *err)
{
    (void)s, (void)records, (void)err;
    return 0;
}

zn_packet_sender_counts zn_packet_sender_get_counts(const zn_packet_sender *s)
{
    (void)s;
    return (zn_packet_sender_counts){0};
}

bool zn_packet_sender_has_address(const zn_packet_sender *s)
{
    (void)s;
    return false;
}

#endif
