#include "format/human.h"

#include <math.h>
#include <stdio.h>

char *tutti_format_count(char out[32], int64_t count)
{
    char digits[24];
    const int n = snprintf(digits, sizeof digits, "%lld", (long long)(count < 0 ? -count : count));
    int at = 0;
    if (count < 0) out[at++] = '-';
    for (int i = 0; i < n; i++) {
        if (i > 0 && (n - i) % 3 == 0) out[at++] = ',';
        out[at++] = digits[i];
    }
    out[at] = 0;
    return out;
}

char *tutti_format_time(char out[32], double seconds)
{
    if (!(seconds >= 0 && seconds < 1e9)) {
        snprintf(out, 32, "--:--");
        return out;
    }
    const long s = lround(seconds), h = s / 3600;
    if (h) snprintf(out, 32, "%ld:%02ld:%02ld", h, s / 60 % 60, s % 60);
    else snprintf(out, 32, "%02ld:%02ld", s / 60, s % 60);
    return out;
}

char *tutti_format_bytes(char out[32], double bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int u = 0;
    for (; bytes >= 1024 && u < 5; u++) bytes /= 1024;
    snprintf(out, 32, u && bytes < 100 ? "%.1f %s" : "%.0f %s", bytes, units[u]);
    return out;
}
