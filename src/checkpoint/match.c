#include "checkpoint/match.h"

#include <stdio.h>
#include <string.h>

#include "base/memory.h"

int tutti_match_stem(const char *name)
{
    const char *dot = strrchr(name, '.');
    return dot ? (int)(dot - name) : 0;
}

/* The first component of the file's names, with its dot, if all share it. */
static int shared_prefix(const tutti_safetensors *file)
{
    const char *first = tutti_safetensors_tensor(file, 0)->spec.name;
    const char *dot = strchr(first, '.');
    const int length = dot ? (int)(dot - first) + 1 : 0;
    for (int i = 1; i < tutti_safetensors_count(file); i++)
        if (strncmp(first, tutti_safetensors_tensor(file, i)->spec.name, (size_t)length)) return 0;
    return length;
}

/* Returns how many were found. */
static int by_names(tutti_match *m, const tutti_safetensors_layout *want,
                    const tutti_safetensors *file, int prefix)
{
    int found = 0;
    for (int i = 0; i < m->count; i++) {
        char name[512];
        snprintf(name, sizeof name, "%.*s%s", prefix,
                 prefix ? tutti_safetensors_tensor(file, 0)->spec.name : "",
                 tutti_safetensors_layout_tensor(want, i)->name);
        m->tensor[i] = tutti_safetensors_find(file, name);
        found += m->tensor[i] >= 0;
    }
    return found;
}

tutti_status tutti_match_init(tutti_match *out, const tutti_safetensors_layout *want,
                              const char *net, const tutti_safetensors *file, const char *path,
                              const char *rename)
{
    *out = (tutti_match){.count = tutti_safetensors_layout_count(want)};
    TUTTI_TRY(tutti_alloc(&out->tensor, (size_t)out->count, sizeof *out->tensor));
    tutti_status s = TUTTI_OK;
    if (!tutti_safetensors_count(file))
        s = tutti_fail(TUTTI_DATA, "%s: there are no tensors in it", path);
    else if (rename) s = tutti_match_rename(out, want, file, path, rename);
    else if (!by_names(out, want, file, 0) && !by_names(out, want, file, shared_prefix(file)))
        s = tutti_match_look(out, want, net, file, path);
    if (s != TUTTI_OK) tutti_match_deinit(out);
    return s;
}

void tutti_match_deinit(tutti_match *match)
{
    tutti_free(match->tensor);
    *match = (tutti_match){0};
}
