/* The program: finds the verb, reads its options, runs it. Exit codes: see tutti(1). */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tutti/net.h>
#include <tutti/plan.h>
#include <tutti/train.h>

#include "cli.h"

static void print_verbs(FILE *out)
{
    fprintf(out, "usage: tutti VERB [options]\n\n"
                 "Trains neural networks on clusters of CPUs: the same bits for any number of "
                 "nodes.\n\n");
    for (const cli_verb *const *v = cli_verbs; *v; v++)
        fprintf(out, "  %-12s%s\n", (*v)->name, (*v)->summary);
    fprintf(out, "\n  tutti VERB --help    the options of a verb\n"
                 "  tutti --version      the version\n"
                 "  tutti --check-build  what this build can do\n"
                 "  tutti --list WHAT    the nets, platforms or kinds of data there are\n\n"
                 "The first two things to try: tutti doctor, and\n"
                 "  tutti train lenet --data fashion-mnist --run runs/lenet\n");
}

static const cli_verb *find_verb(const char *name)
{
    for (const cli_verb *const *v = cli_verbs; *v; v++)
        if (!strcmp((*v)->name, name)) return *v;
    return NULL;
}

static int unknown_verb(const char *name)
{
    cli_nearest near = cli_nearest_to(name);
    for (const cli_verb *const *v = cli_verbs; *v; v++) cli_nearest_try(&near, (*v)->name);
    fprintf(stderr, "tutti: there is no verb '%s'", name);
    if (near.best) fprintf(stderr, "; did you mean '%.*s'?", near.best_length, near.best);
    fprintf(stderr, "\ntry 'tutti --help'\n");
    return CLI_USAGE_ERROR;
}

static int run_verb(const cli_verb *verb, int argc, char **argv)
{
    char why[512];
    if (cli_asks_for_help(argc, argv)) {
        cli_help(verb, "tutti ", stdout);
        return 0;
    }
    void *values = calloc(1, verb->values_size);
    const cli_call call = {verb, values, "tutti "};
    if (!values) return cli_misused(&call, "not enough memory for the options");
    const int code = cli_parse(verb, values, argc, argv, why, sizeof why)
                         ? verb->run(&call)
                         : cli_misused(&call, "%s", why);
    free(values);
    return code;
}

static int print_help(int argc, char **argv)
{
    const cli_verb *verb = argc > 0 ? find_verb(argv[0]) : NULL;
    if (argc > 0 && !verb) return unknown_verb(argv[0]);
    if (verb) cli_help(verb, "tutti ", stdout);
    else print_verbs(stdout);
    return 0;
}

static int print_version(int argc, char **argv)
{
    (void)argc, (void)argv;
    printf("tutti %s\n", tutti_version());
    return 0;
}

static int check_build(int argc, char **argv)
{
    (void)argc, (void)argv;
    tutti_build_print(stdout);
    return 0;
}

/* --list nets: a name a line, for the shell's completion and for scripts. */
static int print_list(int argc, char **argv)
{
    static const struct {
        const char *name;
        const char *(*item)(int index);
    } lists[] = {{"nets", tutti_net_known},
                 {"platforms", tutti_plan_platform},
                 {"data", tutti_train_data_kind}};
    for (size_t i = 0; argc > 0 && i < sizeof lists / sizeof *lists; i++) {
        if (strcmp(argv[0], lists[i].name)) continue;
        for (int j = 0; lists[i].item(j); j++) puts(lists[i].item(j));
        return 0;
    }
    fprintf(stderr, "tutti --list: what? nets, platforms or data\n");
    return CLI_USAGE_ERROR;
}

static const struct {
    const char *name;
    int (*run)(int argc, char **argv);
} words[] = {
    {"help", print_help},         {"--help", print_help}, {"-h", print_help},
    {"--version", print_version}, {"-V", print_version},  {"--check-build", check_build},
    {"--list", print_list},
};

static int dispatch(int argc, char **argv)
{
    if (argc < 2) {
        print_verbs(stderr);
        return CLI_USAGE_ERROR;
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(argv[1], words[i].name)) return words[i].run(argc - 2, argv + 2);
    const cli_verb *verb = find_verb(argv[1]);
    return verb ? run_verb(verb, argc - 2, argv + 2) : unknown_verb(argv[1]);
}

/* A file that is opened where a standard stream should be would get what is printed. */
static void open_missing_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 && open("/dev/null", O_RDWR) != fd) _exit(1);
}

int main(int argc, char **argv)
{
    open_missing_streams();
    const int code = dispatch(argc, argv);
    if (fflush(stdout) || ferror(stdout)) {
        perror("tutti: standard output");
        return code ? code : 1;
    }
    return code;
}
