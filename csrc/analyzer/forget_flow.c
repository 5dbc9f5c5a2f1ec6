/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/forget_flow.h"

#include "analyzer/analyzers.h"
#include "analyzer/attributes.h"
#include "analyzer/layer7.h"
#include "flow/flow_table.h"

void zn_forget_flow(zn_names *names, zn_dn_hunter *dn_hunter, uint32_t flow)
{
    zn_flow *f = zn_flow_entry(names->flows, flow);
    zn_analyzers_forget(names, f);
    zn_layer7_forget(names, f);
    zn_dn_hunter_forget(dn_hunter, f);
    zn_attributes_forget(names, flow);
    zn_name_store_forget(names->name_store, f);
    zn_flow_emitted(names->flows, flow);
}
