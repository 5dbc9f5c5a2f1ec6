/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * File of a hierarchy, in ARX's form: CSV without a header. A line has a value and its
 * generalizations, up to the root, such as `*`. An empty first field is the line of a missing
 * value.
 */
#ifndef ZN_ROWS_HIERARCHY_H
#define ZN_ROWS_HIERARCHY_H

#include "microdata/taxonomy.h"

#define ZN_HIERARCHY_BYTES_MAX ((size_t)64 << 20)

/*
 * Reads a file, a byte order mark at its beginning aside. delimiter: an ASCII character. Returns 0;
 * -ZN_ERR_FORMAT for bytes that are no hierarchy, with the line (from 1) in the message;
 * -ZN_ERR_CAPACITY for too many lines or levels, or when memory is out. No message holds a byte of
 * the file. *notes may be NULL.
 */
int zn_hierarchy_read(zn_taxonomy **out, zn_span file, uint8_t delimiter, zn_taxonomy_notes *notes,
                      zn_error *err);

#endif
