"""Models of one operator or a small group, of the kinds that networks are made of, with sizes drawn from a seed: most
work on more than 10,000 elements. In the form "symbolic" dims of inputs are free that are numbers in the form "static".

As a module: cases(seed, form) gives pairs (name, ModelProto). As a program it writes them: sweep.py FOLDER [--seed S].
Needs numpy and onnx."""
import argparse, pathlib, zlib

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

TYPES = {"f32": TensorProto.FLOAT, "i64": TensorProto.INT64, "i32": TensorProto.INT32, "u8": TensorProto.UINT8,
         "i8": TensorProto.INT8, "bool": TensorProto.BOOL}


class Case:
    """A graph that is being written. `form` says whether the axes that are named free become symbols."""

    def __init__(self, name, seed, form):
        self.random = np.random.default_rng([seed, zlib.crc32(name.encode())])
        self.name, self.form, self.nodes, self.inputs, self.weights = name, form, [], [], []

    def size(self, low, high):
        return int(self.random.integers(low, high + 1))

    def input(self, *dims, free=(0,), kind="f32"):
        """The first letters of the alphabet name free axes, so that equal axes of two inputs are one symbol."""
        symbolic = self.form == "symbolic"
        shape = ["abcdefgh"[i] if symbolic and i in free else dim for i, dim in enumerate(dims)]
        self.inputs.append(helper.make_tensor_value_info(f"x{len(self.inputs)}", TYPES[kind], shape))
        return self.inputs[-1].name

    def constant(self, values):
        self.weights.append(numpy_helper.from_array(np.asarray(values), f"w{len(self.weights)}"))
        return self.weights[-1].name

    def weight(self, *dims):
        return self.constant((self.random.standard_normal(dims) * 0.1).astype(np.float32))

    def op(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, list(inputs), names, **attributes))
        return names[0] if outputs == 1 else names

    def model(self, *results):
        outputs = [helper.make_empty_tensor_value_info(name) for name in results]
        graph = helper.make_graph(self.nodes, self.name, self.inputs, outputs, self.weights)
        return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 20)])


BUILDERS = {}


def case(build):
    BUILDERS[build.__name__] = build
    return build


def family(names, template):
    """A case per name, `template(c, name)`."""
    for name in names.split():
        BUILDERS[f"{template.__name__}_{name}".lower()] = lambda c, name=name: template(c, name)


def cube(c, **options):
    return c.input(c.size(2, 4), c.size(60, 300), c.size(70, 300), **options)


def image(c, channels, low=30, high=90, free=(0, 2, 3)):
    return c.input(c.size(1, 2), channels, c.size(low, high), c.size(low, high), free=free)


# ---- Element by element.
def unary(c, kind): return c.op(kind, cube(c, free=(0, 1, 2)))
family("Relu Sigmoid Tanh Exp Log Sqrt Erf Gelu Softplus Elu Selu HardSwish HardSigmoid LeakyRelu Neg Abs Floor Round "
       "Sin Cos Atan Reciprocal Sign Softsign Mish Celu ThresholdedRelu", unary)


def binary(c, kind):
    dims = c.size(2, 4), c.size(60, 200), c.size(60, 200)
    return c.op(kind, c.input(*dims, free=(0, 1, 2)), c.input(*dims, free=(0, 1, 2)))
family("Add Sub Mul Div Pow Max Min PRelu", binary)


def bias(c, kind):
    n = c.size(30, 200)
    shape = {"last": (n,), "channel": (n, 1, 1), "column": (1, 1, n, 1), "number": ()}[kind]
    x = {"last": lambda: c.input(3, c.size(60, 90), n, free=(0, 1)),
         "channel": lambda: c.input(2, n, c.size(20, 40), c.size(20, 40), free=(0, 2, 3)),
         "column": lambda: c.input(1, c.size(3, 9), n, c.size(40, 90), free=(0, 1, 3)),
         "number": lambda: cube(c, free=(0, 1, 2))}[kind]()
    return c.op("Relu", c.op("Add", x, c.weight(*shape)))
family("last channel column number", bias)


@case
def outer_product(c): return c.op("Mul", c.input(c.size(150, 400), 1), c.input(1, c.size(150, 400), free=(1,)))
@case
def masked(c):
    dims = c.size(2, 4), c.size(60, 200), c.size(70, 200)
    return c.op("Where", c.input(1, *dims[1:], free=(1, 2), kind="bool"), c.input(*dims, free=(0, 1, 2)),
                c.constant(np.float32(-1e9)))
