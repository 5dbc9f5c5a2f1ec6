/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "engine/rebase.h"

#include "engine/decider.h"
#include "engine/flush.h"
#include "engine/records.h"

/* Lets the packets of the old time leave. */
static int emit_all(zn_engine *e, zn_error *err)
{
    int rc = zn_engine_flush_votes(e, true, err);
    if (rc == 0)
        zn_engine_emit(e, INT64_MAX, true);
    return rc;
}

int zn_engine_rebase(zn_engine *e, int64_t t_ns, zn_error *err)
{
    int rc = e->rewriter != NULL ? emit_all(e, err) : 0;
    if (rc == 0)
        rc = e->decider->set_back(e, t_ns, err);
    if (rc != 0)
        return rc;
    zn_flow_rebase(e->flows, t_ns);
    zn_defrag_clear(e->decoder.defrag);
    rc = zn_engine_flush_votes(e, true, err);
    if (rc == 0)
        rc = e->decider->restart(e, err);
    if (rc == 0)
        rc = zn_engine_write_held(e, INT64_MAX, err);
    if (rc == 0)
        rc = zn_keys_rebase(e->keys, t_ns, err);
    if (rc == 0 && e->rewriter != NULL)
        rc = zn_rewriter_rebase(e->rewriter, t_ns, err);
    zn_gate_rebase(&e->gate, zn_keys_epoch(e->keys, t_ns));
    zn_dn_hunter_clear(&e->dn_hunter);
    return rc;
}
