"""Habits of exporters other than PyTorch's, each as a small network with free dims beside ONNX Runtime: tf2onnx,
Keras's and Paddle's.

usage: exporter_habits.py BIN_DIR [NAME ...]    exits 77 (skipped) without numpy, onnx and onnxruntime

Habits are made and judged as in published_files.py."""
import sys

from published_files import F32, I64, Habit, ints, judge_all, node, normal, np, turned
from onnx import TensorProto, helper

I32 = TensorProto.INT32
TO_FIRST, TO_LAST = [0, 3, 1, 2], [0, 2, 3, 1]


def pictures(channels, *sizes, last=True):
    return [{"x": normal(b, h, w, channels) if last else normal(b, channels, h, w)} for b, h, w in sizes]


def part(of, to, begin, end):
    """Elements of a vector; the bounds are constants of these names."""
    return node("Slice", [of, begin, end, "zero"], [to])


BOUNDS = {name: ints(value) for name, value in dict(zero=0, one=1, two=2, three=3, four=4, minus=-1).items()}


# ---- tf2onnx
def atrous_convolution_by_space_to_batch():
    """A dilated convolution: padded to a multiple of the rate, the rests of places are pictures of a batch."""
    rate, b = 2, BOUNDS
    nodes = [
        node("Shape", ["x"], ["s"]),
        part("s", "hw", "one", "three"),
        node("Add", ["hw", "margins"], ["whole"]),
        node("Mod", ["whole", "rates"], ["rest"]),
        node("Sub", ["rates", "rest"], ["lack"]),
        node("Mod", ["lack", "rates"], ["more"]),
        node("Add", ["margin", "more"], ["behind"]),
        node("Concat", ["zero", "margin", "zero", "zero", "behind", "zero"], ["pads"], axis=0),
        node("Pad", ["x", "pads"], ["p"]),
        node("Shape", ["p"], ["ps"]),
        part("ps", "n", "zero", "one"),
        part("ps", "phw", "one", "three"),
        node("Div", ["phw", "rates"], ["small"]),
        node("Split", ["small"], ["sh", "sw"], axis=0),
        node("Concat", ["n", "sh", "rate", "sw", "rate", "depth"], ["apart"], axis=0),
        node("Reshape", ["p", "apart"], ["r"]),
        turned("r", "t", [2, 4, 0, 1, 3, 5]),
        node("Concat", ["minus", "small", "depth"], ["batched"], axis=0),
        node("Reshape", ["t", "batched"], ["m"]),
        turned("m", "f", TO_FIRST),
        node("Conv", ["f", "w"], ["c"]),
        turned("c", "l", TO_LAST),
        node("Shape", ["l"], ["ls"]),
        part("ls", "lhw", "one", "three"),
        node("Split", ["lhw"], ["lh", "lw"], axis=0),
        node("Concat", ["rate", "rate", "n", "lh", "lw", "out"], ["six"], axis=0),
        node("Reshape", ["l", "six"], ["q"]),
        turned("q", "u", [2, 3, 0, 4, 1, 5]),
        node("Mul", ["lhw", "rates"], ["full"]),
        node("Concat", ["n", "full", "out"], ["back"], axis=0),
        node("Reshape", ["u", "back"], ["v"]),
        node("Slice", ["v", "begins", "hw", "axes"], ["z"]),
        node("Relu", ["z"], ["y"])
    ]
    return Habit(nodes, {"x": (F32, ["unk__5", "unk__6", "unk__7", 3])},
                 pictures(3, (1, 8, 10), (2, 7, 5), (1, 16, 9)), {
                     **b, "rates": ints(rate, rate),
                     "rate": ints(rate),
                     "margins": ints(2 * rate, 2 * rate),
                     "margin": ints(rate, rate),
                     "depth": ints(3),
                     "out": ints(4),
                     "begins": ints(0, 0),
                     "axes": ints(1, 2),
                     "w": normal(4, 3, 3, 3)
                 },
                 opset=13)


