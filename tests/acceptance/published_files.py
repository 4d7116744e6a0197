"""Habits of ONNX files as people publish them: each model gives what ONNX Runtime gives, at every size that it is
given.

usage: published_files.py BIN_DIR [NAME ...]    exits 77 (skipped) without numpy, onnx and onnxruntime

A habit is a function that gives a model, calls of it (arrays by input), and at times calls that both must refuse: what
is checked when a model runs only."""
import pathlib
import subprocess
import sys
import tempfile

try:
    import numpy as np
    import onnx
    import onnxruntime
    from onnx import TensorProto, helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

onnxruntime.set_default_logger_severity(4)
TIMEOUT = 120
REFUSED = (1, 3)  # exit codes: an assertion failed, bad input
node = helper.make_node
F32, I64, BOOL = TensorProto.FLOAT, TensorProto.INT64, TensorProto.BOOL


class Habit:
    """inputs: (element type, dims) by name; outputs: dims by name, or None; refused: calls that fail when run."""

    def __init__(self, nodes, inputs, calls, constants=None, outputs=None, opset=17, refused=()):
        infos = [helper.make_tensor_value_info(name, dtype, dims) for name, (dtype, dims) in inputs.items()]
        outs = [onnx.ValueInfoProto(name=name) if dims is None else helper.make_tensor_value_info(name, F32, dims)
                for name, dims in (outputs or {"y": None}).items()]
        graph = helper.make_graph(nodes, "habit", infos, outs, [numpy_helper.from_array(np.asarray(array), name)
                                                                for name, array in (constants or {}).items()])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        self.calls, self.refused = [[{name: np.asarray(array) for name, array in call.items()} for call in part]
                                    for part in (calls, refused)]


def normal(*shape):
    return np.random.default_rng(sum(shape)).standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.asarray(values, np.int64)


def lengths_that_are_not_known():
    """-1, 0 and empty names stand for them, in results, too."""
    return Habit([node("Conv", ["x", "w"], ["c"]), node("GlobalAveragePool", ["c"], ["y"])],
                 {"x": (F32, [-1, 3, 0, ""])}, [{"x": normal(1, 3, 8, 9)}, {"x": normal(2, 3, 5, 5)}],
                 {"w": normal(4, 3, 3, 3)}, {"y": [-1, 4, 0, 0]})


def parts_of_lengths_that_an_input_gives():
    """A length below 0 is refused though the sum is right: everything behind it takes lengths for what they are."""
    return Habit([node("Split", ["x", "s"], ["a", "y"], axis=0)], {"x": (F32, ["n", 4]), "s": (I64, [2])},
                 [{"x": normal(6, 4), "s": ints(2, 4)}, {"x": normal(6, 4), "s": ints(6, 0)}], outputs={"y": ["m", 4]},
                 refused=[{"x": normal(6, 4), "s": ints(*s)} for s in ((-1, 7), (7, -1), (1000006, -1000000))])


def shapes_that_an_input_gives():
    return Habit([node("Reshape", ["x", "s"], ["y"])], {"x": (F32, ["n"]), "s": (I64, [2])},
                 [{"x": normal(6), "s": ints(2, 3)}, {"x": normal(6), "s": ints(-1, 2)}],
                 refused=[{"x": normal(6), "s": ints(-2, -3)}])


def lengths_that_a_mark_stands_for():
    """A question mark for each length is no name that they share."""
    return Habit([node("Conv", ["x", "w"], ["c"]), node("GlobalAveragePool", ["c"], ["y"])],
                 {"x": (F32, ["?", 3, "?", "?"])}, [{"x": normal(1, 3, 8, 9)}, {"x": normal(2, 3, 5, 4)}],
                 {"w": normal(4, 3, 3, 3)}, {"y": ["?", 4, 1, 1]})


