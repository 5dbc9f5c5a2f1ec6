/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#ifndef ZN_OUTPUT_FORMAT_STATE_H
#define ZN_OUTPUT_FORMAT_STATE_H

#include "output/event_log.h"
#include "output/fields.h"
#include "output/tstat_log.h"

struct zn_format_state {
    zn_fields fields; /* of this run's sets, for each format but Tstat's */
    zn_tstat tstat;
    zn_event_row record_row;
};

#endif