def depthwise_and_pointwise_of_channels_that_come_last():
    """MobileNet: SAME with strides, ReLU6 by two operators, a mean over height and width, a dense layer."""
    nodes = [
        turned("x", "a", TO_FIRST),
        node("Conv", ["a", "d"], ["b"], group=4, auto_pad="SAME_UPPER", strides=[2, 2]),
        turned("b", "c", TO_LAST),
        node("Add", ["c", "bias"], ["e"]),
        node("Relu", ["e"], ["f"]),
        node("Min", ["f", "six"], ["g"]),
        turned("g", "h", TO_FIRST),
        node("Conv", ["h", "w"], ["i"]),
        turned("i", "j", TO_LAST),
        node("Mul", ["j", "scale"], ["k"]),
        node("Add", ["k", "shift"], ["l"]),
        node("ReduceMean", ["l"], ["m"], axes=[1, 2], keepdims=1),
        node("Squeeze", ["m", "axes"], ["o"]),
        node("MatMul", ["o", "v"], ["p"]),
        node("Add", ["p", "u"], ["q"]),
        node("Softmax", ["q"], ["y"], axis=1)
    ]
    return Habit(nodes, {"x": (F32, ["unk__1", "unk__2", "unk__3", 4])},
                 pictures(4, (1, 8, 10), (2, 7, 5), (1, 33, 16)), {
                     "d": normal(4, 1, 3, 3),
                     "bias": normal(4),
                     "six": np.float32(6),
                     "w": normal(6, 4, 1, 1),
                     "scale": normal(1, 1, 1, 6),
                     "shift": normal(6),
                     "axes": ints(1, 2),
                     "v": normal(6, 5),
                     "u": normal(5)
                 },
                 opset=13)


def scales_that_are_quotients_of_lengths():
    """A picture is made as large as another: scales are the sizes as floats, one by the other."""
    nodes = [
        node("Shape", ["z"], ["zs"]),
        part("zs", "to", "one", "three"),
        node("Cast", ["to"], ["tf"], to=F32),
        node("Shape", ["x"], ["xs"]),
        part("xs", "of", "one", "three"),
        node("Cast", ["of"], ["ff"], to=F32),
        node("Div", ["tf", "ff"], ["ratio"]),
        node("Concat", ["ones", "ratio"], ["scales"], axis=0),
        turned("x", "a", TO_FIRST),
        node("Resize", ["a", "none", "scales"], ["b"], mode="linear", coordinate_transformation_mode="asymmetric"),
        turned("b", "c", TO_LAST),
        node("Concat", ["c", "z"], ["y"], axis=3)
    ]
    calls = [{"x": normal(b, h, w, 2), "z": normal(b, 2 * h, 3 * w, 3)} for b, h, w in ((1, 4, 5), (2, 3, 2))]
    return Habit(nodes, {
        "x": (F32, ["n", "h", "w", 2]),
        "z": (F32, ["n", "hh", "ww", 3])
    },
                 calls, {
                     **BOUNDS, "ones": np.float32([1, 1]),
                     "none": np.float32([])
                 },
                 opset=13)


def transposed_convolution_cut_to_a_computed_size():
    """conv2d_transpose with SAME: the full result, less what a computed size leaves out at both ends."""
    nodes = [
        turned("x", "a", TO_FIRST),
        node("Shape", ["x"], ["s"]),
        part("s", "hw", "one", "three"),
        node("Mul", ["hw", "strides"], ["size"]),
        node("ConvTranspose", ["a", "w"], ["b"], strides=[2, 2]),
        node("Shape", ["b"], ["bs"]),
        part("bs", "bhw", "two", "four"),
        node("Sub", ["bhw", "size"], ["more"]),
        node("Div", ["more", "strides"], ["begins"]),
        node("Add", ["begins", "size"], ["ends"]),
        node("Slice", ["b", "begins", "ends", "axes"], ["c"]),
        turned("c", "d", TO_LAST),
        node("Add", ["d", "bias"], ["y"])
    ]
    return Habit(nodes, {"x": (F32, ["n", "h", "w", 3])},
                 pictures(3, (1, 4, 5), (2, 7, 3)), {
                     **BOUNDS, "strides": ints(2, 2),
                     "axes": ints(2, 3),
                     "w": normal(3, 4, 3, 3),
                     "bias": normal(4)
                 },
                 opset=13)


