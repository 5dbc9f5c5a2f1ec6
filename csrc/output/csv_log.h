/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comma-separated values (RFC 4180, with a line feed alone): every field of every flow, nothing
 * where a value is missing or withheld. Nothing is quoted but lists, which hold commas.
 */
#ifndef ZN_OUTPUT_CSV_LOG_H
#define ZN_OUTPUT_CSV_LOG_H

#include "output/fields.h"

void zn_csv_log_header(zn_text *out, const zn_fields *fields);
void zn_csv_log_record(zn_text *out, const zn_fields *fields, const zn_record *r);

#endif
