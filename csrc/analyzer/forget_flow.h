/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Forgets a closed flow: everything that analyzers and tables keep for it. */
#ifndef ZN_ANALYZER_FORGET_FLOW_H
#define ZN_ANALYZER_FORGET_FLOW_H

#include "analyzer/dn_hunter.h"
#include "analyzer/names.h"

/* Frees the analyzer state and the names of a flow whose record is written, and then its entry in
 * the flow table. */
void zn_forget_flow(zn_names *names, zn_dn_hunter *dn_hunter, uint32_t flow);

#endif
