/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A row's values are coded as soon as the row is read. Its sensitive columns and passed columns,
 * which are written unchanged, are formatted then, too, and wait in `waiting`. The texts of all
 * nodes of the hierarchies are formatted once. So a line consists of three copies: the time of the
 * release, the texts of its group's nodes, and its own end.
 */
#include "rows/publisher.h"

#include "release/tuple_gate.h"
#include "rows/log.h"
#include "util/arena.h"
#include "util/sort.h"

#define MEMORY_SLACK ((size_t)1 << 16) /* of rows that have left, before the others move together */
#define MEMORY_PARTS 4 /* rows that wait, the same while they move, their lines, the output */

/* Written forms of a column's nodes, each with the separator or key before it. */
typedef struct node_texts {
    zn_text text;
    uint32_t *end; /* of each node's */
} node_texts;

/* A line of a release, by offsets. */
typedef struct line {
    size_t start, quasi, tail, end; /* the tail has the row's own columns */
    size_t row;                     /* where that is in `waiting` */
    uint64_t key;                   /* the first bytes after the time, for sorting */
    zn_id user;
} line;

struct zn_publisher {
    zn_row_format to;
    zn_unknown unknown;
    bool with_user, headed;
    size_t quasi_at, sensitive_at, passed_at; /* columns */
    size_t quasi_count, sensitive_count;
    const zn_taxonomy *taxonomy[ZN_GROUPS_COLUMNS_MAX];
    node_texts nodes[ZN_GROUPS_COLUMNS_MAX];
    zn_row_reader reader;
    zn_row_style style;
    zn_tuple_gate *gate;
    zn_row_pseudonym *pseudonym; /* NULL: the user's column is not written */
    zn_window *window;
    size_t waiting_most;    /* bytes */
    zn_text waiting, moved; /* the ends of lines, as put_tail writes them */
    bool has_left;          /* some of them are not needed any more */
    zn_text lines, time;    /* of a release */
    line *line;
    uint32_t *order, *scratch;
    uint8_t *faults;
    size_t line_cap;
    zn_text out;
};

/* ---- opening ---- */

static const char *option_of(const zn_publisher *p, size_t column)
{
    if (column == ZN_ROW_TIME)
        return "--time";
    if (column < p->quasi_at)
        return "--user";
    if (column < p->sensitive_at)
        return "--quasi";
    return column < p->passed_at ? "--sensitive" : "--pass";
}

static int open_reader(zn_publisher *p, const zn_publisher_config *config, zn_error *err)
{
    zn_row_reader_config reader = {
        .format = config->format,
        .unit = config->unit,
        .delimiter = config->delimiter,
        .quotes = config->quotes,
        .columns = config->columns,
        .required = p->quasi_at,
        .with_user = p->with_user,
        .header = config->header,
        .strict = config->strict,
    };
    if (config->columns.count < p->passed_at)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "%zu columns are read, not %zu", p->passed_at,
                       config->columns.count);
    reader.columns.scalars = p->passed_at;
    for (size_t i = 0; i < ZN_ROW_COLUMNS_MAX; i++)
        reader.option[i] = option_of(p, i);
    return zn_row_reader_init(&p->reader, &reader, err);
}

static int open_lines(zn_publisher *p, zn_error *err)
{
    p->line = zn_block_alloc(p->line_cap * sizeof *p->line);
    p->order = zn_block_alloc(p->line_cap * sizeof *p->order);
    p->scratch = zn_block_alloc(p->line_cap * sizeof *p->scratch);
    p->faults = zn_block_alloc(p->line_cap);
    if (p->line == NULL || p->order == NULL || p->scratch == NULL || p->faults == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the lines of a release");
    return 0;
}

/* Rows that wait get what is left of the memory; each may be moved and written while it waits. */
static int share_memory(zn_publisher *p, uint64_t most, zn_error *err)
{
    size_t fixed = zn_publisher_memory(p) + p->line_cap * (sizeof *p->line + 9);
    size_t least = fixed + MEMORY_PARTS * MEMORY_SLACK;
    if (most < least)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "max_memory: a window of this size takes %zu KiB",
                       (least >> 10) + 1);
    p->waiting_most = (size_t)(most - fixed) / MEMORY_PARTS;
    return 0;
}

static int leave(void *owner, const zn_window_view *view, zn_error *err);

