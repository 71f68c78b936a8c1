/* How fast samples come: bench/data SPEC [HxWxC] [SECONDS]. One thread fetching in the order of
 * training, then a loader with its threads; to be compared with what training needs. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "data/loader.h"
#include "data/order.h"

enum { BATCH = 32 };

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
    tutti_loader_options options = tutti_loader_defaults();
    options.batch = options.end = BATCH;
    TUTTI_TRY(tutti_loader_create(&loader, data, &options));
    const double start = tutti_now();
    tutti_status s = TUTTI_OK;
    int64_t n = 0;
    for (tutti_batch batch; !s && tutti_now() - start < seconds; n += BATCH)
        s = tutti_loader_next(loader, &batch);
    if (!s) printf("loader       %10.1f samples/s\n", (double)n / (tutti_now() - start));
    tutti_loader_destroy(&loader);
    return s;
}

int main(int argc, char **argv)
{
    const char *spec = argc > 1 ? argv[1] : "fashion-mnist";
    const double seconds = argc > 3 ? atof(argv[3]) : 1;
    tutti_data_options options = tutti_data_defaults();
    const tutti_log log = tutti_log_stderr(TUTTI_LOG_INFO);
    options.log = &log;
    if (argc > 2) {
        tutti_sample_shape *s = &options.shape;
        if (sscanf(argv[2], "%dx%dx%d", &s->height, &s->width, &s->channels) != 3) return 2;
    }
    tutti_data *data = NULL;
    const double start = tutti_now();
    tutti_status s = tutti_data_open(&data, spec, &options);
    if (!s) {
        printf("%s: %s\n", spec, tutti_data_description(data));
        printf("opened in    %10.3f s, index %.16s\n", tutti_now() - start, tutti_data_hash(data));
        s = bench_reader(data, seconds);
    }
    if (!s) s = bench_loader(data, seconds);
    if (s) fprintf(stderr, "bench/data: %s\n", tutti_message());
    tutti_data_close(&data);
    return tutti_status_exit_code(s);
}