def strides_of_a_slice_and_a_new_axis():
    """x[:, ::2, 1:, tf.newaxis, 0]: slices, an axis that goes and one that comes, in int32."""
    nodes = [
        node("Slice", ["x", "begins", "ends", "axes", "steps"], ["a"]),
        node("Squeeze", ["a", "fourth"], ["b"]),
        node("Unsqueeze", ["b", "fourth"], ["c"]),
        node("Shape", ["c"], ["s"]),
        node("Cast", ["s"], ["i"], to=I32),
        node("Gather", ["i", "places"], ["g"]),
        node("Cast", ["g"], ["to"], to=I64),
        node("Reshape", ["c", "to"], ["y"])
    ]
    return Habit(nodes, {"x": (F32, ["n", "h", "w", 4])},
                 pictures(4, (1, 4, 5), (3, 7, 2)), {
                     "begins": np.int32([0, 0, 1, 0]),
                     "ends": np.int32([2**31 - 1, 2**31 - 1, 2**31 - 1, 1]),
                     "axes": np.int32([0, 1, 2, 3]),
                     "steps": np.int32([1, 2, 1, 1]),
                     "fourth": ints(3),
                     "places": ints(2, 1, 0)
                 },
                 opset=13)


def recurrence_over_a_loop_with_an_accumulator():
    """tf.while_loop: a counter, a condition from it, states, and slices gathered by the counter."""
    body = helper.make_graph([
        node("Gather", ["seen", "at"], ["x_t"], axis=0),
        node("MatMul", ["x_t", "w"], ["p"]),
        node("MatMul", ["state", "u"], ["q"]),
        node("Add", ["p", "q"], ["r"]),
        node("Tanh", ["r"], ["next"]),
        node("Add", ["at", "one_i"], ["after"]),
        node("Less", ["after", "count"], ["goes"]),
        node("Identity", ["next"], ["kept"])
    ], "body", [
        helper.make_tensor_value_info("i", I64, []),
        helper.make_tensor_value_info("go", TensorProto.BOOL, []),
        helper.make_tensor_value_info("at", I32, []),
        helper.make_tensor_value_info("state", F32, None)
    ], [
        helper.make_tensor_value_info("goes", TensorProto.BOOL, []),
        helper.make_tensor_value_info("after", I32, []),
        helper.make_tensor_value_info("next", F32, None),
        helper.make_tensor_value_info("kept", F32, None)
    ])
    nodes = [
        turned("x", "seen", [1, 0, 2]),
        node("Shape", ["x"], ["s"]),
        node("Cast", ["s"], ["si"], to=I32),
        node("Gather", ["si", "second"], ["count"]),
        part("s", "n", "zero", "one"),
        node("Concat", ["n", "width"], ["dims"], axis=0),
        node("ConstantOfShape", ["dims"], ["start"]),
        node("Less", ["zero_i", "count"], ["begin"]),
        node("Loop", ["", "begin", "zero_i", "start"], ["ended", "state_out", "states"], body=body),
        turned("states", "y", [1, 0, 2])
    ]
    return Habit(nodes, {"x": (F32, ["n", "t", 3])}, [{
        "x": normal(n, t, 3)
    } for n, t in ((1, 1), (2, 5), (3, 9))], {
        **BOUNDS, "second": np.int64(1),
        "width": ints(4),
        "zero_i": np.int32(0),
        "one_i": np.int32(1),
        "w": normal(3, 4),
        "u": normal(4, 4)
    },
                 outputs={
                     "y": None,
                     "state_out": None
                 },
                 opset=13)


