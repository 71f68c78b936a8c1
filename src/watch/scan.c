#include "watch/scan.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Behind "key": , or NULL. */
static const char *find(const char *line, const char *key)
{
    char wanted[64];
    const int length = snprintf(wanted, sizeof wanted, "\"%s\":", key);
    const char *at = strstr(line, wanted);
    return at ? at + length : NULL;
}

static double number_at(const char *at, char **end)
{
    const double value = strtod(at, end);
    return *end == at ? NAN : value;
}

double tutti_scan_number(const char *line, const char *key)
{
    char *end;
    const char *at = find(line, key);
    return at ? number_at(at, &end) : NAN;
}

int tutti_scan_numbers(const char *line, const char *key, float *out, int most)
{
    const char *at = find(line, key);
    int count = 0;
    if (!at || *at++ != '[') return 0;
    while (*at && *at != ']' && count < most) {
        char *end;
        out[count++] = (float)number_at(at, &end);
        at = end + strcspn(end, ",]");
        if (*at == ',') at++;
    }
    return count;
}

bool tutti_scan_is_phase(const char *line, const char *phase)
{
    const char *at = find(line, "phase");
    const size_t length = strlen(phase);
    return at && *at == '"' && !strncmp(at + 1, phase, length) && at[1 + length] == '"';
}

void tutti_scan_text(const char *line, const char *key, char *out, size_t size)
{
    const char *at = find(line, key);
    *out = 0;
    if (!at || *at != '"') return;
    const size_t length = strcspn(at + 1, "\"\\");
    snprintf(out, size, "%.*s", (int)(length < size ? length : size - 1), at + 1);
}
