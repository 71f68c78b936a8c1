/* A loop of one's own: samples that this program makes, a step at a time, and afterwards a
 * checkpoint that 'tutti predict' and 'tutti test' understand.
 *
 *   cc own_loop.c $(pkg-config --cflags --libs tutti) -o own_loop && ./own_loop runs/bars */
#include <stdio.h>
#include <stdlib.h>

#include <tutti/session.h>

enum { SIDE = 12, PIXELS = SIDE * SIDE, CLASSES = 3, BATCH = 32, STEPS = 150 };

static const char net[] = "input 1 12 12\n"
                          "conv1 conv 8 kernel=3 pad=1 relu\n"
                          "pool1 maxpool kernel=2\n"
                          "fc2   fc 3\n"
                          "loss  softmax\n";

static void must(tutti_status status)
{
    if (status == TUTTI_OK) return;
    fprintf(stderr, "own_loop: %s\n", tutti_message());
    exit(tutti_status_exit_code(status));
}

/* A bar that lies, stands or leans, in noise. */
static int make_picture(float *picture)
{
    const int label = rand() % CLASSES, at = rand() % SIDE;
    for (int y = 0; y < SIDE; y++)
        for (int x = 0; x < SIDE; x++) {
            const int on_bar = label == 0 ? y == at : label == 1 ? x == at : (x + y) % SIDE == at;
            picture[y * SIDE + x] = (float)on_bar + (float)rand() / (float)RAND_MAX;
        }
    return label;
}

int main(int argc, char **argv)
{
    static float pictures[BATCH * PIXELS], answers[BATCH * CLASSES], weights[CLASSES * 8 * 36];
    int32_t labels[BATCH];
    int right = 0;

    tutti_train_options options = tutti_train_defaults();
    options.net = net; /* or the name of one, "lenet", or a file */
    options.batch_size = BATCH;
    options.run = argc > 1 ? argv[1] : NULL;
    options.overwrite = 1;
    options.log = tutti_log_stderr(TUTTI_LOG_WARNING);

    tutti_session *session = NULL;
    must(tutti_session_create(&session, &options));
    for (int step = 0; step < STEPS; step++) {
        tutti_step_news news;
        for (int i = 0; i < BATCH; i++) labels[i] = make_picture(pictures + i * PIXELS);
        must(tutti_session_step(session, pictures, labels, 0.05, &news));
        if (news.step % 50 == 0) printf("step %d: loss %.6f\n", (int)news.step, news.loss);
    }

    for (int i = 0; i < BATCH; i++) labels[i] = make_picture(pictures + i * PIXELS);
    must(tutti_session_forward(session, pictures, NULL, BATCH, answers, NULL));
    for (int i = 0; i < BATCH; i++) {
        const float *p = answers + i * CLASSES;
        right += labels[i] == (p[0] > p[1] ? (p[0] > p[2] ? 0 : 2) : (p[1] > p[2] ? 1 : 2));
    }
    printf("%d of %d new pictures are told right\n", right, BATCH);

    must(tutti_session_read(session, tutti_session_find(session, "fc2.weight"), weights));
    printf("fc2.weight begins with %.6f\n", (double)weights[0]);

    if (options.run) must(tutti_session_save(session));
    tutti_session_destroy(&session);
    return right > BATCH / 2 ? 0 : 1;
}
