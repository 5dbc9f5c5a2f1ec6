/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Standalone z-table. It reads lines `t user attribute` and writes the lines that may be released.
 *
 *   make lib
 *   export PKG_CONFIG_PATH=build/lib/pkgconfig LD_LIBRARY_PATH=build/lib
 *   cc -std=c11 -D_GNU_SOURCE examples/c/ztable.c $(pkg-config --cflags --libs zanon) -o ztable
 *   ./ztable -z 3 -w 3600 < observations > released
 *
 * t: nanoseconds since the Unix epoch. user and attribute: any text without blanks.
 * -z Z: number of users that must share an attribute (20). -w SECONDS: window (3600).
 * A line of another form ends the program with exit code 1 and a message with the line's number.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zanon/ztable.h>

#define ATTRIBUTES 0 /* the only namespace of attributes here */
#define BATCH 256    /* observations decided at once */

/* Part of a line. */
typedef struct field {
    const char *start;
    size_t length;
} field;

/* Skips blanks, returns the text up to the next blank, and moves *at to the end of the text. */
static field next_field(const char **at)
{
    static const char blanks[] = " \t\r\n";
    const char *start = *at + strspn(*at, blanks);
    field f = {start, strcspn(start, blanks)};
    *at = start + f.length;
    return f;
}

/* Returns the number in the field, from 0 to `most`, or -1 if the field is not such a number. */
static int64_t parse_number(field f, int64_t most)
{
    char *end;
    long long number;
    if (*f.start < '0' || *f.start > '9')
        return -1;
    errno = 0;
    number = strtoll(f.start, &end, 10);
    return errno != 0 || end != f.start + f.length || number > most ? -1 : number;
}

/* Reads the observation in a line of n bytes that ends with a zero byte. Returns false if the line
 * has no observation. */
static bool parse_line(const char *line, size_t n, const zn_hash_key *key, zn_observation *out)
{
    const char *at = line;
    field t = next_field(&at), user = next_field(&at), attribute = next_field(&at);
    field more = next_field(&at);
    if (attribute.length == 0 || more.length != 0 || more.start != line + n)
        return false;
    out->t_ns = parse_number(t, INT64_MAX);
    /* The table sees keyed hashes only. */
    out->user = zn_hash64(key, user.start, user.length);
    out->attribute = zn_hash128(key, ATTRIBUTES, attribute.start, attribute.length);
    return out->t_ns >= 0;
}

/* Lines of a batch, concatenated, and their observations. */
typedef struct batch {
    char *text;
    size_t bytes, capacity;
    size_t n, end[BATCH]; /* end of each line in `text` */
    zn_observation observations[BATCH];
} batch;

/* Adds a line of n bytes. Returns false without memory. */
static bool add_line(batch *b, const char *line, size_t n)
{
    if (b->capacity - b->bytes < n) {
        size_t capacity = 2 * (b->bytes + n);
        char *text = realloc(b->text, capacity);
        if (text == NULL)
            return false;
        b->text = text;
        b->capacity = capacity;
    }
    memcpy(b->text + b->bytes, line, n);
    b->bytes += n;
    b->end[b->n++] = b->bytes;
    return true;
}

/* Decides the batch, writes the lines that may be released, and empties it. */
static void decide(zn_ztable *table, batch *b)
{
    uint8_t decisions[BATCH];
    zn_ztable_observe_batch(table, b->observations, b->n, decisions);
    for (size_t i = 0, start = 0; i < b->n; start = b->end[i++])
        if (decisions[i] == ZN_RELEASE)
            (void)fwrite(b->text + start, 1, b->end[i] - start, stdout);
    b->bytes = b->n = 0;
}

/* Filters standard input to standard output. Returns 0, or 1 after a message. */
static int filter(zn_ztable *table, const zn_hash_key *key)
{
    static batch b;
    char *line = NULL;
    size_t capacity = 0;
    uint64_t number = 0;
    ssize_t n;
    int rc = 0;
    while (rc == 0 && (n = getline(&line, &capacity, stdin)) >= 0) {
        number++;
        if (!parse_line(line, (size_t)n, key, &b.observations[b.n])) {
            fprintf(stderr, "ztable: line %" PRIu64 " is not `t user attribute`\n", number);
            rc = 1;
        } else if (!add_line(&b, line, (size_t)n)) {
            fputs("ztable: no memory\n", stderr);
            rc = 1;
        } else if (b.n == BATCH) {
            decide(table, &b);
        }
    }
    decide(table, &b); /* the lines before the end of input or a bad line */
    if (fflush(stdout) != 0 || ferror(stdout) || (rc == 0 && !feof(stdin))) {
        fprintf(stderr, "ztable: reading or writing failed: %s\n", strerror(errno));
        rc = 1;
    }
    free(line);
    free(b.text);
    return rc;
}

/* Reads z and the window from the command line. Returns false if they are not numbers. */
static bool parse_options(int argc, char **argv, zn_ztable_config *config)
{
    int64_t z = 20, seconds = 3600;
    for (int option; (option = getopt(argc, argv, "z:w:")) != -1;) {
        field value = {optarg, optarg != NULL ? strlen(optarg) : 0};
        if (option == 'z')
            z = parse_number(value, ZN_ZTABLE_Z_MAX);
        else if (option == 'w')
            seconds = parse_number(value, ZN_ZTABLE_WINDOW_MAX_NS / ZN_NS_PER_S);
        else
            return false;
    }
    if (z < 0 || seconds < 0 || optind != argc)
        return false;
    *config = zn_ztable_default_config((uint32_t)z, seconds * ZN_NS_PER_S);
    config->keep = config->z; /* the z latest users are enough to decide, at the lowest cost */
    return true;
}

int main(int argc, char **argv)
{
    zn_hash_key key;
    zn_ztable_config config;
    zn_ztable *table;
    zn_error err;
    int rc;
    if (!parse_options(argc, argv, &config)) {
        fputs("usage: ztable [-z Z] [-w SECONDS] < observations > released\n", stderr);
        return 2;
    }
    if (zn_hash_key_random(&key, &err) != 0 || zn_ztable_open(&table, &config, &err) != 0) {
        fprintf(stderr, "ztable: %s\n", err.msg);
        return 1;
    }
    rc = filter(table, &key);
    zn_ztable_close(table);
    return rc;
}
