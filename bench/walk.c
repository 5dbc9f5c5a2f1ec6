/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What it costs to read a pcap at all: walk its records and touch each packet's first bytes.
 *
 * Usage: walk map|read TRACE. `map`: mapped, pages populated 2 MiB at a time and given back, every
 * line fetched 4 KiB ahead. `read`: by reads of 256 KiB. Prints packets, bytes of packets and CPU
 * seconds.
 */
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define HEADER_BYTES 24u
#define RECORD_BYTES 16u
#define TOUCHED 48u
#define AHEAD 4096u
#define LINE 64u
#define WINDOW ((size_t)2 << 20)
#define MARGIN ((size_t)512 << 10)
#define READ ((size_t)256 << 10)

static uint64_t packets, octets, sum;

/* Walks the whole records of n bytes; returns how many bytes they are. */
static size_t walk(const uint8_t *bytes, size_t n, size_t upto)
{
    size_t at = 0, fetched = 0;
    while (at < upto && n - at >= RECORD_BYTES + TOUCHED) {
        uint32_t captured;
        for (; fetched < at + AHEAD && fetched < n; fetched += LINE)
            __builtin_prefetch(bytes + fetched);
        memcpy(&captured, bytes + at + 8, sizeof captured);
        if (n - at - RECORD_BYTES < captured)
            break;
        sum += (uint64_t)bytes[at + RECORD_BYTES + 12] + bytes[at + RECORD_BYTES + TOUCHED - 1];
        at += RECORD_BYTES + captured;
        octets += captured;
        packets++;
    }
    return at;
}

static void walk_map(int fd, size_t total)
{
    uint8_t *map = mmap(NULL, total, PROT_READ, MAP_SHARED, fd, 0);
    size_t at = HEADER_BYTES, moved = 1;
    if (map == MAP_FAILED)
        exit(1);
    for (size_t populated = 0; moved != 0; at += moved) {
        size_t begin = at - at % WINDOW, n = total - begin;
        if (n > WINDOW + MARGIN)
            n = WINDOW + MARGIN;
        if (begin > 2 * WINDOW)
            (void)madvise(map + begin - 2 * WINDOW, WINDOW, MADV_DONTNEED);
        for (; populated < begin + n; populated += WINDOW)
            (void)madvise(map + populated, total - populated < WINDOW ? total - populated : WINDOW,
                          MADV_POPULATE_READ);
        moved = walk(map + at, n - (at - begin), WINDOW - (at - begin));
    }
    (void)munmap(map, total);
}

static void walk_read(int fd)
{
    uint8_t *buffer = malloc(READ + MARGIN);
    size_t left = 0;
    ssize_t got;
    if (buffer == NULL || lseek(fd, HEADER_BYTES, SEEK_SET) < 0)
        exit(1);
    while ((got = read(fd, buffer + left, READ)) > 0) {
        size_t all = left + (size_t)got, used = walk(buffer, all, all);
        left = all - used;
        memmove(buffer, buffer + used, left);
    }
    free(buffer);
}

static double cpu_s(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

int main(int count, char **args)
{
    int fd = count == 3 ? open(args[2], O_RDONLY) : -1;
    struct stat st;
    double began;
    if (fd < 0 || fstat(fd, &st) != 0) {
        (void)fprintf(stderr, "usage: walk map|read TRACE\n");
        return 2;
    }
    began = cpu_s();
    if (strcmp(args[1], "map") == 0)
        walk_map(fd, (size_t)st.st_size);
    else
        walk_read(fd);
    printf("{\"packets\": %llu, \"octets\": %llu, \"cpu_s\": %.6f, \"sum\": %llu}\n",
           (unsigned long long)packets, (unsigned long long)octets, cpu_s() - began,
           (unsigned long long)sum);
    return 0;
}
