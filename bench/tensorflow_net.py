"""The nets of models/*.net in TensorFlow: an independent reader of the same text, for the kinds of
layers that the nets of doc/RESULTS.md have. Pictures are NHWC; numbers are computed in 'compute', and
weights kept in fp32, as Keras's policy mixed_bfloat16 does.

build("vgg-a", tf.float32) -> (net, shape of a sample, classes): net(x) is what the last layer gives,
net.trained the weights.
"""
import math

import tensorflow as tf

from net_text import inputs_of, named, pair

ACTIVATIONS = {"relu": tf.nn.relu, "relu6": tf.nn.relu6, "silu": tf.nn.silu, "sigmoid": tf.nn.sigmoid,
               "tanh": tf.nn.tanh}


class Net:
    """Layers in the order of the text; each knows the names of its inputs."""
    def __init__(self, compute):
        self.compute, self.steps, self.trained = compute, [], []

    def variable(self, shape, deviation=0.0, mean=0.0):
        self.trained.append(tf.Variable(tf.random.normal(shape, mean, deviation)))
        return self.trained[-1]

    def __call__(self, x):
        values = {"input": tf.cast(x, self.compute)}
        for name, inputs, does in self.steps:
            values[name] = does(*[values[i] for i in inputs])
        return tf.cast(values[self.steps[-1][0]], tf.float32)


def padding_of(pairs):
    """In TensorFlow's words, which are faster than numbers."""
    kernel, stride = pair(pairs, "kernel", None), pair(pairs, "stride", [1])
    pads = pair(pairs, "pad", [0])
    if "pad-end" in pairs:
        raise SystemExit("tensorflow_net.py: pad-end= is not among what it knows")
    if pads == (0, 0):
        return "VALID"
    if stride == (1, 1) and all(k == 2 * p + 1 for k, p in zip(kernel, pads)):
        return "SAME"
    return [[0, 0], *[[p, p] for p in pads], [0, 0]]


def biased(net, features, words):
    """A function that adds a bias."""
    if "nobias" in words:
        return lambda y: y
    bias = net.variable([features])
    return lambda y: tf.nn.bias_add(y, tf.cast(bias, net.compute))


def conv_of(net, words, pairs, x):
    size, channels, features = pair(pairs, "kernel", None), x.shape[-1], int(words[0])
    groups, stride = int(pairs.get("groups", 1)), pair(pairs, "stride", [1])
    dilation, padding = pair(pairs, "dilation", [1]), padding_of(pairs)
    is_deep = groups == channels == features > 1
    fan_in = size[0] * size[1] * channels // groups
    weights = net.variable([*size, *((channels, 1) if is_deep else (channels // groups, features))],
                           math.sqrt(2 / fan_in))
    add_bias = biased(net, features, words)
    conv = tf.nn.depthwise_conv2d if is_deep else tf.nn.conv2d
    return lambda x: add_bias(conv(x, tf.cast(weights, net.compute), [1, *stride, 1], padding,
                                   dilations=dilation))


def fc_of(net, words, pairs, x):
    inputs, features = math.prod(x.shape[1:]), int(words[0])
    weights = net.variable([inputs, features], math.sqrt(2 / inputs))
    add_bias = biased(net, features, words)
    return lambda x: add_bias(tf.matmul(tf.reshape(x, [-1, inputs]), tf.cast(weights, net.compute)))


def pool_of(pool, average):
    def make(net, words, pairs, x):
        if "global" in words:
            return lambda x: average(x, [1, 2], keepdims=True)
        if "ceil" in words or "size" in pairs or pool is tf.nn.avg_pool2d and "pad" in pairs:
            raise SystemExit("tensorflow_net.py: such a pool is not among what it knows")
        size = pair(pairs, "kernel", None)
        stride = pair(pairs, "stride", list(size))
        padding = padding_of({"stride": "x".join(map(str, stride)), **pairs})
        return lambda x: pool(x, size, stride, padding)
    return make


def batchnorm_of(net, words, pairs, x):
    """Over the whole minibatch, whatever group= says."""
    momentum, eps = float(pairs.get("momentum", 0.1)), float(pairs.get("eps", 1e-5))
    scale, offset = net.variable([x.shape[-1]], mean=1.0), net.variable([x.shape[-1]])
    running = [tf.Variable(tf.fill([x.shape[-1]], value), trainable=False) for value in (0.0, 1.0)]

    def does(x):
        y, *found = tf.compat.v1.nn.fused_batch_norm(x, scale, offset, epsilon=eps)
        for kept, now in zip(running, found):
            kept.assign_sub(momentum * (kept - now))
        return y
    return does


def lrn_of(net, words, pairs, x):
    count = int(words[0])
    alpha, beta, k = (float(pairs.get(key, usual)) for key, usual in
                      (("alpha", 1e-4), ("beta", 0.75), ("k", 1)))
    return lambda x: tf.nn.local_response_normalization(x, (count - 1) // 2, k, alpha / count, beta)


def dropout_of(net, words, pairs, x):
    return lambda x: tf.nn.dropout(x, float(words[0]))


KINDS = {"conv": conv_of, "fc": fc_of, "batchnorm": batchnorm_of, "lrn": lrn_of, "dropout": dropout_of,
         "maxpool": pool_of(tf.nn.max_pool2d, tf.reduce_max),
         "avgpool": pool_of(tf.nn.avg_pool2d, tf.reduce_mean),
         "add": lambda *_: lambda *inputs: sum(inputs[1:], inputs[0]),
         "mul": lambda *_: lambda a, b: a * b,
         "concat": lambda *_: lambda *inputs: tf.concat(inputs, -1),
         **{word: lambda *_, does=does: does for word, does in ACTIVATIONS.items()}}


def activated(does, words):
    """... and then the activation among the words, if there is one."""
    for word in words:
        if word in ACTIVATIONS:
            return lambda *inputs: ACTIVATIONS[word](does(*inputs))
    return does


def build(name, compute):
    shape, layers = named(name)
    net, names = Net(compute), ["input"]
    values = {"input": tf.zeros([2, *shape[1:], shape[0]], compute)}
    for layer, kind, words, pairs in layers:
        if kind == "softmax" and layer == layers[-1][0]:
            continue
        if kind not in KINDS:
            raise SystemExit(f"tensorflow_net.py: a layer of kind '{kind}' is not among what it knows")
        inputs = inputs_of(kind, words, pairs, names)
        does = activated(KINDS[kind](net, words, pairs, values[inputs[0]]), words)
        net.steps.append((layer, inputs, does))
        values[layer] = does(*[values[i] for i in inputs])
        names.append(layer)
    return net, (*shape[1:], shape[0]), values[names[-1]].shape[-1]
