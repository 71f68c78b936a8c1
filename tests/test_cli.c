/* The frame of the program: option tables, suggestions, and that the real tables are sound. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "values.h"

typedef struct fly_options {
    const char *where;
    cli_list luggage;
    int wings;
    double height;
    bool json;
    uint64_t seed;
    int plan;
    const char *log;
    double speed;
    int seats, lights, warm;
} fly_options;

#define AT(field) offsetof(fly_options, field)
static const cli_option options[] = {
    {"WHERE", CLI_TEXT, AT(where), .required = true, .help = "the place"},
    {"LUGGAGE", CLI_REST, AT(luggage), .help = "what to take"},
    {"wings|num-wings|n", CLI_INT, AT(wings), 1, 64, "2", .help = "wings to use"},
    {"height", CLI_REAL, AT(height), -1, 1e5, "0", .help = "metres"},
    {"json", CLI_FLAG, AT(json), .help = "print JSON"},
    {"seed", CLI_U64, AT(seed), .fallback = "1", .help = "of all randomness"},
    {"plan", CLI_CHOICE, AT(plan), .fallback = "auto", .help = "how", .choices = "auto|data|model"},
    {"log-file", CLI_TEXT, AT(log), .help = "a file", .env = "TUTTI_TEST_LOG"},
    {"speed", CLI_REAL, AT(speed), 0, 1e3, .unset = -1, .otherwise = "fast", .help = "km/h"},
    {"seats", CLI_INT, AT(seats), 1, 9, .otherwise = "one", .help = "seats"},
    {"lights", CLI_CHOICE, AT(lights), .choices = "off|on", .unset = -1, .help = "lights"},
    {"warm", CLI_SWITCH, AT(warm), .unset = -1, .help = "heating"},
    {.name = NULL},
};

static const cli_verb fly = {"fly", "fly somewhere", options, sizeof(fly_options), NULL, NULL,
                             NULL};

/* Parses a line of words; returns what was complained about, "" if nothing. */
static const char *parse(fly_options *o, const char *line)
{
    static char words[512], why[512];
    static char *argv[32];
    int argc = 0;
    snprintf(words, sizeof words, "%s", line);
    for (char *w = strtok(words, " "); w; w = strtok(NULL, " ")) argv[argc++] = w;
    why[0] = 0;
    const bool fine = cli_parse(&fly, o, argc, argv, why, sizeof why);
    assert_int_equal(fine, !why[0]);
    return why;
}

static void defaults_come_from_the_table(void **state)
{
    (void)state;
    fly_options o;
    assert_string_equal(parse(&o, "home"), "");
    assert_string_equal(o.where, "home");
    assert_int_equal(o.wings, 2);
    assert_int_equal(o.seed, 1);
    assert_int_equal(o.plan, 0);
    assert_false(o.json);
    assert_null(o.log);
}

/* What is not given is told from everything that can be given. */
static void what_is_not_given_cannot_be_typed(void **state)
{
    (void)state;
    fly_options o;
    assert_string_equal(parse(&o, "home"), "");
    assert_true(o.speed == -1 && o.seats == 0 && o.lights == -1 && o.warm == -1);
    assert_string_equal(parse(&o, "home --speed 0 --seats 1 --lights off --no-warm"), "");
    assert_true(o.speed == 0 && o.seats == 1 && o.lights == 0 && o.warm == 0);
    assert_string_equal(parse(&o, "home --warm"), "");
    assert_int_equal(o.warm, 1);
    assert_string_equal(parse(&o, "home --speed -1"), "--speed: -1 is not between 0 and 1000");
    assert_string_equal(parse(&o, "home --seats 0"), "--seats: 0 is not between 1 and 9");
}