@case
def clipped(c): return c.op("Clip", cube(c, free=(0, 1, 2)), c.constant(np.float32(-1)), c.constant(np.float32(1)))
@case
def compared(c): return c.op("Greater", cube(c, free=(0, 1, 2)), c.constant(np.float32(0.1)))
@case
def whole_numbers(c):
    return c.op("Mul", c.op("Add", cube(c, kind="i64"), c.constant(np.int64(3))), c.constant(np.int64(5)))
@case
def bytes_to_floats(c):
    return c.op("Cast", c.input(1, 3, c.size(80, 200), c.size(80, 200), free=(0, 2, 3), kind="u8"), to=1)
@case
def floats_to_whole_numbers(c): return c.op("Cast", cube(c), to=TensorProto.INT64)
@case
def formula(c):
    x = cube(c)
    y = c.op("Tanh", c.op("Mul", c.op("Add", x, c.op("Mul", x, c.op("Mul", x, x))), c.constant(np.float32(0.8))))
    return c.op("Mul", x, c.op("Add", y, c.constant(np.float32(1))))
@case
def quantized(c):
    scale, zero = c.constant(np.float32(0.05)), c.constant(np.uint8(128))
    return c.op("DequantizeLinear", c.op("QuantizeLinear", cube(c), scale, zero), scale, zero)


# ---- Reductions and what is built of them.
def reduced(c, kind):
    name, axes = kind.split(".")
    x = c.input(c.size(12, 30), c.size(50, 120), c.size(50, 120), free=(0, 1))
    return c.op(name, x, c.constant(np.array({"last": [-1], "middle": [1], "first": [0], "two": [1, 2]}[axes])))
family(" ".join(f"{kind}.{axes}" for kind in ("ReduceSum", "ReduceMax", "ReduceMean", "ReduceL2", "ReduceProd",
                                              "ReduceLogSumExp") for axes in ("last", "middle", "first",
                                                                              "two")), reduced)


def place(c, kind):
    name, axis = kind.split(".")
    return c.op(name, c.input(c.size(40, 60), c.size(50, 90), c.size(50, 90), free=(0, 1)), axis=int(axis))
family("ArgMax.2 ArgMax.1 ArgMin.2 ArgMin.0", place)


def normalised(c, kind):
    name, axis = kind.split(".")
    return c.op(name, c.input(c.size(2, 6), c.size(60, 120), c.size(60, 150), free=(0, 1)), axis=int(axis))
family("Softmax.2 Softmax.1 LogSoftmax.2 LogSoftmax.1 Hardmax.2 LpNormalization.2 LpNormalization.1", normalised)


@case
def masked_softmax(c):
    heads, n = c.size(2, 8), c.size(60, 150)
    x = c.input(1, heads, c.size(60, 100), n, free=(0, 2))
    return c.op("Softmax", c.op("Add", x, c.input(1, 1, 1, n, free=(0,))), axis=-1)
@case
def layer_norm(c):
    n = c.size(100, 400)
    return c.op("LayerNormalization", c.input(2, c.size(50, 100), n, free=(0, 1)), c.weight(n), c.weight(n))
@case
def instance_norm(c):
    n = c.size(8, 40)
    return c.op("InstanceNormalization", image(c, n), c.weight(n), c.weight(n))
@case
def group_norm(c):
    n = 8 * c.size(2, 6)
    y = c.op("InstanceNormalization", c.op("Reshape", image(c, n), c.constant(np.array([0, 8, -1]))), c.weight(8),
             c.weight(8))
    return c.op("Relu", y)
@case
def batch_norm(c):
    n = c.size(8, 40)
    variance = c.constant(c.random.uniform(0.5, 1.5, n).astype(np.float32))
    return c.op("BatchNormalization", image(c, n), c.weight(n), c.weight(n), c.weight(n), variance)
@case
def local_response(c): return c.op("LRN", image(c, c.size(8, 40)), size=5)


def summed(c, kind):
    return c.op("CumSum", c.input(c.size(3, 8), c.size(60, 120), c.size(60, 120), free=(0, 1)),
                c.constant(np.int64(int(kind))))
family("2 1 0", summed)


def ordered(c, kind):
    values, _ = c.op("TopK", c.input(c.size(60, 90), c.size(500, 900), free=(0,)), c.constant(np.array([int(kind)])),
                     outputs=2)
    return values
family("1 10 300", ordered)


