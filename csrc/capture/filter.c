/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "capture/filter.h"

#include "util/arena.h"

#include <pcap/pcap.h>
#include <string.h>

#define LINK_TYPES_MAX 16 /* link types in one run; frames of further ones do not pass */
#define EXPRESSION_MAX 65536
#define LINKTYPE_ETHERNET 1

typedef struct program {
    uint32_t link_type;
    bool compiled;
    struct bpf_program code;
} program;

struct zn_filter {
    char *expression;
    size_t count;
    program programs[LINK_TYPES_MAX];
};

/* Returns libpcap's own DLT_* value of a link type, which differs from that in files for a few. */
static int data_link_of(uint32_t link_type)
{
    switch (link_type) {
    case 14:  /* OpenBSD's DLT_RAW, as written by old programs */
    case 101: /* LINKTYPE_RAW */
        return DLT_RAW;
    case 100: /* LINKTYPE_ATM_RFC1483 */
        return DLT_ATM_RFC1483;
    case 102: /* LINKTYPE_SLIP_BSDOS */
        return DLT_SLIP_BSDOS;
    case 103: /* LINKTYPE_PPP_BSDOS */
        return DLT_PPP_BSDOS;
    case 106: /* LINKTYPE_ATM_CLIP */
        return DLT_ATM_CLIP;
    case 108: /* LINKTYPE_LOOP */
        return DLT_LOOP;
    case 109: /* LINKTYPE_ENC */
        return DLT_ENC;
    case 246: /* LINKTYPE_PFSYNC */
        return DLT_PFSYNC;
    default:
        return (int)link_type;
    }
}

/* Compiles the expression for one more link type. If that fails, no frame of the link type
 * passes. */
static int add_program(zn_filter *f, uint32_t link_type, zn_error *err)
{
    program *added = &f->programs[f->count++];
    pcap_t *dead = pcap_open_dead(data_link_of(link_type), (int)ZN_FRAME_MAX);
    int rc = 0;
    added->link_type = link_type;
    if (dead == NULL)
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the filter");
    added->compiled = pcap_compile(dead, &added->code, f->expression, 1, PCAP_NETMASK_UNKNOWN) == 0;
    if (!added->compiled)
        rc = zn_fail(err, ZN_ERR_CONFIG, 0, "the filter is not valid: %s; see pcap-filter(7)",
                     pcap_geterr(dead));
    pcap_close(dead);
    return rc;
}

int zn_filter_open(zn_filter **out, const char *expression, zn_error *err)
{
    size_t n = strnlen(expression, EXPRESSION_MAX);
    zn_filter *f;
    int rc;
    *out = NULL;
    if (n == EXPRESSION_MAX)
        return zn_fail(err, ZN_ERR_CONFIG, 0, "the filter is longer than %d bytes", EXPRESSION_MAX);
    f = zn_heap_alloc(sizeof *f);
    if (f != NULL)
        f->expression = zn_heap_alloc(n + 1);
    if (f == NULL || f->expression == NULL) {
        zn_filter_close(f);
        return zn_fail(err, ZN_ERR_CAPACITY, 0, "no memory for the filter");
    }
    memcpy(f->expression, expression, n);
    rc = add_program(f, LINKTYPE_ETHERNET, err);
    if (rc != 0)
        zn_filter_close(f);
    else
        *out = f;
    return rc;
}

void zn_filter_close(zn_filter *f)
{
    if (f == NULL)
        return;
    for (size_t i = 0; i < f->count; i++)
        if (f->programs[i].compiled)
            pcap_freecode(&f->programs[i].code);
    zn_heap_free(f->expression);
    zn_heap_free(f);
}

static const program *program_for(zn_filter *f, uint32_t link_type)
{
    for (size_t i = 0; i < f->count; i++)
        if (f->programs[i].link_type == link_type)
            return &f->programs[i];
    if (f->count == LINK_TYPES_MAX)
        return NULL;
    (void)add_program(f, link_type, NULL);
    return &f->programs[f->count - 1];
}

bool zn_filter_pass(zn_filter *f, const zn_frame *frame)
{
    const program *p = program_for(f, frame->link_type);
    struct pcap_pkthdr header = {.caplen = frame->captured, .len = frame->wire};
    return p != NULL && p->compiled && pcap_offline_filter(&p->code, &header, frame->data) != 0;
}
