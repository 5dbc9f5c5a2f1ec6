/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/attributes.h"

#include "analyzer/analyzer.h"
#include "analyzer/unread.h"
#include "proto/ascii.h"
#include "proto/attribute_readers.h"
#include "util/arena.h"

/* zn_name_entry.names_before of a vote whose attribute must not be shown. */
#define HIDDEN UINT8_MAX
_Static_assert(ZN_NAMES_PER_FLOW < HIDDEN, "a flow has fewer names");
_Static_assert(ZN_ATTRIBUTE_TEXT_MAX <= ZN_HOSTNAME_MAX, "the name store has room for a text");

int zn_attributes_open(zn_attributes **out, uint32_t wanted, uint32_t max_flows, zn_error *err)
{
    zn_attributes *a;
    *out = NULL;
    if (wanted == 0)
        return 0;
    a = zn_block_alloc(sizeof *a);
    if (a == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for attributes");
    *out = a;
    a->wanted = wanted;
    for (unsigned i = 0; i < ZN_ATTRIBUTE_COUNT; i++)
        if ((wanted & 1u << i) != 0)
            a->messages |= 1u << zn_attribute_row_of(i)->message;
    a->flows = max_flows;
    a->first = zn_block_alloc(((size_t)max_flows + 1) * sizeof *a->first);
    if (a->first == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for attributes");
    return 0;
}

void zn_attributes_close(zn_attributes *a)
{
    if (a == NULL)
        return;
    zn_block_free(a->first, ((size_t)a->flows + 1) * sizeof *a->first);
    zn_block_free(a, sizeof *a);
}

size_t zn_attributes_memory(const zn_attributes *a)
{
    return a == NULL ? 0 : sizeof *a + ((size_t)a->flows + 1) * sizeof *a->first;
}

/* ---- votes ----------------------------------------------------------------------------------- */

static void suppress(zn_attributes *a, zn_name_store *name_store, uint32_t entry)
{
    zn_name_entry *e = zn_name_store_at(name_store, entry);
    e->state = ZN_ENTRY_SUPPRESSED;
    zn_name_store_wipe_text(name_store, entry);
    a->counts[e->attribute].suppressed++;
}

static bool is_disclosed(uint8_t state)
{
    return state == ZN_ENTRY_RELEASED || state == ZN_ENTRY_REPEATED;
}

/* Returns true if an entry of the flow with the same name as *e has a vote or was disclosed. */
static bool has_vote(const zn_names *names, const zn_flow *f, const zn_name_entry *e)
{
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0;) {
        const zn_name_entry *other = zn_name_store_at(names->name_store, entry);
        if (zn_id_equal(other->id, e->id) &&
            (other->state == ZN_ENTRY_VOTED || is_disclosed(other->state)))
            return true;
        entry = other->next;
    }
    return false;
}

/* Returns the number of the flow's names, or HIDDEN if an attribute must not be shown: a name is
 * suppressed or waits for its evidence, or the flow may have a name that was not read. */
static uint8_t names_before(const zn_names *names, const zn_flow *f)
{
    uint8_t n = 0;
    if (zn_unread(f) || f->names_dropped)
        return HIDDEN;
    for (uint32_t entry = ZN_FACTS(f)->names; entry != 0; n++) {
        const zn_name_entry *e = zn_name_store_at(names->name_store, entry);
        bool may_be_public = is_disclosed(e->state) || e->state == ZN_ENTRY_VOTED ||
                             (e->state == ZN_ENTRY_PENDING && has_vote(names, f, e));
        if (!may_be_public)
            return HIDDEN;
        entry = e->next;
    }
    return n;
}

static void vote(const zn_packet_context *s, uint32_t entry)
{
    zn_names *names = s->names;
    zn_name_entry *e = zn_name_store_at(names->name_store, entry);
    zn_vote_kind kind = (zn_vote_kind)(ZN_VOTE_ATTRIBUTE + e->attribute);
    e->state = ZN_ENTRY_VOTED;
    e->names_before = names_before(names, s->f);
    if (!zn_votes_cast(names->votes, kind, s->p->t_ns, s->flow, entry))
        suppress(names->attributes, names->name_store, entry);
}

static bool has_evidence(const zn_packet_context *s)
{
    return !s->names->roles->established || s->f->client_acked;
}

/* Adds an attribute to the flow's list, and votes for it or lets it wait. text: NULL if it is
 * suppressed at once. */
static void add(const zn_packet_context *s, unsigned attribute, const zn_attribute_text *text)
{
    zn_name_store *name_store = s->names->name_store;
    zn_attributes *a = s->names->attributes;
    uint32_t entry = zn_name_store_add_secondary(name_store);
    zn_hostname kept = {.n = 0};
    zn_name_entry *e;
    a->counts[attribute].observations++;
    if (entry == 0) {
        a->counts[attribute].suppressed++;
        return;
    }
    e = zn_name_store_at(name_store, entry);
    e->attribute = (uint8_t)attribute;
    e->source = s->analyzer == NULL ? ZN_SOURCE_NONE : (uint8_t)s->analyzer->source;
    e->next = a->first[s->flow];
    a->first[s->flow] = entry;
    if (text != NULL) {
        kept.n = text->n;
        memcpy(kept.text, text->text, text->n);
    }
    if (text == NULL || !zn_name_store_keep_text(name_store, entry, &kept)) {
        suppress(a, name_store, entry);
        return;
    }
    e->id = zn_votes_id(s->names->votes, (zn_vote_kind)(ZN_VOTE_ATTRIBUTE + attribute),
                        zn_hostname_span(&kept));
    if (has_evidence(s))
        vote(s, entry);
}

static bool is_known(const zn_packet_context *s, unsigned attribute)
{
    uint32_t entry = s->names->attributes->first[s->flow];
    while (entry != 0 && zn_name_store_at(s->names->name_store, entry)->attribute != attribute)
        entry = zn_name_store_at(s->names->name_store, entry)->next;
    return entry != 0;
}

/* Normalises a host like a name, except for "*." before the name. Sets *may_vote to false if the
 * host must not be released. Returns false for an IP address, which is no attribute of a flow. */
static bool normalize_host(const zn_roles *roles, zn_attribute_text *text, bool *may_vote)
{
    static const uint8_t any[] = {'*', '.'};
    zn_cursor c = zn_cursor_over(text->text, text->n, true);
    zn_span start = zn_cursor_take(&c, sizeof any);
    bool wild = start.n != 0 && memcmp(start.p, any, sizeof any) == 0;
    size_t before = wild ? sizeof any : 0;
    zn_span raw = {text->text + before, text->n - before};
    zn_hostname host;
    zn_host_kind kind = zn_hostname_normalize(raw, &host);
    if (kind == ZN_HOST_INVALID || host.n + before > sizeof text->text ||
        (kind == ZN_HOST_HOME && !roles->release_all) ||
        zn_roles_list_refuses(roles, &host) != ZN_STAT_COUNT)
        *may_vote = false;
    if (*may_vote) {
        memcpy(text->text + before, host.text, host.n);
        text->n = (uint8_t)(before + host.n);
    }
    return kind != ZN_HOST_ADDRESS && kind != ZN_HOST_EMPTY;
}

/* Returns true if the text is an address of the users' networks or of an end of the flow, before
 * any punctuation. */
static bool is_private(const zn_packet_context *s, zn_span text)
{
    const zn_roles *roles = s->names->roles;
    zn_addr address;
    for (; text.n != 0; text.n--) {
        uint8_t last = zn_ascii_first(zn_span_after(text, text.n - 1));
        if (zn_addr_parse(text, &address) &&
            (zn_nets_contain(roles->internal, roles->internal_count, &address) ||
             zn_addr_equal(&s->f->tuple.addr[0], &address) ||
             zn_addr_equal(&s->f->tuple.addr[1], &address)))
            return true;
        if (last != '.' && last != ':')
            break;
    }
    return false;
}

/* Returns true for a byte of an address's text: of IPv6 if `colons`, else of IPv4. */
static bool is_of_address(uint8_t byte, bool colons)
{
    return (byte >= '0' && byte <= '9') || byte == '.' ||
           (colons &&
            (byte == ':' || (byte >= 'a' && byte <= 'f') || (byte >= 'A' && byte <= 'F')));
}

/* Returns true if a text contains such an address, which would leave without a pseudonym. An
 * escaped byte ends an address. */
static bool has_private_address(const zn_packet_context *s, zn_span text, bool colons)
{
    size_t from = 0, at = 0;
    while (at < text.n) {
        uint8_t byte = zn_ascii_first(zn_span_after(text, at));
        if (is_of_address(byte, colons)) {
            at++;
            continue;
        }
        if (is_private(s, zn_span_part(text, from, at)))
            return true;
        at += byte == '%' ? 3 : 1;
        from = at;
    }
    return from < text.n && is_private(s, zn_span_part(text, from, text.n));
}

void zn_attributes_read(const zn_packet_context *s, zn_exposing_message message, zn_span bytes)
{
    const zn_attributes *a = s->names->attributes;
    for (unsigned i = 0; i < ZN_ATTRIBUTE_COUNT; i++) {
        zn_attribute_text text = {.n = 0};
        bool may_vote = zn_roles_may_vote(s->names->roles, s->f);
        zn_parse result;
        if ((a->wanted & 1u << i) == 0 || zn_attribute_row_of(i)->message != message ||
            is_known(s, i))
            continue;
        result = zn_attribute_row_of(i)->read(bytes, &text);
        if (result == ZN_MALFORMED)
            zn_attributes_malformed(s, (zn_attribute)i);
        if (result != ZN_DONE)
            continue;
        may_vote = may_vote && !text.is_cut;
        if (text.is_host && !text.is_cut && !normalize_host(s->names->roles, &text, &may_vote))
            continue;
        may_vote = may_vote && !has_private_address(s, (zn_span){text.text, text.n}, false) &&
                   !has_private_address(s, (zn_span){text.text, text.n}, true);
        add(s, i, may_vote ? &text : NULL);
    }
}

void zn_attributes_malformed(const zn_packet_context *s, zn_attribute attribute)
{
    zn_attributes *a = s->names->attributes;
    if ((a->wanted & 1u << attribute) != 0)
        a->counts[attribute].malformed++;
}

void zn_attributes_confirm_entry(const zn_packet_context *s, uint32_t entry)
{
    if (zn_name_store_at(s->names->name_store, entry)->state == ZN_ENTRY_PENDING)
        vote(s, entry);
}

void zn_attributes_confirm(const zn_packet_context *s)
{
    if (!has_evidence(s))
        return;
    for (uint32_t entry = zn_attributes_first(s->names, s->flow); entry != 0;
         entry = zn_name_store_at(s->names->name_store, entry)->next)
        zn_attributes_confirm_entry(s, entry);
}

bool zn_attributes_decide(zn_attributes *a, zn_name_store *name_store, const zn_flow *f,
                          uint32_t entry, bool is_shared, bool release_all)
{
    zn_name_entry *e = zn_name_store_at(name_store, entry);
    uint32_t name = ZN_FACTS(f)->names;
    bool is_public = is_shared && (release_all || e->names_before != HIDDEN);
    /* Names that the flow exposed later are decided later. If a name before still waits,
     * has_vote found another entry for it. */
    for (unsigned i = 0; is_public && !release_all && i < e->names_before && name != 0; i++) {
        const zn_name_entry *before = zn_name_store_at(name_store, name);
        is_public = is_disclosed(before->state) || before->state == ZN_ENTRY_PENDING;
        name = zn_name_store_at(name_store, name)->next;
    }
    if (!is_public) {
        suppress(a, name_store, entry);
        return false;
    }
    e->state = ZN_ENTRY_RELEASED;
    a->counts[e->attribute].released++;
    return true;
}

/* ---- the flow's end -------------------------------------------------------------------------- */

void zn_attributes_closed(zn_names *names, uint32_t flow)
{
    for (uint32_t entry = zn_attributes_first(names, flow); entry != 0;
         entry = zn_name_store_at(names->name_store, entry)->next)
        if (zn_name_store_at(names->name_store, entry)->state == ZN_ENTRY_PENDING)
            suppress(names->attributes, names->name_store, entry);
}

void zn_attributes_forget(zn_names *names, uint32_t flow)
{
    uint32_t entry = zn_attributes_first(names, flow);
    while (entry != 0) {
        uint32_t next = zn_name_store_at(names->name_store, entry)->next;
        zn_name_store_forget_secondary(names->name_store, entry);
        entry = next;
    }
    if (names->attributes != NULL)
        names->attributes->first[flow] = 0;
}