# ---- Products.
def product(c, kind):
    m, k, n = c.size(70, 200), c.size(70, 200), c.size(150, 260)
    if kind == "weight": return c.op("MatMul", c.input(m, k), c.weight(k, n))
    if kind == "batched": return c.op("MatMul", c.input(4, m, k, free=(0, 1)), c.input(4, k, n, free=(0,)))
    if kind == "shared": return c.op("MatMul", c.input(4, m, k, free=(0, 1)), c.weight(k, n))
    if kind == "two": return c.op("MatMul", c.input(m, k), c.input(k, n, free=()))
    if kind == "transposed": return c.op("Gemm", c.input(m, k), c.weight(n, k), c.weight(n), transB=1)
    if kind == "transposed_first": return c.op("Gemm", c.input(k, m, free=(1,)), c.weight(k, n), transA=1)
    if kind == "heads":
        return c.op("MatMul", c.input(2, 6, m, 32, free=(0, 2)), c.op("Transpose", c.input(2, 6, n, 32, free=(0,)),
                                                                      perm=[0, 1, 3, 2]))
    if kind == "row": return c.op("MatMul", c.input(1, 8 * k, free=()), c.weight(8 * k, 10_007 + n))
    if kind == "column": return c.op("MatMul", c.input(10_007 + m, k), c.weight(k, 1))
    if kind == "einsum":
        return c.op("Einsum", c.input(3, m, k, free=(0, 1)), c.weight(5, k, n), equation="bik,hkn->bhin")
    raise ValueError(kind)
family("weight batched shared two transposed transposed_first heads row column einsum", product)


@case
def whole_number_product(c):
    return c.op("MatMulInteger", c.input(c.size(90, 150), 128, kind="u8"),
                c.constant(c.random.integers(-99, 99, (128, c.size(128, 200))).astype(np.int8)))
@case
def attention(c):
    heads, length, width = c.size(2, 6), c.size(70, 120), 8 * c.size(3, 8)
    q, k, v = (c.input(1, heads, length, width, free=(0, 2)) for _ in range(3))
    scores = c.op("Mul", c.op("MatMul", q, c.op("Transpose", k, perm=[0, 1, 3, 2])),
                  c.constant(np.float32(width**-0.5)))
    return c.op("MatMul", c.op("Softmax", scores, axis=-1), v)


# ---- Windows.
def convolved(c, kind):
    channels, outputs = c.size(3, 70), c.size(20, 70)
    conv = lambda x, w, **attributes: c.op("Relu", c.op("Conv", x, w, c.weight(outputs), **attributes))
    if kind == "3x3": return conv(image(c, channels), c.weight(outputs, channels, 3, 3), pads=[1] * 4)
    if kind == "1x1": return conv(image(c, channels), c.weight(outputs, channels, 1, 1))
    if kind == "5x5_strided":
        return conv(image(c, channels, 60, 120), c.weight(outputs, channels, 5, 5), pads=[2] * 4, strides=[2, 2])
    if kind == "dilated":
        return conv(image(c, channels), c.weight(outputs, channels, 3, 3), pads=[2] * 4, dilations=[2, 2])
    if kind == "1x7": return conv(image(c, channels), c.weight(outputs, channels, 1, 7), pads=[0, 3, 0, 3])
    if kind == "first": return conv(image(c, 3, 100, 200), c.weight(outputs, 3, 7, 7), pads=[3] * 4, strides=[2, 2])
    if kind == "1d":
        return conv(c.input(2, channels, c.size(300, 900), free=(0, 2)), c.weight(outputs, channels, 5), pads=[2, 2])
    if kind == "1d_strided":
        return conv(c.input(2, channels, c.size(900, 1900), free=(0, 2)), c.weight(outputs, channels, 8), strides=[4])
    if kind == "3d":
        return conv(c.input(1, channels, c.size(6, 12), c.size(14, 30), c.size(14, 30), free=(0, 2, 3, 4)),
                    c.weight(outputs, channels, 3, 3, 3), pads=[1] * 6)
    groups = c.size(2, 9)
    if kind == "grouped":
        outputs = groups * c.size(4, 20)
        return c.op("Conv", image(c, groups * 8), c.weight(outputs, 8, 3, 3), pads=[1] * 4, group=groups)
    depth = c.size(9, 99)
    if kind == "depthwise": return c.op("Conv", image(c, depth), c.weight(depth, 1, 3, 3), pads=[1] * 4, group=depth)
    if kind == "depthwise_strided":
        return c.op("Conv", image(c, depth, 60, 90), c.weight(depth, 1, 5, 5), pads=[2] * 4, strides=[2, 2],
                    group=depth)
    if kind == "depthwise_1d":
        return c.op("Conv", c.input(1, depth, c.size(1200, 1900), free=(0, 2)), c.weight(depth, 1, 9), pads=[4, 4],
                    group=depth)
    if kind == "transposed":
        return c.op("ConvTranspose", image(c, channels, 20, 50), c.weight(channels, outputs, 4, 4), pads=[1] * 4,
                    strides=[2, 2])
    if kind == "transposed_1d":
        return c.op("ConvTranspose", c.input(1, channels, c.size(300, 600), free=(0, 2)),
                    c.weight(channels, outputs, 6), strides=[3])
    if kind == "transposed_grouped":
        return c.op("ConvTranspose", image(c, groups * 6, 20, 40), c.weight(groups * 6, 5, 3, 3), strides=[2, 2],
                    group=groups)
    raise ValueError(kind)
