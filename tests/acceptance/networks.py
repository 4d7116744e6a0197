"""The published networks that acceptance tests need whole, as ONNX with random weights that keep activations at a
sensible scale: ResNet-50 (He et al. 2015), its second version with activations first (He et al. 2016; opset 7 and the
vocabulary of the model zoo's resnet50-v2-7), MobileNetV2 (Sandler et al. 2018), DenseNet-121 (Huang et al. 2016). One
image of 3 x 224 x 224, 1000 classes. And a reader of lines of text in the manner of PP-LCNet (Cui et al. 2021), over
images of 3 x 48 x any width.

Needs numpy and onnx. usage as a program: networks.py NAME model.onnx"""
import sys

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save


class Network:
    """Nodes and weights, appended layer by layer; a layer takes and gives names of tensors and keeps their channels."""

    def __init__(self, input_name, opset):
        self.random = np.random.default_rng(0)
        self.nodes, self.weights, self.opset = [], [], opset
        self.input, self.channels = input_name, {input_name: 3}

    def weight(self, values):
        self.weights.append(numpy_helper.from_array(values.astype(np.float32), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def op(self, kind, inputs, channels=None, **attributes):
        output = f"t{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [output], **attributes))
        self.channels[output] = channels or self.channels[inputs[0]]
        return output

    def conv(self, x, channels, size=1, stride=1, groups=1, gain=2.0):
        """gain 2 keeps the mean square of what a rectifier gave (He et al. 2015)."""
        taken = self.channels[x] // groups
        deviation = (gain / (taken * size * size)) ** 0.5
        weight = self.weight(self.random.normal(0, deviation, (channels, taken, size, size)))
        return self.op("Conv", [x, weight], channels, kernel_shape=[size] * 2, strides=[stride] * 2,
                       pads=[size // 2] * 4, group=groups)

    def norm(self, x):
        n = self.channels[x]
        values = (self.random.uniform(0.9, 1.1, n), self.random.normal(0, 0.1, n), self.random.normal(0, 0.1, n),
                  self.random.uniform(0.9, 1.1, n))
        return self.op("BatchNormalization", [x, *map(self.weight, values)], epsilon=1e-5)

    def relu(self, x):
        return self.op("Relu", [x])

    def relu6(self, x):
        return self.op("Clip", [x, self.weight(np.array(0.0)), self.weight(np.array(6.0))])

    def hard_swish(self, x):
        return self.op("HardSwish", [x])

    def squeeze(self, x):
        """Scales channels by what their means say (Hu et al. 2017)."""
        n = self.channels[x]
        y = self.relu(self.conv(self.op("GlobalAveragePool", [x]), n // 4))
        return self.op("Mul", [x, self.op("HardSigmoid", [self.conv(y, n, gain=1)])])

    def save(self, x, path):
        x = self.op("Flatten", [self.op("GlobalAveragePool", [x])])
        n = self.channels[x]
        weight = self.weight(self.random.normal(0, 0.7 * n**-0.5, (1000, n)))
        bias = self.weight(self.random.normal(0, 0.1, 1000))
        self.nodes.append(helper.make_node("Gemm", [x, weight, bias], ["logits"], transB=1))
        value = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
        inputs, outputs = [value(self.input, 1, 3, 224, 224)], [value("logits", 1, 1000)]
        graph = helper.make_graph(self.nodes, "network", inputs, outputs, self.weights)
        opsets = [helper.make_opsetid("", self.opset)]
        save(helper.make_model(graph, opset_imports=opsets, ir_version=4 if self.opset < 9 else 8), path)


STAGES = (64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)  # channels in the middle of a block, blocks, stride


def stem(net, x):
    x = net.relu(net.norm(net.conv(x, 64, 7, 2)))
    return net.op("MaxPool", [x], kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4)


def resnet50(path):
    net = Network("image", 13)
    x = stem(net, net.input)
    for middle, count, first_stride in STAGES:
        for i in range(count):
            stride = first_stride if i == 0 else 1
            y = net.relu(net.norm(net.conv(x, middle)))
            y = net.relu(net.norm(net.conv(y, middle, 3, stride)))
            y = net.norm(net.conv(y, 4 * middle, gain=0.3))
            shortcut = net.norm(net.conv(x, 4 * middle, 1, stride, gain=1)) if i == 0 else x
            x = net.relu(net.op("Add", [y, shortcut]))
    net.save(x, path)


def resnet50_v2(path):
    net = Network("data", 7)
    x = stem(net, net.norm(net.input))
    for middle, count, first_stride in STAGES:
        for i in range(count):
            stride = first_stride if i == 0 else 1
            first = net.relu(net.norm(x))
            y = net.relu(net.norm(net.conv(first, middle)))
            y = net.relu(net.norm(net.conv(y, middle, 3, stride)))
            y = net.conv(y, 4 * middle, gain=0.3)
            x = net.op("Add", [y, net.conv(first, 4 * middle, 1, stride) if i == 0 else x])
    net.save(net.relu(net.norm(x)), path)


def mobilenet_v2(path):
    net = Network("image", 13)
    x = net.relu6(net.norm(net.conv(net.input, 32, 3, 2)))
    # How much a block widens, the channels that it gives, blocks, stride.
    for widens, channels, count, first_stride in ((1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2),
                                                  (6, 96, 3, 1), (6, 160, 3, 2), (6, 320, 1, 1)):
        for i in range(count):
            wide = widens * net.channels[x]
            y = x if widens == 1 else net.relu6(net.norm(net.conv(x, wide)))
            y = net.relu6(net.norm(net.conv(y, wide, 3, first_stride if i == 0 else 1, groups=wide)))
            y = net.norm(net.conv(y, channels, gain=1))
            x = y if i == 0 else net.op("Add", [y, x])
    net.save(net.relu6(net.norm(net.conv(x, 1280))), path)


def densenet121(path):
    net = Network("image", 13)
    x = stem(net, net.input)
    for stage, count in enumerate((6, 12, 24, 16)):
        for _ in range(count):
            y = net.conv(net.relu(net.norm(x)), 128)
            y = net.conv(net.relu(net.norm(y)), 32, 3)
            x = net.op("Concat", [x, y], net.channels[x] + 32, axis=1)
        if stage < 3:
            x = net.conv(net.relu(net.norm(x)), net.channels[x] // 2)
            x = net.op("AveragePool", [x], kernel_shape=[2, 2], strides=[2, 2])
    net.save(net.relu(net.norm(x)), path)


def text_reader(path):
    net = Network("image", 14)
    x = net.hard_swish(net.norm(net.conv(net.input, 16, 3, 2)))
    # Channels, size of the window, strides of height and width, whether channels are scaled.
    for channels, size, strides, scales in ((32, 3, (1, 1), False), (64, 3, (1, 1), False), (64, 3, (1, 1), False),
                                            (128, 3, (2, 1), False), (128, 3, (1, 1), False), (256, 3, (1, 2), False),
                                            *[(256, 5, (1, 1), False)] * 5, (512, 5, (2, 1), True),
                                            (512, 5, (1, 1), True)):
        n = net.channels[x]
        weight = net.weight(net.random.normal(0, (2.0 / size**2)**0.5, (n, 1, size, size)))
        x = net.op("Conv", [x, weight], kernel_shape=[size] * 2, strides=strides, pads=[size // 2] * 4, group=n)
        x = net.hard_swish(net.norm(x))
        x = net.hard_swish(net.norm(net.conv(net.squeeze(x) if scales else x, channels)))
    x = net.op("ReduceMean", [x], axes=[2], keepdims=0)
    x = net.op("Transpose", [x], perm=[0, 2, 1])
    for inner, outer in ((1024, 512), (1024, 512)):  # two layers of a Transformer's feed-forward half
        up = net.weight(net.random.normal(0, 512**-0.5, (512, inner)))
        down = net.weight(net.random.normal(0, inner**-0.5, (inner, outer)))
        y = net.hard_swish(net.op("MatMul", [x, up]))
        x = net.op("Add", [x, net.op("MatMul", [y, down])])
    classes = net.weight(net.random.normal(0, 512**-0.5, (512, 6625)))
    net.nodes.append(helper.make_node("Softmax", [net.op("MatMul", [x, classes])], ["letters"], axis=2))
    value = lambda name, *dims: helper.make_tensor_value_info(name, TensorProto.FLOAT, dims)
    graph = helper.make_graph(net.nodes, "network", [value(net.input, 1, 3, 48, "width")],
                              [value("letters", 1, "steps", 6625)], net.weights)
    save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", net.opset)], ir_version=8), path)


NETWORKS = {"resnet50": resnet50, "resnet50_v2": resnet50_v2, "mobilenet_v2": mobilenet_v2,
            "densenet121": densenet121, "text_reader": text_reader}

if __name__ == "__main__":
    NETWORKS[sys.argv[1]](sys.argv[2])
