/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ZN_ENGINE_REBASE_H
#define ZN_ENGINE_REBASE_H

#include "engine/engine_state.h"

/* Closes all flows and writes their records, because the packet clock was set to t_ns: no state of
 * the old time may meet later packets. Returns 0, or a negative zn_err with *err filled. */
int zn_engine_rebase(zn_engine *e, int64_t t_ns, zn_error *err);

#endif
