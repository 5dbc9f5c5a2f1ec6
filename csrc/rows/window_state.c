/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers of 64 bits, the lowest byte first, in the order of `exchange`. */
#include "rows/window_internal.h"

#define STATE_MARK UINT64_C(0x31574f444e49575a) /* changes with the form */

/* One walk over all that is kept serves both ways. */
typedef struct state {
    zn_text *out; /* NULL: reading */
    zn_cursor in;
} state;

static void exchange_u64(state *s, uint64_t *value)
{
    uint64_t bytes = htole64(*value);
    if (s->out != NULL) {
        zn_text_bytes(s->out, (const char *)&bytes, sizeof bytes);
        return;
    }
    *value = 0;
    for (unsigned i = 0; i < 64; i += 8)
        *value |= (uint64_t)zn_cursor_u8(&s->in) << i;
}

static void exchange_i64(state *s, int64_t *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    exchange_u64(s, &bits);
    memcpy(value, &bits, sizeof bits);
}

static void exchange_double(state *s, double *value)
{
    uint64_t bits;
    memcpy(&bits, value, sizeof bits);
    exchange_u64(s, &bits);
    memcpy(value, &bits, sizeof bits);
}

/* Saves the values of an array, or restores them. */
static void exchange_u64s(state *s, uint64_t *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        exchange_u64(s, &values[i]);
}

static void exchange_doubles(state *s, double *values, size_t n)
{
    for (size_t i = 0; i < n; i++)
        exchange_double(s, &values[i]);
}

/* A number that must be the same where it is read. */
static bool expect(state *s, uint64_t value)
{
    uint64_t found = value;
    exchange_u64(s, &found);
    return found == value;
}

static bool exchange_settings(state *s, const zn_window *w)
{
    const zn_window_config *config = &w->config;
    bool same = expect(s, STATE_MARK) && expect(s, config->rows) &&
                expect(s, (uint64_t)config->delay_ns) && expect(s, config->sliding) &&
                expect(s, config->with_user) && expect(s, (uint64_t)config->once_ns) &&
                expect(s, w->quasi_count) && expect(s, w->sensitive_count) &&
                expect(s, config->groups.rule.k) && expect(s, config->groups.rule.l) &&
                expect(s, config->adapt_l) && expect(s, config->adapt_way);
    for (size_t i = 0; same && i < w->quasi_count; i++)
        same = expect(s, zn_taxonomy_nodes(w->columns[i]));
    return same;
}

static void exchange_stats(state *s, zn_window_stats *stats)
{
    exchange_u64(s, &stats->rows);
    exchange_u64s(s, stats->fates, ZN_FATE_COUNT);
    exchange_u64s(s, stats->windows, ZN_WINDOW_ENDS);
    exchange_u64(s, &stats->clock_jumps);
    exchange_u64(s, &stats->groups);
    exchange_u64(s, &stats->swaps);
    exchange_u64(s, &stats->merges);
    exchange_u64(s, &stats->users_min);
    exchange_doubles(s, stats->loss, ZN_GROUPS_COLUMNS_MAX);
    exchange_u64s(s, stats->distinct_min, ZN_GROUPS_COLUMNS_MAX);
    exchange_u64s(s, stats->distinct_sum, ZN_GROUPS_COLUMNS_MAX);
    exchange_doubles(s, stats->entropy_min, ZN_GROUPS_COLUMNS_MAX);
    exchange_doubles(s, stats->entropy_sum, ZN_GROUPS_COLUMNS_MAX);
    exchange_doubles(s, stats->share_max, ZN_GROUPS_COLUMNS_MAX);
    exchange_double(s, &stats->delay_sum);
    exchange_i64(s, &stats->delay_max);
    exchange_u64s(s, stats->delays, ZN_DELAY_BUCKETS);
    exchange_u64s(s, stats->l_windows, ZN_WINDOW_L_MAX);
}

static void exchange_node(state *s, zn_node *node)
{
    uint64_t value = *node;
    exchange_u64(s, &value);
    *node = (zn_node)value;
}

static void exchange_row(state *s, zn_window *w, size_t i)
{
    exchange_i64(s, &w->t_ns[i]);
    exchange_u64(s, &w->user_lo[i]);
    exchange_u64(s, &w->user_hi[i]);
    exchange_u64(s, &w->payload[i]);
    for (size_t j = 0; j < w->quasi_count; j++)
        exchange_node(s, &w->quasi[i * w->quasi_count + j]);
    exchange_u64s(s, w->sensitive + i * w->sensitive_count, w->sensitive_count);
}

