/* Nets that the tests of models share. */
#ifndef TUTTI_TESTS_MODEL_NETS_H
#define TUTTI_TESTS_MODEL_NETS_H

/* Every kind of layer, channels that do not fill blocks, branches, activations of all sorts. */
static const char everything[] = "input 3 9 9\n"
                                 "c1 conv 20 kernel=3 pad=1 relu\n"
                                 "l1 lrn 5 alpha=0.1\n"
                                 "p1 maxpool kernel=3 stride=2\n"
                                 "c2 conv 20 kernel=3 pad=1\n"
                                 "r2 relu\n"
                                 "s add p1 r2 relu\n"
                                 "c3 conv 24 kernel=1 tanh from=s\n"
                                 "c4 conv 32 kernel=3x1 pad=1x0 relu from=s\n"
                                 "p4 maxpool kernel=2 stride=1 pad=1 from=c4\n"
                                 "d4 dropout 0.2\n"
                                 "c5 conv 20 kernel=2 nobias groups=4\n"
                                 "cat concat c3 s c5\n"
                                 "a avgpool kernel=2\n"
                                 "f1 fc 70 sigmoid\n"
                                 "d1 dropout 0.25\n"
                                 "f2 fc 33 relu\n"
                                 "d2 dropout 0.5\n"
                                 "f3 fc 20\n"
                                 "t3 tanh\n"
                                 "f4 fc 7\n"
                                 "loss softmax\n";

/* Reads the input as a flattened image. */
static const char mlp[] = "input 1 4 4\nf1 fc 40 relu\nf2 fc 5 relu\nloss softmax\n";

#endif
