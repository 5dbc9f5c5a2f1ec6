/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/keys.h"
#include "rows/window_internal.h"
#include "util/arena.h"
#include "util/clock.h"

/* ---- opening ---- */

static int check_config(const zn_window_config *config, zn_error *err)
{
    const zn_class_rule *rule = &config->groups.rule;
    if (config->rows < 1 || config->rows > UINT32_MAX / 4)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "a window of %zu rows is not possible", config->rows);
    if (rule->k > config->rows)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "k is %u: a window of %zu rows has no more users than that", rule->k,
                       config->rows);
    if (config->once_ns != 0 && config->delay_ns == 0)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "once needs a delay, the bound on how late rows come");
    if (rule->l > config->rows || rule->l >= ZN_WINDOW_L_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "l is %u: it can be %zu at most", rule->l,
                       config->rows < ZN_WINDOW_L_MAX ? config->rows : ZN_WINDOW_L_MAX - 1);
    return 0;
}

static void *array_of(const zn_window *w, size_t columns, size_t bytes)
{
    return zn_block_alloc(w->cap * (columns == 0 ? 1 : columns) * bytes);
}

static int open_arrays(zn_window *w, zn_error *err)
{
    w->t_ns = array_of(w, 1, sizeof *w->t_ns);
    w->user_lo = array_of(w, 1, sizeof *w->user_lo);
    w->user_hi = array_of(w, 1, sizeof *w->user_hi);
    w->payload = array_of(w, 1, sizeof *w->payload);
    w->sensitive = array_of(w, w->sensitive_count, sizeof *w->sensitive);
    w->quasi = array_of(w, w->quasi_count, sizeof *w->quasi);
    w->fate = array_of(w, 1, sizeof *w->fate);
    w->order = array_of(w, 1, sizeof *w->order);
    w->scratch = array_of(w, 1, sizeof *w->scratch);
    if (w->t_ns == NULL || w->user_lo == NULL || w->user_hi == NULL || w->payload == NULL ||
        w->sensitive == NULL || w->quasi == NULL || w->fate == NULL || w->order == NULL ||
        w->scratch == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a window of %zu rows",
                       w->config.rows);
    return 0;
}

static int open_adaptive(zn_window *w, zn_error *err)
{
    zn_adaptive_l_config config = {.l_min = w->config.groups.rule.l,
                                   .l_max = w->config.adapt_l,
                                   .way = w->config.adapt_way,
                                   .alpha = ZN_ADAPTIVE_ALPHA,
                                   .band = ZN_ADAPTIVE_BAND,
                                   .dwell = ZN_ADAPTIVE_DWELL};
    if (w->sensitive_count == 0 || w->config.adapt_l >= ZN_WINDOW_L_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0,
                       "adapt_l is %u: it needs a sensitive column, and %d "
                       "at most",
                       w->config.adapt_l, ZN_WINDOW_L_MAX - 1);
    return zn_adaptive_l_init(&w->adaptive, &config, err);
}