/* A number of any verb that has no default shows what holds instead, and cannot be typed. */
static void check_unset(const cli_verb *verb, const cli_option *o, void *values)
{
    char why[256], word[32];
    const bool is_number = o->type == CLI_INT || o->type == CLI_REAL;
    if (!is_number || o->fallback || o->required) return;
    snprintf(word, sizeof word, "%.17g", o->unset);
    if (cli_set(o, word, values, &(cli_complaint){why, sizeof why}))
        fail_msg("%s --%s %s can be typed, and means that it was not", verb->name, o->name, word);
}

static void both_spellings_and_all_names_work(void **state)
{
    (void)state;
    fly_options o;
    const char *const lines[] = {"home --num-wings 7", "--num_wings=7 home", "-n 7 home",
                                 "--wings=7 -- home", "--wings 3 home --wings 7"};
    for (size_t i = 0; i < sizeof lines / sizeof *lines; i++) {
        assert_string_equal(parse(&o, lines[i]), "");
        assert_int_equal(o.wings, 7);
        assert_string_equal(o.where, "home");
    }
    assert_string_equal(parse(&o, "home --json --plan model --height -0.5"), "");
    assert_true(o.json && o.plan == 2 && o.height == -0.5);
    assert_string_equal(parse(&o, "home --json --no-json"), "");
    assert_false(o.json);
    assert_string_equal(parse(&o, "home --json=off"), "");
    assert_false(o.json);
}

static void operands_may_stand_anywhere(void **state)
{
    (void)state;
    fly_options o;
    assert_string_equal(parse(&o, "home bag --wings 4 box -- --hat"), "");
    assert_int_equal(o.luggage.count, 3);
    assert_string_equal(o.luggage.items[0], "bag");
    assert_string_equal(o.luggage.items[1], "box");
    assert_string_equal(o.luggage.items[2], "--hat");
}

