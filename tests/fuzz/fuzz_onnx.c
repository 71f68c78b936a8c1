/* Any bytes as a model of ONNX: refused with a sentence, or a net and weights that are written; and
 * then it can be exported. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <tutti/interchange.h>
#include "in_memory.h"

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t count)
{
    static int fd = -1;
    static char model[320], output[320], net[340], weights[340];
    tutti_import_result result;
    if (fd < 0) {
        fd = make_file("model.onnx");
        snprintf(model, sizeof model, "%s/model.onnx", folder.path);
        snprintf(output, sizeof output, "%s/out", folder.path);
    }
    set_content(fd, bytes, count);
    const tutti_import_options o = {.model = model, .output = output, .input = {3, 8, 8}};
    tutti_status s = tutti_import(&o, &result);
    if (s && !*tutti_message()) abort();
    snprintf(net, sizeof net, "%s.net", output);
    snprintf(weights, sizeof weights, "%s.safetensors", output);
    if (s && (!access(net, F_OK) || !access(weights, F_OK))) abort();
    if (!s) {
        const tutti_export_options again = {
            .net = net, .weights = weights, .onnx = "/dev/shm/none/x"};
        tutti_export_result exported;
        s = tutti_export(&again, &exported);
        if (s != TUTTI_IO) abort(); /* all but the place is fine */
        unlink(net);
        unlink(weights);
    }
    return 0;
}