int zn_window_open(zn_window **out, const zn_window_config *config, zn_error *err)
{
    zn_window *w;
    int rc = check_config(config, err);
    *out = NULL;
    if (rc != 0)
        return rc;
    w = zn_block_alloc(sizeof *w);
    if (w == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a window");
    w->config = *config;
    w->quasi_count = config->groups.column_count;
    w->sensitive_count = config->groups.sensitive_count;
    w->cap = config->delay_ns != 0 && !config->sliding ? 2 * config->rows : config->rows;
    w->oldest_ns = INT64_MAX;
    w->config.groups.rows_max = w->cap;
    w->config.groups.repair = w->config.groups.strict = true;
    rc = zn_groups_open(&w->groups, &w->config.groups, err);
    if (rc == 0 && config->adapt_l != 0)
        rc = open_adaptive(w, err);
    if (rc == 0) { /* zn_groups_open has checked the counts */
        for (size_t i = 0; i < w->quasi_count; i++)
            w->columns[i] = config->groups.columns[i];
        w->config.groups.columns = w->columns;
        rc = open_arrays(w, err);
    }
    if (rc == 0 && config->once_ns != 0)
        rc = zn_once_init(&w->once, config->once_ns, config->delay_ns, config->once_users, err);
    if (rc != 0)
        zn_window_close(w);
    else
        *out = w;
    return rc;
}

static void close_array(const zn_window *w, void *array, size_t columns, size_t bytes)
{
    size_t all = w->cap * (columns == 0 ? 1 : columns) * bytes;
    if (array == NULL)
        return;
    zn_block_clear(array, all);
    zn_block_free(array, all);
}

void zn_window_close(zn_window *w)
{
    if (w == NULL)
        return;
    zn_groups_close(w->groups);
    zn_once_fini(&w->once);
    close_array(w, w->t_ns, 1, sizeof *w->t_ns);
    close_array(w, w->user_lo, 1, sizeof *w->user_lo);
    close_array(w, w->user_hi, 1, sizeof *w->user_hi);
    close_array(w, w->payload, 1, sizeof *w->payload);
    close_array(w, w->sensitive, w->sensitive_count, sizeof *w->sensitive);
    close_array(w, w->quasi, w->quasi_count, sizeof *w->quasi);
    close_array(w, w->fate, 1, sizeof *w->fate);
    close_array(w, w->order, 1, sizeof *w->order);
    close_array(w, w->scratch, 1, sizeof *w->scratch);
    zn_wipe(w, sizeof *w);
    zn_block_free(w, sizeof *w);
}

/* ---- the buffer ---- */

static void copy_row(zn_window *w, size_t to, size_t from)
{
    w->t_ns[to] = w->t_ns[from];
    w->user_lo[to] = w->user_lo[from];
    w->user_hi[to] = w->user_hi[from];
    w->payload[to] = w->payload[from];
    for (size_t i = 0; i < w->quasi_count; i++)
        w->quasi[to * w->quasi_count + i] = w->quasi[from * w->quasi_count + i];
    for (size_t i = 0; i < w->sensitive_count; i++)
        w->sensitive[to * w->sensitive_count + i] = w->sensitive[from * w->sensitive_count + i];
}

static bool is_by_time(const zn_window *w)
{
    return w->config.sliding && w->config.delay_ns != 0;
}

/* Puts a row at its place; there is room for it. */
static void put_row(zn_window *w, const zn_window_row *row)
{
    size_t at = w->n++;
    if (is_by_time(w))
        for (; at != 0 && w->t_ns[at - 1] > row->t_ns; at--)
            copy_row(w, at, at - 1);
    w->t_ns[at] = row->t_ns;
    w->user_lo[at] = row->user.lo;
    w->user_hi[at] = row->user.hi;
    w->payload[at] = row->payload;
    memcpy(w->quasi + at * w->quasi_count, row->quasi, w->quasi_count * sizeof *w->quasi);
    if (w->sensitive_count != 0)
        memcpy(w->sensitive + at * w->sensitive_count, row->sensitive,
               w->sensitive_count * sizeof *w->sensitive);
    if (row->t_ns < w->oldest_ns)
        w->oldest_ns = row->t_ns;
}

/* Takes the rows that do not wait out of the buffer. */
static void remove_rows(zn_window *w)
{
    size_t to = 0;
    w->oldest_ns = INT64_MAX;
    for (size_t i = 0; i < w->n; i++) {
        if (w->fate[i] != ZN_FATE_WAITS)
            continue;
        if (to != i)
            copy_row(w, to, i);
        if (w->t_ns[to] < w->oldest_ns)
            w->oldest_ns = w->t_ns[to];
        to++;
    }
    w->n = w->carried = to;
}

/* ---- a window's end ---- */

/* The time of a release: the stream's clock; without a delay nothing sets that right when a time
 * was wrong, so that the window's own rows say it. */
static int64_t release_time(const zn_window *w)
{
    int64_t latest = 0;
    if (w->config.delay_ns != 0)
        return w->now_ns;
    for (size_t i = 0; i < w->n; i++)
        if (w->t_ns[i] > latest)
            latest = w->t_ns[i];
    return latest;
}

/* Returns the fate of row i, which is in no group. */
static zn_row_fate fate_of_left(const zn_window *w, size_t i, zn_window_end why, int64_t next_ns)
{
    if (why == ZN_WINDOW_LAST)
        return ZN_FATE_END;
    if (why == ZN_WINDOW_MEMORY)
        return ZN_FATE_NO_ROOM;
    if (w->config.delay_ns != 0 && why != ZN_WINDOW_CLOCK &&
        (next_ns < w->t_ns[i] || next_ns - w->t_ns[i] < w->config.delay_ns))
        return ZN_FATE_WAITS;
    return ZN_FATE_USERS;
}

/* Drops the first rows that would wait, if there is no room for all. */
static void limit_waiting(zn_window *w)
{
    size_t waiting = 0, most = w->config.sliding ? w->config.rows - 1 : w->config.rows;
    for (size_t i = 0; i < w->n; i++)
        waiting += w->fate[i] == ZN_FATE_WAITS;
    for (size_t i = 0; waiting > most; i++) {
        if (w->fate[i] == ZN_FATE_WAITS) {
            w->fate[i] = ZN_FATE_NO_ROOM;
            waiting--;
        }
    }
}

/* Rows left over that have k users lack diversity, or they would have been a group. */
static void name_reason(zn_window *w)
{
    bool any = false;
    for (size_t i = 0; i < w->n; i++)
        any = any || w->fate[i] == ZN_FATE_USERS;
    if (!any || zn_window_users(w, 1u << ZN_FATE_USERS) < w->config.groups.rule.k)
        return;
    for (size_t i = 0; i < w->n; i++)
        if (w->fate[i] == ZN_FATE_USERS)
            w->fate[i] = ZN_FATE_DIVERSITY;
}

/* Passes on the rows that leave, and keeps the rows that wait in the buffer. */
static int let_leave(zn_window *w, zn_window_end why, zn_error *err)
{
    zn_window_view view = {.n = w->n,
                           .fate = w->fate,
                           .group = zn_groups_of(w->groups),
                           .payload = w->payload,
                           .user_lo = w->user_lo,
                           .user_hi = w->user_hi,
                           .groups = w->groups,
                           .release_ns = release_time(w)};
    int rc;
    w->stats.windows[why]++;
    zn_window_count(w, view.release_ns);
    rc = w->config.leave(w->config.owner, &view, err);
    remove_rows(w);
    return rc;
}

static zn_group_rows rows_of(const zn_window *w)
{
    return (zn_group_rows){w->n, w->quasi, w->sensitive, w->config.with_user ? w->user_lo : NULL};
}

/* The l that repairs of this window aim at. */
static uint32_t next_l(zn_window *w, const zn_group_rows *rows)
{
    double entropy[ZN_GROUPS_COLUMNS_MAX];
    uint32_t values[ZN_GROUPS_COLUMNS_MAX];
    if (w->config.adapt_l == 0)
        return w->config.groups.rule.l;
    zn_groups_entropy(w->groups, rows, entropy, values);
    return zn_adaptive_l_next(&w->adaptive, entropy[0], values[0]);
}

/* Groups all rows; next_ns is the earliest time that the next window can have. */
static int end_whole(zn_window *w, zn_window_end why, int64_t next_ns, zn_error *err)
{
    zn_group_rows rows = rows_of(w);
    uint32_t l = next_l(w, &rows);
    const uint32_t *group;
    zn_groups_window(w->groups, &rows, l);
    w->stats.l_windows[l]++;
    group = zn_groups_of(w->groups);
    for (size_t i = 0; i < w->n; i++)
        w->fate[i] = (uint8_t)(group[i] != ZN_GROUP_NONE ? ZN_FATE_RELEASED
                                                         : fate_of_left(w, i, why, next_ns));
    limit_waiting(w);
    name_reason(w);
    return let_leave(w, why, err);
}

/* Groups the oldest row with those near it; the others stay. */
static int end_oldest(zn_window *w, zn_window_end why, zn_error *err)
{
    zn_group_rows rows = rows_of(w);
    const uint32_t *group;
    zn_groups_oldest(w->groups, &rows);
    group = zn_groups_of(w->groups);
    for (size_t i = 0; i < w->n; i++)
        w->fate[i] = group[i] != ZN_GROUP_NONE ? ZN_FATE_RELEASED : ZN_FATE_WAITS;
    if (w->fate[0] == ZN_FATE_WAITS) {
        w->fate[0] = ZN_FATE_USERS;
        if (zn_window_users(w, 1u << ZN_FATE_USERS | 1u << ZN_FATE_WAITS) >=
            w->config.groups.rule.k)
            w->fate[0] = ZN_FATE_DIVERSITY;
    }
    return let_leave(w, why, err);
}

static int end_window(zn_window *w, zn_window_end why, int64_t next_ns, zn_error *err)
{
    bool oldest = w->config.sliding && (why == ZN_WINDOW_FULL || why == ZN_WINDOW_TIME);
    return oldest ? end_oldest(w, why, err) : end_whole(w, why, next_ns, err);
}

int zn_window_end_now(zn_window *w, zn_window_end why, zn_error *err)
{
    if (w->n == 0 || (why == ZN_WINDOW_IDLE && w->n == w->carried))
        return 0;
    return end_window(w, why, w->now_ns, err);
}

/* ---- time ---- */

static bool is_late(const zn_window *w, int64_t t_ns)
{
    return w->config.delay_ns != 0 && w->started && t_ns < w->now_ns &&
           w->now_ns - t_ns >= w->config.delay_ns;
}

static bool is_due(const zn_window *w, int64_t t_ns)
{
    return w->config.delay_ns != 0 && t_ns > w->oldest_ns &&
           t_ns - w->oldest_ns >= w->config.delay_ns;
}

/* Moves the clock to t_ns, after the windows that have to close before; *late: it is too late for
 * that. Enough late times in a row set the clock back. */
static int reach(zn_window *w, int64_t t_ns, bool *late, zn_error *err)
{
    int rc = 0;
    *late = is_late(w, t_ns) && ++w->late_in_a_row < ZN_CLOCK_REBASE_AFTER;
    if (*late)
        return 0;
    w->late_in_a_row = 0;
    if (is_late(w, t_ns)) {
        rc = w->n != 0 ? end_window(w, ZN_WINDOW_CLOCK, t_ns, err) : 0;
        w->stats.clock_jumps++;
        w->now_ns = t_ns;
        zn_once_set_back(&w->once, t_ns);
    }
    while (rc == 0 && is_due(w, t_ns))
        rc = end_window(w, ZN_WINDOW_TIME, t_ns, err);
    if (!w->started || t_ns > w->now_ns)
        w->now_ns = t_ns;
    w->started = true;
    return rc;
}

int zn_window_take(zn_window *w, const zn_window_row *row, zn_row_fate *fate, zn_error *err)
{
    bool late;
    int rc = reach(w, row->t_ns, &late, err);
    w->stats.rows++;
    *fate = late ? ZN_FATE_LATE : ZN_FATE_WAITS;
    if (rc == 0 && !late && w->config.once_ns != 0) {
        zn_once_answer answer = zn_once_ask(&w->once, row->user.lo, row->t_ns, w->now_ns);
        if (answer != ZN_ONCE_NEW)
            *fate = answer == ZN_ONCE_SEEN ? ZN_FATE_ONCE : ZN_FATE_NO_ROOM;
    }
    if (*fate != ZN_FATE_WAITS)
        w->stats.fates[*fate]++;
    if (rc != 0 || *fate != ZN_FATE_WAITS)
        return rc;
    put_row(w, row);
    if (w->n - (w->config.sliding ? 0 : w->carried) == w->config.rows)
        rc = end_window(w, ZN_WINDOW_FULL, w->now_ns, err);
    return rc;
}

int zn_window_drop(zn_window *w, int64_t t_ns, zn_row_fate fate, zn_error *err)
{
    bool late;
    int rc = reach(w, t_ns, &late, err);
    w->stats.rows++;
    w->stats.fates[late ? ZN_FATE_LATE : fate]++;
    return rc;
}

int zn_window_advance(zn_window *w, int64_t t_ns, zn_error *err)
{
    bool late;
    return w->started && t_ns <= w->now_ns ? 0 : reach(w, t_ns, &late, err);
}

/* ---- results ---- */

void zn_window_count_stopped(zn_window *w, uint64_t n)
{
    w->stats.fates[ZN_FATE_RELEASED] -= n;
    w->stats.fates[ZN_FATE_GATE] += n;
}

uint64_t *zn_window_payloads(zn_window *w, size_t *n)
{
    *n = w->n;
    return w->payload;
}

int64_t zn_window_deadline(const zn_window *w)
{
    int64_t deadline;
    if (w->config.delay_ns == 0 || w->n == 0 ||
        __builtin_add_overflow(w->oldest_ns, w->config.delay_ns, &deadline))
        return INT64_MAX;
    return deadline;
}

const zn_window_stats *zn_window_get_stats(const zn_window *w)
{
    return &w->stats;
}

size_t zn_window_memory(const zn_window *w)
{
    size_t row = 4 * sizeof(uint64_t) + w->sensitive_count * sizeof *w->sensitive +
                 w->quasi_count * sizeof *w->quasi + 1 + 2 * sizeof(uint32_t);
    return sizeof *w + w->cap * row + zn_groups_memory(w->groups) + zn_once_memory(&w->once);
}

const char *zn_row_fate_name(zn_row_fate fate)
{
    static const char *const names[] = {
#define ZN_ROW_FATE_NAME(name, text) #name,
        ZN_ROW_FATES(ZN_ROW_FATE_NAME)
#undef ZN_ROW_FATE_NAME
    };
    return names[fate];
}

const char *zn_row_fate_text(zn_row_fate fate)
{
    static const char *const texts[] = {
#define ZN_ROW_FATE_TEXT(name, text) text,
        ZN_ROW_FATES(ZN_ROW_FATE_TEXT)
#undef ZN_ROW_FATE_TEXT
    };
    return texts[fate];
}
