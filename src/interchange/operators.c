#include <string.h>

#include "interchange/importer.h"

static const tutti_operator *const groups[] = {
    tutti_on_windows, tutti_on_products, tutti_on_norms, tutti_on_elements,
    tutti_on_views,   tutti_on_shapes,   tutti_on_ends,  NULL,
};

const tutti_operator *tutti_operator_find(const char *name)
{
    for (const tutti_operator *const *group = groups; *group; group++)
        for (const tutti_operator *o = *group; o->name; o++)
            if (!strcmp(o->name, name)) return o;
    return NULL;
}

bool tutti_import_operator(int index, tutti_operator_info *out)
{
    for (const tutti_operator *const *group = groups; *group; group++)
        for (const tutti_operator *o = *group; o->name; o++)
            if (index-- == 0) {
                *out = (tutti_operator_info){o->name, o->becomes, o->limits};
                return true;
            }
    return false;
}
