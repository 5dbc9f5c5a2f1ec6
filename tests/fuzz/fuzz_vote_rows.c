/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages with rows (input after a first byte): as they are or, with a first byte of 0x80 or more,
 * with the checksum made right. What is taken off a message that is accepted and attached again
 * must give the same message. The rest of the input, too, goes to the readers of sealed rows: as a
 * row, as a decided vote of a shard of shares, and as the snapshot of one.
 */
#include "count/vote_message.h"
#include "count/vote_rows.h"
#include "crypto/threshold_shard.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        __builtin_trap();
}

static void check_again(zn_span message, const zn_vote_rows *rows)
{
    zn_span section = {rows->prefix.p, rows->prefix.n + rows->rows.n};
    uint8_t *plain = malloc(rows->plain_bytes), *again = malloc(message.n);
    if (plain != NULL && again != NULL) {
        zn_vote_rows_plain(rows, message, plain);
        require(zn_vote_rows_bytes(rows->plain_bytes, section) == message.n);
        zn_vote_rows_attach((zn_span){plain, rows->plain_bytes}, rows->flag, section, again);
        require(memcmp(again, message.p, message.n) == 0);
    }
    free(plain);
    free(again);
}

static void check_message(zn_span message)
{
    zn_vote_rows rows;
    zn_cursor c;
    if (zn_vote_rows_read(&rows, message, NULL) != 0)
        return;
    c = zn_cursor_over_span(rows.rows, true);
    for (uint32_t i = 0; i < rows.votes; i++) {
        zn_span attached = zn_vote_rows_next(&c);
        require(zn_cursor_ok(&c) && attached.n <= rows.rows.n);
    }
    check_again(message, &rows);
}

/* No noise opens anything: it would be a forged tag. */
static void check_shares(zn_span input)
{
    static const uint8_t nonce[ZN_ROW_NONCE_BYTES];
    zn_threshold_rule rule = {.window_ns = 4000, .z = 2, .epochs = 4};
    zn_threshold_shard *shard;
    zn_span row;
    if (zn_threshold_shard_open(&shard, &rule, 16, NULL) != 0)
        return;
    for (uint64_t user = 0; user < 3; user++) {
        zn_threshold_decided decided = {.vote = {.t_ns = 9000, .user = user, .id = {1, 2}},
                                        .released = true,
                                        .nonce = nonce,
                                        .attachment = input};
        require(!zn_threshold_shard_take(shard, &decided, &row));
    }
    zn_threshold_shard_close(shard);
    if (zn_threshold_shard_open(&shard, &rule, 16, NULL) != 0)
        return;
    if (zn_threshold_shard_load(shard, input, NULL) == 0)
        require(zn_threshold_shard_dump_bytes(shard) == input.n);
    zn_threshold_shard_close(shard);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t *copy;
    if (size < 1)
        return 0;
    copy = malloc(size);
    if (copy == NULL)
        return 0;
    memcpy(copy, data + 1, size - 1);
    if (data[0] >= 0x80 && size - 1 >= ZN_VOTE_CHECKSUM_BYTES) {
        size_t n = size - 1 - ZN_VOTE_CHECKSUM_BYTES;
        (void)zn_le_put(copy + n, zn_vote_checksum(copy, n), ZN_VOTE_CHECKSUM_BYTES);
    }
    check_message((zn_span){copy, size - 1});
    check_shares((zn_span){copy, size - 1});
    free(copy);
    return 0;
}
