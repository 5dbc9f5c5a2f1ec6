/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "proto/quic_parameters.h"

#include "proto/quic.h"

enum { GOOGLE_USER_AGENT = 0x3129 };

zn_span zn_quic_user_agent(zn_span parameters)
{
    zn_cursor c = zn_cursor_over_span(parameters, true);
    zn_span agent = {parameters.p, 0};
    unsigned agents = 0;
    while (zn_cursor_left(&c) > 0) {
        uint64_t id = zn_quic_varint(&c);
        zn_span value = zn_quic_vector(&c);
        if (id == GOOGLE_USER_AGENT && zn_cursor_ok(&c)) {
            agent = value;
            agents++;
        }
    }
    if (!zn_cursor_ok(&c) || agents != 1)
        agent.n = 0;
    return agent;
}
