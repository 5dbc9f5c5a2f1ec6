/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/source.h"

static void tally_link(zn_source *source, uint32_t link_type, uint64_t frames)
{
    uint32_t i = 0;
    while (i < source->links && source->link_type[i] != link_type)
        i++;
    if (i == ZN_SOURCE_LINKS)
        return;
    if (i == source->links)
        source->link_type[source->links++] = link_type;
    source->link_frames[i] += frames;
}

/* Counts the frames, run by run of the same link type. */
static void tally_links(zn_source *source, const zn_frame *frames, size_t n)
{
    if (n != 0 && zn_capture_has_one_link(source->capture)) {
        tally_link(source, frames[0].link_type, n);
        return;
    }
    for (size_t i = 0, start = 0; i < n; start = i) {
        while (i < n && frames[i].link_type == frames[start].link_type)
            i++;
        tally_link(source, frames[start].link_type, i - start);
    }
}

int zn_source_read(zn_source *source, zn_frame *frames, int max, size_t *passed, zn_error *err)
{
    int n = zn_capture_next(source->capture, frames, max, err);
    size_t read = n > 0 ? (size_t)n : 0;
    tally_links(source, frames, read);
    *passed = source->filter == NULL ? read : 0;
    for (size_t i = 0; source->filter != NULL && i < read; i++)
        if (zn_filter_pass(source->filter, &frames[i]))
            frames[(*passed)++] = frames[i];
    return n;
}
