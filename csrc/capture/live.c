/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/live.h"

#include "util/arena.h"

#include <errno.h>
#include <pcap/pcap.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#ifdef __linux__
#include <linux/filter.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#endif

#define TAG_BYTES 4 /* libpcap puts a VLAN tag back into a frame after it was cut */
#define NO_GROUP (-1)
/* Bytes of a frame beyond the MTU: an Ethernet header, two tags, and a check sequence if the card
 * keeps the check sequence. */
#define MORE_THAN_MTU 26u

struct zn_live {
    pcap_t *handle;
    uint32_t link_type;
    uint32_t slot_bytes; /* longest frame with its tag */
    uint32_t longest;    /* zn_live_longest */
    uint8_t *bytes;      /* the bytes of the batch's frames, back to back */
    size_t used;
    int taken;
    zn_live_counts counts;
    uint32_t seen_received, seen_dropped; /* libpcap's counters at the last look at them */
    int fanout_group;
    int64_t stopped_ns; /* monotonic clock of the last zn_live_stop; 0: none worked */
#ifdef __linux__
    struct sock_filter *program; /* the filter in the system's form, see prepare_filter */
    unsigned short program_length;
#endif
    zn_frame frames[ZN_LIVE_BATCH];
};

static size_t batch_bytes(const zn_live *l)
{
    return (size_t)l->slot_bytes * ZN_LIVE_BATCH;
}

/* Returns the LINKTYPE_* of a DLT_*. Among the link types of interfaces, only these numbers
 * differ. */
static uint32_t link_type_of(int data_link)
{
    switch (data_link) {
    case DLT_RAW:
        return 101;
    case DLT_LOOP:
        return 108;
    default:
        return (uint32_t)data_link;
    }
}

static int explain(const zn_live *l, const char *interface, int status, zn_error *err)
{
    switch (status) {
    case PCAP_ERROR_PERM_DENIED:
    case PCAP_ERROR_PROMISC_PERM_DENIED:
        return zn_fail(err, ZN_ERR_IO, EPERM,
                       "interface %.32s cannot be opened: the capability CAP_NET_RAW is missing",
                       interface);
    case PCAP_ERROR_NO_SUCH_DEVICE:
        return zn_fail(err, ZN_ERR_IO, ENODEV, "there is no interface %.32s", interface);
    case PCAP_ERROR_IFACE_NOT_UP:
        return zn_fail(err, ZN_ERR_IO, ENETDOWN,
                       "interface %.32s is down; bring it up: ip link set dev %.32s up", interface,
                       interface);
    default:
        return zn_fail(err, ZN_ERR_IO, 0, "interface %.32s cannot be opened: %.160s", interface,
                       status == PCAP_ERROR ? pcap_geterr(l->handle) : pcap_statustostr(status));
    }
}

/* Returns 0, or the status of the setting that libpcap rejected. */
static int set_up(pcap_t *handle, const zn_live_config *config)
{
    int status = pcap_set_snaplen(handle, (int)config->snaplen);
    if (status == 0)
        status = pcap_set_promisc(handle, config->promiscuous);
    if (status == 0)
        status = pcap_set_timeout(handle, ZN_LIVE_BLOCK_MS);
    if (status == 0)
        status = pcap_set_buffer_size(handle, (int)config->ring_bytes);
    if (status == 0)
        status = pcap_set_tstamp_precision(handle, PCAP_TSTAMP_PRECISION_NANO);
    /* A system without nanoseconds uses microseconds; time_of looks up the unit. */
    return status == PCAP_ERROR_TSTAMP_PRECISION_NOTSUP ? 0 : status;
}

/*
 * Has the system leave out frames that go out of a loopback interface: each comes in again, and
 * libpcap drops the first of the two. In the ring it would take a place, and be counted as received
 * or lost.
 */