static void exchange_clock(state *s, zn_window *w)
{
    uint64_t values = w->adaptive.values, l = w->adaptive.l;
    uint64_t late = w->late_in_a_row, started = w->started, n = w->n, carried = w->carried;
    exchange_i64(s, &w->now_ns);
    exchange_u64(s, &late);
    exchange_u64(s, &started);
    exchange_u64(s, &n);
    exchange_u64(s, &carried);
    exchange_double(s, &w->adaptive.entropy);
    exchange_double(s, &w->adaptive.normalized);
    exchange_u64(s, &values);
    exchange_u64(s, &l);
    exchange_u64(s, &w->adaptive.windows);
    exchange_u64(s, &w->adaptive.changed);
    w->adaptive.values = (uint32_t)values;
    w->adaptive.l = (uint32_t)l;
    w->late_in_a_row = (uint32_t)late;
    w->started = started != 0;
    w->n = n;
    w->carried = carried;
}

void zn_window_save(const zn_window *w, zn_text *out)
{
    state s = {.out = out};
    zn_window copy = *w; /* only its numbers are exchanged, and none changes */
    uint64_t users = w->once.count;
    (void)exchange_settings(&s, w);
    exchange_stats(&s, &copy.stats);
    exchange_clock(&s, &copy);
    for (size_t i = 0; i < w->n; i++)
        exchange_row(&s, &copy, i);
    exchange_u64(&s, &users);
    for (uint32_t i = 0; i < w->once.count; i++) {
        zn_once_entry entry = *zn_once_at(&w->once, i);
        exchange_u64(&s, &entry.user);
        exchange_i64(&s, &entry.t_ns);
    }
}

static bool is_row_possible(const zn_window *w, size_t i)
{
    for (size_t j = 0; j < w->quasi_count; j++)
        if (w->quasi[i * w->quasi_count + j] >= zn_taxonomy_nodes(w->columns[j]))
            return false;
    return w->t_ns[i] >= 0;
}

static bool read_rows(state *s, zn_window *w)
{
    uint32_t l_max = w->config.adapt_l;
    size_t waited = w->config.sliding ? 0 : w->carried;
    if (l_max != 0 && (w->adaptive.l < w->config.groups.rule.l || w->adaptive.l > l_max))
        return false;
    if (w->now_ns < 0 || !(w->adaptive.entropy >= 0))
        return false;
    /* There has to be room for the rows that the window still takes. */
    if (w->carried > w->n || waited > w->cap - w->config.rows || w->n - waited >= w->config.rows)
        return false;
    w->oldest_ns = INT64_MAX;
    for (size_t i = 0; i < w->n; i++) {
        exchange_row(s, w, i);
        if (!zn_cursor_ok(&s->in) || !is_row_possible(w, i))
            return false;
        if (w->t_ns[i] < w->oldest_ns)
            w->oldest_ns = w->t_ns[i];
    }
    return true;
}

static bool read_users(state *s, zn_window *w)
{
    uint64_t users = 0;
    exchange_u64(s, &users);
    for (uint64_t i = 0; i < users; i++) {
        zn_once_entry entry = {0, 0};
        exchange_u64(s, &entry.user);
        exchange_i64(s, &entry.t_ns);
        if (!zn_cursor_ok(&s->in) || entry.t_ns < 0 || !zn_once_restore(&w->once, entry))
            return false;
    }
    return zn_cursor_ok(&s->in) && zn_cursor_left(&s->in) == 0;
}

int zn_window_load(zn_window *w, zn_span saved, zn_error *err)
{
    state s = {.in = zn_cursor_over_span(saved, true)};
    if (!exchange_settings(&s, w) || !zn_cursor_ok(&s.in))
        return zn_fail(err, ZN_ERR_FORMAT, 0, "a state of other settings, or no state");
    exchange_stats(&s, &w->stats);
    exchange_clock(&s, w);
    if (!zn_cursor_ok(&s.in) || !read_rows(&s, w) || !read_users(&s, w)) {
        w->n = w->carried = 0;
        return zn_fail(err, ZN_ERR_FORMAT, 0, "the state is cut, or is none");
    }
    return 0;
}
