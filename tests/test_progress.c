/* What a run shows, on a terminal and off it. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <math.h>
#include <stdlib.h>
#include <pty.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>
#include <cmocka.h>

#include "base/bar.h"
#include "base/clock.h"
#include "format/human.h"
#include "train/progress.h"

static const tutti_pace pace = {.samples = 1000, .batch = 10, .steps = 1000};

static tutti_progress_now at(int64_t step)
{
    return (tutti_progress_now){.step = step,
                                .loss = 0.31273,
                                .top1 = 0.8861,
                                .lr = 0.01,
                                .step_seconds = 0.0071,
                                .samples_per_s = 9120,
                                .percent_of_peak = 61,
                                .data_wait = 0.02,
                                .comm_exposed = NAN};
}

typedef struct shown {
    char *text;
    size_t length;
    FILE *stream;
} shown;

static void open_shown(shown *s)
{
    s->stream = open_memstream(&s->text, &s->length);
    assert_non_null(s->stream);
}

static void close_shown(shown *s)
{
    fclose(s->stream);
    free(s->text);
}

static void small_texts_are_readable(void **state)
{
    (void)state;
    char out[32];
    assert_string_equal(tutti_format_count(out, 0), "0");
    assert_string_equal(tutti_format_count(out, 999), "999");
    assert_string_equal(tutti_format_count(out, 132863336), "132,863,336");
    assert_string_equal(tutti_format_count(out, -1000), "-1,000");
    assert_string_equal(tutti_format_time(out, 41.4), "00:41");
    assert_string_equal(tutti_format_time(out, 3723), "1:02:03");
    assert_string_equal(tutti_format_time(out, NAN), "--:--");
    assert_string_equal(tutti_format_time(out, -1), "--:--");
    assert_string_equal(tutti_format_bytes(out, 512), "512 B");
    assert_string_equal(tutti_format_bytes(out, 1536), "1.5 KiB");
    assert_string_equal(tutti_format_bytes(out, 507.0 * 1024 * 1024), "507 MiB");
}

static void off_a_terminal_lines_stay(void **state)
{
    (void)state;
    shown s;
    tutti_progress *p = NULL;
    open_shown(&s);
    assert_false(tutti_progress_defaults(s.stream).terminal);
    const tutti_progress_options options = {s.stream, false, false, 0, 1e9};
    assert_int_equal(tutti_progress_create(&p, options, &pace, 0, "img"), TUTTI_OK);
    for (int64_t step = 1; step <= 1000; step++) {
        const tutti_progress_now now = at(step);
        assert_int_equal(tutti_progress_due(p, step), step == 1 || step == 1000);
        tutti_progress_step(p, &now);
    }
    tutti_progress_say(p, "saved %s", "it");
    tutti_progress_destroy(&p);
    const char *second = strchr(s.text, '\n') + 1;
    assert_memory_equal(s.text, "step 1/1000 | epoch 0.01 | loss 0.3127", 38);
    assert_string_equal(second, "step 1000/1000 | epoch 10.00 | loss 0.3127 | top-1 88.61 % | "
                                "9120 img/s | 61 % peak | lr 0.01 | 7.1 ms/step | data wait 2 % | "
                                "ETA 00:00\nsaved it\n");
    close_shown(&s);
}

static void on_a_terminal_one_line_is_rewritten(void **state)
{
    (void)state;
    shown s;
    tutti_progress *p = NULL;
    open_shown(&s);
    const tutti_progress_options options = {s.stream, true, false, 100, 0};
    assert_int_equal(tutti_progress_create(&p, options, &pace, 0, "img"), TUTTI_OK);
    tutti_progress_now now = at(250);
    tutti_progress_step(p, &now);
    assert_memory_equal(s.text, "step 250/1000 epoch 3/10 [", 26);
    assert_non_null(strstr(s.text, "=> "));
    assert_non_null(strstr(s.text, "] loss 0.3127 | top-1 88.61 % | 9120 img/s | ETA"));
    assert_null(strchr(s.text, '\n'));
    assert_true(strlen(s.text) < 100);
    const char *ends = strchr(s.text, ']'), *begins = strchr(s.text, '['),
               *tip = strchr(s.text, '>');
    assert_int_equal(tip - begins - 1, (ends - begins - 1) / 2); /* half of epoch 3 */

    tutti_progress_say(p, "evaluated");
    assert_non_null(strstr(s.text, "\r\033[Kevaluated\nstep 250/1000 epoch 3/10 ["));
    now = at(1000);
    tutti_progress_step(p, &now);
    assert_non_null(strstr(s.text, "\r\033[Kstep 1000/1000 epoch 10/10 [====="));
    tutti_progress_end(p);
    tutti_progress_say(p, "done");
    tutti_progress_destroy(&p);
    assert_string_equal(strchr(s.text, 0) - 6, "\ndone\n"); /* and no bar below */
    close_shown(&s);
}

