/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * JSON Lines: flow records, and released observations, (t, f(u, t), a) of Jha et al. 2022, each at
 * the moment of its decision.
 * One object a line. What is missing or withheld is null; times are integer ns since the Unix epoch
 * where the name says so, and as Tstat tells them in its columns. Nothing needs escaping: names
 * arrive normalised.
 */
#ifndef ZN_OUTPUT_JSON_LOG_H
#define ZN_OUTPUT_JSON_LOG_H

#include "output/format.h"

/* A flow a line, with the fields that its protocol has. */
extern const zn_format zn_format_jsonl;
/* {"t_ns":..,"client":..,"name":..,"name_source":..} a release. */
extern const zn_format zn_format_observations;

#endif