def grid_of_floats_up_to_a_symbol():
    """A detection head: the centres of the cells of a picture of unknown size."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "two"], ["h"]), node("Cast", ["h"], ["f"], to=F32),
             node("Range", ["zero", "f", "one"], ["r"]), node("Add", ["r", "half"], ["y"])]
    return Habit(nodes, {"x": (F32, [1, 1, "h", "w"])}, [{"x": normal(1, 1, h, 3)} for h in (1, 4, 9)],
                 {"two": np.int64(2), "zero": np.float32(0), "one": np.float32(1), "half": np.float32(0.5)})


def range_of_fractions_up_to_a_symbol():
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n"]), node("Cast", ["n"], ["f"], to=F32),
             node("Range", ["start", "f", "step"], ["y"])]
    return Habit(nodes, {"x": (F32, ["n"])}, [{"x": normal(n)} for n in (1, 2, 7)],
                 {"zero": np.int64(0), "start": np.float32(0.25), "step": np.float32(0.75)})


def all_elements_in_order():
    """Lengths of a batch, sorted: k is the batch's length."""
    nodes = [node("Shape", ["x"], ["k"]), node("TopK", ["x", "k"], ["v", "i"], axis=0),
             node("Gather", ["x", "i"], ["y"], axis=0)]
    return Habit(nodes, {"x": (I64, ["n"])}, [{"x": ints(3)}, {"x": ints(5, 9, 9, 1)}],
                 outputs={"v": None, "i": None, "y": None})


def as_many_as_an_input_says():
    nodes = [node("TopK", ["x", "k"], ["v", "i"], axis=1, largest=0)]
    calls = [{"x": normal(2, 5), "k": ints(3)}, {"x": normal(3, 4), "k": ints(4)}, {"x": normal(1, 4), "k": ints(0)}]
    return Habit(nodes, {"x": (F32, ["b", "n"]), "k": (I64, [1])}, calls, outputs={"v": None, "i": None},
                 refused=[{"x": normal(2, 3), "k": ints(4)}])


def padding_up_to_a_length():
    """Sound is padded to a whole window, or cut off."""
    nodes = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Sub", ["window", "n"], ["m"]),
             node("Concat", ["before", "m"], ["widths"], axis=0), node("Pad", ["x", "widths"], ["y"])]
    return Habit(nodes, {"x": (F32, ["b", "n"])}, [{"x": normal(2, n)} for n in (3, 10, 14)],
                 {"one": ints(1), "window": ints(10), "before": ints(0, 0, 0)})


def padding_of_an_input(mode):
    nodes = [node("Pad", ["x", "widths"], ["y"], mode=mode)]
    calls = [{"x": normal(3, 4), "widths": ints(*w)} for w in
             ((0, 0, 0, 0), (1, 2, 0, 3), (2, 0, 1, 1)) + (((-1, 1, 0, -2),) if mode == "constant" else ())]
    return Habit(nodes, {"x": (F32, ["a", "b"]), "widths": (I64, [4])}, calls, opset=19)


def padding_by_an_input():
    return padding_of_an_input("constant")


def reflection_by_an_input():
    return padding_of_an_input("reflect")


def edges_by_an_input():
    return padding_of_an_input("edge")


def wrapping_by_an_input():
    return padding_of_an_input("wrap")


def padding_of_some_axes_by_a_value():
    nodes = [node("Pad", ["x", "widths", "v", "axes"], ["y"])]
    calls = [{"x": normal(2, 3, 4), "widths": ints(*w), "v": np.float32(v)}
             for w, v in (((1, 0, 2, 0), 2), ((0, -1, 0, 3), -1))]
    return Habit(nodes, {"x": (F32, ["a", "b", 4]), "widths": (I64, [4]), "v": (F32, [])}, calls,
                 {"axes": ints(-1, 0)}, opset=18)


def lengths_that_may_broadcast():
    """Scores, biases and a mask whose lengths have names of their own: each length of the sum is a choice, and so are
    those of a product or of a resized image of it."""
    nodes = [node("Add", ["x", "bias"], ["a"]), node("Mul", ["a", "m"], ["s"]), node("MatMul", ["s", "v"], ["y"]),
             node("Resize", ["s", "", "scales"], ["z"], mode="linear")]
    dims = {name: (F32, [name + axis for axis in "bhqk"]) for name in ("x", "bias", "m", "v")}
    calls = [{"x": normal(b, h, 17, 9), "bias": normal(1, h, 1, 9), "m": normal(b, 1, 17, 1), "v": normal(b, h, 9, 40)}
             for b, h in ((1, 1), (2, 3))]
    return Habit(nodes, dims, calls, {"scales": np.float32([1, 1, 2, 2])}, {"y": None, "z": None})


