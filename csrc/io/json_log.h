/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Lines: one flow record a line, and the observation stream. Names hold letters, digits, '-',
 * '_' and '.' only, so nothing needs escaping; what is withheld is null.
 */
#ifndef ZN_IO_JSON_LOG_H
#define ZN_IO_JSON_LOG_H

#include "io/columns.h"

/* A flow record; TCP flows with Tstat's columns behind the common members. */
void zn_json_record(zn_text *out, const zn_log_columns *tcp, const zn_record *r);
/* {"t_ns":..,"client":..,"name":..,"name_source":..} */
void zn_json_release(zn_text *out, const zn_release *release);

#endif
