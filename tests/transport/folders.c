/* SPDX-License-Identifier: BSD-3-Clause */
#include "config.h"

#include "transport/folders.h"

#include <dirent.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static void must(int ok, const char *what)
{
    if (!ok) {
        perror(what);
        abort();
    }
}

void folder_make(char folder[FOLDER_ROOM])
{
    const char *tmp = getenv("TMPDIR");

    snprintf(folder, FOLDER_ROOM, "%s/shunt-test-XXXXXX",
             tmp == NULL ? "/tmp" : tmp);
    must(mkdtemp(folder) != NULL, "mkdtemp");
}

static void path_of(const char *folder, const char *file, char path[PATH_MAX])
{
    snprintf(path, PATH_MAX, "%s/%s", folder, file);
}

void folder_add(const char *folder, const char *module, const char *file)
{
    const char *build = getenv("TEST_BUILDDIR");
    char from[PATH_MAX], path[PATH_MAX];

    snprintf(from, sizeof(from), "%s/tests/transport/.libs/mod_%s.so",
             build == NULL ? "." : build, module);
    must(access(from, R_OK) == 0, from);
    path_of(folder, file, path);
    must(symlink(from, path) == 0, path);
}

void folder_add_text(const char *folder, const char *file, const char *text)
{
    char path[PATH_MAX];
    FILE *out;

    path_of(folder, file, path);
    out = fopen(path, "w");
    must((out != NULL) && (fputs(text, out) >= 0) && (fclose(out) == 0), path);
}

void folder_add_folder(const char *folder, const char *file)
{
    char path[PATH_MAX];

    path_of(folder, file, path);
    must(mkdir(path, 0700) == 0, path);
}

void folder_add_dangling(const char *folder, const char *file)
{
    char path[PATH_MAX];

    path_of(folder, file, path);
    must(symlink("/nowhere/at/all.so", path) == 0, path);
}

void folder_remove(const char *folder)
{
    DIR *dir = opendir(folder);
    struct dirent *entry;
    char path[PATH_MAX];

    must(dir != NULL, folder);
    while ((entry = readdir(dir)) != NULL) {
        if ((strcmp(entry->d_name, ".") == 0) ||
            (strcmp(entry->d_name, "..") == 0))
            continue;
        path_of(folder, entry->d_name, path);
        must(remove(path) == 0, path);
    }
    closedir(dir);
    must(rmdir(folder) == 0, folder);
}
