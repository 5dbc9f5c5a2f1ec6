/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the packets of a capture, anonymized, one by one. Users are the hosts of 10.0.0.0/8.
 *   make lib && export PKG_CONFIG_PATH=build/lib/pkgconfig LD_LIBRARY_PATH=build/lib
 *   cc examples/c/packets.c $(pkg-config --cflags --libs zanon libpcap) -o packets
 *   ./packets 20 capture.pcap new.pcap     or, with pseudonyms by a key: ... new.pcap key
 */
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zanon/zanon.h>

#define BATCH 64 /* frames fed, and packets taken, at once */
static zn_frame frames[BATCH];
static uint8_t bytes[BATCH][ZN_FRAME_MAX]; /* copies: libpcap lends a frame for one callback only */
static size_t count;

static void add(u_char *source, const struct pcap_pkthdr *header, const u_char *data)
{
    int64_t ns = header->ts.tv_usec + header->ts.tv_sec * ZN_NS_PER_S; /* ns in tv_usec */
    uint32_t n = header->caplen < ZN_FRAME_MAX ? header->caplen : ZN_FRAME_MAX;
    frames[count] = (zn_frame){memcpy(bytes[count], data, n), ns, n, header->len,
                               (uint32_t)pcap_datalink((pcap_t *)(void *)source)};
    count++;
}

/* Writes the packets that have left the engine. The engine owns their bytes. */
static void write_packets(zn_engine *engine, pcap_dumper_t *file)
{
    zn_frame packets[BATCH];
    size_t n;
    int more;
    do {
        more = zn_engine_take_packets(engine, packets, BATCH, &n);
        for (size_t i = 0; i < n; i++) {
            struct pcap_pkthdr header = {.caplen = packets[i].captured, .len = packets[i].wire};
            header.ts.tv_sec = packets[i].t_ns / ZN_NS_PER_S;
            header.ts.tv_usec = packets[i].t_ns % ZN_NS_PER_S;
            pcap_dump((u_char *)file, &header, packets[i].data);
        }
    } while (more);
}

int main(int argc, char **argv)
{
    zn_engine_config config = zn_engine_default_config();
    zn_engine *engine;
    zn_error error;
    zn_net users;
    char text[PCAP_ERRBUF_SIZE];
    pcap_t *source, *ethernet;
    pcap_dumper_t *file;
    int got = 1, rc = 0, good;
    if (argc < 4 || argc > 5 || (config.z = (uint32_t)atoi(argv[1])) == 0)
        return fprintf(stderr, "usage: %s Z CAPTURE NEW [KEY]\n", argv[0]), 2;
    config.key_file = argv[4]; /* NULL: ephemeral keys */
    config.outputs = 1u << ZN_OUTPUT_PACKETS;
    config.internal = &users;
    config.internal_count = 1;
    source = pcap_open_offline_with_tstamp_precision(argv[2], PCAP_TSTAMP_PRECISION_NANO, text);
    if (source == NULL || zn_net_parse(&users, "10.0.0.0/8", &error) != 0 ||
        zn_engine_open(&engine, &config, &error) != 0)
        return fprintf(stderr, "%s\n", source == NULL ? text : error.msg), 1;
    ethernet =
        pcap_open_dead_with_tstamp_precision(DLT_EN10MB, ZN_FRAME_MAX, PCAP_TSTAMP_PRECISION_NANO);
    file = pcap_dump_open(ethernet, argv[3]);
    if (file == NULL)
        return fprintf(stderr, "%s\n", pcap_geterr(ethernet)), 1;
    while (rc == 0 && got > 0) {
        got = pcap_dispatch(source, BATCH, add, (u_char *)source);
        rc = zn_engine_feed(engine, frames, count, &error);
        write_packets(engine, file);
        count = 0;
    }
    do { /* takes delayed packets, as many at a time as fit into the output */
        rc = rc < 0 ? rc : zn_engine_finish(engine, &error);
        write_packets(engine, file);
    } while (rc > 0);
    good = fflush(pcap_dump_file(file)) == 0;
    if (rc < 0 || got < 0 || !good)
        fprintf(stderr, "%s\n", rc < 0 ? error.msg : got < 0 ? pcap_geterr(source) : "no room");
    zn_engine_close(engine); /* wipes the keys */
    return rc < 0 || got < 0 || !good;
}
