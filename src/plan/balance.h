/* The balance equations: how much a layer computes, how much it has to send, and which way of
 * splitting it over N nodes sends the least.
 *
 * After Das et al., "Distributed Deep Learning Using Synchronous Stochastic Gradient Descent"
 * (2016). Symbols: ifm, ofm input and output feature maps; kw, kh the kernel; in_w, in_h, out_w,
 * out_h the maps; a point is one sample; 'overlap' in [0, 1] says how much of sending and
 * receiving happens at the same time (1 = full duplex). All sizes are in bytes, all times in
 * seconds, floats have 4 bytes. Everything here is a pure function. */
#ifndef TUTTI_PLAN_BALANCE_H
#define TUTTI_PLAN_BALANCE_H

typedef struct tutti_balance_layer {
    double ifm, ofm, kw, kh;
    double in_w, in_h, out_w, out_h;
} tutti_balance_layer;

/* ifm * ofm * kw * kh */
double tutti_balance_weights(const tutti_balance_layer *layer);

/* 3 * 2 * points * ifm * ofm * kw * kh * out_w * out_h: forward, backward-data and
 * backward-weights of 'points' points. */
double tutti_balance_flops(const tutti_balance_layer *layer, double points);

/* Data parallel. Partial weight gradients out, new weights in:
 * 4 * ifm * ofm * kw * kh * (2 - overlap) */
double tutti_balance_data_bytes(const tutti_balance_layer *layer, double overlap);

/* FLOP per byte of data parallelism: 1.5 * out_w * out_h * points for overlap = 1. */
double tutti_balance_data_ratio(const tutti_balance_layer *layer, double points, double overlap);

/* The points per node at which the communication of these layers is just hidden behind their
 * computation, on a system with 'flop_per_byte' = (node FLOP/s) / (link byte/s):
 * flop_per_byte * sum(bytes_i) / sum(flops_i of one point). */
double tutti_balance_min_points(const tutti_balance_layer *layers, int count, double flop_per_byte,
                                double overlap);

/* Model parallel. The activations of the whole minibatch, forward and again backward:
 * 2 * 4 * ifm * in_w * in_h * minibatch */
double tutti_balance_model_bytes(const tutti_balance_layer *layer, double minibatch);

/* Hybrid. N nodes in G groups, the minibatch split over the groups, the features over the N/G
 * nodes of a group:
 * V(G) = 2 * 4 * ifm * in_w * in_h * minibatch / G + 4 * ofm * ifm * kw * kh * (2-overlap) * G / N
 * At G = 1 (pure model) the second term vanishes, at G = N (pure data) the first. */
double tutti_balance_hybrid_bytes(const tutti_balance_layer *layer, double minibatch,
                                  double overlap, double nodes, double groups);

/* Where dV/dG = 0: G* = sqrt(2 * N * minibatch * in_w * in_h / (ofm * kw * kh * (2 - overlap))) */
double tutti_balance_best_groups(const tutti_balance_layer *layer, double minibatch, double overlap,
                                 double nodes);

/* The divisor of 'nodes' with the least V(G), by trying them all; the smallest among equals. */
int tutti_balance_search_groups(const tutti_balance_layer *layer, double minibatch, double overlap,
                                int nodes);

#endif
