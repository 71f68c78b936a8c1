/* What a file of weights tells about itself, as doc/RUNS.md has it: so that 'tutti predict' needs
 * nothing else. */
#ifndef TUTTI_INTERCHANGE_ABOUT_H
#define TUTTI_INTERCHANGE_ABOUT_H

#include "format/json.h"
#include "format/safetensors.h"
#include "interchange/importer.h"

enum { TUTTI_TOLD_MOST = 8 };

typedef struct tutti_told {
    tutti_fact list[TUTTI_TOLD_MOST];
    tutti_string texts[TUTTI_TOLD_MOST]; /* own the values */
    int count;
} tutti_told;

/* The net and, as far as the options or the model say them, classes and normalisation; nothing
 * where neither is known. TUTTI_ARGUMENT for options that do not fit the net. */
tutti_status tutti_told_init(tutti_told *out, const tutti_importer *im, const char *net_name,
                             const char *net_text, int classes) TUTTI_MUST_CHECK;
void tutti_told_deinit(tutti_told *told);

#endif
