/* Kaldi's archives of feature matrices: "KEY \0B" and a matrix, again and again. Reads any run of
 * rows of binary float (FM) and double (DM) matrices and of the compressed forms CM, CM2, CM3. */
#ifndef TUTTI_DATA_ARK_H
#define TUTTI_DATA_ARK_H

#include "data/file.h"

typedef struct tutti_ark_matrix {
    const tutti_file *file;
    uint64_t data; /* where its numbers begin */
    int rows, columns;
    uint8_t form;     /* a row of the table in ark.c */
    float low, range; /* of the compressed forms */
} tutti_ark_matrix;

/* Reads the head of the matrix whose "\0B" is at 'offset', and checks that the file holds all of
 * it. *end is where it ends. */
tutti_status tutti_ark_head(tutti_ark_matrix *matrix, const tutti_file *file, uint64_t offset,
                            uint64_t *end) TUTTI_MUST_CHECK;

/* Calls visit(user, key, matrix) for every matrix of an archive, in its order. */
typedef tutti_status tutti_ark_visit(void *user, const char *key, const tutti_ark_matrix *matrix);
tutti_status tutti_ark_scan(const tutti_file *file, tutti_ark_visit *visit,
                            void *user) TUTTI_MUST_CHECK;

/* Writes rows first .. first+count-1 to out[count][columns]. */
tutti_status tutti_ark_rows(const tutti_ark_matrix *matrix, int first, int count,
                            tutti_buffer *scratch, float *out) TUTTI_MUST_CHECK;

#endif
