#include <stdio.h>

#include <tutti/tutti.h>

int main(void)
{
    printf("tutti %s\n", tutti_version());
    return 0;
}
