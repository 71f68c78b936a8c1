/* "did you mean": the restricted Damerau-Levenshtein distance (insert, delete, replace, swap
 * neighbours), with '_' and '-' alike. */
#include <string.h>

#include "cli.h"

enum { LONGEST = 40 };

static int min(int a, int b)
{
    return a < b ? a : b;
}

static char plain(char c)
{
    return c == '_' ? '-' : c;
}

static int distance(const char *a, int na, const char *b, int nb)
{
    int d[LONGEST + 1][LONGEST + 1];
    for (int i = 0; i <= na; i++) d[i][0] = i;
    for (int j = 0; j <= nb; j++) d[0][j] = j;
    for (int i = 1; i <= na; i++)
        for (int j = 1; j <= nb; j++) {
            const bool same = plain(a[i - 1]) == plain(b[j - 1]);
            d[i][j] = min(min(d[i - 1][j], d[i][j - 1]) + 1, d[i - 1][j - 1] + !same);
            if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1);
        }
    return d[na][nb];
}

cli_nearest cli_nearest_to(const char *word)
{
    const int length = (int)strlen(word);
    return (cli_nearest){.word = word, .distance = length < 3 ? 2 : 1 + length / 3 + 1};
}

void cli_nearest_try(cli_nearest *search, const char *names)
{
    const int length = (int)strlen(search->word);
    for (const char *name = names; length <= LONGEST; name += strcspn(name, "|") + 1) {
        const int n = (int)strcspn(name, "|");
        const int d = n <= LONGEST ? distance(search->word, length, name, n) : LONGEST;
        if (d < search->distance && d < n) *search = (cli_nearest){search->word, name, n, d};
        if (!name[n]) break;
    }
}