static void ignore_outgoing_loopback(const zn_live *l, const char *interface)
{
#if defined(__linux__) && defined(PACKET_IGNORE_OUTGOING)
    struct ifreq about = {0};
    const int yes = 1;
    int fd = pcap_fileno(l->handle);
    (void)snprintf(about.ifr_name, sizeof about.ifr_name, "%s", interface);
    if (ioctl(fd, SIOCGIFFLAGS, &about) == 0 && (about.ifr_flags & IFF_LOOPBACK) != 0)
        (void)setsockopt(fd, SOL_PACKET, PACKET_IGNORE_OUTGOING, &yes, sizeof yes);
#else
    (void)l, (void)interface;
#endif
}

/* Returns zn_live_longest of an interface. */
static uint32_t longest_of(const zn_live *l, const char *interface)
{
#ifdef __linux__
    struct ifreq about = {0};
    (void)snprintf(about.ifr_name, sizeof about.ifr_name, "%s", interface);
    if (ioctl(pcap_fileno(l->handle), SIOCGIFMTU, &about) == 0 && about.ifr_mtu > 0)
        return (uint32_t)about.ifr_mtu + MORE_THAN_MTU;
#else
    (void)l, (void)interface;
#endif
    return UINT32_MAX;
}

static int activate(zn_live *l, const zn_live_config *config, zn_error *err)
{
    char text[PCAP_ERRBUF_SIZE];
    int status;
    l->handle = pcap_create(config->interface, text);
    if (l->handle == NULL)
        return zn_fail(err, ZN_ERR_IO, 0, "interface %.32s cannot be opened: %.160s",
                       config->interface, text);
    status = set_up(l->handle, config);
    if (status == 0)
        status = pcap_activate(l->handle);
    if (status < 0)
        return explain(l, config->interface, status, err);
    if (pcap_setnonblock(l->handle, 1, text) != 0)
        return zn_fail(err, ZN_ERR_IO, 0, "interface %.32s: %.160s", config->interface, text);
    l->link_type = link_type_of(pcap_datalink(l->handle));
    l->longest = longest_of(l, config->interface);
    ignore_outgoing_loopback(l, config->interface);
    return 0;
}

static int set_filter(zn_live *l, const char *expression, zn_error *err)
{
    struct bpf_program code;
    int rc;
    if (pcap_compile(l->handle, &code, expression, 1, PCAP_NETMASK_UNKNOWN) != 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the filter is not valid: %.160s; see pcap-filter(7)",
                       pcap_geterr(l->handle));
    rc = pcap_setfilter(l->handle, &code);
    pcap_freecode(&code);
    if (rc != 0)
        return zn_fail(err, ZN_ERR_IO, 0, "the filter cannot be set: %.160s",
                       pcap_geterr(l->handle));
    return 0;
}

/*
 * Sets the filter, keeps the system's form of it for apply_filter, and removes it again.
 *
 * After libpcap has given a filter to the system, libpcap itself filters the frames in the ring and
 * some later frames. It drops all these frames if the filter needs facts that only the system
 * knows, such as `inbound`. So libpcap gives the filter to the system before the ring is emptied,
 * and then a filter that accepts all frames. If the system cannot filter, libpcap filters later.
 */
static int prepare_filter(zn_live *l, const char *expression, zn_error *err)
{
#ifdef __linux__
    int fd = pcap_fileno(l->handle), rc;
    socklen_t n = 0; /* of instructions */
    if (expression[0] == '\0')
        return 0;
    rc = set_filter(l, expression, err);
    if (rc != 0 || getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, NULL, &n) != 0 || n == 0)
        return rc;
    l->program = zn_heap_alloc(n * sizeof *l->program);
    if (l->program == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a filter");
    if (getsockopt(fd, SOL_SOCKET, SO_GET_FILTER, l->program, &n) == 0)
        l->program_length = (unsigned short)n;
    return set_filter(l, "", err);
#else
    (void)l, (void)expression, (void)err;
    return 0;
#endif
}