def boxes_of_sizes_below_nothing():
    """Boxes by centre and size, as a detector's head gives them: nothing overlaps with one of a size below 0."""
    boxes = np.float32([[[5, 5, 4, 4], [5, 5, 4, 4], [5, 5, -4, -4], [5, 5, -4, -4], [5, 5, 4, -4], [5, 6, 4, 4]]])
    scores = np.float32([[[0.5, 0.5, 0.9, 0.5, 0.8, 0.7]]])
    nodes = [node("NonMaxSuppression", ["boxes", "scores", "most", "iou"], ["y"], center_point_box=1)]
    return Habit(nodes, {"boxes": (F32, [1, "n", 4]), "scores": (F32, [1, 1, "n"])},
                 [{"boxes": boxes[:, :n], "scores": scores[..., :n]} for n in (2, 6)],
                 {"most": ints(9), "iou": np.float32(0.3)})


def size_of_an_input():
    nodes = [node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear")]
    return Habit(nodes, {"x": (F32, [1, 2, "h", "w"]), "sizes": (I64, [4])},
                 [{"x": normal(1, 2, 4, 5), "sizes": ints(1, 2, *s)} for s in ((8, 5), (3, 7))])


def branches(then_op, else_op, *behind, **options):
    """An If of `c`, of which each branch is one operator of x, and nodes behind it."""
    def branch(op, name):
        inputs = ["x", "one"] if op in ("Squeeze", "Unsqueeze") else ["x"]
        return helper.make_graph([node(op, inputs, [name])], name, [], [onnx.ValueInfoProto(name=name)])
    chosen = node("If", ["c"], ["z"], then_branch=branch(then_op, "t"), else_branch=branch(else_op, "e"))
    return Habit([*options.pop("before", ()), chosen, *behind], options.pop("inputs"), options.pop("calls"),
                 {"one": ints(1), **options.pop("constants", {})}, **options)


def spectrum_as_a_convolution():
    """Of one channel, in long frames that overlap by half: of sound, of padded sound, with one frame and with many."""
    nodes = [node("Conv", ["x", "w"], ["y"], strides=[64]),
             node("Conv", ["x", "w", "b"], ["z"], strides=[100], pads=[20, 64])]
    calls = [{"x": normal(b, 1, n)} for b, n in ((1, 128), (3, 300), (2, 999))]
    return Habit(nodes, {"x": (F32, ["b", 1, "n"])}, calls,
                 {"w": normal(34, 1, 128), "b": normal(34)}, {"y": None, "z": None})


def recurrence_of_shut_gates():
    """Trained on few inputs, a layer has large weights: its states come to nothing, and stay there."""
    bias = np.zeros((1, 8 * 20), np.float32)
    bias[:, :80] = -45  # of all gates
    nodes = [node("LSTM", ["x", "w", "r", "b"], ["y"], hidden_size=20),
             node("GRU", ["x", "w3", "r3", "b3"], ["z"], hidden_size=20)]
    return Habit(nodes, {"x": (F32, ["s", "b", 4])}, [{"x": normal(s, b, 4)} for s, b in ((1, 1), (9, 3))],
                 {"w": normal(1, 80, 4) * 9, "r": normal(1, 80, 20), "b": bias, "w3": normal(1, 60, 4) * 99,
                  "r3": normal(1, 60, 20), "b3": np.zeros((1, 120), np.float32)}, {"y": None, "z": None})


def squeeze_of_a_length_that_the_graph_asks_for():
    """torch.squeeze(x, 1): an If whether the length is 1. What is behind takes a matrix alone."""
    asks = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "one"], ["n"]), node("Equal", ["n", "one"], ["c"])]
    return branches("Squeeze", "Identity", node("Gemm", ["z", "w"], ["y"]), before=asks,
                    inputs={"x": (F32, ["b", "n", 4])}, calls=[{"x": normal(b, 1, 4)} for b in (1, 3)],
                    constants={"w": normal(4, 2)}, refused=[{"x": normal(2, 3, 4)}])


