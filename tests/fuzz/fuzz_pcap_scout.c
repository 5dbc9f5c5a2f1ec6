/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* A pcap's records, walked over ahead of reading them. */
#include "io/pcap_scout.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_span records = {data, size};
    size_t place[ZN_PCAP_PLACES];
    unsigned places = zn_pcap_places(records, place);
    if (places > ZN_PCAP_PLACES || (places != 0) != (zn_pcap_scout(records) != 0))
        __builtin_trap();
    for (unsigned i = 0; i < places; i++)
        if (place[i] >= size || (i != 0 && place[i] <= place[i - 1]))
            __builtin_trap();
    return 0;
}
