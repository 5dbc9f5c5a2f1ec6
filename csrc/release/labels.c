/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "release/labels.h"

#include "util/arena.h"
#include "util/text.h"

#include <stdlib.h>

#define KNOWN (1u << 12) /* values whose labels are kept */
#define KNOWN_BYTES (KNOWN * sizeof(zn_known_chain))
#define LABEL_BYTES 80 /* more than a label of an address or a category has */

static const zn_vote_kind address_kinds[] = {ZN_VOTE_ADDR, ZN_VOTE_DNS_ADDR};
#define ADDRESS_KINDS (sizeof address_kinds / sizeof address_kinds[0])

/* ---- texts ---- */

/* Text of a label that is put together. */
typedef struct label_text {
    uint8_t bytes[LABEL_BYTES];
    size_t n;
} label_text;

static void put(label_text *text, const char *word, size_t n)
{
    memcpy(text->bytes + text->n, word, n);
    text->n += n;
}

#define PUT_LITERAL(text, literal) put(text, literal, sizeof(literal) - 1)

static zn_span span_of(const label_text *text)
{
    return (zn_span){text->bytes, text->n};
}

static void put_as(label_text *text, uint32_t as_number)
{
    PUT_LITERAL(text, "as:");
    text->n =
        (size_t)(zn_digits_put((char *)text->bytes + text->n, as_number) - (char *)text->bytes);
}

static void put_country(label_text *text, uint32_t letters)
{
    char country[] = {(char)(letters >> 8), (char)letters};
    PUT_LITERAL(text, "country:");
    put(text, country, sizeof country);
}

static zn_id as_id(const zn_labels *labels, zn_vote_kind kind, uint32_t as_number)
{
    label_text text = {.n = 0};
    put_as(&text, as_number);
    return zn_votes_id(labels->config.votes, kind, span_of(&text));
}

static zn_id country_id(const zn_labels *labels, zn_vote_kind kind, uint32_t letters)
{
    label_text text = {.n = 0};
    put_country(&text, letters);
    return zn_votes_id(labels->config.votes, kind, span_of(&text));
}

/* ---- names ---- */

/* Returns the registered domain of a name if it may be a label, else an empty span. */
static zn_span domain_of(const zn_labels *labels, const zn_name_facts *facts, zn_span name)
{
    static const zn_span none = {NULL, 0};
    zn_hostname domain;
    if (facts->domain == ZN_NO_DOMAIN)
        return none;
    domain.n = (uint8_t)(name.n - facts->domain);
    if (domain.n + sizeof "*." - 1 > ZN_HOSTNAME_MAX)
        return none;
    if (labels->nameless.members != 0) {
        memcpy(domain.text, name.p + facts->domain, domain.n);
        if (zn_never_list_has(&labels->nameless, &domain))
            return none;
    }
    return (zn_span){name.p + facts->domain, domain.n};
}

/* Writes the text of the label; out->n is 0 if the name has no such label. */
static void write_label(const zn_labels *labels, zn_name_level level, const zn_name_facts *facts,
                        zn_span name, zn_hostname *out)
{
    label_text text = {.n = 0};
    zn_span rest = {NULL, 0};
    out->n = 0;
    if (level == ZN_NAME_LEVEL_DOMAIN) {
        rest = domain_of(labels, facts, name);
        PUT_LITERAL(&text, "*.");
    } else if (level == ZN_NAME_LEVEL_CATEGORY && facts->category != 0) {
        rest = zn_name_lists_category(&labels->config.roles->lists, facts->category);
        PUT_LITERAL(&text, "category:");
    }
    if (rest.n == 0)
        return;
    memcpy(out->text, text.bytes, text.n);
    memcpy(out->text + text.n, rest.p, rest.n);
    out->n = (uint8_t)(text.n + rest.n);
}

/* Looks up the labels above a name. */
static void find_name(const zn_labels *labels, zn_vote_kind kind, zn_span name,
                      zn_known_chain *found)
{
    zn_hostname text;
    if (labels->name_level[1] != ZN_NAME_LEVEL_NONE)
        zn_name_lists_look_up(&labels->config.roles->lists, name, &found->facts);
    for (uint32_t i = 1; i <= labels->count; i++) {
        found->above[i - 1] = (zn_id){0, 0};
        if (labels->name_level[i] == ZN_NAME_LEVEL_NONE)
            continue;
        write_label(labels, labels->name_level[i], &found->facts, name, &text);
        if (text.n != 0)
            found->above[i - 1] = zn_votes_id(labels->config.votes, kind, zn_hostname_span(&text));
    }
}

/* Returns the entry of a value, which may be that of another value. */
static zn_known_chain *known_at(const zn_labels *labels, zn_id value)
{
    return &labels->known[value.lo % KNOWN];
}

void zn_labels_of_name(const zn_labels *labels, zn_vote_kind kind, zn_span name, zn_id *chain)
{
    zn_known_chain *known = known_at(labels, chain[0]);
    if (!zn_id_equal(known->value, chain[0])) {
        known->value = chain[0];
        find_name(labels, kind, name, known);
    }
    memcpy(chain + 1, known->above, labels->count * sizeof *chain);
}

