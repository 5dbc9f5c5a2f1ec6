/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Frames through the whole engine: after a byte of settings and the link type, each has a time
 * step, a length and its bytes. The link type's highest bits say more of the settings, such as that
 * z changes after each batch. Traps on a broken invariant, on output of other bytes than it may
 * have, and where a frame has no fate or several.
 */
#include "engine/engine.h"
#include "output/event_log.h"
#include "output/packet_file.h"

#define FRAMES 16 /* a batch */
#define FRAMES_MAX 512
#define Z_MAX 4
/* All outputs except packets. */
#define WITHOUT_PACKETS                                                                            \
    (((1u << ZN_OUTPUTS) - 1) & ~((1u << ZN_OUTPUT_TEXTS) - (1u << ZN_OUTPUT_PACKETS)))

/* Settings in the bits of the link type that no link type has. */
enum {
    CHANGING = 0x8000, /* z */
    DROPPING = 0x4000, /* packets with withheld names: not coarse */
    VIEWS_SHIFT = 12,  /* how many views more than the byte of settings says, modulo 4 */
    NAMING = 0x0800,   /* attributes besides names, without packets, which exclude them */
    LINK_TYPES = 0x07ff
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static unsigned view_count(uint8_t settings, uint16_t more)
{
    if ((more & NAMING) != 0)
        return 0;
    return (settings % 3u + (more >> VIEWS_SHIFT)) % (ZN_VIEWS_MAX + 1);
}

static zn_engine *open_with(zn_engine_config *config, uint16_t more)
{
    zn_engine *e;
    if ((more & NAMING) != 0) {
        config->attributes = ZN_ATTRIBUTES_ALL;
        config->outputs = WITHOUT_PACKETS;
    }
    require(zn_engine_open(&e, config, NULL) == 0);
    return e;
}

static zn_engine *open_engine(uint8_t settings, uint16_t more)
{
    bool short_detail = (settings & (64 | 2)) == 2; /* not with the sets E2E and OPTIONS */
    zn_packet_view views[] = {{.z = 5,
                               .payload = ZN_PACKET_PAYLOAD_CUT,
                               .server_addresses = settings / 5 % 3,
                               .fingerprints = ZN_FINGERPRINTS_DROP,
                               .times_ns = 1000},
                              {.z = 1 + (settings & 3),
                               .payload = settings / 7 % 3,
                               .server_addresses = settings / 5 % 3,
                               .fingerprints = settings / 17 % 3,
                               .times_ns = 1,
                               .exact = (settings & 8) != 0},
                              {.z = 1 + (settings & 3),
                               .payload = ZN_PACKET_PAYLOAD_CUT,
                               .server_addresses = settings / 5 % 3,
                               .fingerprints = ZN_FINGERPRINTS_DROP,
                               .times_ns = 1000000}};
    zn_engine_config config = {.size = sizeof config,
                               .z = 1 + (settings & 3),
                               .window_ns = 60 * ZN_NS_PER_S,
                               .rotate_ns = 60 * ZN_NS_PER_S,
                               .established = (settings & 4) != 0,
                               .dns_votes = settings / 3 % 3,
                               .exact = (settings & 8) != 0,
                               .keep_client_port = (settings & 16) != 0,
                               .dn_hunter = (settings & 32) != 0,
                               .sets = (settings & 64) != 0 ? ZN_SET_E2E | ZN_SET_LAYER7 |
                                                                  ZN_SET_P2P | ZN_SET_OPTIONS
                                                            : ZN_SET_LAYER7,
                               .split_ns = (settings & 128) != 0 ? 60 * ZN_NS_PER_S : 0,
                               .outputs = (1u << ZN_OUTPUTS) - 1,
                               .user_v4_bits = 32,
                               .user_v6_bits = 56,
                               .z_max = (more & CHANGING) != 0 ? Z_MAX : 0,
                               .max_flows = 64,
                               .max_tuples = 256,
                               .max_attributes = 64,
                               .pseudonyms = settings % 3,
                               .block_v4_bits = 24,
                               .block_v6_bits = 48,
                               .coarse_end = settings & 1,
                               .coarse_steps = settings / 3 % 3,
                               .coarse_client = settings >> 1 & 1,
                               .times_ns = short_detail ? 7 * ZN_NS_PER_S : 0,
                               .digits = short_detail ? 2 : 0,
                               .hold_ns = settings % 5 * (ZN_NS_PER_S / 4),
                               .hold_bytes = 1 << 18,
                               .payload = settings / 7 % 3,
                               .server_addresses = settings / 5 % 3,
                               .macs = settings / 11 % 3,
                               .tcp_timestamps = settings / 13 % 3,
                               .fingerprints = settings / 17 % 3,
                               .coarse_suppressed = (settings & 8) == 0 && (more & DROPPING) == 0,
                               .packet_times_ns = 1,
                               .keep_encapsulation = settings / 19 % 2,
                               .views = views,
                               .view_count = view_count(settings, more)};
    return open_with(&config, more);
}

static int64_t step_ns(uint8_t code)
{
    static const int64_t unit[4] = {1000, ZN_NS_PER_S / 100, ZN_NS_PER_S, 100 * ZN_NS_PER_S};
    return (code & 0x80 ? -1 : 1) * (code & 31) * unit[code >> 5 & 3];
}

/* The next frames, as many as there are and fit. */
static size_t read_frames(zn_cursor *c, uint16_t link_type, int64_t *t_ns, zn_frame *frames)
{
    size_t n = 0;
    while (n < FRAMES && zn_cursor_left(c) >= 3) {
        size_t bytes;
        *t_ns += step_ns(zn_cursor_u8(c));
        bytes = zn_cursor_be16(c);
        frames[n].t_ns = *t_ns;
        frames[n].wire = (uint32_t)bytes;
        if (bytes > zn_cursor_left(c)) /* cut by a snapshot length */
            bytes = zn_cursor_left(c);
        frames[n].data = zn_cursor_take(c, bytes).p;
        frames[n].captured = (uint32_t)bytes;
        frames[n++].link_type = link_type;
    }
    return n;
}

/* The words of a table and the places of its rows; their memory goes back and is used again. */
static void take_rows(zn_table *table)
{
    zn_table_block block;
    require(zn_table_end(table, NULL) == 0);
    for (size_t i = 0; i < table->fields.n; i++) {
        const zn_dictionary *words = &table->dictionary[i];
        for (size_t at = 0; at < words->bytes_n; at++)
            require(words->bytes[at] >= 0x20 && words->bytes[at] <= 0x7e);
        for (size_t row = 0; row < table->rows && table->fields.at[i].type == ZN_FIELD_TEXT;
             row++) {
            uint32_t number;
            memcpy(&number, table->in_block.column[i].values + row * sizeof number, sizeof number);
            require(number < words->n || number == 0);
        }
    }
    block = zn_table_take(table);
    zn_table_give(table, block);
}

static bool starts(const char *name, const char *prefix)
{
    return strncmp(name, prefix, strlen(prefix)) == 0;
}

/* Each frame that was read has one fate in an output of packets: `left` are the counters of it,
 * which are all of the engine's for its own. */
static void require_fates(const zn_stats *all, const zn_stats *left)
{
    uint64_t fates = left->n[ZN_STAT_PACKETS_PASSED] + left->n[ZN_STAT_PACKETS_MASKED];
    for (size_t i = 0; i < ZN_STAT_COUNT; i++) {
        const char *name = zn_stat_describe(i).name;
        if (starts(name, "PACKETS_DROPPED_"))
            fates += left->n[i];
        else if (starts(name, "DROP_") && !starts(name, "DROP_FLOW_") &&
                 !starts(name, "DROP_FRAGMENT_"))
            fates += all->n[i];
    }
    require(fates == all->n[ZN_STAT_FRAMES]);
}

/* The records of packets add up, and each is longer than the shortest headers. */
static void require_whole_packets(const zn_text *text)
{
    zn_span records = {(const uint8_t *)text->bytes, text->n};
    size_t at = 0;
    zn_frame frame;
    while (zn_packet_file_next(records, &at, &frame))
        require(frame.captured >= 34 && frame.captured <= frame.wire && frame.t_ns >= 0);
    require(at == records.n);
}

static void take_output(zn_engine *e)
{
    zn_outputs *outputs = zn_engine_outputs(e);
    require(outputs->text[ZN_OUTPUT_RECORD_ROWS].n % outputs->state.record_row.bytes == 0);
    require(outputs->text[ZN_OUTPUT_OBSERVATION_ROWS].n % sizeof(zn_event_observation) == 0);
    for (int i = ZN_OUTPUT_PACKETS; i <= ZN_OUTPUT_VIEW3_PACKETS_NG;
         i += 2) /* pcap of each output */
        require_whole_packets(&outputs->text[i]);
    for (int i = 0; i < ZN_OUTPUT_PACKETS; i++) {
        const zn_text *text = &outputs->text[i];
        for (size_t at = 0; at < text->n; at++)
            require(text->bytes[at] == '\n' ||
                    (text->bytes[at] >= 0x20 && text->bytes[at] <= 0x7e));
    }
    for (int i = 0; i < ZN_OUTPUT_TABLES; i++)
        if (outputs->table[i].rows != 0)
            take_rows(&outputs->table[i]);
    zn_outputs_clear(outputs);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static zn_frame frames[FRAMES];
    zn_cursor c = zn_cursor_over(data, size, true);
    uint8_t settings = zn_cursor_u8(&c);
    uint16_t more = zn_cursor_be16(&c), link_type = more & LINK_TYPES;
    bool changing = (more & CHANGING) != 0;
    zn_engine *e = open_engine(settings, more);
    int64_t t_ns = INT64_C(1700000000) * ZN_NS_PER_S;
    size_t n, total = 0;
    while ((n = read_frames(&c, link_type, &t_ns, frames)) != 0 && (total += n) <= FRAMES_MAX) {
        require(zn_engine_feed(e, frames, n, NULL) == 0);
        take_output(e);
        if (changing)
            require(zn_engine_set_z(e, 1 + total % Z_MAX, NULL) == 0);
    }
    require(zn_engine_check(e) == NULL);
    require(zn_engine_finish(e, NULL) == 0);
    require(zn_engine_check(e) == NULL);
    take_output(e);
    if ((more & NAMING) == 0)
        require_fates(zn_engine_stats(e), zn_engine_stats(e));
    for (unsigned i = 0; i < view_count(settings, more); i++)
        require_fates(zn_engine_stats(e), zn_engine_view_stats(e, i));
    zn_engine_close(e);
    return 0;
}