def branches_of_unlike_ranks():
    return branches("Unsqueeze", "Identity", node("Reshape", ["z", "flat"], ["r"]), node("Relu", ["r"], ["y"]),
                    inputs={"x": (F32, ["b", 4]), "c": (BOOL, [])}, constants={"flat": ints(-1)},
                    calls=[{"x": normal(b, 4), "c": np.bool_(c)} for b in (1, 3) for c in (0, 1)])


def branches_of_unlike_lengths():
    def branch(widths, name):
        return helper.make_graph([node("Pad", ["x", widths], [name])], name, [], [onnx.ValueInfoProto(name=name)])
    chosen = node("If", ["c"], ["z"], then_branch=branch("more", "t"), else_branch=branch("less", "e"))
    return Habit([chosen, node("Relu", ["z"], ["y"])], {"x": (F32, ["n"]), "c": (BOOL, [])},
                 [{"x": normal(n), "c": np.bool_(c)} for n in (2, 5) for c in (0, 1)],
                 {"more": ints(1, 2), "less": ints(-1, 0)})


def squeeze_of_a_length_that_data_decide():
    nodes = [node("NonZero", ["x"], ["i"]), node("Squeeze", ["i", "one"], ["y"])]
    return Habit(nodes, {"x": (F32, ["n"])}, [{"x": np.float32([0, 0, 2])}, {"x": np.float32([7])}], {"one": ints(1)},
                 refused=[{"x": np.float32([1, 0, 2])}])


def results_of_unlike_ranks():
    return branches("Unsqueeze", "Identity", node("Relu", ["z"], ["y"]),
                    inputs={"x": (F32, ["b", 4]), "c": (BOOL, [])},
                    calls=[{"x": normal(b, 4), "c": np.bool_(c)} for b in (1, 3) for c in (0, 1)])


def squeeze_of_whatever_is_one():
    """torch.squeeze(x): the rank of the result is known when the model runs. Files declare the one that they saw."""
    calls = [{"x": normal(b, n, 4, 1)} for b in (1, 2) for n in (1, 3)]
    return Habit([node("Relu", ["x"], ["first"]), node("Squeeze", ["first"], ["s"]), node("Sigmoid", ["s"], ["y"])],
                 {"x": (F32, ["b", "n", 4, 1])}, calls, outputs={"first": None, "y": ["b", "n", 4]})


def squeezes_of_the_same_length():
    nodes = [node("Squeeze", ["x"], ["s"]), node("Squeeze", ["s"], ["t"]), node("Squeeze", ["w"], ["u"]),
             node("Add", ["t", "u"], ["y"]), node("Shape", ["t"], ["z"])]
    calls = [{"x": normal(1, b, 4), "w": normal(b, 4, 1)} for b in (1, 3)]
    return Habit(nodes, {"x": (F32, [1, "b", 4]), "w": (F32, ["b", 4, 1])}, calls, outputs={"y": None, "z": None})


def window_longer_than_its_data():
    return Habit([node("Conv", ["x", "w"], ["c"]), node("MaxPool", ["c"], ["y"], kernel_shape=[4])],
                 {"x": (F32, [1, 2, "n"])}, [{"x": normal(1, 2, 6)}, {"x": normal(1, 2, 9)}], {"w": normal(3, 2, 3)},
                 refused=[{"x": normal(1, 2, n)} for n in (1, 2, 4)])


def loop(carried, body_nodes, results, *behind, **options):
    """A Loop over `trips`; carried: (initial value, name, name of the next one, dims that the file declares)."""
    info = lambda name, dims: helper.make_tensor_value_info(name, F32, dims)
    body = helper.make_graph(
        [node("Identity", ["go"], ["goes"]), *body_nodes], "body",
        [helper.make_tensor_value_info("i", I64, []), helper.make_tensor_value_info("go", BOOL, []),
         *(info(name, dims) for _, name, _, dims in carried)],
        [helper.make_tensor_value_info("goes", BOOL, []), *(info(after, dims) for _, _, after, dims in carried)])
    looped = node("Loop", ["trips", "", *(before for before, _, _, _ in carried)], results, body=body)
    return Habit([looped, *behind], **options)