# ---- Keras
def layers_over_time():
    """TimeDistributed: time is folded into the batch and unfolded by the lengths of the input."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        node("Reshape", ["x", "folded"], ["a"]),
        turned("a", "b", TO_FIRST),
        node("Conv", ["b", "w"], ["c"], strides=[2, 2], pads=[1, 1, 1, 1]),
        turned("c", "d", TO_LAST),
        node("ReduceMax", ["d"], ["e"], axes=[1, 2], keepdims=0),
        part("s", "nt", "zero", "two"),
        node("Concat", ["nt", "out"], ["to"], axis=0),
        node("Reshape", ["e", "to"], ["f"]),
        turned("f", "g", [1, 0, 2]),
        node("LSTM", ["g", "lw", "lr", "lb"], ["h", "last_h", "last_c"], hidden_size=3),
        node("Squeeze", ["last_h", "zero"], ["y"])
    ]
    return Habit(nodes, {"x": (F32, ["n", "t", 6, 8, 2])}, [{
        "x": normal(n, t, 6, 8, 2)
    } for n, t in ((1, 1), (2, 5))], {
        **BOUNDS, "folded": ints(-1, 6, 8, 2),
        "out": ints(4),
        "w": normal(4, 2, 3, 3),
        "lw": normal(1, 12, 4),
        "lr": normal(1, 12, 3),
        "lb": normal(1, 24)
    },
                 opset=13)


def normalisation_of_channels_that_come_last():
    """A batch normalisation between transposes behind a convolution of channels that come last, its moments as rows of
    four dims elsewhere; upsampling by repetition."""
    nodes = [
        node("Transpose", ["x:0"], ["a"], perm=TO_FIRST),
        node("Conv", ["a", "w"], ["b"], pads=[1, 1, 1, 1]),
        node("BatchNormalization", ["b", "s", "o", "m", "v"], ["c"], epsilon=1e-3),
        node("LeakyRelu", ["c"], ["d"], alpha=0.3),
        node("Resize", ["d", "", "scales"], ["e"],
             mode="nearest",
             nearest_mode="floor",
             coordinate_transformation_mode="asymmetric"),
        node("Pad", ["e", "pads"], ["f"]),
        node("AveragePool", ["f"], ["g"], kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER"),
        turned("g", "Identity:0", TO_LAST)
    ]
    calls = [{"x:0": call["x"]} for call in pictures(3, (1, 4, 5), (2, 7, 3))]
    return Habit(nodes, {"x:0": (F32, ["N", "H", "W", 3])},
                 calls, {
                     "w": normal(5, 3, 3, 3),
                     "s": normal(5),
                     "o": normal(5),
                     "m": normal(5),
                     "v": np.abs(normal(5)) + 0.5,
                     "scales": np.float32([1, 1, 2, 2]),
                     "pads": ints(0, 0, 1, 2, 0, 0, 2, 1)
                 },
                 outputs={"Identity:0": None},
                 opset=13)


def attention_by_einsum():
    """MultiHeadAttention: products by Einsum over heads, a mask that is added after it was made of booleans."""
    nodes = [
        node("Einsum", ["x", "wq"], ["q"], equation="abc,cde->abde"),
        node("Add", ["q", "bq"], ["qb"]),
        node("Mul", ["qb", "root"], ["qs"]),
        node("Einsum", ["x", "wk"], ["k"], equation="abc,cde->abde"),
        node("Einsum", ["x", "wv"], ["v"], equation="abc,cde->abde"),
        node("Einsum", ["k", "qs"], ["scores"], equation="aecd,abcd->acbe"),
        node("Cast", ["mask"], ["m"], to=F32),
        node("Sub", ["one_f", "m"], ["n"]),
        node("Mul", ["n", "low"], ["o"]),
        node("Unsqueeze", ["o", "axes"], ["p"]),
        node("Add", ["scores", "p"], ["masked"]),
        node("Softmax", ["masked"], ["a"], axis=-1),
        node("Einsum", ["a", "v"], ["mixed"], equation="acbe,aecd->abcd"),
        node("Einsum", ["mixed", "wo"], ["y"], equation="abcd,cde->abe")
    ]
    calls = [{
        "x": normal(b, t, 8),
        "mask": np.arange(t) * np.ones((b, 1)) < max(t - 2, 1)
    } for b, t in ((1, 3), (2, 7))]
    return Habit(nodes, {
        "x": (F32, ["b", "t", 8]),
        "mask": (TensorProto.BOOL, ["b", "t"])
    },
                 calls, {
                     "wq": normal(8, 2, 4),
                     "wk": normal(8, 2, 4),
                     "wv": normal(8, 2, 4),
                     "bq": normal(2, 4),
                     "wo": normal(2, 4, 8),
                     "root": np.float32(0.5),
                     "one_f": np.float32(1),
                     "low": np.float32(-1e9),
                     "axes": ints(1, 2)
                 },
                 opset=13)


# ---- Paddle
def states_filled_for_a_batch():
    """LSTM behind a convolution: its first states are zeros of a batch that the graph asks for, by int32 shapes."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        part("s", "n", "zero", "one"),
        node("Cast", ["n"], ["ni"], to=I32),
        node("Concat", ["two_i", "ni", "width_i"], ["dims_i"], axis=0),
        node("Cast", ["dims_i"], ["dims"], to=I64),
        node("ConstantOfShape", ["dims"], ["zeros"]),
        node("Squeeze", ["x", "two"], ["a"]),
        turned("a", "b", [2, 0, 1]),
        node("LSTM", ["b", "w", "r", "bias", "", "zeros", "zeros"], ["h", "c", "d"],
             hidden_size=4,
             direction="bidirectional"),
        turned("h", "i", [0, 2, 1, 3]),
        node("Reshape", ["i", "to"], ["j"]),
        turned("j", "k", [1, 0, 2]),
        node("MatMul", ["k", "v"], ["l"]),
        node("Add", ["l", "u"], ["m"]),
        node("Softmax", ["m"], ["y"], axis=2)
    ]
    return Habit(nodes, {"x": (F32, ["DynamicDimension.0", 3, 1, "DynamicDimension.1"])},
                 pictures(3, (1, 1, 5), (2, 1, 9), last=False), {
                     **BOUNDS, "two_i": np.int32([2]),
                     "width_i": np.int32([4]),
                     "w": normal(2, 16, 3),
                     "r": normal(2, 16, 4),
                     "bias": normal(2, 32),
                     "to": ints(0, 0, -1),
                     "v": normal(8, 6),
                     "u": normal(6)
                 },
                 opset=13)


