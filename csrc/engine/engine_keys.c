/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Settings on which an engine's keys depend, in addition to the key file. They decide which names
 * are released and which bits a pseudonym keeps. A hash of one line of text enters the keys:
 *
 *     pseudonyms=networks user-prefix=32,56 evidence=established dns-votes=own networks=10.0.0.0/8
 *
 * The line lists the kept networks except /0, IPv4 first, by address and then length, with commas.
 */
#include "engine/engine_state.h"
#include "flow/flow_table.h"
#include "util/text.h"

#define V4_BITS 32u

static void put_networks(zn_text *out, const zn_addr_scheme *scheme, bool *first)
{
    char text[ZN_ADDR_TEXT_MAX];
    for (uint32_t i = 1; i < scheme->kept.count; i++) { /* after /0 */
        const zn_kept_network *network = &scheme->kept.network[i];
        zn_addr address = zn_kept_network_address(network, scheme->width == V4_BITS);
        if (!*first)
            zn_text_char(out, ',');
        *first = false;
        zn_text_bytes(out, text, zn_addr_text(&address, text));
        zn_text_char(out, '/');
        zn_text_u64(out, network->bits);
    }
}

static void put_pair(zn_text *out, uint64_t v4, uint64_t v6)
{
    zn_text_u64(out, v4);
    zn_text_char(out, ',');
    zn_text_u64(out, v6);
}

static void put_scope(zn_text *out, const zn_engine *e, const zn_engine_config *config)
{
    bool first = true;
    zn_text_literal(out, "pseudonyms=");
    switch (config->pseudonyms) {
    case ZN_PSEUDONYMS_NETWORKS:
        zn_text_literal(out, "networks");
        break;
    case ZN_PSEUDONYMS_CRYPTO_PAN:
        zn_text_literal(out, "crypto-pan:");
        put_pair(out, config->block_v4_bits, config->block_v6_bits);
        break;
    case ZN_PSEUDONYMS_RANDOM:
        zn_text_literal(out, "random");
        break;
    }
    zn_text_literal(out, " user-prefix=");
    put_pair(out, config->user_v4_bits, config->user_v6_bits);
    if (config->established)
        zn_text_literal(out, " evidence=established");
    else
        zn_text_literal(out, " evidence=any");
    switch (config->dns_votes) {
    case ZN_DNS_VOTES_OWN:
        zn_text_literal(out, " dns-votes=own");
        break;
    case ZN_DNS_VOTES_ALL:
        zn_text_literal(out, " dns-votes=all");
        break;
    case ZN_DNS_VOTES_NO:
        zn_text_literal(out, " dns-votes=no");
        break;
    }
    zn_text_literal(out, " networks=");
    put_networks(out, &e->plan.v4, &first);
    put_networks(out, &e->plan.v6, &first);
}

int zn_engine_open_keys(zn_engine *e, const zn_engine_config *config, zn_error *err)
{
    zn_addr_choice choice = {.pseudonyms = config->pseudonyms,
                             .v4_block_bits = config->block_v4_bits,
                             .v6_block_bits = config->block_v6_bits,
                             .v4_user_bits = config->user_v4_bits,
                             .v6_user_bits = config->user_v6_bits,
                             .internal = e->roles.internal,
                             .internal_count = e->roles.internal_count};
    zn_key_scope scope = {
        .rotate_ns = config->rotate_ns, .z = config->z, .window_ns = config->window_ns};
    int rc = zn_addr_plan_init(&e->plan, &choice, err);
    if (rc == 0)
        put_scope(&e->key_scope, e, config);
    if (rc == 0 && e->key_scope.failed)
        rc = zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the internal networks");
    if (rc == 0)
        rc = zn_key_digest(e->key_scope.bytes, e->key_scope.n, scope.digest, err);
    if (rc == 0)
        rc = zn_keys_open(&e->keys, &scope, &e->plan, config->key_file, err);
    return rc;
}

/* Removes the ends that cannot become the user of their flow. Returns the number of ends left. */
static size_t drop_servers(zn_engine *e)
{
    zn_pseudonym_batch *asked = &e->unmapped;
    size_t kept = 0;
    for (size_t i = 0; i < asked->n; i++) {
        const zn_flow *f = zn_flow_entry(e->flows, asked->flow[i]);
        uint8_t end = asked->end[i];
        if (end != f->client && !f->internal[end] && zn_names_client_is_final(f))
            continue;
        asked->real[kept] = asked->real[i];
        asked->flow[kept] = asked->flow[i];
        asked->end[kept++] = end;
    }
    return kept;
}