static void no_line_is_wider_than_the_terminal(void **state)
{
    (void)state;
    for (int columns = 20; columns <= 140; columns++) {
        shown s;
        tutti_progress *p = NULL;
        open_shown(&s);
        const tutti_progress_options options = {s.stream, true, false, columns, 0};
        const tutti_progress_now now = at(250);
        assert_int_equal(tutti_progress_create(&p, options, &pace, 100, "frames"), TUTTI_OK);
        tutti_progress_step(p, &now);
        assert_true((int)strlen(s.text) < columns);
        tutti_progress_destroy(&p);
        close_shown(&s);
    }
}

/* Of an epoch, or of the part of it that the run takes. */
static void the_bar_is_half_where_half_is_done(void **state)
{
    (void)state;
    static const struct {
        int64_t steps, step;
        const char *epoch;
    } cases[] = {{1000, 250, "3/10"}, {120, 50, "1/2"}, {120, 110, "2/2"}, {20, 10, "1/1"}};
    for (int i = 0; i < 4; i++) {
        shown s;
        char wanted[80];
        tutti_progress *p = NULL;
        open_shown(&s);
        const tutti_progress_options options = {s.stream, true, false, 100, 0};
        const tutti_pace of = {.samples = 1000, .batch = 10, .steps = cases[i].steps};
        const tutti_progress_now now = at(cases[i].step);
        snprintf(wanted, sizeof wanted, "epoch %s [=", cases[i].epoch);
        assert_int_equal(tutti_progress_create(&p, options, &of, 0, "img"), TUTTI_OK);
        tutti_progress_step(p, &now);
        const char *bar = strstr(s.text, wanted);
        assert_non_null(bar);
        const long done = strchr(bar, '>') - strchr(bar, '['),
                   left = strchr(bar, ']') - strchr(bar, '>');
        assert_in_range(done - left, 0, 1);
        tutti_progress_destroy(&p);
        close_shown(&s);
    }
}

/* Values go from the end; none is cut in two. */
static void a_narrow_line_has_what_matters_most(void **state)
{
    (void)state;
    for (int columns = 60; columns <= 160; columns += 50) {
        shown s;
        tutti_progress *p = NULL;
        open_shown(&s);
        const tutti_progress_options options = {s.stream, true, false, columns, 0};
        tutti_progress_now now = at(250);
        now.comm_exposed = 0.12;
        assert_int_equal(tutti_progress_create(&p, options, &pace, 0, "img"), TUTTI_OK);
        tutti_progress_step(p, &now);
        assert_non_null(strstr(s.text, "loss 0.3127"));
        assert_int_equal(strstr(s.text, "| ETA 0") != NULL, columns > 60);
        assert_int_equal(strstr(s.text, "| comm exposed 12 % | 61 % peak") != NULL, columns > 110);
        tutti_progress_destroy(&p);
        close_shown(&s);
    }
}

/* A terminal's own side. */
static const char *read_terminal(int master)
{
    static char text[4096];
    const ssize_t length = read(master, text, sizeof text - 1);
    assert_true(length > 0);
    text[length] = 0;
    return text;
}

