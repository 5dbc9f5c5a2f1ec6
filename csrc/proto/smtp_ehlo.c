/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* The host that a mail client names in its greeting, EHLO or HELO (RFC 5321 4.1.1.1). */
#include "proto/ascii.h"
#include "proto/attribute_readers.h"

#define VERB_BYTES 5u /* with the blank behind it */

static bool is_greeting(zn_span verb)
{
    static const uint8_t verbs[2][VERB_BYTES] = {"EHLO ", "HELO "};
    return zn_ascii_equal(verb, (zn_span){verbs[0], VERB_BYTES}) ||
           zn_ascii_equal(verb, (zn_span){verbs[1], VERB_BYTES});
}

zn_parse zn_read_ehlo(zn_span message, zn_attribute_text *out)
{
    zn_cursor c = zn_cursor_over_span(message, true);
    zn_span line, host;
    if (!is_greeting(zn_span_first(message, VERB_BYTES)))
        return ZN_OTHER;
    zn_cursor_skip(&c, VERB_BYTES);
    if (!zn_ascii_take_line(&c, &line))
        return ZN_MALFORMED;
    host = zn_ascii_trim(line);
    if (host.n == 0)
        return ZN_MALFORMED;
    out->is_host = true;
    out->place = host;
    zn_attribute_text_put(out, host);
    return ZN_DONE;
}