def loop_that_makes_a_vector_of_a_scalar():
    """Paddle declares scalars, adds vectors of one element, and carries what comes of it."""
    return loop([("start", "a", "b", [])], [node("Add", ["a", "step"], ["b"])], ["r"],
                node("Mul", ["x", "r"], ["y"]), inputs={"x": (F32, ["n"]), "trips": (I64, [])},
                calls=[{"x": normal(n), "trips": np.int64(t)} for n in (1, 4) for t in (1, 3)],
                constants={"start": np.float32(2), "step": np.float32([0.5])})


def loop_with_a_placeholder():
    """A value that no trip reads begins as a scalar; the first trip makes a matrix of it."""
    return loop([("zero", "unread", "made", ["p", "q"]), ("x", "a", "b", ["p", "q"])],
                [node("Add", ["a", "a"], ["b"]), node("Relu", ["b"], ["made"])], ["r", "s"],
                node("Add", ["r", "s"], ["y"]), inputs={"x": (F32, ["p", "q"]), "trips": (I64, [])},
                calls=[{"x": normal(p, 3), "trips": np.int64(t)} for p in (1, 2) for t in (1, 3)],
                constants={"zero": np.float32(0)}, outputs={"y": None, "r": None})


def turned(x, y, perm):
    return node("Transpose", [x], [y], perm=perm)


def convolutions_of_channels_that_come_last():
    """tf2onnx: each layer between transposes, of which an optimiser left some; the bias and PRelu lie along the last
    axis."""
    nodes = [turned("x", "a", [0, 3, 1, 2]), node("Conv", ["a", "w"], ["b"], auto_pad="SAME_UPPER", strides=[2, 2]),
             turned("b", "c", [0, 2, 3, 1]), node("Add", ["c", "bias"], ["d"]), node("PRelu", ["d", "slope"], ["e"]),
             turned("e", "f", [0, 3, 1, 2]), node("MaxPool", ["f"], ["g"], kernel_shape=[2, 2], auto_pad="SAME_LOWER"),
             turned("g", "h", [0, 2, 3, 1]), node("Mul", ["h", "scale"], ["y"])]
    return Habit(nodes, {"x": (F32, ["unk__1", "unk__2", "unk__3", 3])},
                 [{"x": normal(1, 8, 9, 3)}, {"x": normal(2, 5, 4, 3)}],
                 {"w": normal(4, 3, 3, 3), "bias": normal(4), "slope": normal(1, 1, 4), "scale": normal(1, 1, 1, 4)})


def sizes_that_floats_compute():
    """tf2onnx: half a picture's size by floats, cast back, and the flattened rest by a product of lengths."""
    nodes = [node("Shape", ["x"], ["s"]), node("Slice", ["s", "one", "three"], ["hw"]),
             node("Cast", ["hw"], ["f"], to=F32), node("Mul", ["f", "half"], ["g"]), node("Floor", ["g"], ["i"]),
             node("Cast", ["i"], ["j"], to=I64), node("Slice", ["s", "zero", "one"], ["n"]),
             node("Concat", ["n", "channels", "j"], ["sizes"], axis=0), turned("x", "t", [0, 3, 1, 2]),
             node("Resize", ["t", "", "", "sizes"], ["r"], mode="nearest",
                  coordinate_transformation_mode="asymmetric", nearest_mode="floor"),
             node("ReduceProd", ["j"], ["p"], keepdims=1), node("Concat", ["minus", "p", "channels"], ["to"], axis=0),
             turned("r", "u", [0, 2, 3, 1]), node("Reshape", ["u", "to"], ["y"])]
    return Habit(nodes, {"x": (F32, ["n", "h", "w", 2])}, [{"x": normal(1, 8, 10, 2)}, {"x": normal(3, 5, 7, 2)}],
                 {"one": ints(1), "zero": ints(0), "three": ints(3), "half": np.float32([0.5, 0.5]),
                  "channels": ints(2), "minus": ints(-1)})