static void mistakes_get_one_clear_sentence(void **state)
{
    (void)state;
    fly_options o;
    static const struct {
        const char *line, *why;
    } cases[] = {
        {"", "WHERE is missing: the place"},
        {"home --wings 2.5", "--wings: '2.5' is not a whole number"},
        {"home --wings 0", "--wings: 0 is not between 1 and 64"},
        {"home --wings 99999999999", "--wings: 99999999999 is too large"},
        {"home --wings", "--wings needs a value: wings to use"},
        {"home --wings --json", "--wings needs a value: wings to use"},
        {"home --height high", "--height: 'high' is not a number"},
        {"home --height nan", "--height: 'nan' is not a number"},
        {"home --seed -1", "--seed: '-1' is not a whole number from 0"},
        {"home --seed 99999999999999999999", "--seed: 99999999999999999999 is too large"},
        {"home --json=maybe", "--json: 'maybe' is neither yes nor no"},
        {"home --plan best", "--plan: 'best' is not one of auto|data|model"},
        {"home --winsg 2", "there is no option '--winsg'; did you mean '--wings'?"},
        {"home --log_fiel x", "there is no option '--log_fiel'; did you mean '--log-file'?"},
        {"home --no-wings", "there is no option '--no-wings'; did you mean '--num-wings'?"},
        {"home --zzzzzz", "there is no option '--zzzzzz'"},
        {"home -json", "there is no option '-json'; did you mean '--json'?"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(parse(&o, cases[i].line), cases[i].why);
}

static void the_flag_wins_over_the_environment(void **state)
{
    (void)state;
    fly_options o;
    setenv("TUTTI_TEST_LOG", "env.log", 1);
    assert_string_equal(parse(&o, "home"), "");
    assert_string_equal(o.log, "env.log");
    assert_string_equal(parse(&o, "home --log-file flag.log"), "");
    assert_string_equal(o.log, "flag.log");
    unsetenv("TUTTI_TEST_LOG");
}

static void run_with_can_be_typed_again(void **state)
{
    (void)state;
    fly_options o;
    char *text = NULL;
    size_t size = 0;
    assert_string_equal(parse(&o, "it's bag --height 1e3 --json --plan data"), "");
    FILE *out = open_memstream(&text, &size);
    cli_run_with(&(cli_call){&fly, &o, "tutti "}, out);
    fclose(out);
    assert_string_equal(text, "run with: tutti fly 'it'\\''s' bag --wings 2 --height 1000 "
                              "--json=yes --seed 1 --plan data\n");
    free(text);
}

static void near_names_are_found(void **state)
{
    (void)state;
    cli_nearest near = cli_nearest_to("tarin");
    cli_nearest_try(&near, "test");
    cli_nearest_try(&near, "doctor|train|plan");
    assert_int_equal(near.best_length, 5);
    assert_memory_equal(near.best, "train", 5);

    near = cli_nearest_to("frobnicate");
    cli_nearest_try(&near, "doctor|train|plan");
    assert_null(near.best);
}

static void check_option(const cli_verb *verb, const cli_option *o)
{
    assert_true(o->help && *o->help);
    assert_true(o->offset + cli_field_size(o) <= verb->values_size);
    assert_true(o->type != CLI_CHOICE || o->choices);
    for (const cli_option *other = verb->options; other != o; other++) {
        assert_true(other->offset != o->offset);
        assert_true(cli_name_place(other->name, o->name, (int)strcspn(o->name, "|")) < 0);
    }
}

static void words_of_other_programs_are_understood(void **state)
{
    (void)state;
    assert_string_equal(cli_synonym("learning-rate"), "lr");
    assert_string_equal(cli_synonym("learning_rate"), "lr");
    assert_string_equal(cli_synonym("num_workers"), "data-threads");
    assert_null(cli_synonym("lr"));
    assert_null(cli_synonym("a-word-of-more-than-forty-letters-that-nobody-would-type"));
}

/* An option is in one group, or behind them all. */
static void check_listed(const cli_verb *verb, const cli_option *o)
{
    int listed = 0;
    for (const cli_group *g = verb->groups; g->title; g++)
        listed += cli_name_place(g->names, o->name, (int)strcspn(o->name, "|")) >= 0;
    if (listed > 1 || (listed && cli_is_operand(o)))
        fail_msg("--%s is in %d groups of cli/verb_%s.c", o->name, listed, verb->name);
}

/* Every name of a group is an option's. */
static void check_group(const cli_verb *verb, const cli_group *g)
{
    for (const char *name = g->names; *name; name += strspn(name, "|")) {
        const int n = (int)strcspn(name, "|");
        bool found = false;
        for (const cli_option *o = verb->options; o->name; o++)
            found = found || cli_name_place(o->name, name, n) == 0;
        if (!found) fail_msg("%s has no option --%.*s", verb->name, n, name);
        name += n;
    }
}

/* Every verb of the program: its defaults must parse, its names must differ. */
static void the_tables_of_all_verbs_are_sound(void **state)
{
    (void)state;
    for (const cli_verb *const *v = cli_verbs; *v; v++) {
        char why[512];
        void *values = calloc(1, (*v)->values_size);
        assert_true((*v)->run && (*v)->summary);
        for (const cli_option *o = (*v)->options; o->name; o++) {
            check_option(*v, o);
            check_unset(*v, o, values);
            if ((*v)->groups) check_listed(*v, o);
        }
        for (const cli_group *g = (*v)->groups; g && g->title; g++) check_group(*v, g);
        if (!cli_parse(*v, values, 0, NULL, why, sizeof why))
            assert_non_null(strstr(why, "missing"));
        free(values);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_come_from_the_table),
        cmocka_unit_test(what_is_not_given_cannot_be_typed),
        cmocka_unit_test(both_spellings_and_all_names_work),
        cmocka_unit_test(operands_may_stand_anywhere),
        cmocka_unit_test(mistakes_get_one_clear_sentence),
        cmocka_unit_test(the_flag_wins_over_the_environment),
        cmocka_unit_test(run_with_can_be_typed_again),
        cmocka_unit_test(near_names_are_found),
        cmocka_unit_test(words_of_other_programs_are_understood),
        cmocka_unit_test(the_tables_of_all_verbs_are_sound),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
