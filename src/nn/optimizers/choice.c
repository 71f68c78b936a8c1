#include <stdio.h>
#include <string.h>

#include "nn/optimizers/optimizer.h"

static tutti_status unknown(const char *where, const char *name, int length,
                            const tutti_optimizer *const *known)
{
    char list[256] = "";
    for (; *known; known++)
        snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", *list ? ", " : "",
                 (*known)->name);
    return tutti_fail(TUTTI_ARGUMENT, "%s: there is no optimizer '%.*s'; known: %s", where,
                      length < 40 ? length : 40, name, list);
}

/* "beta1=0.9,beta2=0.99" into the settings. */
static tutti_status read_settings(tutti_chosen_optimizer *out, const char *pairs, const char *where)
{
    static const tutti_key none[] = {{.name = NULL}};
    const tutti_key *keys = out->is->keys ? out->is->keys : none;
    char blanks[TUTTI_OPTIMIZER_TEXT];
    tutti_text *text = NULL;
    if (strlen(pairs) >= sizeof blanks)
        return tutti_fail(TUTTI_ARGUMENT, "%s: '%.40s...' is too long", where, pairs);
    strcpy(blanks, pairs);
    for (char *at = blanks; (at = strchr(at, ','));) *at = ' ';
    TUTTI_TRY(tutti_text_create(&text, where, blanks));
    tutti_status s = TUTTI_OK;
    if (tutti_text_next_line(text)) s = tutti_text_keys(text, keys, out->settings.bytes);
    tutti_text_destroy(&text);
    return s == TUTTI_PARSE ? tutti_fail(TUTTI_ARGUMENT, "%s", tutti_message()) : s;
}

tutti_status tutti_optimizer_parse(tutti_chosen_optimizer *out, const char *text, const char *where,
                                   const tutti_optimizer *const *known)
{
    const size_t length = strcspn(text, ",");
    for (const tutti_optimizer *const *o = known; *o; o++) {
        if (strlen((*o)->name) != length || strncmp((*o)->name, text, length)) continue;
        TUTTI_ASSERT((*o)->settings_size <= TUTTI_OPTIMIZER_BYTES);
        *out = (tutti_chosen_optimizer){.is = *o};
        if ((*o)->settings_size) memcpy(out->settings.bytes, (*o)->defaults, (*o)->settings_size);
        return text[length] ? read_settings(out, text + length + 1, where) : TUTTI_OK;
    }
    return unknown(where, text, (int)length, known);
}

static int print_setting(const tutti_key *key, const char *settings, char *out, size_t room)
{
    char real[TUTTI_REAL_TEXT];
    const char *field = settings + key->offset;
    if (key->type == TUTTI_KEY_BOOL)
        return snprintf(out, room, ",%s=%s", key->name, *(const bool *)field ? "yes" : "no");
    if (key->type == TUTTI_KEY_INT)
        return snprintf(out, room, ",%s=%d", key->name, *(const int *)field);
    TUTTI_ASSERT(key->type == TUTTI_KEY_REAL);
    return snprintf(out, room, ",%s=%s", key->name,
                    tutti_text_of_real(real, *(const double *)field));
}

void tutti_optimizer_text(const tutti_chosen_optimizer *chosen, char text[TUTTI_OPTIMIZER_TEXT])
{
    size_t used = (size_t)snprintf(text, TUTTI_OPTIMIZER_TEXT, "%s", chosen->is->name);
    for (const tutti_key *key = chosen->is->keys; key && key->name; key++) {
        used += (size_t)print_setting(key, chosen->settings.bytes, text + used,
                                      TUTTI_OPTIMIZER_TEXT - used);
        TUTTI_ASSERT(used < TUTTI_OPTIMIZER_TEXT);
    }
}

bool tutti_optimizer_set(tutti_chosen_optimizer *chosen, const char *name, double value)
{
    for (const tutti_key *key = chosen->is->keys; key && key->name; key++) {
        if (strcmp(key->name, name)) continue;
        char *field = chosen->settings.bytes + key->offset;
        if (key->type == TUTTI_KEY_BOOL) *(bool *)field = value != 0;
        else if (key->type == TUTTI_KEY_INT) *(int *)field = (int)value;
        else *(double *)field = value;
        return true;
    }
    return false;
}

tutti_optimizer_cost tutti_optimizer_cost_of(const tutti_chosen_optimizer *chosen)
{
    const void *settings = chosen->settings.bytes;
    return (tutti_optimizer_cost){chosen->is->states(settings), chosen->is->accesses(settings)};
}

double tutti_power(double x, int64_t n)
{
    double product = 1;
    for (; n; n >>= 1, x *= x)
        if (n & 1) product *= x;
    return product;
}