def flattened_by_its_own_length():
    """Keras: Flatten is a Reshape to the batch's length and -1; a dropout layer of inference stays behind."""
    nodes = [node("Shape", ["x"], ["s"]), node("Cast", ["s"], ["i"], to=TensorProto.INT32),
             node("Slice", ["i", "zero", "one", "zero"], ["n"]), node("Cast", ["n"], ["m"], to=I64),
             node("Concat", ["m", "minus"], ["to"], axis=0), node("Reshape", ["x", "to"], ["r"]),
             node("Dropout", ["r"], ["d"]), node("MatMul", ["d", "w"], ["p"]), node("Add", ["p", "b"], ["y"])]
    return Habit(nodes, {"x": (F32, ["N", 2, 3])}, [{"x": normal(b, 2, 3)} for b in (1, 4)],
                 {"zero": ints(0), "one": ints(1), "minus": ints(-1), "w": normal(6, 5), "b": normal(5)})


def sixteen_bits_of_an_older_opset():
    """ONNX Runtime's quantiser writes its own QuantizeLinear where ONNX's lacks the dtype."""
    pair = lambda x, q, y: [node("QuantizeLinear", [x, "s", "z"], [q], domain="com.microsoft"),
                            node("DequantizeLinear", [q, "s", "z"], [y], domain="com.microsoft")]
    habit = Habit([*pair("x", "q", "d"), node("MatMul", ["d", "w"], ["p"]), *pair("p", "r", "y")],
                  {"x": (F32, ["b", 4])}, [{"x": normal(b, 4)} for b in (1, 3)],
                  {"s": np.float32(2 ** -8), "z": np.uint16(32768), "w": normal(4, 3)})
    habit.model.opset_import.append(helper.make_opsetid("com.microsoft", 1))
    return habit


def padded_or_cut_to_the_length_of_another():
    """As torch's pad(x, [d // 2, d - d // 2]) does; d may be negative: quotients are rounded towards zero then."""
    nodes = [node("Shape", ["x"], ["n"], start=-1), node("Shape", ["z"], ["m"], start=-1),
             node("Sub", ["m", "n"], ["d"]),
             node("Div", ["d", "two"], ["left"]), node("Sub", ["d", "left"], ["right"]),
             node("Concat", ["zero", "left", "zero", "right"], ["pads"], axis=0), node("Pad", ["x", "pads"], ["p"]),
             node("Concat", ["p", "z"], ["y"], axis=0), node("Mod", ["d", "two"], ["odd"], fmod=1)]
    return Habit(nodes, {"x": (F32, [2, "n"]), "z": (F32, [2, "m"])},
                 [{"x": normal(2, n), "z": normal(2, m)} for n, m in ((4, 9), (9, 4), (5, 5), (3, 0), (8, 5))],
                 {"two": ints(2), "zero": ints(0)}, {"y": None, "odd": None})


def padded_to_where_it_was_halved():
    """A U-Net: a picture is halved twice, and doubled and padded by what odd lengths lost."""
    nodes = [node("MaxPool", ["x"], ["a"], kernel_shape=[2], strides=[2]),
             node("MaxPool", ["a"], ["b"], kernel_shape=[2], strides=[2]),
             node("ConvTranspose", ["b", "w"], ["u"], kernel_shape=[2], strides=[2]),
             node("Shape", ["u"], ["s0"], start=-1), node("Shape", ["a"], ["s1"], start=-1),
             node("Sub", ["s1", "s0"], ["d"]), node("Div", ["d", "two"], ["left"]),
             node("Sub", ["d", "left"], ["right"]),
             node("Concat", ["zeros", "left", "zeros", "right"], ["pads"], axis=0), node("Pad", ["u", "pads"], ["p"]),
             node("Concat", ["a", "p"], ["c"], axis=1), node("Conv", ["c", "v"], ["y"], pads=[1, 1])]
    return Habit(nodes, {"x": (F32, ["b", 3, "n"])},
                 [{"x": normal(b, 3, n)} for b, n in ((1, 8), (2, 11), (1, 6), (1, 31))],
                 {"two": ints(2), "zeros": ints(0, 0), "w": normal(3, 5, 2), "v": normal(4, 8, 3)})