bool zn_labels_text(const zn_labels *labels, zn_name_level level, zn_id value, zn_span name,
                    zn_hostname *out)
{
    const zn_known_chain *known = known_at(labels, value);
    zn_name_facts facts = known->facts;
    if (!zn_id_equal(known->value, value))
        zn_name_lists_look_up(&labels->config.roles->lists, name, &facts);
    write_label(labels, level, &facts, name, out);
    return out->n != 0;
}

int zn_labels_set_never(zn_labels *labels, const zn_span *never, size_t count, zn_error *err)
{
    const zn_name_lists *lists = &labels->config.roles->lists;
    zn_never_list nameless = {0};
    int rc = count == 0 ? 0 : zn_never_list_init(&nameless, (uint32_t)count, err);
    if (rc != 0) {
        zn_never_list_fini(&nameless);
        return rc;
    }
    for (size_t i = 0; i < count; i++) {
        zn_name_facts facts;
        zn_name_lists_look_up(lists, never[i], &facts);
        if (facts.domain != ZN_NO_DOMAIN)
            zn_never_list_add(&nameless,
                              (zn_span){never[i].p + facts.domain, never[i].n - facts.domain});
    }
    zn_never_list_fini(&labels->nameless);
    labels->nameless = nameless;
    zn_block_clear(labels->known, KNOWN_BYTES);
    return 0;
}

/* ---- addresses ---- */

static uint32_t letters_of(const zn_network *row)
{
    return (uint32_t)((uint8_t)row->country[0] << 8 | (uint8_t)row->country[1]);
}

static uint32_t place_of(const zn_network *row, zn_server_level level)
{
    if (row == NULL)
        return 0;
    if (level == ZN_SERVER_LEVEL_AS)
        return row->as_number;
    return level == ZN_SERVER_LEVEL_COUNTRY ? letters_of(row) : 0;
}

uint32_t zn_labels_place(const zn_labels *labels, zn_server_level level, const zn_addr *address)
{
    return place_of(zn_networks_find(&labels->networks, address), level);
}

void zn_labels_server_text(const zn_labels *labels, zn_server_level level, const zn_addr *address,
                           zn_hostname *out)
{
    uint32_t place = zn_labels_place(labels, level, address);
    label_text text = {.n = 0};
    if (level == ZN_SERVER_LEVEL_AS)
        put_as(&text, place);
    else
        put_country(&text, place);
    memcpy(out->text, text.bytes, text.n);
    out->n = (uint8_t)text.n;
}

/* Looks up the labels above an address. */
static void find_address(const zn_labels *labels, zn_vote_kind kind, const zn_addr *address,
                         zn_known_chain *found)
{
    const zn_network *row = zn_networks_find(&labels->networks, address);
    for (uint32_t i = 1; i <= labels->count; i++) {
        uint32_t place = place_of(row, labels->server_level[i]);
        found->above[i - 1] = (zn_id){0, 0};
        if (place != 0)
            found->above[i - 1] = labels->server_level[i] == ZN_SERVER_LEVEL_AS
                                      ? as_id(labels, kind, place)
                                      : country_id(labels, kind, place);
    }
}

void zn_labels_of_address(const zn_labels *labels, zn_vote_kind kind, const zn_addr *address,
                          zn_id *chain)
{
    zn_known_chain *known = known_at(labels, chain[0]);
    if (!zn_id_equal(known->value, chain[0])) {
        known->value = chain[0];
        find_address(labels, kind, address, known);
    }
    memcpy(chain + 1, known->above, labels->count * sizeof *chain);
}

/* ---- the countries of an AS ---- */

/* AS and country of a row, in the order of both. */
typedef struct as_country {
    uint32_t as_number, letters;
} as_country;

static int compare_pairs(const void *a, const void *b)
{
    const as_country *x = a, *y = b;
    if (x->as_number != y->as_number)
        return x->as_number < y->as_number ? -1 : 1;
    return x->letters < y->letters ? -1 : x->letters > y->letters;
}

/* Returns the entry of the label, or the empty entry where it belongs. */
static zn_as_countries *as_of(const zn_labels *labels, zn_id label)
{
    uint32_t at = (uint32_t)label.lo & labels->as_mask;
    while ((labels->as[at].label.lo | labels->as[at].label.hi) != 0 &&
           !zn_id_equal(labels->as[at].label, label))
        at = (at + 1) & labels->as_mask;
    return &labels->as[at];
}

/* Adds an AS with several countries, in each namespace of addresses. *used counts the entries of
 * countries. */
static void add_as(zn_labels *labels, const as_country *pairs, size_t n, uint32_t *used)
{
    for (size_t kind = 0; kind < ADDRESS_KINDS; kind++) {
        zn_id label = as_id(labels, address_kinds[kind], pairs[0].as_number);
        *as_of(labels, label) = (zn_as_countries){label, *used, (uint32_t)n};
        for (size_t i = 0; i < n; i++)
            labels->countries[(*used)++] =
                country_id(labels, address_kinds[kind], pairs[i].letters);
    }
}

