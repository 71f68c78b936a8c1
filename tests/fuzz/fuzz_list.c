/* Any text as the list of a split, and as the labels of utterances. */
#define _GNU_SOURCE
#include "in_memory.h"

#include <sys/stat.h>

static void make_pictures(void)
{
    static const char *const folders[] = {"one", "two"}, *const files[] = {"one/x.jpg", "two/y.png",
                                                                           "two/a file.jpg"};
    for (int i = 0; i < 2; i++)
        if (mkdir(scratch_file(&folder, folders[i]), 0755)) abort();
    for (int i = 0; i < 3; i++) fclose(fopen(scratch_file(&folder, files[i]), "w"));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
    static const char ark[] = "one/x.jpg \0BFM \4\1\0\0\0\4\1\0\0\0\0\0\0\0"
                              "b \0BFM \4\1\0\0\0\4\1\0\0\0\0\0\0";
    static int text;
    if (!folder.path[0]) {
        text = make_file("list.txt");
        set_content(make_file("f.ark"), ark, sizeof ark);
        make_pictures();
    }
    set_content(text, bytes, size);
    char spec[900];
    snprintf(spec, sizeof spec, "images:%s,train=list.txt,test=list.txt,val=%s", folder.path,
             size % 3 ? "list.txt" : "50");
    try_data(spec, false);
    snprintf(spec, sizeof spec, "kaldi:%s/f.ark,%s/list.txt,names=%s/list.txt", folder.path,
             folder.path, folder.path);
    try_data(spec, size % 2);
    return 0;
}
