/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Sets of columns of the flow logs, as bits: what is measured and what is written. The numbers are
 * those in the header of Tstat's TCP logs. The core set is always there.
 */
#ifndef ZN_UTIL_COLUMN_SETS_H
#define ZN_UTIL_COLUMN_SETS_H

enum { ZN_SET_E2E = 1, ZN_SET_LAYER7 = 2, ZN_SET_P2P = 4, ZN_SET_OPTIONS = 8 };

#endif