/* Returns the number of pairs of the first pair's AS. */
static size_t pairs_of_one(const as_country *pairs, size_t n)
{
    size_t same = 1;
    while (same < n && pairs[same].as_number == pairs[0].as_number)
        same++;
    return same;
}

/* Sorts the pairs and drops repeated ones. Returns their number. */
static size_t sort_pairs(as_country *pairs, size_t n)
{
    size_t kept = 0;
    qsort(pairs, n, sizeof *pairs, compare_pairs);
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || compare_pairs(&pairs[kept - 1], &pairs[i]) != 0)
            pairs[kept++] = pairs[i];
    return kept;
}

/* Fills the table of ASes with several countries from n sorted pairs. */
static int fill_as(zn_labels *labels, const as_country *pairs, size_t n, zn_error *err)
{
    uint32_t slots = 16, used = 0;
    while (slots < 4 * n) /* at most one AS for two pairs, in each namespace */
        slots *= 2;
    labels->as_mask = slots - 1;
    labels->as_bytes = slots * sizeof *labels->as;
    labels->country_bytes = (ADDRESS_KINDS * n + 1) * sizeof *labels->countries;
    labels->as = zn_block_alloc(labels->as_bytes);
    labels->countries = zn_block_alloc(labels->country_bytes);
    if (labels->as == NULL || labels->countries == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the countries of networks");
    for (size_t i = 0, same; i < n; i += same) {
        same = pairs_of_one(pairs + i, n - i);
        if (same > 1)
            add_as(labels, pairs + i, same, &used);
    }
    return 0;
}

static int find_countries(zn_labels *labels, zn_error *err)
{
    size_t n = 0, bytes = (labels->networks.count + 1) * sizeof(as_country);
    as_country *pairs = zn_block_alloc(bytes);
    int rc;
    if (pairs == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the countries of networks");
    for (size_t i = 0; i < labels->networks.count; i++) {
        const zn_network *row = &labels->networks.rows[i];
        if (row->as_number != 0 && letters_of(row) != 0)
            pairs[n++] = (as_country){row->as_number, letters_of(row)};
    }
    rc = fill_as(labels, pairs, sort_pairs(pairs, n), err);
    zn_block_free(pairs, bytes);
    return rc;
}

const zn_id *zn_labels_parents(void *of, uint32_t level, zn_id label, uint32_t above,
                               const zn_id *one, size_t *count)
{
    const zn_labels *labels = of;
    const zn_as_countries *as;
    *count = 1;
    if (labels->as == NULL || labels->server_level[level] != ZN_SERVER_LEVEL_AS ||
        labels->server_level[above] != ZN_SERVER_LEVEL_COUNTRY)
        return one;
    as = as_of(labels, label);
    if (as->count == 0)
        return one;
    *count = as->count;
    return labels->countries + as->first;
}

/* ---- the whole ---- */

/* Sets the level that each level above level 0 has for names and for addresses. */
static void set_levels(zn_labels *labels)
{
    uint32_t names = 0, servers = 0;
    if ((labels->config.levels & ZN_LEVEL_DOMAIN) != 0)
        labels->name_level[++names] = ZN_NAME_LEVEL_DOMAIN;
    if ((labels->config.levels & ZN_LEVEL_CATEGORY) != 0)
        labels->name_level[++names] = ZN_NAME_LEVEL_CATEGORY;
    if ((labels->config.levels & ZN_LEVEL_AS) != 0)
        labels->server_level[++servers] = ZN_SERVER_LEVEL_AS;
    if ((labels->config.levels & ZN_LEVEL_COUNTRY) != 0)
        labels->server_level[++servers] = ZN_SERVER_LEVEL_COUNTRY;
    labels->count = names > servers ? names : servers;
}

int zn_labels_init(zn_labels *labels, const zn_labels_config *config, zn_error *err)
{
    int rc;
    labels->config = *config;
    set_levels(labels);
    rc = zn_networks_init(&labels->networks, config->networks, config->network_count, err);
    labels->config.networks = NULL;
    if (rc == 0 && (labels->known = zn_block_alloc(KNOWN_BYTES)) == NULL)
        rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for labels");
    if (rc == 0 && (config->levels & ZN_LEVEL_AS) != 0 && (config->levels & ZN_LEVEL_COUNTRY) != 0)
        rc = find_countries(labels, err);
    return rc;
}

void zn_labels_fini(zn_labels *labels)
{
    zn_networks_fini(&labels->networks);
    zn_never_list_fini(&labels->nameless);
    if (labels->known != NULL)
        zn_block_free(labels->known, KNOWN_BYTES);
    if (labels->as != NULL)
        zn_block_free(labels->as, labels->as_bytes);
    if (labels->countries != NULL)
        zn_block_free(labels->countries, labels->country_bytes);
    memset(labels, 0, sizeof *labels);
}

size_t zn_labels_memory(const zn_labels *labels)
{
    return labels->networks.bytes + labels->as_bytes + labels->country_bytes + KNOWN_BYTES;
}