HABITS = [spectrum_as_a_convolution, recurrence_of_shut_gates, lengths_that_are_not_known,
          lengths_that_a_mark_stands_for, parts_of_lengths_that_an_input_gives, shapes_that_an_input_gives,
          grid_of_floats_up_to_a_symbol,
          range_of_fractions_up_to_a_symbol, all_elements_in_order, as_many_as_an_input_says, padding_up_to_a_length,
          padding_by_an_input, reflection_by_an_input, edges_by_an_input, wrapping_by_an_input,
          padding_of_some_axes_by_a_value, lengths_that_may_broadcast, boxes_of_sizes_below_nothing, size_of_an_input,
          squeeze_of_a_length_that_the_graph_asks_for,
          branches_of_unlike_ranks, branches_of_unlike_lengths, squeeze_of_a_length_that_data_decide,
          results_of_unlike_ranks, squeeze_of_whatever_is_one, squeezes_of_the_same_length,
          window_longer_than_its_data, loop_that_makes_a_vector_of_a_scalar, loop_with_a_placeholder,
          convolutions_of_channels_that_come_last, sizes_that_floats_compute, flattened_by_its_own_length,
          sixteen_bits_of_an_older_opset, padded_or_cut_to_the_length_of_another,
          padded_to_where_it_was_halved]


def tool(bin_dir, name, *arguments):
    return subprocess.run([bin_dir / name, *map(str, arguments)], capture_output=True, text=True, timeout=TIMEOUT)


def run(bin_dir, directory, habit, call):
    """The results by name, or the error's text."""
    given, results = directory / "in.npz", directory / "out.npz"
    np.savez(given, **call)
    results.unlink(missing_ok=True)
    ran = tool(bin_dir, "vm-run", directory / "model.ingot", given, "--output", f"@{results}")
    if ran.returncode != 0:
        assert ran.returncode in REFUSED, f"vm-run exit {ran.returncode}: {ran.stderr}"
        return ran.stderr
    return dict(np.load(results))


def session_of(model):
    """ONNX Runtime takes a length of 0 at its word: it gets one without it."""
    free = onnx.ModelProto()
    free.CopyFrom(model)
    for info in free.graph.input:
        for dim in info.type.tensor_type.shape.dim:
            if dim.HasField("dim_value") and dim.dim_value == 0:
                dim.Clear()
    return onnxruntime.InferenceSession(free.SerializeToString(), providers=["CPUExecutionProvider"])


def problem_of(bin_dir, directory, habit):
    """None, or what is wrong."""
    onnx.save(habit.model, directory / "model.onnx")
    made = tool(bin_dir, "vm-compile", directory / "model.onnx", "-o", directory / "model.ingot")
    if made.returncode != 0:
        return f"vm-compile exit {made.returncode}: {made.stderr}"
    session = session_of(habit.model)
    for call in habit.calls:
        got = run(bin_dir, directory, habit, call)
        if isinstance(got, str):
            return got
        for output, want in zip(session.get_outputs(), session.run(None, call)):
            mine = got[output.name]
            if mine.shape != want.shape or mine.dtype != want.dtype or not np.allclose(mine, want, 1e-5, 1e-5):
                return f"{output.name}: got {mine!r}, expected {want!r}"
    for call in habit.refused:
        if not isinstance(run(bin_dir, directory, habit, call), str):
            return "a call that has no meaning succeeds"
    return None


def judge_all(habits):
    """Judges those that the command line names, or all; 1 if any fails."""
    bin_dir, chosen = pathlib.Path(sys.argv[1]).resolve(), set(sys.argv[2:])
    unknown = sorted(chosen - {habit.__name__ for habit in habits})
    assert not unknown, f"no such habit: {', '.join(unknown)}"
    failures = 0
    for habit in habits:
        if chosen and habit.__name__ not in chosen:
            continue
        with tempfile.TemporaryDirectory() as directory:
            problem = problem_of(bin_dir, pathlib.Path(directory), habit())
        failures += problem is not None
        print(f"{'same' if problem is None else 'WRONG':6}{habit.__name__}  {problem or ''}", flush=True)
    print(f"{failures} failures")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(judge_all(HABITS))
