#include <tutti/tutti.h>

const char *tutti_version(void)
{
    return TUTTI_VERSION;
}
