/* The index of a data set of picture files: which file, which class, in which split. */
#ifndef TUTTI_DATA_IMAGES_H
#define TUTTI_DATA_IMAGES_H

#include "data/file.h"
#include "data/source.h"

/* Paths relative to the data set's folder, in one pool of text. */
typedef struct tutti_items {
    char *pool;
    size_t used, room;
    uint64_t *path; /* [count] where in the pool */
    int *label;     /* [count] */
    int count, capacity;
} tutti_items;

tutti_status tutti_items_add(tutti_items *items, const char *path, int label) TUTTI_MUST_CHECK;
void tutti_items_deinit(tutti_items *items);

static inline const char *tutti_items_path(const tutti_items *items, int i)
{
    return items->pool + items->path[i];
}

/* Adds every picture below 'root' (one folder per class), path by path in the order of bytes.
 * 'prefix' is put before the paths. */
tutti_status tutti_items_scan(tutti_items *items, const char *root, const char *prefix,
                              const tutti_names *classes) TUTTI_MUST_CHECK;

/* The folders in a folder, sorted. */
tutti_status tutti_folders_of_dir(tutti_names *folders, const char *dir) TUTTI_MUST_CHECK;

/* Reads split lists (any may be NULL): lines "path" or "path label". Paths are relative to
 * 'dir', or bare names of files in its folders. Labels count from 0 or 1 and decide the class;
 * without them the folder does. Fills 'names' with the classes. */
tutti_status tutti_items_from_lists(tutti_items items[TUTTI_SPLITS], tutti_names *names,
                                    const char *dir,
                                    const char *const list[TUTTI_SPLITS]) TUTTI_MUST_CHECK;

#endif
