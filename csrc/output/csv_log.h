/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Comma-separated values (RFC 4180, with a line feed alone): every field of every flow, nothing
 * where a value is missing or withheld. Nothing is quoted but lists, which hold commas.
 */
#ifndef ZN_OUTPUT_CSV_LOG_H
#define ZN_OUTPUT_CSV_LOG_H

#include "output/format.h"

extern const zn_format zn_format_csv;

#endif
