/* What the worst samples of an evaluation look like, for those who look on. What cannot be drawn is
 * left out: nothing here is a reason to end a run. */
#include "train/run.h"

#include "base/memory.h"
#include "data/thumbnail.h"
#include "format/json.h"

enum { SIDE = 96, DIGITS = 5 };

static void put_class(tutti_string *s, const tutti_run *run, const char *key, int output)
{
    if (output >= 0) tutti_json_field_string(s, key, tutti_run_class_name(run, output));
}

static void put_picture(tutti_string *s, tutti_reader *reader, tutti_split split, int64_t id)
{
    tutti_buffer file = {0};
    size_t bytes = 0;
    if (tutti_reader_thumbnail(reader, split, (uint32_t)id, SIDE, &file, &bytes) == TUTTI_OK) {
        tutti_json_key(s, "jpeg");
        tutti_json_base64(s, file.bytes, bytes);
    }
    tutti_buffer_deinit(&file);
}

static void put_sample(tutti_string *s, const tutti_run *run, tutti_reader *reader,
                       tutti_split split, const tutti_bad_answer *one)
{
    const char *place = tutti_data_place(run->data, split, (uint32_t)one->id);
    tutti_string_append(s, "{", 1);
    tutti_json_field_int(s, "id", one->id);
    if (place) tutti_json_field_string(s, "file", place);
    tutti_json_field_real(s, "loss", one->loss, DIGITS);
    put_class(s, run, "truth", one->truth);
    put_class(s, run, "answer", one->answer);
    if (one->answer >= 0) {
        tutti_json_field_real(s, "sure", (double)one->sure, DIGITS);
        tutti_json_field_real(s, "of_truth", (double)one->of_truth, DIGITS);
    }
    put_picture(s, reader, split, one->id);
    tutti_string_append(s, "}", 1);
}

void tutti_run_write_worst(tutti_run *run, tutti_split split, const char *phase,
                           const tutti_worst *worst)
{
    tutti_string s = {0};
    tutti_reader *reader = NULL;
    if (!worst->count || run->me.rank || !tutti_data_can_be_seen(run->data)) return;
    if (tutti_reader_create(&reader, run->data) != TUTTI_OK) return;
    tutti_string_printf(&s, "\"split\":\"%s\",\"samples\":[", phase);
    for (int64_t i = 0; i < worst->count; i++) {
        if (i) tutti_string_append(&s, ",", 1);
        put_sample(&s, run, reader, split, &worst->list[i]);
    }
    tutti_string_append(&s, "]", 1);
    tutti_reader_destroy(&reader);
    if (!tutti_string_status(&s))
        tutti_chronicle_event(run->chronicle, tutti_stepper_steps(run->stepper), "worst",
                              "the samples with the greatest losses", s.data);
    tutti_string_deinit(&s);
}
