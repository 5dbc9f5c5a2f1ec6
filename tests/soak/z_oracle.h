/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Brute force with a memory: what `tests/oracle.py` says, for streams of millions.
 *
 * Every exposure is kept, whatever its time. Each user of each attribute has all times at which it
 * exposed it, sorted, so that a question is a look at each user. Nothing is shared with the code
 * under test, and nothing is ever dropped, evicted or guessed.
 */
#ifndef Z_ORACLE_H
#define Z_ORACLE_H

#include <stdint.h>

typedef struct z_oracle z_oracle;

/* For users 0 .. users - 1 and attributes 0 .. attributes - 1; ends the program without memory. */
z_oracle *z_oracle_open(uint32_t users, uint32_t attributes);
void z_oracle_close(z_oracle *o);
void z_oracle_add(z_oracle *o, int64_t t_ns, uint32_t user, uint32_t attribute);
/* Distinct users of the attribute with a time in [from_ns, to_ns]; `enough` ends the count. */
uint32_t z_oracle_users(const z_oracle *o, uint32_t attribute, int64_t from_ns, int64_t to_ns,
                        uint32_t enough);

#endif
