/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "anon/policy.h"

#define V4_NET(a, b, c, d, n) {{{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d}}, 96 + (n)}

static const zn_net private_nets[] = {
    V4_NET(10, 0, 0, 0, 8),
    V4_NET(172, 16, 0, 0, 12),
    V4_NET(192, 168, 0, 0, 16),
    V4_NET(100, 64, 0, 0, 10),
    {{{0xfc}}, 7},
};

const zn_net *zn_policy_private_nets(size_t *count)
{
    *count = sizeof private_nets / sizeof private_nets[0];
    return private_nets;
}

void zn_policy_place(const zn_policy *policy, zn_flow *f)
{
    uint8_t server = (uint8_t)(1 - f->client);
    for (unsigned i = 0; i < 2; i++)
        f->internal[i] =
            zn_nets_contain(policy->internal, policy->internal_count, &f->tuple.addr[i]);
    if (!f->internal[0] && !f->internal[1]) {
        f->user = policy->internal_given ? 2 : f->client;
        f->internal[f->client] = !policy->internal_given;
        return;
    }
    f->user = f->internal[f->client] ? f->client : server;
}
