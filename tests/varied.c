/* What becomes of training samples, and what was drawn for it: for tests/check_data.py.
 *
 *   varied SPEC SIDE HEIGHT WIDTH EPOCHS    of the pictures HEIGHT x WIDTH of SPEC for a net that
 *                                           takes SIDE x SIDE x 3, sample by sample: a line of what
 *                                           was drawn, a line of values
 *   varied draws COUNT HEIGHT WIDTH ALPHA   crops of such a picture and shares, a line each */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "data/mix.h"
#include "data/source.h"

static tutti_random_key key_of(uint64_t seed, uint32_t epoch, uint32_t id)
{
    return (tutti_random_key){
        .seed = seed, .purpose = TUTTI_RANDOM_AUGMENT, .when = epoch, .sample = id};
}

static void show_draws(const tutti_data *data, uint32_t epoch, uint32_t id, int height, int width)
{
    const tutti_augment *a = &data->augment;
    const tutti_random_key key = key_of(data->options.seed, epoch, id);
    const int side = data->shape.height;
    const tutti_crop crop = tutti_crop_draw(&a->range, &key, height, width);
    const tutti_colour_changes colours = tutti_colour_draw(a->colour, &key);
    uint32_t place[4], hole[4];
    tutti_random_block(place, &key, TUTTI_DRAWS_PLACE);
    tutti_random_block(hole, &key, TUTTI_DRAWS_CUTOUT);
    printf("%u %u %d %d %d %d %d", epoch, id, crop.top, crop.left, crop.height, crop.width,
           a->flip && place[3] >> 31);
    for (int i = 0; i < TUTTI_COLOURS; i++)
        printf(" %d %.9g", colours.order[i], (double)colours.by[i]);
    printf(" %d %d\n", (int)((uint64_t)hole[0] * (uint64_t)side >> 32),
           (int)((uint64_t)hole[1] * (uint64_t)side >> 32));
}

static tutti_status show_sample(tutti_reader *reader, tutti_data *data, uint32_t epoch, uint32_t id,
                                float *sample)
{
    tutti_mixed mixed = {.share = 1};
    tutti_partner partner = {.id = id};
    if (tutti_data_mixes(data)) {
        partner = tutti_mix_partner(data->augment.mixup, data->options.seed, epoch, id,
                                    (uint32_t)data->count[TUTTI_SPLIT_TRAIN]);
        TUTTI_TRY(tutti_reader_fetch_mixed(reader, epoch, id, sample, &mixed));
    } else {
        TUTTI_TRY(tutti_reader_fetch(reader, TUTTI_SPLIT_TRAIN, epoch, id, sample, &mixed.label));
        mixed.other = mixed.label;
    }
    printf("%u %.9g %d %d", partner.id, (double)mixed.share, mixed.label, mixed.other);
    const int values = data->shape.channels * data->shape.height * data->shape.width;
    for (int i = 0; i < values; i++) printf(" %.9g", (double)sample[i]);
    printf("\n");
    return TUTTI_OK;
}

static tutti_status show(const char *spec, int side, int height, int width, uint32_t epochs)
{
    tutti_data *data = NULL;
    tutti_reader *reader = NULL;
    tutti_data_options o = tutti_data_defaults();
    o.shape = (tutti_sample_shape){3, side, side};
    o.seed = 7;
    TUTTI_TRY(tutti_data_open(&data, spec, &o));
    float *sample = calloc(tutti_data_stride(data), sizeof *sample);
    tutti_status s = sample ? tutti_reader_create(&reader, data) : TUTTI_MEMORY;
    for (uint32_t epoch = 0; !s && epoch < epochs; epoch++)
        for (int id = 0; !s && id < data->count[TUTTI_SPLIT_TRAIN]; id++) {
            show_draws(data, epoch, (uint32_t)id, height, width);
            s = show_sample(reader, data, epoch, (uint32_t)id, sample);
        }
    free(sample);
    tutti_reader_destroy(&reader);
    tutti_data_close(&data);
    return s;
}

static void draw(uint32_t count, int height, int width, double alpha)
{
    const tutti_crop_range range = {{0.08, 1}, {3.0 / 4, 4.0 / 3}};
    for (uint32_t id = 0; id < count; id++) {
        const tutti_random_key key = key_of(7, 0, id);
        const tutti_crop c = tutti_crop_draw(&range, &key, height, width);
        const tutti_partner p = tutti_mix_partner(alpha, 7, 0, id, count);
        printf("%d %d %d %d %u %.9g\n", c.top, c.left, c.height, c.width, p.id, (double)p.share);
    }
}

int main(int argc, char **argv)
{
    if (argc == 6 && !strcmp(argv[1], "draws")) {
        draw((uint32_t)atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), atof(argv[5]));
        return 0;
    }
    if (argc != 6) return 2;
    if (!show(argv[1], atoi(argv[2]), atoi(argv[3]), atoi(argv[4]), (uint32_t)atoi(argv[5])))
        return 0;
    fprintf(stderr, "varied: %s\n", tutti_message());
    return 1;
}
