#define _GNU_SOURCE
#include "format/safetensors.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/memory.h"
#include "format/file.h"
#include "format/json.h"

enum { DATA_ALIGNMENT = 64, LENGTH_BYTES = 8 };

/* Far beyond any net, and no sum of sizes below it overflows. */
static const int64_t most_elements = INT64_C(1) << 56;

struct tutti_safetensors_layout {
    tutti_tensor_spec *tensors;
    uint64_t *begin; /* first byte of each tensor in the file; [count] is the file's length */
    int count;
    tutti_string header; /* with the eight bytes of its length in front */
};

struct tutti_safetensors_writer {
    const tutti_safetensors_layout *layout;
    char *path;
    int fd;
};

int64_t tutti_tensor_elements(const tutti_tensor_spec *spec)
{
    int64_t elements = 1;
    for (int d = 0; d < spec->dims; d++) elements *= spec->shape[d];
    return elements;
}

char *tutti_tensor_shape_text(const tutti_tensor_spec *spec, char *out, size_t size)
{
    size_t used = 0;
    snprintf(out, size, "scalar");
    for (int d = 0; d < spec->dims && used < size; d++)
        used +=
            (size_t)snprintf(out + used, size - used, "%s%" PRId64, d ? "x" : "", spec->shape[d]);
    return out;
}

static uint64_t element_bytes(const tutti_tensor_spec *spec)
{
    return spec->dtype == TUTTI_I64 ? sizeof(int64_t) : sizeof(float);
}

/* ---- Layout ------------------------------------------------------------------------------- */

static tutti_status check_spec(const tutti_tensor_spec *spec)
{
    if (!spec->name || !*spec->name || strcmp(spec->name, "__metadata__") == 0)
        return tutti_fail(TUTTI_ARGUMENT, "'%s' cannot be the name of a tensor",
                          spec->name ? spec->name : "");
    if (spec->dims < 0 || spec->dims > TUTTI_TENSOR_MAX_DIMS)
        return tutti_fail(TUTTI_ARGUMENT, "tensor '%s' has %d dimensions, not 0 to %d", spec->name,
                          spec->dims, TUTTI_TENSOR_MAX_DIMS);
    if (spec->dtype != TUTTI_F32 && spec->dtype != TUTTI_I64)
        return tutti_fail(TUTTI_ARGUMENT, "tensor '%s' is neither F32 nor I64", spec->name);
    int64_t elements = 1;
    for (int d = 0; d < spec->dims; d++) {
        const int64_t extent = spec->shape[d];
        if (extent < 0 || (extent > 0 && elements > most_elements / extent))
            return tutti_fail(TUTTI_ARGUMENT, "tensor '%s' cannot have extent %" PRId64, spec->name,
                              extent);
        elements *= extent;
    }
    return TUTTI_OK;
}

static int by_name(const void *a, const void *b)
{
    return strcmp((*(const tutti_tensor_spec *const *)a)->name,
                  (*(const tutti_tensor_spec *const *)b)->name);
}

static tutti_status check_names_differ(const tutti_tensor_spec *tensors, int count)
{
    const tutti_tensor_spec **sorted = NULL;
    tutti_status s = tutti_alloc(&sorted, (size_t)count, sizeof *sorted);
    if (s) return s;
    for (int i = 0; i < count; i++) sorted[i] = &tensors[i];
    if (count) qsort(sorted, (size_t)count, sizeof *sorted, by_name);
    for (int i = 1; i < count && !s; i++)
        if (strcmp(sorted[i - 1]->name, sorted[i]->name) == 0)
            s = tutti_fail(TUTTI_ARGUMENT, "two tensors have the name '%s'", sorted[i]->name);
    tutti_free(sorted);
    return s;
}

