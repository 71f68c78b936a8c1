/* What this machine is, what it can do, and what would hurt a run on it: the doctor. */
#ifndef TUTTI_MACHINE_H
#define TUTTI_MACHINE_H

#include <stdbool.h>
#include <stdio.h>

#include <tutti/status.h>

#ifdef __cplusplus
extern "C" {
#endif

typedef struct tutti_machine tutti_machine;

typedef struct tutti_machine_options {
    int threads;     /* to measure with; 0: as many as training would use */
    double seconds;  /* to spend on measuring, roughly; 0 measures nothing */
    const char *net; /* say whether there is enough memory to train it; NULL: do not ask */
    int batch_size;  /* of all ranks together, for 'net'; 0: the net's */
} tutti_machine_options;

TUTTI_API tutti_machine_options tutti_machine_defaults(void);

/* Collective. Looks at the machine and measures it, all ranks at the same time. Gives *out to the
 * caller, who gives it to tutti_machine_destroy. */
TUTTI_API tutti_status tutti_machine_create(tutti_machine **out,
                                            const tutti_machine_options *options) TUTTI_MUST_CHECK;
TUTTI_API void tutti_machine_destroy(tutti_machine **machine); /* NULL inside is fine */

/* The report: for people, or as JSON. Only rank 0 prints. */
TUTTI_API void tutti_machine_print(const tutti_machine *machine, FILE *out);
TUTTI_API tutti_status tutti_machine_print_json(const tutti_machine *machine,
                                                FILE *out) TUTTI_MUST_CHECK;

/* What would hurt: a sentence, and the command that helps. NULL after the last. */
TUTTI_API const char *tutti_machine_finding(const tutti_machine *machine, int index);
TUTTI_API const char *tutti_machine_remedy(const tutti_machine *machine, int index);

/* What is compiled into this library: one line per part, "[X]" before those that are present. */
TUTTI_API void tutti_build_print(FILE *out);

#ifdef __cplusplus
}
#endif
#endif