static int apply_filter(zn_live *l, const char *expression, zn_error *err)
{
#ifdef __linux__
    struct sock_fprog program = {l->program_length, l->program};
    if (l->program_length != 0) {
        if (setsockopt(pcap_fileno(l->handle), SOL_SOCKET, SO_ATTACH_FILTER, &program,
                       sizeof program) == 0)
            return 0;
        return zn_fail(err, ZN_ERR_IO, errno, "the filter cannot be set: %s", strerror(errno));
    }
#endif
    return l->fanout_group == NO_GROUP && expression[0] == '\0' ? 0
                                                                : set_filter(l, expression, err);
}

static const char *filter_of(const zn_live_config *config)
{
    return config->filter == NULL ? "" : config->filter;
}

/* Stops the handle, and has it share the interface's frames with the other handles. */
static int join(zn_live *l, const zn_live_config *config, zn_error *err)
{
#ifdef __linux__
    /* no PACKET_FANOUT_FLAG_DEFRAG: the decoder does that, and counts */
    const uint32_t kind = PACKET_FANOUT_HASH;
    uint32_t value = config->sibling != NULL ? kind << 16 | (uint32_t)config->sibling->fanout_group
                                             : (kind | PACKET_FANOUT_FLAG_UNIQUEID) << 16;
    socklen_t length = sizeof value;
    zn_live_stop(l);
    if (setsockopt(pcap_fileno(l->handle), SOL_PACKET, PACKET_FANOUT, &value, sizeof value) != 0 ||
        getsockopt(pcap_fileno(l->handle), SOL_PACKET, PACKET_FANOUT, &value, &length) != 0)
        return zn_fail(err, ZN_ERR_IO, errno, "interface %.32s cannot be shared by workers: %s",
                       config->interface, strerror(errno));
    l->fanout_group = (int)(value & 0xffff);
    return 0;
#else
    (void)l;
    return zn_fail(err, ZN_ERR_CONFIG, 0, "interface %.32s can only be shared by workers on Linux",
                   config->interface);
#endif
}

static int64_t now_ns(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * ZN_NS_PER_S + now.tv_nsec;
}

int zn_live_begin(zn_live *l, const zn_live_config *config, zn_error *err)
{
    const int64_t whole_ns = l->stopped_ns + ZN_LIVE_WHOLE_MS * ZN_NS_PER_MS;
    const zn_frame *frames;
    int n;
    for (int64_t now = now_ns(); now < whole_ns; now = now_ns()) {
        struct timespec rest = {0, (long)(whole_ns - now)};
        (void)nanosleep(&rest, NULL);
    }
    do { /* of a ring that could not be stopped, only one batch */
        n = zn_live_next(l, &frames, err);
    } while (n > 0 && l->stopped_ns != 0);
    (void)zn_live_get_counts(l);
    memset(&l->counts, 0, sizeof l->counts);
    return n < 0 ? n : apply_filter(l, filter_of(config), err);
}

/* Begins with the filter set: frames from before it are neither delivered nor counted, where the
 * system can be stopped. */
static int begin_filtered(zn_live *l, const zn_live_config *config, zn_error *err)
{
    const char *filter = filter_of(config);
    if (filter[0] == '\0')
        return 0;
    zn_live_stop(l);
    return l->stopped_ns != 0 ? zn_live_begin(l, config, err) : apply_filter(l, filter, err);
}

