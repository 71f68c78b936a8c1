/* The text of a net: any bytes give a net, whose text without blocks is a net, too, or a
 * sentence. */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tutti/net.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void unroll(const tutti_net *net)
{
    tutti_net *again = NULL;
    char *text = NULL;
    size_t size;
    FILE *memory = open_memstream(&text, &size);
    if (tutti_net_print(net, memory) || fclose(memory)) abort();
    if (tutti_net_parse(&again, text, "unrolled.net")) abort();
    if (tutti_net_layer_count(again) != tutti_net_layer_count(net)) abort();
    if (tutti_net_total(again).parameters != tutti_net_total(net).parameters) abort();
    tutti_net_destroy(&again);
    free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    tutti_net *net = NULL;
    char *text = malloc(size + 1);
    memcpy(text, data, size);
    text[size] = 0;
    if (tutti_net_parse(&net, text, "fuzz.net") == TUTTI_OK) {
        const tutti_layer_info total = tutti_net_total(net);
        if (!total.parameters || tutti_net_classes(net) < 1) abort();
        unroll(net);
    } else if (!*tutti_message()) abort();
    tutti_net_destroy(&net);
    free(text);
    return 0;
}
