/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "analyzer/dn_hunter.h"

#include "proto/dns.h"

#define WAYS 8u
#define SETS (UINT32_C(1) << 14)
#define PAIRS (SETS * WAYS)       /* addresses of clients: as many as Tstat keeps for IPv4 */
#define ASKED (UINT32_C(1) << 16) /* a power of two */
#define QUESTION_ANSWERED_NS (60 * ZN_NS_PER_S) /* a later response answers nothing */

enum { DOMAIN_PAIR = 'p', DOMAIN_ASKED = 'q' };

int zn_dn_hunter_init(zn_dn_hunter *r, uint32_t max_flows, zn_error *err)
{
    uint32_t most = zn_slab_cap((uint64_t)PAIRS + max_flows + 1);
    int rc;
    if (!r->roles->dn_hunter)
        return 0;
    rc = zn_hash_key_random(&r->key, err);
    if (rc == 0)
        rc = zn_slab_init(&r->resolutions, sizeof(zn_resolution), most, err);
    if (rc != 0)
        return rc;
    r->pairs = zn_block_alloc(PAIRS * sizeof *r->pairs);
    r->asked = zn_block_alloc(ASKED * sizeof *r->asked);
    if (r->pairs == NULL || r->asked == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for resolved names");
    return 0;
}

void zn_dn_hunter_fini(zn_dn_hunter *r)
{
    zn_block_free(r->pairs, PAIRS * sizeof *r->pairs);
    zn_block_free(r->asked, ASKED * sizeof *r->asked);
    zn_slab_fini(&r->resolutions);
    memset(r, 0, sizeof *r);
}

/* Drops one use of a resolution; the last one frees it. */
static void release(zn_dn_hunter *r, uint32_t resolution)
{
    zn_resolution *at;
    if (resolution == 0)
        return;
    at = zn_slab_at(&r->resolutions, resolution);
    if (--at->uses != 0)
        return;
    memset(at, 0, sizeof *at);
    zn_slab_give(&r->resolutions, resolution);
}

/* ---- client and address ---- */

static zn_id pair_id(const zn_dn_hunter *r, const zn_addr *client, const zn_addr *server)
{
    zn_addr both[2] = {*client, *server};
    return zn_hash128(&r->key, DOMAIN_PAIR, both, sizeof both);
}

static zn_dn_hunter_pair *find_pair(const zn_dn_hunter *r, zn_id id)
{
    zn_dn_hunter_pair *set = &r->pairs[(id.lo & (SETS - 1)) * WAYS];
    for (unsigned i = 0; i < WAYS; i++)
        if (set[i].resolution != 0 && zn_id_equal(set[i].id, id))
            return &set[i];
    return NULL;
}

/* An empty place of the pair's set, or its least recently used one. */
static zn_dn_hunter_pair *place_for(const zn_dn_hunter *r, zn_id id)
{
    zn_dn_hunter_pair *set = &r->pairs[(id.lo & (SETS - 1)) * WAYS];
    zn_dn_hunter_pair *best = set;
    for (unsigned i = 0; i < WAYS; i++) {
        if (set[i].resolution == 0)
            return &set[i];
        if (r->clock - set[i].used > r->clock - best->used)
            best = &set[i];
    }
    return best;
}

static void remember(zn_dn_hunter *r, const zn_addr *client, const zn_addr *server,
                     uint32_t resolution)
{
    zn_id id = pair_id(r, client, server);
    zn_dn_hunter_pair *pair = find_pair(r, id);
    zn_resolution *at = zn_slab_at(&r->resolutions, resolution);
    if (pair == NULL)
        pair = place_for(r, id);
    at->uses++;
    release(r, pair->resolution);
    pair->id = id;
    pair->resolution = resolution;
    pair->used = ++r->clock;
}

/* ---- questions and responses ---- */

static zn_asked *asked_at(const zn_dn_hunter *r, uint32_t flow, const zn_dns_question *q,
                          const zn_hostname *host, zn_id *id)
{
    struct {
        uint32_t flow;
        uint16_t id, type;
        uint8_t text[ZN_HOSTNAME_MAX + 3];
    } question = {flow, q->id, q->type, {0}};
    memcpy(question.text, host->text, host->n);
    *id = zn_hash128(&r->key, DOMAIN_ASKED, &question, sizeof question);
    return &r->asked[id->lo & (ASKED - 1)];
}

/* Ties the addresses of a response to its client. The slab has room, as each pair and each flow
 * holds one resolution at most. */
static void learn(zn_dn_hunter *r, const zn_flow *f, const zn_resolution *what,
                  const zn_dns_addresses *addresses)
{
    uint32_t resolution = zn_slab_take(&r->resolutions);
    zn_resolution *at;
    if (resolution == 0)
        return;
    at = zn_slab_at(&r->resolutions, resolution);
    *at = *what;
    at->uses = 1;
    for (size_t i = 0; i < addresses->n; i++)
        remember(r, &f->tuple.addr[f->client], &addresses->at[i], resolution);
    release(r, resolution);
}

static void see_response(zn_dn_hunter *r, const zn_flow *f, const zn_packet *p,
                         const zn_hostname *host, int64_t query_ns)
{
    zn_dns_addresses addresses;
    zn_resolution what = {0};
    unsigned server = 1u - f->client;
    if (zn_dns_read_addresses(p->payload, zn_packet_payload_whole(p), &addresses) != ZN_DONE)
        return;
    what.resolver_internal = f->internal[server];
    what.query_ns = query_ns;
    what.answer_ns = p->t_ns;
    what.epoch = zn_flow_epoch(r->flows, f, r->roles->rotate_ns);
    what.resolver = f->tuple.addr[server];
    what.resolver_pseudonym = zn_flow_pseudonym(r->flows, f, server);
    what.host = *host;
    learn(r, f, &what, &addresses);
}

void zn_dn_hunter_packet(zn_dn_hunter *r, uint32_t flow, const zn_flow *f, const zn_packet *p)
{
    bool from_client = p->sender == f->client;
    zn_dns_question q;
    zn_hostname host;
    zn_host_kind kind;
    zn_asked *asked;
    zn_id id;
    if (r->pairs == NULL || !zn_flow_has_user(f) || p->tuple.proto != ZN_PROTO_UDP ||
        f->tuple.port[1 - f->client] != ZN_DNS_PORT)
        return;
    if (zn_dns_question_parse(p->payload, zn_packet_payload_whole(p), &q) != ZN_DONE ||
        q.opcode != 0 || q.name_odd || q.response == from_client)
        return;
    kind = zn_hostname_normalize((zn_span){q.name, q.name_bytes}, &host);
    if (kind != ZN_HOST_NAME || zn_roles_list_refuses(r->roles, &host) != ZN_STAT_COUNT)
        return;
    asked = asked_at(r, flow, &q, &host, &id);
    if (from_client) {
        asked->id = id;
        asked->t_ns = p->t_ns;
    } else if (zn_id_equal(asked->id, id) && p->t_ns - asked->t_ns <= QUESTION_ANSWERED_NS) {
        see_response(r, f, p, &host, asked->t_ns);
    }
}

/* ---- flows ---- */

void zn_dn_hunter_prefetch(const zn_dn_hunter *r, const zn_packet *p)
{
    const zn_dn_hunter_pair *set;
    zn_id id;
    if (r->pairs == NULL)
        return;
    id = pair_id(r, &p->tuple.addr[p->sender], &p->tuple.addr[1 - p->sender]);
    set = &r->pairs[(id.lo & (SETS - 1)) * WAYS];
    for (unsigned i = 0; i < WAYS; i += 2) /* a cache line holds more than two */
        ZN_PREFETCH(&set[i]);
}

void zn_dn_hunter_opened(zn_dn_hunter *r, zn_flow *f)
{
    zn_dn_hunter_pair *pair;
    zn_resolution *at;
    if (r->pairs == NULL || !zn_flow_has_user(f))
        return;
    pair = find_pair(r, pair_id(r, &f->tuple.addr[f->client], &f->tuple.addr[1 - f->client]));
    if (pair == NULL)
        return;
    pair->used = ++r->clock;
    at = zn_slab_at(&r->resolutions, pair->resolution);
    at->uses++;
    zn_flow_set_resolution(r->flows, f, pair->resolution);
}

void zn_dn_hunter_forget(zn_dn_hunter *r, zn_flow *f)
{
    release(r, zn_flow_resolution(r->flows, f));
    zn_flow_set_resolution(r->flows, f, 0);
}

const zn_resolution *zn_dn_hunter_of(const zn_dn_hunter *r, const zn_flow *f)
{
    uint32_t resolution = zn_flow_resolution(r->flows, f);
    const zn_resolution *at = resolution == 0 ? NULL : zn_slab_at(&r->resolutions, resolution);
    return at == NULL || zn_never_list_has(&r->roles->never, &at->host) ? NULL : at;
}

void zn_dn_hunter_clear(zn_dn_hunter *r)
{
    if (r->pairs == NULL)
        return;
    for (uint32_t i = 0; i < PAIRS; i++) {
        release(r, r->pairs[i].resolution);
        r->pairs[i].resolution = 0;
    }
    zn_block_clear(r->asked, ASKED * sizeof *r->asked);
}

size_t zn_dn_hunter_memory(const zn_dn_hunter *r)
{
    size_t fixed = PAIRS * sizeof *r->pairs + ASKED * sizeof *r->asked;
    return r->pairs == NULL ? 0 : fixed + zn_slab_bytes(&r->resolutions);
}