static int open_parts(zn_publisher *p, const zn_publisher_config *config, zn_error *err)
{
    zn_window_config window = config->window;
    zn_key_scope scope = {.rotate_ns = INT64_MAX, .z = window.groups.rule.k, .window_ns = 1};
    int rc;
    window.leave = leave;
    window.owner = p;
    rc = zn_window_open(&p->window, &window, err);
    if (rc == 0)
        rc = open_reader(p, config, err);
    if (rc == 0)
        rc = zn_tuple_gate_open(&p->gate, &window.groups.rule, p->sensitive_count, err);
    if (rc == 0 && config->pseudonyms)
        rc = zn_row_pseudonym_open(&p->pseudonym, &scope, NULL, err);
    p->line_cap = 2 * window.rows;
    if (rc == 0)
        rc = open_lines(p, err);
    return rc != 0 ? rc : share_memory(p, config->max_memory, err);
}

int zn_publisher_open(zn_publisher **out, const zn_publisher_config *config, zn_error *err)
{
    const zn_groups_config *groups = &config->window.groups;
    zn_publisher *p = zn_block_alloc(sizeof *p);
    int rc;
    *out = NULL;
    if (p == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for a publisher");
    p->to = config->to;
    p->unknown = config->unknown;
    p->with_user = config->window.with_user;
    p->quasi_count = groups->column_count;
    p->sensitive_count = groups->sensitive_count;
    p->quasi_at = p->with_user ? 2 : 1;
    p->sensitive_at = p->quasi_at + p->quasi_count;
    p->passed_at = p->sensitive_at + p->sensitive_count;
    p->style.delimiter = config->delimiter;
    p->style.quotes = config->quotes;
    p->style.unit = config->unit;
    p->style.columns = &p->reader.config.columns;
    rc = open_parts(p, config, err);
    for (size_t i = 0; rc == 0 && i < p->quasi_count; i++)
        p->taxonomy[i] = groups->columns[i];
    if (rc != 0)
        zn_publisher_close(p);
    else
        *out = p;
    return rc;
}

static void wipe_text(zn_text *text)
{
    if (text->bytes != NULL)
        zn_wipe(text->bytes, text->cap);
    zn_text_fini(text);
}

void zn_publisher_close(zn_publisher *p)
{
    if (p == NULL)
        return;
    zn_window_close(p->window);
    zn_tuple_gate_close(p->gate);
    zn_row_pseudonym_close(p->pseudonym);
    zn_row_reader_fini(&p->reader);
    for (size_t i = 0; i < ZN_GROUPS_COLUMNS_MAX; i++) {
        zn_text_fini(&p->nodes[i].text);
        zn_heap_free(p->nodes[i].end);
    }
    wipe_text(&p->waiting);
    wipe_text(&p->moved);
    wipe_text(&p->lines);
    zn_text_fini(&p->time);
    zn_text_fini(&p->out);
    if (p->line != NULL)
        zn_block_clear(p->line, p->line_cap * sizeof *p->line);
    zn_block_free(p->line, p->line_cap * sizeof *p->line);
    zn_block_free(p->order, p->line_cap * sizeof *p->order);
    zn_block_free(p->scratch, p->line_cap * sizeof *p->scratch);
    zn_block_free(p->faults, p->line_cap);
    zn_block_free(p, sizeof *p);
}

/* ---- what is the same in all lines ---- */

/* Formats the label of each node of a column. */
static int format_nodes(zn_publisher *p, size_t i, zn_error *err)
{
    const zn_taxonomy *taxonomy = p->taxonomy[i];
    uint32_t count = zn_taxonomy_nodes(taxonomy);
    node_texts *nodes = &p->nodes[i];
    nodes->end = zn_heap_alloc(count * sizeof *nodes->end);
    for (uint32_t node = 0; nodes->end != NULL && node < count; node++) {
        zn_value label = {zn_taxonomy_label(taxonomy, (zn_node)node), ZN_VALUE_TEXT};
        if (label.text.n == 0)
            label.kind = ZN_VALUE_NONE;
        zn_row_log_before(&nodes->text, &p->style, p->quasi_at + i);
        zn_row_log_value(&nodes->text, &p->style, &label);
        nodes->end[node] = (uint32_t)nodes->text.n;
    }
    if (nodes->end == NULL || nodes->text.failed || nodes->text.n > UINT32_MAX)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the texts of a hierarchy");
    return 0;
}

static bool is_written(const zn_publisher *p, size_t column)
{
    return column == ZN_ROW_TIME || column >= p->quasi_at || p->pseudonym != NULL;
}

static void write_header(zn_publisher *p)
{
    for (size_t i = 0; i < p->style.columns->count; i++) {
        zn_value name = {p->style.columns->name[i], ZN_VALUE_TEXT};
        if (!is_written(p, i))
            continue;
        zn_row_log_before(&p->out, &p->style, i);
        zn_row_log_value(&p->out, &p->style, &name);
    }
    zn_text_char(&p->out, '\n');
}

/* The input's format is known: so is the output's. */
static int fix_format(zn_publisher *p, zn_error *err)
{
    int rc = 0;
    if (p->style.format != ZN_ROWS_AUTO)
        return 0;
    p->style.format = p->to == ZN_ROWS_AUTO ? zn_row_reader_format(&p->reader) : p->to;
    for (size_t i = 0; i < p->quasi_count && rc == 0; i++)
        rc = format_nodes(p, i, err);
    return rc;
}

static int begin(zn_publisher *p, zn_error *err)
{
    int rc = fix_format(p, err);
    if (rc == 0 && !p->headed && p->style.format == ZN_ROWS_CSV)
        write_header(p);
    p->headed = true;
    return rc;
}

/* ---- a release ---- */

static uint32_t u32_at(const zn_text *text, size_t at)
{
    uint32_t value;
    memcpy(&value, text->bytes + at, sizeof value);
    return value;
}

/* The bytes before a row's own in `waiting`: how many these are, and where each sensitive value
 * ends in them. */
static size_t lead_bytes(const zn_publisher *p)
{
    return (1 + p->sensitive_count) * sizeof(uint32_t);
}

static size_t row_bytes(const zn_publisher *p, size_t row)
{
    return lead_bytes(p) + u32_at(&p->waiting, row);
}

static void put_node(const zn_publisher *p, zn_text *out, size_t column, zn_node node)
{
    const node_texts *nodes = &p->nodes[column];
    uint32_t start = node == 0 ? 0 : nodes->end[node - 1];
    zn_text_bytes(out, nodes->text.bytes + start, nodes->end[node] - start);
}

static int put_pseudonym(zn_publisher *p, zn_id user, zn_error *err)
{
    zn_row_pseudonym_of who = {0, user, {(const uint8_t *)&user, sizeof user}};
    char text[ZN_PSEUDONYM_CHARS];
    zn_value value = {{(const uint8_t *)text, sizeof text}, ZN_VALUE_TEXT};
    int rc = zn_row_pseudonym_make(p->pseudonym, &who, text, err);
    zn_row_log_before(&p->lines, &p->style, ZN_ROW_USER);
    zn_row_log_value(&p->lines, &p->style, &value);
    return rc;
}

/* The first 8 bytes of a span as a number that is in the order of the bytes. */
static uint64_t sort_key(const char *bytes, size_t n)
{
    uint64_t key = 0;
    memcpy(&key, bytes, n < sizeof key ? n : sizeof key);
    return be64toh(key);
}

/* Formats row i as a line. */
static int put_line(zn_publisher *p, const zn_window_view *view, size_t i, line *l, zn_error *err)
{
    const zn_node *nodes = zn_groups_nodes(view->groups, view->group[i]);
    zn_text *out = &p->lines;
    int rc = 0;
    l->row = (size_t)view->payload[i];
    l->user = (zn_id){view->user_lo[i], view->user_hi[i]};
    l->start = out->n;
    zn_text_bytes(out, p->time.bytes, p->time.n);
    if (p->pseudonym != NULL)
        rc = put_pseudonym(p, l->user, err);
    l->quasi = out->n;
    for (size_t column = 0; column < p->quasi_count; column++)
        put_node(p, out, column, nodes[column]);
    l->tail = out->n;
    zn_text_bytes(out, p->waiting.bytes + l->row + lead_bytes(p), u32_at(&p->waiting, l->row));
    l->end = out->n;
    return rc;
}

/* Formats the lines of all rows that leave; *count of them. */
static int put_lines(zn_publisher *p, const zn_window_view *view, size_t *count, zn_error *err)
{
    int rc = 0;
    *count = 0;
    p->lines.n = p->time.n = 0;
    if (p->style.format == ZN_ROWS_JSONL)
        zn_text_char(&p->time, '{');
    zn_row_log_before(&p->time, &p->style, ZN_ROW_TIME);
    zn_row_log_time(&p->time, &p->style, view->release_ns);
    if (p->pseudonym != NULL)
        rc = zn_row_pseudonym_rebase(p->pseudonym, 0, err);
    for (size_t i = 0; i < view->n && rc == 0; i++)
        if (view->fate[i] == ZN_FATE_RELEASED)
            rc = put_line(p, view, i, &p->line[(*count)++], err);
    if (rc == 0 && (p->lines.failed || p->time.failed))
        rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the lines of a release");
    return rc;
}

static zn_span span_of(const zn_text *text, size_t start, size_t end)
{
    return (zn_span){(const uint8_t *)text->bytes + start, end - start};
}

/* Has the gate count the lines, from their bytes. */
static int ask_gate(zn_publisher *p, size_t count, zn_error *err)
{
    zn_id sensitive[ZN_TUPLE_SENSITIVE_MAX];
    int rc = 0;
    for (size_t i = 0; i < count && rc == 0; i++) {
        const line *l = &p->line[i];
        zn_id quasi = zn_tuple_gate_value(p->gate, span_of(&p->lines, l->quasi, l->tail));
        size_t at = 0;
        for (size_t j = 0; j < p->sensitive_count; j++) {
            size_t end = u32_at(&p->waiting, l->row + (1 + j) * sizeof(uint32_t));
            sensitive[j] =
                zn_tuple_gate_value(p->gate, span_of(&p->lines, l->tail + at, l->tail + end));
            at = end;
        }
        rc = zn_tuple_gate_add(p->gate, &quasi, 1, sensitive, p->with_user ? &l->user : NULL, err);
    }
    return rc != 0 ? rc : zn_tuple_gate_decide(p->gate, p->faults, err);
}

static bool line_less(const void *context, uint32_t a, uint32_t b)
{
    const zn_publisher *p = context;
    const line *x = &p->line[a], *y = &p->line[b];
    size_t left = x->end - x->start, right = y->end - y->start;
    int order;
    if (x->key != y->key)
        return x->key < y->key;
    order =
        memcmp(p->lines.bytes + x->start, p->lines.bytes + y->start, left < right ? left : right);
    return order != 0 ? order < 0 : left < right;
}

/* Appends the lines that the gate lets out, sorted, to the output. */
static void let_out(zn_publisher *p, size_t count)
{
    size_t good = 0;
    for (size_t i = 0; i < count; i++) {
        line *l = &p->line[i];
        size_t at = l->start + p->time.n;
        if (p->faults[i] != ZN_CLASS_GOOD)
            continue;
        l->key = sort_key(p->lines.bytes + at, l->end - at);
        p->order[good++] = (uint32_t)i;
    }
    zn_sort(p->order, p->scratch, good, line_less, p);
    for (size_t i = 0; i < good; i++) {
        const line *l = &p->line[p->order[i]];
        zn_text_bytes(&p->out, p->lines.bytes + l->start, l->end - l->start);
    }
    zn_window_count_stopped(p->window, count - good);
}

/* Writes a release: the window calls it. */
static int leave(void *owner, const zn_window_view *view, zn_error *err)
{
    zn_publisher *p = owner;
    size_t count, before = p->out.n;
    int rc = put_lines(p, view, &count, err);
    p->has_left = true;
    if (rc == 0 && count != 0)
        rc = ask_gate(p, count, err);
    if (rc != 0)
        return rc;
    let_out(p, count);
    if (!p->out.failed)
        return 0;
    p->out.n = before; /* an incomplete release does not leave */
    return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the output");
}

/* ---- a row ---- */

/* Makes room for n more bytes; the old ones are wiped, as they hold rows. */
static bool reserve(zn_text *text, size_t n)
{
    size_t cap = text->cap < 4096 ? 4096 : text->cap;
    char *larger;
    if (text->bytes != NULL && text->cap - text->n >= n)
        return true;
    while (cap - text->n < n)
        cap *= 2;
    larger = zn_heap_alloc(cap);
    if (larger == NULL)
        return false;
    if (text->n != 0)
        memcpy(larger, text->bytes, text->n);
    if (text->bytes != NULL)
        zn_wipe(text->bytes, text->cap);
    zn_heap_free(text->bytes);
    text->bytes = larger;
    text->cap = cap;
    return true;
}

/* In CSV an empty field is a missing value; the other formats have null. A sensitive value that is
 * an empty text is a missing value in every format, because a reader may not distinguish the
 * two. */
static zn_value value_of(const zn_publisher *p, const zn_row *row, size_t column)
{
    zn_value value = row->value[column];
    if (value.text.n == 0 &&
        (column < p->passed_at || zn_row_reader_format(&p->reader) == ZN_ROWS_CSV))
        value.kind = ZN_VALUE_NONE;
    return value;
}

/* Writes what leaves of the row as it is, up to the line feed, after lead_bytes. */
static int put_tail(zn_publisher *p, const zn_row *row, zn_error *err)
{
    zn_text *out = &p->waiting;
    size_t lead = out->n, start = lead + lead_bytes(p), most = lead_bytes(p) + 3;
    uint32_t bytes;
    for (size_t i = p->sensitive_at; i < p->style.columns->count; i++)
        most += 6 * (row->value[i].text.n + p->style.columns->name[i].n) + 8; /* all escaped */
    if (!reserve(out, most))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for rows that wait");
    out->n = start;
    for (size_t i = p->sensitive_at; i < p->style.columns->count; i++) {
        zn_value value = value_of(p, row, i);
        zn_row_log_before(out, &p->style, i);
        zn_row_log_value(out, &p->style, &value);
        bytes = (uint32_t)(out->n - start);
        if (i < p->passed_at)
            memcpy(out->bytes + lead + (1 + i - p->sensitive_at) * sizeof bytes, &bytes,
                   sizeof bytes);
    }
    if (p->style.format == ZN_ROWS_JSONL)
        zn_text_char(out, '}');
    zn_text_char(out, '\n');
    bytes = (uint32_t)(out->n - start);
    memcpy(out->bytes + lead, &bytes, sizeof bytes);
    return 0;
}

/* Returns the identity of a value, by the text that will be written for it. */
static uint64_t identity(const zn_publisher *p, zn_value value)
{
    bool csv = p->style.format == ZN_ROWS_CSV;
    zn_span text = value.text;
    if (value.kind == ZN_VALUE_NONE || (csv && text.n == 0))
        text = (zn_span){NULL, 0};
    return zn_tuple_gate_value(p->gate, text).lo ^ (!csv && value.kind == ZN_VALUE_JSON);
}

/* Codes the quasi-identifiers; returns the first column with an unknown value, or quasi_count. */
static size_t code_quasi(const zn_publisher *p, const zn_row *row, zn_node *quasi)
{
    size_t unknown = p->quasi_count;
    for (size_t i = 0; i < p->quasi_count; i++) {
        const zn_value *value = &row->value[p->quasi_at + i];
        zn_span text = {value->text.p, value->kind == ZN_VALUE_NONE ? 0 : value->text.n};
        quasi[i] = zn_taxonomy_find(p->taxonomy[i], text);
        if (quasi[i] != ZN_NODE_NONE)
            continue;
        quasi[i] = (zn_node)(zn_taxonomy_nodes(p->taxonomy[i]) - 1);
        if (unknown == p->quasi_count)
            unknown = i;
    }
    return unknown;
}

static int refuse_unknown(const zn_publisher *p, size_t column, zn_error *err)
{
    zn_span name = p->style.columns->name[p->quasi_at + column];
    return zn_fail(err, ZN_ERR_FORMAT, 0,
                   "line %llu: column '%.*s' has a value that its hierarchy lacks; --unknown "
                   "suppress or top goes on",
                   (unsigned long long)p->reader.row_line, (int)(name.n > 60 ? 60 : name.n),
                   (const char *)name.p);
}

/* Moves waiting rows together if the rows that have left take most of the memory. */
static int tidy(zn_publisher *p, zn_error *err)
{
    zn_text old = p->waiting;
    size_t n, bytes = 0;
    uint64_t *rows = zn_window_payloads(p->window, &n);
    if (!p->has_left)
        return 0;
    p->has_left = false;
    for (size_t i = 0; i < n; i++)
        bytes += row_bytes(p, (size_t)rows[i]);
    if (old.n - bytes <= bytes + MEMORY_SLACK && n != 0)
        return 0;
    p->moved.n = 0;
    if (!reserve(&p->moved, bytes))
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for rows that wait");
    for (size_t i = 0; i < n; i++) {
        size_t at = p->moved.n;
        zn_text_bytes(&p->moved, old.bytes + rows[i], row_bytes(p, (size_t)rows[i]));
        rows[i] = at;
    }
    p->waiting = p->moved;
    p->moved = old;
    return 0;
}

static int take_row(zn_publisher *p, const zn_row *row, zn_error *err)
{
    zn_node quasi[ZN_GROUPS_COLUMNS_MAX];
    uint64_t sensitive[ZN_GROUPS_COLUMNS_MAX];
    zn_window_row coded = {
        .t_ns = row->t_ns, .quasi = quasi, .sensitive = sensitive, .payload = p->waiting.n};
    size_t unknown = code_quasi(p, row, quasi);
    zn_row_fate fate;
    int rc;
    if (unknown != p->quasi_count && p->unknown == ZN_UNKNOWN_ERROR)
        return refuse_unknown(p, unknown, err);
    if (unknown != p->quasi_count && p->unknown == ZN_UNKNOWN_SUPPRESS) {
        rc = zn_window_drop(p->window, row->t_ns, ZN_FATE_UNKNOWN, err);
        return rc != 0 ? rc : tidy(p, err);
    }
    for (size_t i = 0; i < p->sensitive_count; i++)
        sensitive[i] = identity(p, value_of(p, row, p->sensitive_at + i));
    if (p->with_user)
        coded.user = zn_tuple_gate_user(p->gate, row->value[ZN_ROW_USER].text);
    rc = put_tail(p, row, err);
    if (rc == 0)
        rc = zn_window_take(p->window, &coded, &fate, err);
    if (rc == 0 && fate != ZN_FATE_WAITS)
        p->waiting.n = (size_t)coded.payload;
    if (rc == 0 && p->waiting.n > p->waiting_most)
        rc = zn_window_end_now(p->window, ZN_WINDOW_MEMORY, err);
    return rc != 0 ? rc : tidy(p, err);
}

/* Takes all rows that are there; `final`: also the bytes after the last line feed. */
static int consume(zn_publisher *p, bool final, zn_error *err)
{
    zn_row_found what = ZN_FOUND_HEADER;
    zn_row row;
    int rc = 0;
    while (rc == 0 && what != ZN_FOUND_NONE) {
        rc = zn_row_reader_next(&p->reader, final, &row, &what, err);
        if (rc == 0 && what == ZN_FOUND_HEADER)
            rc = begin(p, err);
        else if (rc == 0 && what == ZN_FOUND_ROW && p->style.format == ZN_ROWS_AUTO)
            rc = fix_format(p, err);
        if (rc == 0 && what == ZN_FOUND_ROW)
            rc = take_row(p, &row, err);
    }
    return rc;
}

int zn_publisher_feed(zn_publisher *p, const uint8_t *bytes, size_t n, zn_error *err)
{
    int rc = n == 0 ? 0 : zn_row_reader_append(&p->reader, bytes, n, err);
    return rc != 0 || n == 0 ? rc : consume(p, false, err);
}

int zn_publisher_end(zn_publisher *p, zn_error *err)
{
    int rc = consume(p, true, err);
    zn_row_reader_end(&p->reader);
    return rc;
}

static int end_now(zn_publisher *p, zn_window_end why, zn_error *err)
{
    int rc = zn_window_end_now(p->window, why, err);
    return rc != 0 ? rc : tidy(p, err);
}

int zn_publisher_idle(zn_publisher *p, zn_error *err)
{
    return end_now(p, ZN_WINDOW_IDLE, err);
}

int zn_publisher_finish(zn_publisher *p, zn_error *err)
{
    return end_now(p, ZN_WINDOW_LAST, err);
}

/* ---- results ---- */

zn_text *zn_publisher_output(zn_publisher *p)
{
    return &p->out;
}

const zn_row_reader_stats *zn_publisher_read_stats(const zn_publisher *p)
{
    return &p->reader.stats;
}

const zn_window *zn_publisher_window(const zn_publisher *p)
{
    return p->window;
}

zn_row_format zn_publisher_format(const zn_publisher *p)
{
    return zn_row_reader_format(&p->reader);
}

size_t zn_publisher_memory(const zn_publisher *p)
{
    size_t nodes = 0;
    for (size_t i = 0; i < p->quasi_count; i++)
        nodes += p->nodes[i].text.cap;
    return sizeof *p + zn_window_memory(p->window) + zn_tuple_gate_memory(p->gate) + nodes +
           p->reader.cap + p->waiting.cap + p->moved.cap + p->lines.cap + p->out.cap;
}
