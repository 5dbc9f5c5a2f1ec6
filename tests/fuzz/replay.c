/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over the files of folders, under any compiler and sanitizer:
 *   cc -Icsrc -Icsrc/include -fsanitize=address,undefined \
 *      tests/fuzz/replay.c tests/fuzz/fuzz_X.c ... -o replay
 *   ./replay tests/fuzz/corpus/X
 * Each input, and many of its prefixes, lie between two pages that nobody may touch, once right
 * behind the first and once right before the second: a byte too many ends the program without a
 * sanitizer too. The whole input also lies in a heap block of its own size, for the sanitizer's
 * sake.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define PREFIXES 64 /* of a file, at most, evenly spread */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Pages with a guard before and behind. */
typedef struct guarded {
    uint8_t *map, *first;
    size_t map_bytes, bytes;
} guarded;

/* Room for `size` bytes; 0, or -1. */
static int open_guarded(guarded *g, size_t size)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    g->bytes = (size / page + 1) * page;
    g->map_bytes = g->bytes + 2 * page;
    g->map = mmap(NULL, g->map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (g->map == MAP_FAILED)
        return -1;
    g->first = g->map + page;
    return mprotect(g->first, g->bytes, PROT_READ | PROT_WRITE);
}

/* The first n bytes of the data at either guard. */
static void run_at_guards(const guarded *g, const uint8_t *data, size_t n)
{
    uint8_t *at_end = g->first + g->bytes - n;
    memcpy(at_end, data, n);
    (void)LLVMFuzzerTestOneInput(at_end, n);
    memcpy(g->first, data, n);
    (void)LLVMFuzzerTestOneInput(g->first, n);
}

static int run_all(const uint8_t *data, size_t size)
{
    size_t step = size / PREFIXES + 1;
    guarded g;
    if (open_guarded(&g, size) != 0)
        return -1;
    (void)LLVMFuzzerTestOneInput(data, size);
    for (size_t n = size % step; n < size; n += step)
        run_at_guards(&g, data, n);
    run_at_guards(&g, data, size);
    return munmap(g.map, g.map_bytes);
}

/* Runs one file; 0, or -1 when it cannot be read. */
static int replay_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data;
    long size;
    int rc = -1;
    if (file == NULL)
        return -1;
    if (fseek(file, 0, SEEK_END) == 0 && (size = ftell(file)) >= 0) {
        data = malloc(size > 0 ? (size_t)size : 1);
        rewind(file);
        if (data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size)
            rc = run_all(data, (size_t)size);
        free(data);
    }
    (void)fclose(file);
    return rc;
}

/* Runs the files of a folder and returns how many, or -1. */
static int replay_folder(const char *folder)
{
    DIR *entries = opendir(folder);
    const struct dirent *entry;
    char path[4096];
    int files = 0;
    if (entries == NULL)
        return -1;
    while (files >= 0 && (entry = readdir(entries)) != NULL) {
        if (entry->d_name[0] == '.')
            continue;
        (void)snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
        files = replay_file(path) == 0 ? files + 1 : -1;
    }
    (void)closedir(entries);
    return files;
}

int main(int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        int files = replay_folder(argv[i]);
        if (files <= 0) {
            fprintf(stderr, "replay: nothing read from %s\n", argv[i]);
            return 1;
        }
        printf("%s: %d inputs\n", argv[i], files);
    }
    return argc > 1 ? 0 : 2;
}
