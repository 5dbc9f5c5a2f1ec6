/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Passive monitor that prints each name when it is released: z users of 10.0.0.0/8 share the name.
 *   make lib && export PKG_CONFIG_PATH=build/lib/pkgconfig LD_LIBRARY_PATH=build/lib
 *   cc examples/c/monitor.c $(pkg-config --cflags --libs zanon libpcap) -o monitor
 *   ./monitor 20 capture.pcap     or, with CAP_NET_RAW:     ./monitor 20 eth0 */
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zanon/zanon.h>

#define BATCH 64 /* frames fed at once */
static zn_frame frames[BATCH];
static uint8_t bytes[BATCH][ZN_FRAME_MAX]; /* copies: libpcap lends a frame for one callback only */
static size_t count, live;                 /* live: from an interface, with times in us */

static void add(u_char *source, const struct pcap_pkthdr *header, const u_char *data)
{
    int64_t ns = header->ts.tv_usec * (live ? 1000 : 1) + header->ts.tv_sec * ZN_NS_PER_S;
    uint32_t n = header->caplen < ZN_FRAME_MAX ? header->caplen : ZN_FRAME_MAX; /* D-Bus: longer */
    frames[count] = (zn_frame){memcpy(bytes[count], data, n), ns, n, header->len,
                               (uint32_t)pcap_datalink((pcap_t *)(void *)source)};
    count++;
}

int main(int argc, char **argv)
{
    zn_engine_config config = zn_engine_default_config();
    zn_engine *engine;
    zn_error error;
    zn_net users;
    char text[PCAP_ERRBUF_SIZE];
    pcap_t *source;
    int got = 1, rc = 0;
    if (argc != 3 || (config.z = (uint32_t)atoll(argv[1])) == 0 || config.z != atoll(argv[1]))
        return fprintf(stderr, "usage: %s Z CAPTURE|INTERFACE\n", argv[0]), 2;
    config.outputs = 1u << ZN_OUTPUT_OBSERVATIONS;
    config.internal = &users, config.internal_count = 1;
    live = access(argv[2], F_OK) != 0;
    source = live ? pcap_open_live(argv[2], 65535, 1, 100, text)
                  : pcap_open_offline_with_tstamp_precision(argv[2], 1, text); /* ns */
    if (source == NULL || zn_net_parse(&users, "10.0.0.0/8", &error) != 0 ||
        zn_engine_open(&engine, &config, &error) != 0)
        return fprintf(stderr, "%s\n", source == NULL ? text : error.msg), 1;
    for (; fflush(stdout) == 0 && (got > 0 || (live && got == 0)); count = 0) {
        got = pcap_dispatch(source, BATCH, add, (u_char *)source);
        if ((rc = zn_engine_feed(engine, frames, count, &error)) != 0)
            break; /* after an error an engine can only be closed */
        zn_span names = zn_outputs_take(engine, ZN_OUTPUT_OBSERVATIONS);
        fwrite(names.p, 1, names.n, stdout);
    }
    if (rc != 0 || got < 0)
        fprintf(stderr, "%s\n", rc != 0 ? error.msg : pcap_geterr(source));
    else if (ferror(stdout))
        perror("standard output");
    zn_engine_close(engine); /* wipes the keys */
    return rc != 0 || got < 0 || ferror(stdout);
}
