/* Any text as the file of names that --rename takes: refused with a sentence that names it, or
 * every parameter has at most one tensor, and no tensor is two of them. The weights are somebody
 * else's. */
#define _GNU_SOURCE
#include "in_memory.h"

#include "base/memory.h"
#include "checkpoint/match.h"

enum { THEIRS = 6, OURS = 5 };

static void write_weights(const char *path)
{
    static const tutti_tensor_spec tensors[THEIRS] = {
        {.name = "features.0.weight", .dims = 1, .shape = {4}},
        {.name = "features.0.bias", .dims = 1, .shape = {2}},
        {.name = "features.3.weight", .dims = 1, .shape = {4}},
        {.name = "features.3.bias", .dims = 1, .shape = {2}},
        {.name = "conv1.weight", .dims = 1, .shape = {4}},
        {.name = "scale", .dims = 0},
    };
    static const float values[4];
    tutti_safetensors_layout *layout = NULL;
    tutti_safetensors_writer *writer = NULL;
    if (tutti_safetensors_layout_create(&layout, tensors, THEIRS) ||
        tutti_safetensors_writer_open(&writer, path, layout, true))
        abort();
    for (int t = 0; t < THEIRS; t++)
        if (tutti_safetensors_write(writer, t, 0, values, tutti_tensor_elements(&tensors[t])))
            abort();
    if (tutti_safetensors_writer_close(&writer)) abort();
    tutti_safetensors_layout_destroy(&layout);
}

static tutti_safetensors_layout *wanted(void)
{
    static const tutti_tensor_spec ours[OURS] = {
        {.name = "conv1.weight", .dims = 1, .shape = {4}},
        {.name = "conv1.bias", .dims = 1, .shape = {2}},
        {.name = "conv2.weight", .dims = 1, .shape = {4}},
        {.name = "conv2.bias", .dims = 1, .shape = {2}},
        {.name = "s.scale", .dims = 0},
    };
    tutti_safetensors_layout *layout = NULL;
    if (tutti_safetensors_layout_create(&layout, ours, OURS)) abort();
    return layout;
}

static void check_match(const tutti_match *match)
{
    if (match->count != OURS || match->by_look) abort();
    for (int i = 0; i < OURS; i++) {
        if (match->tensor[i] < -1 || match->tensor[i] >= THEIRS) abort();
        for (int j = 0; j < i; j++)
            if (match->tensor[i] >= 0 && match->tensor[i] == match->tensor[j]) abort();
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static int text;
    static tutti_safetensors *file;
    static tutti_safetensors_layout *want;
    if (!folder.path[0]) {
        text = make_file("names");
        write_weights(scratch_file(&folder, "theirs.safetensors"));
        if (tutti_safetensors_open(&file, scratch_file(&folder, "theirs.safetensors"))) abort();
        want = wanted();
    }
    set_content(text, bytes, size);
    char names[300];
    tutti_match match = {0};
    snprintf(names, sizeof names, "%s", scratch_file(&folder, "names"));
    const tutti_status s = tutti_match_init(&match, want, "ours", file, "theirs", names);
    if (s == TUTTI_OK) check_match(&match);
    else if (!strstr(tutti_message(), names)) abort();
    tutti_match_deinit(&match);
    return 0;
}
