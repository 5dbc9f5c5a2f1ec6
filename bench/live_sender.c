/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sends the frames of a pcap file into an interface, over and over, for a time and up to a count,
 * as fast as it goes or at a rate. Prints how many it sent, their bytes and the seconds it took.
 *
 *   live_sender INTERFACE CAPTURE SECONDS COUNT PACKETS_PER_SECOND(0: as fast as it goes)
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <time.h>

#define BATCH 64

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static int open_interface(const char *name)
{
    struct sockaddr_ll to = {.sll_family = AF_PACKET};
    int fd = socket(AF_PACKET, SOCK_RAW, 0), yes = 1;
    to.sll_ifindex = (int)if_nametoindex(name);
    if (fd < 0 || bind(fd, (struct sockaddr *)&to, sizeof to) != 0)
        return -1;
    (void)setsockopt(fd, SOL_PACKET, PACKET_QDISC_BYPASS, &yes, sizeof yes);
    return fd;
}

/* The next BATCH frames from *at on, back to the start at the end; returns their bytes. */
static uint64_t gather(uint8_t *file, size_t size, size_t *at, struct mmsghdr *messages)
{
    static struct iovec parts[BATCH];
    uint64_t octets = 0;
    for (int i = 0; i < BATCH; i++) {
        uint32_t n;
        if (*at + 16 > size)
            *at = 24;
        memcpy(&n, file + *at + 8, sizeof n);
        if (*at + 16 + n > size) {
            *at = 24;
            memcpy(&n, file + *at + 8, sizeof n);
        }
        parts[i] = (struct iovec){file + *at + 16, n};
        messages[i].msg_hdr.msg_iov = &parts[i];
        messages[i].msg_hdr.msg_iovlen = 1;
        *at += 16 + n;
        octets += n;
    }
    return octets;
}

int main(int argc, char **argv)
{
    struct mmsghdr messages[BATCH] = {0};
    struct stat status;
    size_t at = 24;
    int file, to;
    if (argc != 6)
        return 2;
    to = open_interface(argv[1]);
    file = open(argv[2], O_RDONLY | O_CLOEXEC);
    if (to < 0 || file < 0 || fstat(file, &status) != 0 || status.st_size < 64) {
        perror(to < 0 ? argv[1] : argv[2]);
        return 1;
    }
    size_t size = (size_t)status.st_size;
    uint8_t *bytes = mmap(NULL, size, PROT_READ, MAP_PRIVATE | MAP_POPULATE, file, 0);
    double seconds = strtod(argv[3], NULL), rate = strtod(argv[5], NULL), began = now();
    uint64_t count = strtoull(argv[4], NULL, 10), sent = 0, octets = 0, lost = 0;
    if (bytes == MAP_FAILED)
        return 1;
    while (sent + BATCH <= count && now() - began < seconds) {
        uint64_t batch = gather(bytes, size, &at, messages);
        int done = 0;
        while (done < BATCH) {
            int n = sendmmsg(to, messages + done, (unsigned)(BATCH - done), 0);
            if (n < 0 && errno != ENOBUFS && errno != EAGAIN) {
                perror("sendmmsg");
                return 1;
            }
            if (n < 0) { /* the far end's queue is full: this one is lost on the way */
                lost++;
                n = 1;
            }
            done += n;
        }
        sent += BATCH;
        octets += batch;
        while (rate > 0 && (double)sent / rate > now() - began) {
            struct timespec pause = {0, 100000};
            (void)nanosleep(&pause, NULL);
        }
    }
    printf("%llu %llu %llu %.6f\n", (unsigned long long)sent, (unsigned long long)octets,
           (unsigned long long)lost, now() - began);
    return 0;
}
