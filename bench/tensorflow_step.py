#!/usr/bin/env python3
"""A step of SGD with momentum in TensorFlow on random data: the opponent of bench/step.

It is a tf.function of TensorFlow's own operators, pictures NHWC; with --precision bf16 numbers are cast
as Keras's policy mixed_bfloat16 casts them. One process only.
"""
import os
import time

import opponent

asked = opponent.arguments(__doc__, ("fp32", "bf16"))
if asked.processes > 1:
    raise SystemExit("tensorflow_step.py: it is one process; --against tensorflow needs one rank")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import tensorflow as tf
import tensorflow_net

tf.config.threading.set_intra_op_parallelism_threads(asked.threads)
tf.config.threading.set_inter_op_parallelism_threads(1)
tf.random.set_seed(0)
compute = tf.bfloat16 if asked.precision == "bf16" else tf.float32
net, shape, classes = tensorflow_net.build(asked.net, compute)
moments = [tf.Variable(tf.zeros_like(w), trainable=False) for w in net.trained]
x = tf.random.normal([asked.batch, *shape])
y = tf.random.uniform([asked.batch], 0, classes, tf.int32)


@tf.function
def update():
    with tf.GradientTape() as tape:
        losses = tf.nn.sparse_softmax_cross_entropy_with_logits(y, tf.reshape(net(x), [-1, classes]))
        loss = tf.reduce_mean(losses)
    for w, moment, gradient in zip(net.trained, moments, tape.gradient(loss, net.trained)):
        tf.raw_ops.ResourceApplyMomentum(var=w.handle, accum=moment.handle, lr=1e-3, grad=gradient,
                                         momentum=0.9)
    return loss


def step():
    start = time.perf_counter()
    update().numpy()
    return time.perf_counter() - start


opponent.play(asked, ", ".join([f"TensorFlow {tf.__version__}", "NHWC" if len(shape) == 3 else "dense",
                                *["bf16"] * (compute == tf.bfloat16)]), step)