family("3x3 1x1 5x5_strided dilated 1x7 first 1d 1d_strided 3d grouped depthwise depthwise_strided depthwise_1d "
       "transposed transposed_1d transposed_grouped", convolved)


def pooled(c, kind):
    name, shape = kind.split(".")
    channels = c.size(9, 60)
    if shape == "all": return c.op(name, c.input(c.size(200, 300), c.size(55, 60), 7, 7, free=(0, 2, 3)))
    if shape == "1d": return c.op(name, c.input(2, channels, c.size(1200, 2400), free=(0, 2)), kernel_shape=[3],
                                  strides=[2])
    if shape == "3d": return c.op(name, c.input(1, channels, c.size(9, 14), c.size(16, 40), c.size(16, 40),
                                                free=(0, 2, 3, 4)), kernel_shape=[2] * 3, strides=[1] * 3)
    if shape == "3x3": return c.op(name, image(c, channels, 60, 90), kernel_shape=[3, 3], pads=[1] * 4, strides=[2, 2])
    return c.op(name, image(c, channels, 50, 80), kernel_shape=[2, 2], strides=[1, 1])
family(" ".join(f"{name}.{shape}" for name in ("MaxPool", "AveragePool") for shape in ("1d", "2x2", "3x3", "3d")) +
       " LpPool.3x3 GlobalAveragePool.all GlobalMaxPool.all", pooled)


def resized(c, kind):
    mode, factor = kind.split(".")
    scale = {"twice": 2.0, "half": 0.5, "odd": 1.7}[factor]
    coordinates = "asymmetric" if mode == "nearest" else "half_pixel"
    extra = {"nearest_mode": "floor"} if mode == "nearest" else {}
    return c.op("Resize", image(c, c.size(9, 30), 50, 90), "", c.constant(np.array([1, 1, scale, scale], np.float32)),
                mode=mode,
                coordinate_transformation_mode=coordinates, **extra)
family(" ".join(f"{mode}.{factor}" for mode in ("nearest", "linear", "cubic") for factor in ("twice", "half", "odd")),
       resized)


@case
def sampled(c):
    return c.op("GridSample", image(c, c.size(9, 30), free=(0,)), c.input(1, c.size(40, 60), c.size(40, 60), 2,
                                                                          free=(0,)), align_corners=0)


# ---- Moves.
def padded(c, kind):
    return c.op("Pad", image(c, c.size(8, 20)), c.constant(np.array([0, 0, 1, 2, 0, 0, 2, 3])), mode=kind)
family("constant reflect edge", padded)


def turned(c, kind):
    x = c.input(c.size(2, 3), c.size(20, 50), c.size(20, 50), c.size(20, 50), free=(0, 2))
    return c.op("Transpose", x, perm=[int(digit) for digit in kind])
family("0231 0312 0213 3210 1032 0132", turned)


@case
def heads_split(c):
    x = c.op("Reshape", c.input(1, c.size(60, 120), 6 * 32), c.constant(np.array([0, -1, 6, 32])))
    return c.op("Transpose", x, perm=[0, 2, 1, 3])


def joined(c, kind):
    axis = int(kind)
    dims = [3, c.size(30, 60), c.size(40, 60), c.size(40, 60)]
    parts = []
    for i in range(3):
        own = list(dims)
        own[axis] = c.size(9, 40)
        parts.append(c.input(*own, free=()))
    return c.op("Concat", *parts, axis=axis)
family("1 2 3", joined)


