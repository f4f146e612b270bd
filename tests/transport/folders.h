/* SPDX-License-Identifier: BSD-3-Clause */
/* Folders with modules under chosen names, for the loader's tests. */
#ifndef TESTS_TRANSPORT_FOLDERS_H
#define TESTS_TRANSPORT_FOLDERS_H

enum {
    FOLDER_ROOM = 256
};

/* An empty folder below $TMPDIR or /tmp. */
void folder_make(char folder[FOLDER_ROOM]);

/* Link test module `module` ("good": mod_good.so of the build) into it. */
void folder_add(const char *folder, const char *module, const char *file);

/* A file of text. */
void folder_add_text(const char *folder, const char *file, const char *text);

/* A folder in place of a file. */
void folder_add_folder(const char *folder, const char *file);

/* A link to nowhere. */
void folder_add_dangling(const char *folder, const char *file);

void folder_remove(const char *folder);

#endif