static void a_terminal_may_be_resized(void **state)
{
    (void)state;
    int master, slave;
    struct winsize size = {.ws_col = 100};
    tutti_progress *p = NULL;
    tutti_progress_now now = at(250);
    unsetenv("NO_COLOR");
    setenv("TERM", "xterm", 1);
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    FILE *stream = fdopen(slave, "w");
    tutti_progress_options options = tutti_progress_defaults(stream);
    assert_true(options.terminal && options.colour);
    options.every = 0;
    assert_int_equal(tutti_progress_create(&p, options, &pace, 0, "img"), TUTTI_OK);
    tutti_progress_step(p, &now);
    assert_non_null(strstr(read_terminal(master), "epoch 3/10 \033[32m[="));
    size.ws_col = 40; /* what was drawn takes three lines now */
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    tutti_progress_step(p, &now);
    const char *text = read_terminal(master);
    assert_memory_equal(text, "\033[2A\r\033[Jstep 250/1000", 21);
    assert_true(strlen(text) - 8 < 40);
    tutti_progress_destroy(&p);
    setenv("NO_COLOR", "1", 1);
    size.ws_col = 90;
    assert_int_equal(ioctl(master, TIOCSWINSZ, &size), 0);
    assert_false(tutti_progress_defaults(stream).colour);
    unsetenv("NO_COLOR");
    setenv("TERM", "dumb", 1);
    assert_false(tutti_progress_defaults(stream).colour);
    fclose(stream);
    close(master);
}

static void tasks_have_a_bar(void **state)
{
    (void)state;
    for (int terminal = 0; terminal < 2; terminal++) {
        shown s;
        tutti_progress *p = NULL;
        open_shown(&s);
        const tutti_progress_options options = {s.stream, terminal, false, 60, 0};
        assert_int_equal(tutti_progress_create(&p, options, &pace, 0, "img"), TUTTI_OK);
        tutti_progress_task(p, "testing", 50, 100);
        tutti_progress_task(p, "testing", 100, 100);
        tutti_progress_say(p, "tested");
        tutti_progress_destroy(&p);
        assert_string_equal(
            s.text, terminal ? "testing [===============>              ] 50/100\r\033[Ktested\n"
                             : "testing | 50/100\ntested\n");
        close_shown(&s);
    }
}

/* What is over within a second is not shown; later, off a terminal, a line now and then. */
static void what_takes_long_has_a_bar_of_its_own(void **state)
{
    (void)state;
    shown s;
    open_shown(&s);
    tutti_bar bar = {.stream = s.stream};
    for (int i = 0; i <= 100; i++) tutti_bar_show(&bar, "reading", i, 100);
    fflush(s.stream);
    assert_int_equal(s.length, 0);
    bar.begun = bar.shown = tutti_now() - 20;
    tutti_bar_show(&bar, "reading", 40, 100);
    tutti_bar_show(&bar, "reading", 41, 100);
    tutti_bar_show(&bar, "reading", 100, 100);
    assert_string_equal(s.text, "reading | 40/100\n");
    close_shown(&s);
    tutti_bar silent = {.begun = bar.begun};
    tutti_bar_show(&silent, "reading", 40, 100);
}

static void on_a_terminal_such_a_bar_goes_away(void **state)
{
    (void)state;
    int master, slave;
    const struct winsize size = {.ws_col = 60};
    setenv("NO_COLOR", "1", 1);
    assert_int_equal(openpty(&master, &slave, NULL, NULL, &size), 0);
    tutti_bar bar = {.stream = fdopen(slave, "w")};
    bar.begun = bar.shown = tutti_now() - 2;
    tutti_bar_show(&bar, "reading", 50, 100);
    assert_string_equal(read_terminal(master), "reading [===============>              ] 50/100");
    tutti_bar_show(&bar, "", 1, 1);
    assert_string_equal(read_terminal(master), "\r\033[K");
    fclose(bar.stream);
    close(master);
    unsetenv("NO_COLOR");
}

static void what_is_unknown_is_not_shown(void **state)
{
    (void)state;
    shown s;
    tutti_progress *p = NULL;
    open_shown(&s);
    const tutti_progress_options options = {s.stream, false, false, 0, 0};
    const tutti_progress_now now = {5, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NAN, NULL};
    assert_int_equal(tutti_progress_create(&p, options, &pace, 5, "img"), TUTTI_OK);
    tutti_progress_step(p, &now);
    assert_string_equal(s.text, "step 5/1000 | epoch 0.05 | ETA --:--\n");
    tutti_progress_destroy(&p);
    close_shown(&s);
}

static void silence_is_silent(void **state)
{
    (void)state;
    tutti_progress *p = NULL;
    const tutti_progress_now now = at(1);
    assert_int_equal(tutti_progress_create(&p, tutti_progress_defaults(NULL), &pace, 0, "img"),
                     TUTTI_OK);
    tutti_progress_step(p, &now);
    tutti_progress_say(p, "nobody listens");
    tutti_progress_destroy(&p);
    tutti_progress_step(NULL, &now);
    tutti_progress_say(NULL, "nobody is there");
}