def mixing_of_patches_of_a_line():
    """SVTR: a line of text is flattened, mixed by attention of split heads, and given its picture back by its width."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        part("s", "wide", "three", "four"),
        node("Cast", ["wide"], ["wi"], to=I32),
        node("Concat", ["zero_i", "eight_i", "two_i", "wi"], ["to_i"], axis=0),
        node("Cast", ["to_i"], ["to"], to=I64),
        node("Reshape", ["x", "flat"], ["a"]),
        turned("a", "b", [0, 2, 1]),
        node("MatMul", ["b", "w"], ["c"]),
        node("Reshape", ["c", "heads"], ["d"]),
        turned("d", "e", [2, 0, 3, 1, 4]),
        part("e", "q5", "zero", "one"),
        node("Squeeze", ["q5", "zero"], ["q"]),
        node("Mul", ["q", "root"], ["qs"]),
        part("e", "k5", "one", "two"),
        node("Squeeze", ["k5", "zero"], ["k"]),
        turned("k", "kt", [0, 1, 3, 2]),
        part("e", "v5", "two", "three"),
        node("Squeeze", ["v5", "zero"], ["v"]),
        node("MatMul", ["qs", "kt"], ["f"]),
        node("Softmax", ["f"], ["g"], axis=-1),
        node("MatMul", ["g", "v"], ["h"]),
        turned("h", "i", [0, 2, 1, 3]),
        node("Reshape", ["i", "join"], ["j"]),
        node("Add", ["b", "j"], ["k2"]),
        turned("k2", "l", [0, 2, 1]),
        node("Reshape", ["l", "to"], ["m"]),
        node("Conv", ["m", "v2"], ["y"], pads=[1, 1, 1, 1], strides=[2, 1])
    ]
    return Habit(nodes, {"x": (F32, [-1, 8, 2, -1])},
                 pictures(8, (1, 2, 5), (2, 2, 16), last=False), {
                     **BOUNDS, "zero_i": np.int32([0]),
                     "eight_i": np.int32([8]),
                     "two_i": np.int32([2]),
                     "flat": ints(0, 8, -1),
                     "w": normal(8, 24),
                     "heads": ints(0, -1, 3, 2, 4),
                     "root": np.float32([0.5]),
                     "join": ints(0, -1, 8),
                     "v2": normal(3, 8, 3, 3)
                 },
                 opset=13)


def pyramid_of_pictures_made_as_large_as_others():
    """DB: each level is made as large as the one below it, by its shape in int32 or by a factor, and added to it."""
    like = [
        node("Shape", ["fine"], ["fs"]),
        part("fs", "hw", "two", "four"),
        node("Cast", ["hw"], ["hwi"], to=I32),
        node("Cast", ["hwi"], ["hwl"], to=I64),
        node("Shape", ["coarse"], ["cs"]),
        part("cs", "nc", "zero", "two"),
        node("Concat", ["nc", "hwl"], ["size"], axis=0),
        node("Resize", ["coarse", "", "", "size"], ["grown"],
             mode="nearest",
             nearest_mode="floor",
             coordinate_transformation_mode="asymmetric")
    ]
    nodes = [
        node("Conv", ["x", "w"], ["fine"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("Conv", ["fine", "v"], ["b"], pads=[1, 1, 1, 1], strides=[2, 2]),
        node("HardSigmoid", ["b"], ["c"], alpha=1 / 6, beta=0.5),
        node("Mul", ["b", "c"], ["coarse"]), *like,
        node("Add", ["fine", "grown"], ["sum"]),
        node("ConvTranspose", ["sum", "t"], ["e"], strides=[2, 2]),
        node("BatchNormalization", ["e", "g", "o", "m", "vv"], ["f"]),
        node("Relu", ["f"], ["h"]),
        node("Resize", ["coarse", "", "eightfold"], ["i"],
             mode="nearest",
             nearest_mode="floor",
             coordinate_transformation_mode="asymmetric"),
        node("ReduceMean", ["i"], ["j"], axes=[2, 3], keepdims=1),
        node("Mul", ["h", "j"], ["k"]),
        node("Sigmoid", ["k"], ["y"])
    ]
    return Habit(nodes, {"x": (F32, [-1, 3, -1, -1])},
                 pictures(3, (1, 16, 24), (2, 13, 18), last=False), {
                     **BOUNDS, "w": normal(4, 3, 3, 3),
                     "v": normal(4, 4, 3, 3),
                     "t": normal(4, 4, 2, 2),
                     "g": normal(4),
                     "o": normal(4),
                     "m": normal(4),
                     "vv": np.abs(normal(4)) + 0.5,
                     "eightfold": np.float32([1, 1, 4, 4])
                 },
                 opset=13)


def numbers_of_float64_and_lengths_as_numbers():
    """Norms in float64, lengths that become factors, and a range that an interpolation takes."""
    nodes = [
        node("Shape", ["x"], ["s"]),
        part("s", "t", "one", "two"),
        node("Cast", ["t"], ["tf"], to=F32),
        node("Squeeze", ["t", "zero"], ["count"]),
        node("Range", ["zero_s", "count", "one_s"], ["r"]),
        node("Cast", ["r"], ["rf"], to=F32),
        node("Div", ["rf", "tf"], ["phase"]),
        node("Unsqueeze", ["phase", "one"], ["p"]),
        node("Add", ["x", "p"], ["a"]),
        node("Cast", ["a"], ["d"], to=TensorProto.DOUBLE),
        node("ReduceL2", ["d"], ["n"], axes=[-1], keepdims=1),
        node("Max", ["n", "least"], ["m"]),
        node("Div", ["d", "m"], ["e"]),
        node("Cast", ["e"], ["y"], to=F32)
    ]
    return Habit(nodes, {"x": (F32, ["n", "t", 4])}, [{
        "x": normal(n, t, 4)
    } for n, t in ((1, 1), (2, 5))], {
        **BOUNDS, "zero_s": np.int64(0),
        "one_s": np.int64(1),
        "least": np.float64([1e-12])
    },
                 opset=13)


HABITS = [
    atrous_convolution_by_space_to_batch, depthwise_and_pointwise_of_channels_that_come_last,
    scales_that_are_quotients_of_lengths, transposed_convolution_cut_to_a_computed_size,
    strides_of_a_slice_and_a_new_axis, recurrence_over_a_loop_with_an_accumulator, layers_over_time,
    normalisation_of_channels_that_come_last, attention_by_einsum, states_filled_for_a_batch,
    mixing_of_patches_of_a_line, pyramid_of_pictures_made_as_large_as_others, numbers_of_float64_and_lengths_as_numbers
]

if __name__ == "__main__":
    sys.exit(judge_all(HABITS))
