/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by table.c (what goes into a row) and table_block.c (where rows lie). */
#ifndef ZN_OUTPUT_TABLE_INTERNAL_H
#define ZN_OUTPUT_TABLE_INTERNAL_H

#include "output/table.h"

/* Puts words into the dictionaries of the fields that say nothing else. */
void zn_table_fill_words(zn_table *t);
/* Makes the stage; 0, or -ZN_ERR_CAPACITY. */
int zn_table_staging_init(zn_table *t, zn_error *err);
/* Moves n rows from the stage to the end of the block; false when memory is out. */
bool zn_table_staging_flush(zn_table *t, size_t n);

#endif