def halved(c, kind):
    axis = int(kind)
    dims = [2, 2 * c.size(15, 30), 2 * c.size(20, 30), 2 * c.size(20, 30)]
    a, b = c.op("Split", c.input(*dims, free=(0,)), outputs=2, axis=axis, num_outputs=2)
    return c.op("Mul", a, c.op("Sigmoid", b))
family("1 3", halved)


def cut(c, kind):
    begin, end, axes, steps = {"front": ([1, 3], [-1, 9999], [2, 3], [1, 1]),
                               "every_second": ([0, 1], [9999, 9999], [2, 3], [2, 2]),
                               "backwards": ([-1], [-9999], [3], [-1]), "channels": ([1], [9999], [1], [3])}[kind]
    return c.op("Slice", image(c, c.size(20, 40), 60, 90), *(c.constant(np.array(v)) for v in (begin, end, axes,
                                                                                               steps)))
family("front every_second backwards channels", cut)


@case
def repeated(c): return c.op("Tile", cube(c, free=(0,)), c.constant(np.array([1, 2, 3])))
@case
def expanded(c):
    return c.op("Relu", c.op("Expand", c.input(c.size(2, 4), 1, c.size(90, 120), free=()),
                             c.constant(np.array([1, c.size(90, 120), 1]))))
@case
def depth_to_space(c): return c.op("DepthToSpace", image(c, 4 * c.size(3, 9)), blocksize=2)
@case
def space_to_depth(c):
    return c.op("SpaceToDepth", c.input(1, c.size(3, 9), 2 * c.size(30, 50), 2 * c.size(30, 50), free=(0,)),
                blocksize=2)
@case
def shuffled_channels(c):
    x, n = c.input(1, 4 * c.size(6, 12), 28, 28, free=(0,)), [0, 4, -1, 28, 28]
    y = c.op("Transpose", c.op("Reshape", x, c.constant(np.array(n))), perm=[0, 2, 1, 3, 4])
    return c.op("Reshape", y, c.constant(np.array([0, -1, 28, 28])))
@case
def triangle(c): return c.op("Trilu", cube(c), upper=0)


# ---- Places that data tell.
@case
def embedding(c):
    return c.op("Gather", c.weight(c.size(500, 900), c.size(64, 200)), c.input(2, c.size(100, 200), free=(0, 1),
                                                                               kind="i64"))
@case
def gathered_last(c):
    return c.op("Gather", c.input(c.size(100, 200), c.size(60, 90)), c.constant(c.random.integers(0, 60, 120)), axis=1)
@case
def gathered_elements(c):
    dims = c.size(60, 90), c.size(200, 300)
    return c.op("GatherElements", c.input(*dims), c.input(*dims, kind="i64"), axis=1)
@case
def gathered_rows(c):
    return c.op("GatherND", c.input(40, 30, c.size(64, 90), free=()), c.input(c.size(200, 400), 2, kind="i64"))
@case
def scattered_elements(c):
    dims = c.size(60, 90), c.size(200, 300)
    return c.op("ScatterElements", c.input(*dims), c.input(*dims, kind="i64"), c.input(*dims), axis=1)
@case
def scattered_rows(c):
    n, width = c.size(200, 300), c.size(64, 90)
    return c.op("ScatterND", c.input(c.size(400, 600), width, free=()), c.input(n, 1, free=(), kind="i64"),
                c.input(n, width, free=()))
@case
def one_hot(c):
    return c.op("OneHot", c.input(c.size(100, 200), kind="i64"), c.constant(np.int64(c.size(100, 200))),
                c.constant(np.array([0, 1], np.float32)))


# ---- Networks that remember.
def recurrent(c, kind):
    name, direction = kind.split(".")
    inputs, hidden, ways = c.size(20, 60), c.size(20, 70), 2 if direction == "bidirectional" else 1
    gates = {"LSTM": 4, "GRU": 3, "RNN": 1}[name] * hidden
    x = c.input(c.size(200, 300), 2, inputs, free=(0,))
    y = c.op(name, x, c.weight(ways, gates, inputs), c.weight(ways, gates, hidden), c.weight(ways, 2 * gates),
             outputs=1,
             hidden_size=hidden, direction=direction)
    return y
family("LSTM.forward LSTM.bidirectional GRU.forward GRU.bidirectional RNN.forward", recurrent)


def cases(seed, form):
    for name, build in BUILDERS.items():
        c = Case(name, seed, form)
        yield name, c.model(build(c))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    for form in "static", "symbolic":
        for name, model in cases(arguments.seed, form):
            save(model, arguments.folder / f"{name}.{form}.onnx")
