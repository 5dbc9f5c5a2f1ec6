/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Logs of resolvers. The last two bits of byte 0: the preset (dnstap twice), then the log, in two
 * portions. What dnstap's filter writes is read again, and each of its frames holds a message of a
 * client.
 */
#include "proto/dnstap.h"
#include "rows/log_filter.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define HOUR_NS (INT64_C(3600) * 1000000000)

static const zn_log_preset *preset_of(const char *name)
{
    size_t count;
    const zn_log_preset *presets = zn_log_presets(&count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(presets[i].name, name) == 0)
            return &presets[i];
    __builtin_trap();
}

/* Reads the frames of an output: control frames at its ends, and messages between them. */
static void check_frames(const zn_text *out)
{
    zn_cursor c = zn_cursor_over((const uint8_t *)out->bytes, out->n, true);
    while (zn_cursor_left(&c) != 0) {
        uint32_t n = zn_cursor_be32(&c), type;
        zn_dnstap tap;
        bool dnstap;
        if (n == 0) {
            zn_span payload = zn_cursor_take(&c, zn_cursor_be32(&c));
            if (zn_fstrm_control_parse(payload, &type, &dnstap) != ZN_DONE || !dnstap)
                __builtin_trap();
            continue;
        }
        if (zn_dnstap_parse(zn_cursor_take(&c, n), &tap) != ZN_DONE || !zn_cursor_ok(&c))
            __builtin_trap();
        if (tap.type != ZN_DNSTAP_AUTH_QUERY && tap.type != ZN_DNSTAP_AUTH_RESPONSE &&
            tap.type != ZN_DNSTAP_CLIENT_QUERY && tap.type != ZN_DNSTAP_CLIENT_RESPONSE)
            __builtin_trap();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const char *const names[] = {"dnstap", "bind", "unbound", "dnstap"};
    zn_log_gate_config gate = {.z = 1,
                               .window_ns = HOUR_NS,
                               .rotate_ns = HOUR_NS,
                               .max_tuples = 1 << 10,
                               .max_attributes = 1 << 8,
                               .keep_suppressed = true,
                               .unit = ZN_TIME_ISO,
                               .user_v4_bits = 32,
                               .user_v6_bits = 56};
    zn_cursor c = zn_cursor_over(data, size, true);
    unsigned which = zn_cursor_u8(&c) & 3;
    zn_log_filter *filter;
    zn_error err;
    zn_span first, second;
    int rc;
    if (!zn_cursor_ok(&c))
        return 0;
    if (zn_log_filter_open(&filter, preset_of(names[which]), &gate, false, &err) != 0)
        __builtin_trap();
    first = zn_cursor_take(&c, zn_cursor_left(&c) / 2);
    second = zn_cursor_rest(&c);
    rc = zn_log_filter_feed(filter, first.p, first.n, &err);
    if (rc == 0)
        rc = zn_log_filter_feed(filter, second.p, second.n, &err);
    if (rc == 0)
        rc = zn_log_filter_end(filter, &err);
    if (rc == 0)
        rc = zn_log_filter_finish(filter, &err);
    if (which % 3 == 0)
        check_frames(zn_log_filter_output(filter));
    zn_log_filter_close(filter);
    return 0;
}
