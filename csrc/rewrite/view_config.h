/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Views in the config of an engine: what they may be, and what they ask of the rest.
 */
#ifndef ZN_REWRITE_VIEW_CONFIG_H
#define ZN_REWRITE_VIEW_CONFIG_H

#include "zanon/zanon.h"

/* Refuses views that would show more than what they are of. Returns 0, or -ZN_ERR_CONFIG with *err
 * filled. */
int zn_view_config_check(const zn_engine_config *config, zn_error *err);
/* Returns the largest z that names may need. */
uint32_t zn_view_config_largest_z(const zn_engine_config *config);
/* Returns the outputs that are written, as bits: those asked for, and with packets those of views,
 * asked for or not. */
uint32_t zn_view_config_outputs(const zn_engine_config *config);
/* Returns those of a view. */
uint32_t zn_view_config_outputs_of(const zn_engine_config *config, unsigned view);

#endif
