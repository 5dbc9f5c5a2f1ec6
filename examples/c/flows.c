/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Writes the logs of a capture for each period to flows-START.csv and names-START.jsonl in the
 * working directory. START is the first second of the period. A name is in the logs if z users of
 * 10.0.0.0/8 share it.
 *   make lib && export PKG_CONFIG_PATH=build/lib/pkgconfig LD_LIBRARY_PATH=build/lib
 *   cc examples/c/flows.c $(pkg-config --cflags --libs zanon libpcap) -o flows
 *   ./flows 20 60 capture.pcap     or, with pseudonyms by a key: ./flows 20 60 capture.pcap key
 */
#include <pcap/pcap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zanon/zanon.h>

#define BATCH 64 /* frames fed at once */
static zn_frame frames[BATCH];
static uint8_t bytes[BATCH][ZN_FRAME_MAX]; /* copies: libpcap lends a frame for one callback only */
static size_t count;
static const zn_output outputs[] = {ZN_OUTPUT_CSV, ZN_OUTPUT_OBSERVATIONS};
static const char *const names[] = {"flows-%lld.csv", "names-%lld.jsonl"};
#define FILES (sizeof outputs / sizeof outputs[0])
static FILE *files[FILES]; /* files of the current period; NULL before the first packet */

static void add(u_char *source, const struct pcap_pkthdr *header, const u_char *data)
{
    int64_t ns = header->ts.tv_usec + header->ts.tv_sec * ZN_NS_PER_S;          /* ns in tv_usec */
    uint32_t n = header->caplen < ZN_FRAME_MAX ? header->caplen : ZN_FRAME_MAX; /* D-Bus: longer */
    frames[count] = (zn_frame){memcpy(bytes[count], data, n), ns, n, header->len,
                               (uint32_t)pcap_datalink((pcap_t *)(void *)source)};
    count++;
}

static int put(FILE *file, zn_span text)
{
    return text.n == 0 || fwrite(text.p, 1, text.n, file) == text.n;
}

static int end_files(void)
{
    int good = 1;
    for (size_t i = 0; i < FILES; i++)
        good = (files[i] == NULL || fclose(files[i]) == 0) && good;
    return good;
}

static int begin_files(const zn_engine *engine, int64_t start_ns)
{
    int good = end_files();
    for (size_t i = 0; i < FILES; i++) {
        char name[64];
        snprintf(name, sizeof name, names[i], (long long)(start_ns / ZN_NS_PER_S));
        files[i] = good ? fopen(name, "wx") : NULL; /* overwrites nothing */
        good = files[i] != NULL && put(files[i], zn_outputs_header(engine, outputs[i]));
    }
    return good;
}

/* Writes the finished lines of each period to its files. Returns 0 if a file cannot be written. */
static int write_lines(zn_engine *engine)
{
    int64_t start_ns;
    int good = 1;
    do {
        for (size_t i = 0; i < FILES; i++)
            good = good && put(files[i], zn_outputs_take(engine, outputs[i]));
    } while (good && zn_outputs_next_period(engine, &start_ns) &&
             (good = begin_files(engine, start_ns)) != 0);
    return good;
}

int main(int argc, char **argv)
{
    zn_engine_config config = zn_engine_default_config();
    zn_engine *engine;
    zn_error error;
    zn_net users;
    char text[PCAP_ERRBUF_SIZE];
    pcap_t *source;
    int got = 1, rc = 0, good = 1;
    if (argc < 4 || argc > 5 || (config.z = (uint32_t)atoll(argv[1])) == 0 ||
        config.z != atoll(argv[1]) || atoi(argv[2]) < 1)
        return fprintf(stderr, "usage: %s Z MINUTES CAPTURE [KEY]\n", argv[0]), 2;
    config.split_ns = atoi(argv[2]) * 60 * ZN_NS_PER_S;
    config.key_file = argv[4]; /* NULL: ephemeral keys */
    for (size_t i = 0; i < FILES; i++)
        config.outputs |= 1u << outputs[i];
    config.sets = ZN_SET_LAYER7;
    config.internal = &users;
    config.internal_count = 1;
    source = pcap_open_offline_with_tstamp_precision(argv[3], PCAP_TSTAMP_PRECISION_NANO, text);
    if (source == NULL || zn_net_parse(&users, "10.0.0.0/8", &error) != 0 ||
        zn_engine_open(&engine, &config, &error) != 0)
        return fprintf(stderr, "%s\n", source == NULL ? text : error.msg), 1;
    while (rc == 0 && good && got > 0) {
        got = pcap_dispatch(source, BATCH, add, (u_char *)source);
        rc = zn_engine_feed(engine, frames, count, &error);
        good = rc == 0 && write_lines(engine);
        count = 0;
    }
    do { /* closes open flows, as many at a time as fit into the outputs */
        rc = rc < 0 ? rc : zn_engine_finish(engine, &error);
        good = rc >= 0 && good && write_lines(engine);
    } while (rc > 0 && good);
    good = rc < 0 || (good && end_files());
    if (!good)
        perror("flows or names");
    else if (rc < 0 || got < 0)
        fprintf(stderr, "%s\n", rc < 0 ? error.msg : pcap_geterr(source));
    zn_engine_close(engine); /* wipes the keys */
    return !good || rc < 0 || got < 0;
}
