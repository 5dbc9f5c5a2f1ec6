/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One row of JSON Lines: a JSON object (RFC 8259) on a line of its own, all of it well-formed. The
 * wanted members are taken, all others are checked and skipped. A wanted name is the name of a
 * member, or the names of the objects around a member and its own, with dots between them. A row
 * that has both is refused.
 */
#ifndef ZN_ROWS_JSON_H
#define ZN_ROWS_JSON_H

#include "release/row.h"
#include "rows/json_token.h"

/*
 * Reads n bytes at `row` into out->value[0 .. wanted->count); a member that is absent or null is
 * ZN_VALUE_NONE. Objects and arrays are taken only for the columns from wanted->scalars on. Writes
 * over the row: escapes are resolved in place.
 */
zn_row_fault zn_json_row(uint8_t *row, size_t n, const zn_row_columns *wanted, zn_row *out);

#endif
