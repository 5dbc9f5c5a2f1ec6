/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A passive monitor: prints each name that z users of 10.0.0.0/8 share, the moment it is released.
 *   make lib && export PKG_CONFIG_PATH=build/lib/pkgconfig
 *   cc examples/c/monitor.c $(pkg-config --cflags --libs zanon libpcap) -o monitor
 *   ./monitor 20 capture.pcap     or, with CAP_NET_RAW:     ./monitor 20 eth0 */
#include "engine/engine.h"

#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

int main(int argc, char **argv)
{
    static const zn_net users = {{{[10] = 0xff, [11] = 0xff, [12] = 10}}, 96 + 8};
    zn_engine_config config = zn_engine_default_config();
    zn_engine *engine;
    zn_error error;
    char text[PCAP_ERRBUF_SIZE];
    pcap_t *source;
    struct pcap_pkthdr *header;
    const u_char *bytes;
    int got = 0, rc = 0, tick_ns;

    if (argc != 3 || (config.z = (uint32_t)atoll(argv[1])) == 0 || config.z != atoll(argv[1])) {
        fprintf(stderr, "usage: %s Z CAPTURE|INTERFACE\n", argv[0]);
        return 2;
    }
    config.internal = &users;
    config.internal_count = 1;
    config.outputs = 1u << ZN_OUTPUT_OBSERVATIONS;
    if (access(argv[2], F_OK) == 0)
        source = pcap_open_offline_with_tstamp_precision(argv[2], PCAP_TSTAMP_PRECISION_NANO, text);
    else
        source = pcap_open_live(argv[2], 65535, 1, 100, text);
    if (source == NULL || zn_engine_open(&engine, &config, &error) != 0) {
        fprintf(stderr, "%s\n", source == NULL ? text : error.msg);
        return 1;
    }
    tick_ns = pcap_get_tstamp_precision(source) == PCAP_TSTAMP_PRECISION_NANO ? 1 : 1000;
    while (rc == 0 && fflush(stdout) == 0 && (got = pcap_next_ex(source, &header, &bytes)) >= 0) {
        zn_text *names = &zn_engine_outputs(engine)->text[ZN_OUTPUT_OBSERVATIONS];
        zn_frame frame = {.data = bytes,
                          .t_ns = header->ts.tv_sec * ZN_NS_PER_S + header->ts.tv_usec * tick_ns,
                          .captured = header->caplen,
                          .wire = header->len,
                          .link_type = (uint32_t)pcap_datalink(source)};
        rc = zn_engine_feed(engine, &frame, (size_t)got, &error); /* got is 0 or 1 */
        fwrite(names->bytes, 1, names->n, stdout);
        names->n = 0;
    }
    if (rc != 0 || got == PCAP_ERROR)
        fprintf(stderr, "%s\n", rc != 0 ? error.msg : pcap_geterr(source));
    else if (ferror(stdout))
        perror("standard output");
    zn_engine_close(engine); /* wipes the keys */
    pcap_close(source);
    return rc != 0 || got == PCAP_ERROR || ferror(stdout);
}
