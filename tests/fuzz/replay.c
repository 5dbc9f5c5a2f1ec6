/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Runs a fuzz target over the files of folders, under any compiler and sanitizer:
 *   cc -Icsrc -fsanitize=address,undefined tests/fuzz/replay.c tests/fuzz/fuzz_X.c ... -o replay
 *   ./replay tests/fuzz/corpus/X
 * Each input lies in a heap block of its own size, so that a sanitizer sees one byte too many.
 */
#include <dirent.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

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
        if (data != NULL && fread(data, 1, (size_t)size, file) == (size_t)size) {
            (void)LLVMFuzzerTestOneInput(data, (size_t)size);
            rc = 0;
        }
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
