/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Byte 0: its last bit, whether the question may be shown, the next, whether other names may. Then
 * the message. */
#include "build/build_dns.h"
#include "proto/ascii.h"
#include "proto/dns.h"
#include "util/arena.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void expect(bool is)
{
    if (!is)
        __builtin_trap();
}

/* Shows every other name, which has a text. */
static bool shared(void *context, zn_span name)
{
    expect(context != NULL && name.n != 0 && name.n <= ZN_DNS_NAME_MAX);
    for (size_t i = 0; i < name.n; i++) {
        uint8_t byte = zn_ascii_first(zn_span_after(name, i));
        expect(byte == zn_ascii_lower(byte) && byte > ' ' && byte < 0x7f);
    }
    return *(bool *)context;
}

/* Addresses with each bit of the last byte turned. */
static void map(void *context, const zn_addr *real, zn_addr *out)
{
    (void)context;
    *out = *real;
    out->byte[15] ^= 0xff;
}

/* What stands for the name is it in lower case, or labels of 'x'. */
static void compare_names(const zn_dns_question *before, const zn_dns_question *after, bool name)
{
    bool lower = true, masked = true;
    expect(before->name_bytes == after->name_bytes);
    for (size_t i = 0; i < after->name_bytes; i++) {
        lower &= after->name[i] == zn_ascii_lower(before->name[i]);
        masked &= after->name[i] == 'x' || (i % 64 >= 62 && after->name[i] == '.');
    }
    expect(masked || (name && lower));
    expect(!after->name_odd);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    zn_cursor c = zn_cursor_over(data, size, true);
    uint8_t bits = zn_cursor_u8(&c);
    bool others = (bits & 2) != 0;
    zn_build_dns_choice choice = {(bits & 1) != 0, shared, map, &others};
    zn_span message = zn_cursor_rest(&c);
    uint8_t *out = zn_heap_alloc(message.n + 1);
    zn_span built = {out, message.n};
    zn_dns_question before, after;
    zn_dns_addresses real, mapped;
    expect(out != NULL);
    memset(out, 0, message.n + 1);
    if (zn_build_dns(message, &choice, out)) {
        expect(zn_dns_question_parse(message, true, &before) == ZN_DONE);
        expect(zn_dns_question_parse(built, true, &after) == ZN_DONE);
        expect(before.id == after.id && before.response == after.response);
        expect(before.type == after.type && before.class == after.class);
        compare_names(&before, &after, choice.name);
        expect(zn_dns_read_addresses(message, true, &real) ==
               zn_dns_read_addresses(built, true, &mapped));
        expect(real.n == mapped.n);
        for (size_t i = 0; i < real.n; i++) {
            map(NULL, &real.at[i], &real.at[i]);
            expect(zn_addr_equal(&real.at[i], &mapped.at[i]));
        }
    } else {
        for (size_t i = 0; i < message.n; i++)
            expect(out[i] == 0);
    }
    expect(out[message.n] == 0);
    zn_heap_free(out);
    return 0;
}
