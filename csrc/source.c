/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "source.h"

static void tally_link(zn_source *source, uint32_t link_type)
{
    uint32_t i = 0;
    while (i < source->links && source->link_type[i] != link_type)
        i++;
    if (i == ZN_SOURCE_LINKS)
        return;
    if (i == source->links)
        source->link_type[source->links++] = link_type;
    source->link_frames[i]++;
}

int zn_source_read(zn_source *source, zn_frame *frames, int max, size_t *kept, zn_error *err)
{
    int n = zn_capture_next(source->capture, frames, max, err);
    *kept = 0;
    for (int i = 0; i < n; i++) {
        tally_link(source, frames[i].link_type);
        if (source->filter == NULL || zn_filter_pass(source->filter, &frames[i]))
            frames[(*kept)++] = frames[i];
    }
    return n;
}