static void facts_are_aligned(void **state)
{
    (void)state;
    static const tutti_progress_fact facts[] = {
        {"net", "lenet"}, {"batch size", "64"}, {NULL, NULL}};
    shown s;
    tutti_progress *p = NULL;
    open_shown(&s);
    assert_int_equal(tutti_progress_create(&p, tutti_progress_defaults(s.stream), &pace, 0, "img"),
                     TUTTI_OK);
    tutti_progress_facts(p, "tutti train", facts);
    assert_string_equal(s.text, "tutti train\n  net         lenet\n  batch size  64\n");
    tutti_progress_destroy(&p);
    close_shown(&s);
}

static void too_many_confusions_are_left_out(void **state)
{
    (void)state;
    shown s;
    open_shown(&s);
    tutti_confusion_print(s.stream, NULL, 21841, NULL, 20);
    fflush(s.stream);
    assert_string_equal(s.text, "  no table of confusions: 21841 classes are more than 2048\n");
    close_shown(&s);
}

static void classes_that_do_not_occur_are_not_shown(void **state)
{
    (void)state;
    static const int64_t counts[] = {3, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0};
    shown s;
    open_shown(&s);
    tutti_confusion_print(s.stream, counts, 4, NULL, 20);
    fflush(s.stream);
    assert_string_equal(s.text, "  truth |  0  3 | right\n"
                                "  0     |  3  1 |  75.0 %\n"
                                "  3     |  2  . |   0.0 %\n");
    close_shown(&s);
}

static void confusions_are_shown(void **state)
{
    (void)state;
    static const int64_t counts[] = {90, 10, 0, 0, 100, 0, 25, 5, 170};
    static const char *const names[] = {"cat", "dog", "elephant"};
    shown s;
    open_shown(&s);
    tutti_confusion_print(s.stream, counts, 3, names, 20);
    fflush(s.stream);
    assert_string_equal(s.text, "  truth    |   0   1   2 | right\n"
                                "  cat      |  90  10   . |  90.0 %\n"
                                "  dog      |   . 100   . | 100.0 %\n"
                                "  elephant |  25   5 170 |  85.0 %\n");
    close_shown(&s);
    open_shown(&s);
    tutti_confusion_print(s.stream, counts, 3, NULL, 2);
    fflush(s.stream);
    assert_string_equal(s.text, "  most often confused:\n"
                                "  2 taken for 0: 25 times, 12.5 %\n"
                                "  0 taken for 1: 10 times, 10.0 %\n"
                                "  2 taken for 1: 5 times, 2.5 %\n");
    close_shown(&s);
}

static void a_terminal_has_a_width(void **state)
{
    (void)state;
    const struct winsize widths[] = {{.ws_col = 0}, {.ws_col = 90}};
    for (int i = 0; i < 2; i++) {
        int master, slave;
        assert_int_equal(openpty(&master, &slave, NULL, NULL, &widths[i]), 0);
        FILE *stream = fdopen(slave, "w");
        const tutti_progress_options options = tutti_progress_defaults(stream);
        assert_int_equal(options.terminal, widths[i].ws_col > 0);
        assert_int_equal(options.columns, widths[i].ws_col);
        fclose(stream);
        close(master);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_texts_are_readable),
        cmocka_unit_test(off_a_terminal_lines_stay),
        cmocka_unit_test(on_a_terminal_one_line_is_rewritten),
        cmocka_unit_test(a_terminal_has_a_width),
        cmocka_unit_test(no_line_is_wider_than_the_terminal),
        cmocka_unit_test(the_bar_is_half_where_half_is_done),
        cmocka_unit_test(a_narrow_line_has_what_matters_most),
        cmocka_unit_test(a_terminal_may_be_resized),
        cmocka_unit_test(tasks_have_a_bar),
        cmocka_unit_test(what_takes_long_has_a_bar_of_its_own),
        cmocka_unit_test(on_a_terminal_such_a_bar_goes_away),
        cmocka_unit_test(what_is_unknown_is_not_shown),
        cmocka_unit_test(silence_is_silent),
        cmocka_unit_test(facts_are_aligned),
        cmocka_unit_test(confusions_are_shown),
        cmocka_unit_test(classes_that_do_not_occur_are_not_shown),
        cmocka_unit_test(too_many_confusions_are_left_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