static void describe_tensor(tutti_string *header, const tutti_tensor_spec *spec, uint64_t begin,
                            uint64_t end)
{
    tutti_json_key(header, spec->name);
    tutti_string_printf(header, "{\"dtype\":\"%s\",\"shape\":[",
                        spec->dtype == TUTTI_I64 ? "I64" : "F32");
    for (int d = 0; d < spec->dims; d++)
        tutti_string_printf(header, "%s%" PRId64, d ? "," : "", spec->shape[d]);
    tutti_string_printf(header, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", begin, end);
}

/* The header, its length in front, padded; offsets still count from the data's first byte. */
static tutti_status write_header(tutti_safetensors_layout *layout, const tutti_fact *facts,
                                 int fact_count)
{
    tutti_string *header = &layout->header;
    tutti_string_append(header, "\0\0\0\0\0\0\0\0", LENGTH_BYTES);
    tutti_string_printf(header, "{\"__metadata__\":{\"format\":\"pt\"");
    for (int i = 0; i < fact_count; i++)
        tutti_json_field_string(header, facts[i].name, facts[i].value);
    tutti_string_append(header, "}", 1);
    for (int i = 0; i < layout->count; i++)
        describe_tensor(header, &layout->tensors[i], layout->begin[i], layout->begin[i + 1]);
    tutti_string_append(header, "}", 1);
    while (header->length % DATA_ALIGNMENT && !header->status) tutti_string_append(header, " ", 1);
    TUTTI_TRY(tutti_string_status(header));
    for (int i = 0; i < LENGTH_BYTES; i++)
        header->data[i] = (char)((header->length - LENGTH_BYTES) >> (8 * i));
    return TUTTI_OK;
}

static tutti_status copy_specs(tutti_safetensors_layout *layout, const tutti_tensor_spec *tensors,
                               int count)
{
    TUTTI_TRY(tutti_alloc(&layout->tensors, (size_t)count, sizeof *layout->tensors));
    TUTTI_TRY(tutti_alloc(&layout->begin, (size_t)count + 1, sizeof *layout->begin));
    for (int i = 0; i < count; i++) {
        TUTTI_TRY(check_spec(&tensors[i]));
        char *name = NULL;
        TUTTI_TRY(tutti_strdup(&name, tensors[i].name));
        layout->tensors[i] = tensors[i];
        layout->tensors[i].name = name;
        layout->count = i + 1;
        layout->begin[i + 1] = layout->begin[i] + (uint64_t)tutti_tensor_elements(&tensors[i]) *
                                                      element_bytes(&tensors[i]);
        if (layout->begin[i + 1] > (uint64_t)most_elements * sizeof(float))
            return tutti_fail(TUTTI_ARGUMENT, "the tensors up to '%s' are too large together",
                              tensors[i].name);
    }
    return check_names_differ(layout->tensors, count);
}

tutti_status tutti_safetensors_layout_create(tutti_safetensors_layout **out,
                                             const tutti_tensor_spec *tensors, int count)
{
    return tutti_safetensors_layout_create_with(out, tensors, count, NULL, 0);
}

tutti_status tutti_safetensors_layout_create_with(tutti_safetensors_layout **out,
                                                  const tutti_tensor_spec *tensors, int count,
                                                  const tutti_fact *facts, int fact_count)
{
    tutti_safetensors_layout *layout = NULL;
    tutti_status s = TUTTI_OK;
    if ((s = tutti_alloc(&layout, 1, sizeof *layout))) goto out;
    if ((s = copy_specs(layout, tensors, count))) goto out;
    if ((s = write_header(layout, facts, fact_count))) goto out;
    for (int i = 0; i <= count; i++) layout->begin[i] += layout->header.length;
    *out = layout;
    layout = NULL;
out:
    tutti_safetensors_layout_destroy(&layout);
    return s;
}

void tutti_safetensors_layout_destroy(tutti_safetensors_layout **layout)
{
    if (!*layout) return;
    for (int i = 0; i < (*layout)->count; i++) {
        char *name = NULL;
        memcpy(&name, &(*layout)->tensors[i].name, sizeof name); /* ours, whatever its const says */
        tutti_free(name);
    }
    tutti_free((*layout)->tensors);
    tutti_free((*layout)->begin);
    tutti_string_deinit(&(*layout)->header);
    tutti_free(*layout);
    *layout = NULL;
}

int tutti_safetensors_layout_count(const tutti_safetensors_layout *layout)
{
    return layout->count;
}

const tutti_tensor_spec *tutti_safetensors_layout_tensor(const tutti_safetensors_layout *layout,
                                                         int tensor)
{
    return &layout->tensors[tensor];
}

uint64_t tutti_safetensors_layout_begin(const tutti_safetensors_layout *layout, int tensor)
{
    return layout->begin[tensor];
}

const char *tutti_safetensors_layout_header(const tutti_safetensors_layout *layout, size_t *length)
{
    *length = layout->header.length;
    return layout->header.data;
}

uint64_t tutti_safetensors_layout_bytes(const tutti_safetensors_layout *layout)
{
    return layout->begin[layout->count];
}

/* ---- Writer ------------------------------------------------------------------------------- */

static tutti_status start_file(const tutti_safetensors_writer *w, bool first)
{
    const tutti_safetensors_layout *layout = w->layout;
    if (ftruncate(w->fd, (off_t)tutti_safetensors_layout_bytes(layout)))
        return tutti_file_failure("lengthen", w->path);
    if (!first) return TUTTI_OK;
    return tutti_file_write_at(w->fd, w->path, layout->header.data, layout->header.length, 0);
}

tutti_status tutti_safetensors_writer_open(tutti_safetensors_writer **out, const char *path,
                                           const tutti_safetensors_layout *layout, bool first)
{
    tutti_safetensors_writer *w = NULL;
    tutti_status s = tutti_alloc(&w, 1, sizeof *w);
    if (s) return s;
    *w = (tutti_safetensors_writer){.layout = layout, .fd = -1};
    if ((s = tutti_strdup(&w->path, path))) goto out;
    w->fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (w->fd < 0) {
        s = tutti_file_failure("create", path);
        if (!first) s = tutti_fail(s, "%s: do all ranks see the same directory?", tutti_message());
        goto out;
    }
    if ((s = start_file(w, first))) goto out;
    *out = w;
    w = NULL;
out:
    tutti_safetensors_writer_abandon(&w);
    return s;
}

static tutti_status write_whole_numbers(tutti_safetensors_writer *w, uint64_t at,
                                        const float *values, int64_t count)
{
    for (int64_t i = 0; i < count; i++) {
        const int64_t value = (int64_t)values[i];
        TUTTI_TRY(tutti_file_write_at(w->fd, w->path, &value, sizeof value,
                                      at + (uint64_t)i * sizeof value));
    }
    return TUTTI_OK;
}

tutti_status tutti_safetensors_write(tutti_safetensors_writer *writer, int tensor, int64_t first,
                                     const float *values, int64_t count)
{
    const tutti_safetensors_layout *layout = writer->layout;
    TUTTI_ASSERT(tensor >= 0 && tensor < layout->count);
    const int64_t elements = tutti_tensor_elements(&layout->tensors[tensor]);
    TUTTI_ASSERT(first >= 0 && count >= 0 && first <= elements && count <= elements - first);
    const tutti_tensor_spec *spec = &layout->tensors[tensor];
    const uint64_t at = layout->begin[tensor] + (uint64_t)first * element_bytes(spec);
    if (spec->dtype == TUTTI_I64) return write_whole_numbers(writer, at, values, count);
    return tutti_file_write_at(writer->fd, writer->path, values, (size_t)count * sizeof *values,
                               at);
}

tutti_status tutti_safetensors_writer_close(tutti_safetensors_writer **writer)
{
    tutti_status s = TUTTI_OK;
    if (*writer && fsync((*writer)->fd))
        s = tutti_file_failure("write to the disk", (*writer)->path);
    tutti_safetensors_writer_abandon(writer);
    return s;
}

void tutti_safetensors_writer_abandon(tutti_safetensors_writer **writer)
{
    if (!*writer) return;
    if ((*writer)->fd >= 0) close((*writer)->fd);
    tutti_free((*writer)->path);
    tutti_free(*writer);
    *writer = NULL;
}
