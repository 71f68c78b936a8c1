/* How fast samples can be read: one thread fetching in the order of training, then a loader with
 * its threads; to be compared with what training needs. */
#include <stdio.h>

#include "base/clock.h"
#include "base/memory.h"
#include "cli.h"
#include "data/loader.h"
#include "data/order.h"

enum { BATCH = 32 };

typedef struct data_bench_options {
    const char *data, *shape;
    double seconds;
} data_bench_options;

// clang-format off
#define AT(field) offsetof(data_bench_options, field)
static const cli_option options[] = {
    {"DATA",    CLI_TEXT, AT(data), .required = true, .help = "a data set, KIND:PATH"},
    {"SHAPE",   CLI_TEXT, AT(shape), .help = "HxWxC of a sample; by default as the data set has it"},
    {"seconds", CLI_REAL, AT(seconds), 0, 3600, "1", .help = "for each of the two measurements"},
    {.name = NULL},
};
// clang-format on

static tutti_status bench_reader(tutti_data *data, double seconds)
{
    tutti_reader *reader = NULL;
    float *sample = NULL;
    const uint32_t count = (uint32_t)tutti_data_count(data, TUTTI_SPLIT_TRAIN);
    tutti_status s = tutti_reader_create(&reader, data);
    if (!s) s = tutti_alloc(&sample, tutti_data_stride(data), sizeof *sample);
    const double start = tutti_now();
    uint32_t n = 0;
    for (; !s && tutti_now() - start < seconds; n++) {
        int label;
        s = tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, n / count,
                               tutti_order_id(1, n / count, count, n % count), sample, &label);
    }
    const double took = tutti_now() - start;
    if (!s) printf("one thread   %10.1f samples/s  %8.3f ms each\n", n / took, 1e3 * took / n);
    tutti_reader_destroy(&reader);
    tutti_free(sample);
    return s;
}

static tutti_status bench_loader(tutti_data *data, double seconds)
{
    tutti_loader *loader = NULL;
    tutti_loader_options how = tutti_loader_defaults();
    how.batch = how.end = BATCH;
    TUTTI_TRY(tutti_loader_create(&loader, data, &how));
    const double start = tutti_now();
    tutti_status s = TUTTI_OK;
    int64_t n = 0;
    for (tutti_batch batch; !s && tutti_now() - start < seconds; n += BATCH)
        s = tutti_loader_next(loader, &batch);
    if (!s) printf("loader       %10.1f samples/s\n", (double)n / (tutti_now() - start));
    tutti_loader_destroy(&loader);
    return s;
}

static tutti_status bench_data(const data_bench_options *o, const tutti_data_options *how)
{
    tutti_data *data = NULL;
    const double start = tutti_now();
    TUTTI_TRY(tutti_data_open(&data, o->data, how));
    printf("%s: %s\n", o->data, tutti_data_description(data));
    printf("opened in    %10.3f s, index %.16s\n", tutti_now() - start, tutti_data_hash(data));
    tutti_status s = bench_reader(data, o->seconds);
    if (s == TUTTI_OK) s = bench_loader(data, o->seconds);
    tutti_data_close(&data);
    return s;
}

static int run(const cli_call *call)
{
    const data_bench_options *o = call->values;
    const tutti_log log = tutti_log_stderr(TUTTI_LOG_INFO);
    tutti_data_options how = tutti_data_defaults();
    how.log = &log;
    tutti_sample_shape *s = &how.shape;
    if (o->shape && sscanf(o->shape, "%dx%dx%d", &s->height, &s->width, &s->channels) != 3)
        return cli_misused(call, "a shape is HxWxC: 224x224x3");
    const tutti_status status = bench_data(o, &how);
    return status == TUTTI_OK ? 0 : cli_failed(call, status);
}

int main(int argc, char **argv)
{
    const cli_verb verb = {.name = "data",
                           .summary = "measure how fast samples can be read",
                           .options = options,
                           .values_size = sizeof(data_bench_options),
                           .run = run};
    data_bench_options values;
    return cli_run_alone(&verb, &values, argc, argv);
}
