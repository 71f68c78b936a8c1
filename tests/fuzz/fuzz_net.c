/* The text of a net: any bytes give a net or a sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/net.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_net *net = NULL;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    if (tutti_net_parse(&net, text, "fuzz.net") == TUTTI_OK) {
        const tutti_layer_info total = tutti_net_total(net);
        if (!total.parameters || tutti_net_classes(net) < 1) abort();
    } else if (!*tutti_message()) abort();
    tutti_net_destroy(&net);
    free(text);
    return 0;
}