int zn_engine_make_pseudonyms(zn_engine *e, zn_error *err)
{
    zn_pseudonym_batch *asked = &e->unmapped;
    size_t n = asked->n != 0 ? drop_servers(e) : 0;
    asked->n = 0;
    if (n == 0)
        return 0;
    zn_profile_stage_enter(&e->profile, ZN_PROFILE_STAGE_CRYPTO);
    if (zn_keys_pseudonyms(e->keys, asked->epoch, asked->real, asked->pseudonym, n) != 0)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "the crypto library could not encrypt an address");
    for (size_t i = 0; i < n; i++)
        zn_flow_set_pseudonym(e->flows, zn_flow_entry(e->flows, asked->flow[i]), asked->end[i],
                              &asked->pseudonym[i]);
    return 0;
}

int zn_engine_map_later(zn_engine *e, uint32_t flow, unsigned ends, const zn_addr real[2],
                        zn_error *err)
{
    zn_pseudonym_batch *asked = &e->unmapped;
    zn_flow *f = zn_flow_entry(e->flows, flow);
    int64_t epoch = zn_keys_epoch(e->keys, f->first_ns);
    int rc = 0;
    if (asked->n + 2 > ZN_ENGINE_BATCH_ENDS || (asked->n != 0 && asked->epoch != epoch))
        rc = zn_engine_make_pseudonyms(e, err);
    if (rc == 0 && !zn_keys_enter(e->keys, epoch))
        rc = zn_fail(err, ZN_ERR_CRYPTO, 0, "the crypto library could not derive a key");
    if (rc != 0)
        return rc;
    zn_flow_set_epoch(e->flows, f, epoch, e->roles.rotate_ns);
    asked->epoch = epoch;
    for (unsigned end = 0; end < 2; end++) {
        size_t i = asked->n;
        if ((ends >> end & 1) == 0 || zn_addr_is_special(&real[end]))
            continue;
        asked->real[i] = real[end];
        asked->flow[i] = flow;
        asked->end[i] = (uint8_t)end;
        asked->n++;
    }
    /* DN-Hunter reads pseudonyms of resolvers from packet to packet. */
    return e->roles.dn_hunter ? zn_engine_make_pseudonyms(e, err) : 0;
}

/* Finds the key of the epoch in which the minute begins, or of the current epoch without a key
 * file. */
static int find_order_key(zn_engine *e, int64_t minute)
{
    zn_order_key *of = &e->queues.key;
    int64_t t_ns = zn_keys_is_derived(e->keys) ? minute * ZN_MINUTE_NS : 0;
    int64_t epoch = zn_keys_epoch(e->keys, t_ns);
    uint8_t bytes[sizeof of->key];
    int rc;
    if (of->known && of->epoch == epoch)
        return 0;
    rc = zn_keys_derive(e->keys, "zanon-net/2/order", epoch, bytes, sizeof bytes);
    of->known = rc == 0;
    of->epoch = epoch;
    memcpy(&of->key, bytes, sizeof bytes);
    zn_wipe(bytes, sizeof bytes);
    of->key.k0 = le64toh(of->key.k0);
    of->key.k1 = le64toh(of->key.k1);
    return rc;
}

int zn_engine_rank(zn_engine *e, int64_t minute, const zn_flow *f, int64_t t_ns, uint64_t *rank,
                   zn_error *err)
{
    uint64_t word[6];
    if (find_order_key(e, minute) != 0)
        return zn_fail(err, ZN_ERR_CRYPTO, 0, "the crypto library could not derive a key");
    memcpy(&word[0], &f->tuple.addr[f->client], sizeof(zn_addr));
    memcpy(&word[2], &f->tuple.addr[1u - f->client], sizeof(zn_addr));
    for (size_t i = 0; i < 4; i++)
        word[i] = be64toh(word[i]);
    word[4] = (uint64_t)f->tuple.port[f->client] << 32 |
              (uint64_t)f->tuple.port[1u - f->client] << 16 | f->tuple.proto;
    word[5] = (uint64_t)t_ns;
    *rank = zn_hash_words(&e->queues.key.key, word, sizeof word / sizeof word[0]);
    return 0;
}

zn_span zn_engine_key_scope(const zn_engine *e)
{
    return (zn_span){(const uint8_t *)e->key_scope.bytes, e->key_scope.n};
}

uint32_t zn_engine_networks_left_out(const zn_engine *e)
{
    return e->plan.v4.kept.left_out + e->plan.v6.kept.left_out;
}

bool zn_engine_pseudonym_id(zn_engine *e, uint8_t id[ZN_PSEUDONYM_ID_BYTES])
{
    return zn_keys_is_derived(e->keys) &&
           zn_keys_derive(e->keys, "zanon-net/2/check", 0, id, ZN_PSEUDONYM_ID_BYTES) == 0;
}
