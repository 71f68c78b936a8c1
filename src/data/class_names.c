/* A file of class names. */
#define _GNU_SOURCE
#include "data/source.h"

#include <stdio.h>

#include "base/memory.h"

/* Lines "word" in order, or "word number" in any. */
static tutti_status add_name(tutti_names *names, char *line)
{
    char *word = tutti_next_word(&line), *number = tutti_next_word(&line);
    if (!word) return TUTTI_OK;
    int label = names->count, end = 0;
    if (number && (sscanf(number, "%7d%n", &label, &end) != 1 || number[end] || label < 0 ||
                   label >= TUTTI_MAX_CLASSES))
        return tutti_fail(TUTTI_DATA, "'%s' is not the number of a class", number);
    while (names->count <= label) TUTTI_TRY(tutti_names_add(names, ""));
    tutti_free(names->name[label]);
    return tutti_strdup(&names->name[label], word);
}

tutti_status tutti_data_read_names(tutti_data *data, const char *path)
{
    char *text = NULL, *line = NULL;
    int number = 0;
    TUTTI_TRY(tutti_file_text(&text, path));
    tutti_status s = TUTTI_OK;
    for (char *at = text; !s && tutti_next_line(&at, &line);) {
        number++;
        s = add_name(&data->names, line);
        if (s) s = tutti_fail(s, "%s:%d: %s", path, number, tutti_message());
    }
    tutti_free(text);
    data->classes = data->names.count;
    return s;
}
