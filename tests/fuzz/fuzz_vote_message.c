/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Vote and answer messages (input after a first byte): as they are or, with a first byte of 0x80 or
 * more, with the checksum made right. The votes of a message that is accepted are written and read
 * again; what comes out must not change any more.
 */
#include "count/vote_message.h"

#include <stdlib.h>

#define CHECKSUM 8

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static zn_counted_vote *read_all(zn_vote_header *header, zn_span message)
{
    zn_counted_vote *votes;
    if (zn_vote_header_read(header, message, NULL) != 0)
        return NULL;
    votes = malloc((header->votes + (size_t)1) * sizeof *votes);
    if (votes != NULL && zn_votes_read(votes, header, message, NULL) != 0) {
        free(votes);
        return NULL;
    }
    return votes;
}

/* Writes votes as a message, which the caller frees. */
static zn_span write_all(const zn_vote_header *header, const zn_counted_vote *votes)
{
    zn_vote_writer writer;
    zn_span message = {NULL, 0};
    uint8_t *out;
    require(zn_vote_writer_init(&writer, header->votes + 1, NULL) == 0);
    for (uint32_t i = 0; i < header->votes; i++)
        require(zn_vote_writer_add(&writer, votes + i));
    out = malloc(zn_vote_writer_bytes(&writer));
    if (out != NULL) {
        size_t most = zn_vote_writer_bytes(&writer);
        message.n = zn_vote_writer_finish(&writer, header, out, NULL);
        message.p = out;
        require(message.n <= most);
    }
    zn_vote_writer_fini(&writer);
    return message;
}

static void check_votes(zn_span message)
{
    zn_vote_header header, again;
    zn_counted_vote *votes = read_all(&header, message), *reread;
    zn_span first, second;
    if (votes == NULL)
        return;
    for (uint32_t i = 0; i < header.votes; i++)
        require(votes[i].t_ns >= 0 && votes[i].kind >= 1 && votes[i].kind <= ZN_COUNTED_KINDS);
    if (header.votes < ZN_VOTES_MAX) {
        first = write_all(&header, votes);
        reread = read_all(&again, first);
        require(reread != NULL && again.votes == header.votes && again.probe == header.probe);
        second = write_all(&again, reread);
        require(zn_span_equal(first, second));
        free(reread);
        free((void *)(uintptr_t)first.p);
        free((void *)(uintptr_t)second.p);
    }
    free(votes);
}

static void check_answers(zn_span message)
{
    zn_vote_header header;
    zn_span bits;
    uint8_t *out;
    if (zn_answers_read(&header, &bits, message, NULL) != 0)
        return;
    require(message.n == zn_answers_bytes(header.votes));
    out = malloc(message.n);
    if (out == NULL)
        return;
    zn_answers_write(&header, bits.p, out);
    require(memcmp(out, message.p, message.n) == 0);
    free(out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;
    zn_span message;
    if (size < 1)
        return 0;
    copy = malloc(size);
    if (copy == NULL)
        return 0;
    message.p = copy;
    message.n = size - 1;
    memcpy(copy, data + 1, message.n);
    if (data[0] >= 0x80 && message.n >= CHECKSUM) {
        size_t n = message.n - CHECKSUM;
        (void)zn_le_put(copy + n, zn_vote_checksum(copy, n), CHECKSUM);
    }
    check_votes(message);
    check_answers(message);
    free(copy);
    return 0;
}
