#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/text.h"

char *tutti_text_of_real(char out[TUTTI_REAL_TEXT], double value)
{
    if (value == floor(value) && fabs(value) < 1e15) {
        snprintf(out, TUTTI_REAL_TEXT, "%.0f", value);
        return out;
    }
    for (int digits = 1; digits <= 17; digits++) {
        snprintf(out, TUTTI_REAL_TEXT, "%.*g", digits, value);
        if (strtod(out, NULL) == value) break;
    }
    return out;
}