int zn_live_open(zn_live **out, const zn_live_config *config, zn_error *err)
{
    zn_live *l;
    int rc;
    *out = NULL;
    if (config->snaplen == 0 || config->snaplen > ZN_FRAME_MAX || config->ring_bytes > INT32_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the snapshot length or the ring is out of range");
    l = zn_heap_alloc(sizeof *l);
    if (l == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an interface");
    l->slot_bytes = config->snaplen + TAG_BYTES;
    l->fanout_group = NO_GROUP;
    l->bytes = zn_block_alloc(batch_bytes(l));
    rc = l->bytes == NULL ? zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for an interface")
                          : activate(l, config, err);
    if (rc == 0)
        rc = prepare_filter(l, filter_of(config), err);
    if (rc == 0)
        rc = config->fanout ? join(l, config, err) : begin_filtered(l, config, err);
    if (rc != 0)
        zn_live_close(l);
    else
        *out = l;
    return rc;
}

void zn_live_close(zn_live *l)
{
    if (l == NULL)
        return;
    if (l->handle != NULL)
        pcap_close(l->handle);
#ifdef __linux__
    zn_heap_free(l->program);
#endif
    zn_block_free(l->bytes, batch_bytes(l));
    zn_heap_free(l);
}

static int64_t time_of(zn_live *l, const struct pcap_pkthdr *header)
{
    bool fine = pcap_get_tstamp_precision(l->handle) == PCAP_TSTAMP_PRECISION_NANO;
    int64_t seconds = header->ts.tv_sec, rest = header->ts.tv_usec;
    if (seconds < 0 || seconds >= INT64_MAX / ZN_NS_PER_S || rest < 0)
        return -1;
    return seconds * ZN_NS_PER_S + (fine ? rest : rest * 1000);
}

/* libpcap calls this for each frame, whose bytes are the kernel's again when it returns. */
static void take(u_char *to, const struct pcap_pkthdr *header, const u_char *bytes)
{
    zn_live *l = (zn_live *)(void *)to;
    uint32_t n = header->caplen < l->slot_bytes ? header->caplen : l->slot_bytes;
    zn_frame *f;
    ZN_ASSERT(l->taken < ZN_LIVE_BATCH);
    f = &l->frames[l->taken++];
    memcpy(l->bytes + l->used, bytes, n);
    f->data = l->bytes + l->used;
    f->t_ns = time_of(l, header);
    f->captured = n;
    f->wire = header->len < n ? n : header->len;
    f->link_type = l->link_type;
    l->used += n;
}

int zn_live_next(zn_live *l, const zn_frame **frames, zn_error *err)
{
    int rc;
    l->used = 0;
    l->taken = 0;
    *frames = l->frames;
    rc = pcap_dispatch(l->handle, ZN_LIVE_BATCH, take, (u_char *)l);
    l->counts.frames += (uint64_t)l->taken;
    l->counts.bytes += l->used;
    if (rc < 0 && l->taken == 0)
        return zn_fail(err, ZN_ERR_IO, 0, "%.160s", pcap_geterr(l->handle));
    return l->taken;
}

int zn_live_descriptor(const zn_live *l)
{
    return pcap_get_selectable_fd(l->handle);
}

uint32_t zn_live_link_type(const zn_live *l)
{
    return l->link_type;
}

uint32_t zn_live_longest(const zn_live *l)
{
    return l->longest;
}

void zn_live_stop(zn_live *l)
{
#ifdef __linux__
    /* Not by pcap_setfilter, which also drops the frames that are in the ring. */
    struct sock_filter nothing = {BPF_RET | BPF_K, 0, 0, 0};
    struct sock_fprog program = {1, &nothing};
    if (setsockopt(pcap_fileno(l->handle), SOL_SOCKET, SO_ATTACH_FILTER, &program,
                   sizeof program) == 0)
        l->stopped_ns = now_ns();
#else
    (void)l;
#endif
}

zn_live_counts zn_live_get_counts(zn_live *l)
{
    struct pcap_stat now;
    if (pcap_stats(l->handle, &now) == 0) {
        l->counts.received += (uint32_t)(now.ps_recv - l->seen_received);
        l->counts.dropped += (uint32_t)(now.ps_drop - l->seen_dropped);
        l->seen_received = now.ps_recv;
        l->seen_dropped = now.ps_drop;
    }
    return l->counts;
}
