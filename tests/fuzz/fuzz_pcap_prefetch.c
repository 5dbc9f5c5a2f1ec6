/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A pcap's records and a pcapng's blocks, walked over ahead of reading them. */
#include "capture/pcap_prefetch.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void walk(zn_span records, zn_prefetch_kind kind)
{
    size_t place[ZN_PCAP_PLACES];
    unsigned places = zn_pcap_places(records, kind, place);
    if (places > ZN_PCAP_PLACES || (places != 0) != (zn_pcap_prefetch(records, kind) != 0))
        __builtin_trap();
    for (unsigned i = 0; i < places; i++)
        if (place[i] >= records.n || (i != 0 && place[i] <= place[i - 1]))
            __builtin_trap();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_span records = {data, size};
    walk(records, ZN_PREFETCH_PCAP);
    walk(records, ZN_PREFETCH_PCAPNG);
    return 0;
}
