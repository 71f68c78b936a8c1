/* A sample as people would look at it: small, as the bytes of a JPEG file. */
#ifndef TUTTI_DATA_THUMBNAIL_H
#define TUTTI_DATA_THUMBNAIL_H

#include "data/data.h"
#include "data/file.h"

/* Are samples grey or coloured planes? */
bool tutti_data_can_be_seen(const tutti_data *data);

/* The sample as a test has it, at most 'side' pixels high and wide; longer sides are made shorter
 * by whole factors. Numbers that are not pictures are spread from black to white. Replaces what is
 * in the buffer; *bytes of it are the file. */
tutti_status tutti_reader_thumbnail(tutti_reader *reader, tutti_split split, uint32_t id, int side,
                                    tutti_buffer *file, size_t *bytes) TUTTI_MUST_CHECK;

/* Where the sample came from, "cat/12.jpg", borrowed from the data set; NULL: it is no file. */
const char *tutti_data_place(const tutti_data *data, tutti_split split, uint32_t id);

#endif
