/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "io/tstat_log.h"

#include "base/packet.h"

#include <string.h>

#define EVERY_SET (ZN_SET_E2E | ZN_SET_LAYER7 | ZN_SET_P2P | ZN_SET_OPTIONS)
#define ADVANCED_SET 16 /* Tstat counts it among all sets, although it has no columns */

void zn_tstat_init(zn_tstat *t, unsigned sets)
{
    t->number = sets == EVERY_SET ? sets + ADVANCED_SET : sets;
    zn_log_columns_tcp(&t->columns[ZN_TSTAT_TCP_COMPLETE], sets);
    zn_log_columns_tcp(&t->columns[ZN_TSTAT_TCP_NOCOMPLETE], 0);
    zn_log_columns_udp(&t->columns[ZN_TSTAT_UDP_COMPLETE]);
}

zn_tstat_log zn_tstat_log_of(const zn_record *r)
{
    if (r->proto == ZN_PROTO_UDP)
        return ZN_TSTAT_UDP_COMPLETE;
    if (r->midstream)
        return ZN_TSTAT_NONE;
    return r->complete ? ZN_TSTAT_TCP_COMPLETE : ZN_TSTAT_TCP_NOCOMPLETE;
}

void zn_tstat_header(zn_text *out, const zn_tstat *t, zn_tstat_log log)
{
    const zn_log_columns *columns = &t->columns[log];
    zn_text_char(out, '#');
    if (log != ZN_TSTAT_UDP_COMPLETE) {
        zn_text_u64(out, t->number / 10);
        zn_text_u64(out, t->number % 10);
        zn_text_char(out, '#');
    }
    for (size_t i = 0; i < columns->n; i++) {
        if (i != 0)
            zn_text_char(out, ' ');
        zn_column_put_word(out, columns->at[i]->name);
        zn_text_char(out, ':');
        zn_text_u64(out, i + 1);
    }
    zn_text_char(out, '\n');
}

void zn_tstat_line(zn_text *out, const zn_tstat *t, zn_tstat_log log, const zn_record *r)
{
    const zn_log_columns *columns = &t->columns[log];
    zn_cell value;
    for (size_t i = 0; i < columns->n; i++) {
        const zn_column *c = columns->at[i];
        if (ZN_LIKELY(zn_column_is_number(c))) {
            zn_text_u64(out, zn_column_number(c, r));
        } else {
            zn_column_cell(c, r, &value);
            if (value.kind == ZN_CELL_NONE)
                zn_column_put_word(out, c->missing);
            else
                zn_cell_put(out, &value);
        }
        zn_text_char(out, i + 1 < columns->n ? ' ' : '\n');
    }
}
