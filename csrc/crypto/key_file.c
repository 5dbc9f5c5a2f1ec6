/* SPDX-FileCopyrightText: The zanon_net authors */
/* SPDX-License-Identifier: Apache-2.0 */
#include "crypto/key_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Returns whether systemd's LoadCredential= put the file there, readable for the unit's user by an
 * ACL, whose mask stands in the place of the group's bits: root owns the file and its folder of
 * credentials, and both are closed to others. No group may read it, but root's where there is no
 * ACL after all. */
static bool is_credential(const char *path, const struct stat *st)
{
    const char *folder = getenv("CREDENTIALS_DIRECTORY");
    const char *name = strrchr(path, '/');
    struct stat in;
    if (folder == NULL || name == NULL)
        return false;
    if (strncmp(path, folder, (size_t)(name - path)) != 0 || folder[name - path] != '\0')
        return false;
    if (stat(folder, &in) != 0 || in.st_uid != 0 || (in.st_mode & (S_IWGRP | S_IRWXO)) != 0)
        return false;
    return st->st_uid == 0 && st->st_gid == 0 && (st->st_mode & (S_IRWXG | S_IRWXO)) == S_IRGRP;
}

/* Opens the file and checks who may read it; returns a descriptor or a negative zn_err. */
static int open_checked(const char *path, const zn_key_file_kind *kind, zn_error *err)
{
    struct stat st;
    /* O_NONBLOCK: a FIFO must be rejected, not waited for. */
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK), rc;
    if (fd < 0)
        return zn_fail(err, ZN_ERR_IO, errno, "%s %.120s cannot be opened: %s", kind->name, path,
                       strerror(errno));
    if (fstat(fd, &st) != 0)
        rc = zn_fail(err, ZN_ERR_IO, errno, "%s %.120s: %s", kind->name, path, strerror(errno));
    else if (!S_ISREG(st.st_mode))
        rc = zn_fail(err, ZN_ERR_CONFIG, 0, "%s %.120s is not a regular file; make one with `%s`",
                     kind->name, path, kind->make);
    else if (st.st_uid != geteuid() && st.st_uid != 0)
        rc = zn_fail(err, ZN_ERR_CONFIG, 0,
                     "%s %.120s belongs to another user; make your own with `%s`", kind->name, path,
                     kind->make);
    else if ((st.st_mode & (S_IRWXG | S_IRWXO)) != 0 && !is_credential(path, &st))
        rc = zn_fail(err, ZN_ERR_CONFIG, 0,
                     "%s %.120s is open to other users; run `chmod 600 FILE` on it", kind->name,
                     path);
    else
        return fd;
    (void)close(fd);
    return rc;
}

/* Fills text[0 .. cap) from the file; returns the number of bytes, -1 when it cannot be read. */
static ssize_t read_text(int fd, char *text, size_t cap)
{
    size_t n = 0;
    while (n < cap) {
        ssize_t got = read(fd, text + n, cap - n);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        n += (size_t)got;
    }
    return (ssize_t)n;
}

int zn_key_file_read(const char *path, const zn_key_file_kind *kind, char *text, size_t cap,
                     size_t *n, zn_error *err)
{
    ssize_t got;
    int fd = open_checked(path, kind, err), rc = 0;
    if (fd < 0)
        return fd;
    got = read_text(fd, text, cap);
    if (got < 0)
        rc = zn_fail(err, ZN_ERR_IO, errno, "%s %.120s cannot be read: %s", kind->name, path,
                     strerror(errno));
    else
        *n = (size_t)got;
    (void)close(fd);
    return rc;
}
