#include <stdio.h>
#include <string.h>

#include "nn/kinds/kind.h"

static void print_input(const tutti_net *net, FILE *out)
{
    const tutti_shape s = net->input;
    if (s.h == 1 && s.w == 1) fprintf(out, "input %d\n", s.c);
    else fprintf(out, "input %d %d %d\n", s.c, s.h, s.w);
}

static void print_layer(const tutti_net *net, int index, int width, FILE *out)
{
    const tutti_layer *layer = &net->layers[index];
    fprintf(out, "%-*s %s", width, layer->name, layer->kind->word);
    for (int i = 0; layer->kind->names_inputs && i < layer->input_count; i++)
        fprintf(out, " %s", tutti_layer_input_name(net, layer, i));
    fputs(layer->said, out);
    if (!layer->kind->names_inputs && layer->from[0] != index - 1)
        fprintf(out, " from=%s", tutti_layer_input_name(net, layer, 0));
    fputc('\n', out);
}

tutti_status tutti_net_print(const tutti_net *net, FILE *out)
{
    const int width = tutti_net_name_width(net, 0);
    fprintf(out, "tutti net 1\n");
    print_input(net, out);
    for (int i = 0; i < net->setting_count; i++) {
        const char *value = net->settings[i].value, *quote = strpbrk(value, " \t#") ? "\"" : "";
        fprintf(out, "default %s %s%s%s\n", net->settings[i].key, quote, value, quote);
    }
    fputc('\n', out);
    for (int i = 0; i < net->layer_count; i++) print_layer(net, i, width, out);
    return fflush(out) || ferror(out) ? tutti_fail(TUTTI_IO, "cannot write the net's text")
                                      : TUTTI_OK;
}
