/* One layer from what its line says: shapes, parameters, costs. Between parse.c and net.c. */
#ifndef TUTTI_NN_LAYER_H
#define TUTTI_NN_LAYER_H

#include "nn/net.h"

/* What a line says; zero where it is silent. Pairs are height, width. */
typedef struct tutti_layer_spec {
    int features; /* conv, fc; lrn: channels of the window */
    double rate;  /* dropout */
    int kernel[2], stride[2], pad[2], dilation[2];
    int groups;
    bool global; /* the window is the whole input */
    bool no_bias;
    tutti_init init;
    double std, bias;
    tutti_activation activation;
    double alpha, beta, k; /* lrn */
} tutti_layer_spec;

/* Completes the last layer of 'net', whose name, kind and inputs are set: fills in shapes and
 * costs and appends its parameters. The net has room for two more. Failures are sentences without
 * a place; the caller knows it. */
tutti_status tutti_layer_complete(tutti_net *net, const tutti_layer_spec *spec) TUTTI_MUST_CHECK;

#endif
