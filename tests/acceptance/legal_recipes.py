"""Recipes of legal models: functions that make a model and its inputs, whose names say what they are about."""
import itertools

import numpy as np
import onnx
from onnx import helper, numpy_helper

from legal_recipe import END, Recipe, ints, node, normal


def reshape_before_trilu():
    nodes = [node("Relu", ["x"], ["r"]), node("Reshape", ["r", "s"], ["q"]), node("Trilu", ["q"], ["y"])]
    return Recipe(nodes, {"x": ([8, 8], np.ones((8, 8), np.float32))}, {"s": ints(4, 16)})


def trilu_of_a_convolution():
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Trilu", ["c"], ["y"])]
    return Recipe(nodes, {"x": (["N", 16, 8, 8], normal(1, 16, 8, 8))}, {"w": normal(16, 16, 3, 3)})


def attention_with_mask(batch):
    inputs = {"q": (["B", 4, "S", 4], normal(batch, 4, 3, 4)), "k": (["B", 4, "T", 4], normal(batch, 4, 2, 4)),
              "v": (["B", 4, "T", 4], normal(batch, 4, 2, 4)), "m": (["A", 1, "S", "T"], normal(1, 1, 3, 2))}
    return Recipe([node("Attention", list(inputs), ["y"])], inputs, opset=23)


def attention_mask_of_its_own_batch():
    return attention_with_mask(2)


def attention_mask_far_outside():
    return attention_with_mask(200000)


def float16_products_that_overflow():
    nodes = [node("Mul", ["x", "a"], ["t"]), node("Mul", ["t", "a"], ["y"])]
    return Recipe(nodes, {"x": (["N"], np.float16([0.01]))}, {"a": np.float16(300)})


def rounding_by_a_magic_constant():
    nodes = [node("Add", ["x", "a"], ["t"]), node("Add", ["t", "b"], ["y"])]
    magic = np.float32(12582912)
    return Recipe(nodes, {"x": (["N"], np.float32([0.4, 1.6]))}, {"a": magic, "b": -magic})


def masked_attention(q, k, hidden):
    nodes = [node("Transpose", ["k"], ["t"], perm=[0, 1, 3, 2]), node("MatMul", ["q", "t"], ["s"]),
             node("Where", ["m", "s", "h"], ["z"]), node("Softmax", ["z"], ["p"], axis=-1),
             node("MatMul", ["p", "v"], ["y"])]
    inputs = {"q": ([1, 1, 2, 8], q), "k": ([1, 1, 3, 8], k), "v": ([1, 1, 3, 8], normal(1, 1, 3, 8)),
              "m": ([3], np.array([True, True, False]))}
    return Recipe(nodes, inputs, {"h": np.float32(hidden)})


def where_hides_infinity():
    k = normal(1, 1, 3, 8)
    k[0, 0, 2] = np.inf
    return masked_attention(normal(1, 1, 2, 8), k, -1e9)


def where_hides_by_a_small_number():
    return masked_attention(np.full((1, 1, 2, 8), 100, np.float32), np.full((1, 1, 3, 8), -100, np.float32), -1e4)


def transpose_of_ones():
    return Recipe([node("Transpose", ["x"], ["y"], perm=[0, 3, 2, 1])], {"x": ([1, 1, 28, 28], normal(1, 1, 28, 28))})


def convolution_to_one_column():
    nodes = [node("Conv", ["x", "w"], ["c"]), node("Relu", ["c"], ["y"])]
    return Recipe(nodes, {"x": (["N", 1, 32, 64], normal(1, 1, 32, 64))}, {"w": normal(16, 1, 3, 64)})


def concat_of_nothing():
    return Recipe([node("Concat", ["x", "x"], ["y"], axis=1)], {"x": ([7, 0], normal(7, 0))})


def gather_by_no_index():
    return Recipe([node("Gather", ["x", "i"], ["y"])], {"x": (["N"], normal(3))}, {"i": ints()})


def sums_of_tanh():
    """v + tanh(v), twenty times: each value is read twice."""
    nodes, v = [], "x"
    for i in range(20):
        nodes += [node("Tanh", [v], [f"t{i}"]), node("Add", [f"t{i}", v], [f"a{i}"])]
        v = f"a{i}"
    return Recipe(nodes, {"x": (["N", 4], normal(2, 4))}, outputs=(v,))


def views_across_an_if():
    def branch(out, op):
        return helper.make_graph([node(op, ["z"], [out])], out, [], [helper.make_tensor_value_info(out, 1, None)])
    nodes = [node("Relu", ["x"], ["a"]), node("Reshape", ["a", "s"], ["b"]),
             node("If", ["c"], ["q"], then_branch=branch("t", "Neg"), else_branch=branch("e", "Abs")),
             node("Neg", ["b"], ["y"])]
    inputs = {"x": (["N", 8], normal(2, 8)), "z": ([2], normal(2)), "c": ([], np.array(True))}
    return Recipe(nodes, inputs, {"s": ints(-1)}, ("y", "q"))


def last_token_from_all():
    nodes = [node("Slice", ["x", "a", "b", "o"], ["l"]), node("Sub", ["x", "l"], ["y"])]
    return Recipe(nodes, {"x": (["N", "S", 4], normal(2, 5, 4))}, {"a": ints(-1), "b": ints(END), "o": ints(1)})


def squeeze_of_the_first():
    nodes = [node("Slice", ["x", "z", "o", "o"], ["l"]), node("Squeeze", ["l", "o"], ["y"])]
    return Recipe(nodes, {"x": (["N", "S", 4], normal(2, 5, 4))}, {"z": ints(0), "o": ints(1)})


def concat_of(count):
    names = [f"m{i}" for i in range(count)]
    return Recipe([node("Concat", names, ["y"], axis=0)], {name: ([1, 2], normal(1, 2)) for name in names})


def transposed(nodes, inputs, constants=None):
    return Recipe(nodes + [node("Transpose", ["t"], ["y"])], inputs, constants or {})


def known_powers_of_integers_transposed():
    """A square of registers is transposed once for all places that read it."""
    rng = np.random.default_rng(0)
    inputs = {"x": (["N", 2, "P"], rng.integers(-3, 4, (33, 2, 35), np.int32))}
    return transposed([node("Pow", ["x", "e"], ["t"])], inputs, {"e": np.int32(3)})


def powers_of_integers_transposed():
    rng = np.random.default_rng(0)
    inputs = {"x": (["N", 2, "P"], rng.integers(-3, 4, (33, 2, 35), np.int32)),
              "e": (["N", 2, "P"], rng.integers(0, 13, (33, 2, 35), np.int32))}
    return transposed([node("Pow", ["x", "e"], ["t"])], inputs)


def sum_of_300_transposed():
    inputs = {f"x{i}": (["N", 2, "P"], np.full((33, 2, 35), i, np.float32)) for i in range(300)}
    return transposed([node("Sum", list(inputs), ["t"])], inputs)


def concat_of_300():
    return concat_of(300)


def concat_of_1000():
    return concat_of(1000)


def grid_of_another_batch():
    """Batches that differ: refused, as ONNX Runtime refuses them."""
    inputs = {"x": (["N", 1, 2, 2], normal(5000, 1, 2, 2)), "g": (["M", 2, 2, 2], normal(1, 2, 2, 2))}
    return Recipe([node("GridSample", ["x", "g"], ["y"])], inputs)


def groups_that_do_not_divide():
    """101 channels in two groups: refused, as ONNX Runtime refuses them."""
    inputs = {"x": (["N", "C", 8, 8], normal(1, 6, 8, 8)), "w": (["O", "I", 3, 3], normal(101, 3, 3, 3))}
    return Recipe([node("Conv", ["x", "w"], ["y"], group=2)], inputs)


def clip_of_crossed_bounds():
    """Where the lower bound is above the upper one, all is the upper one."""
    return Recipe([node("Clip", ["x", "l", "h"], ["y"])], {"x": (["N"], normal(3))},
                  {"l": np.float32(2), "h": np.float32(1)})


def slice_from_below_backwards():
    return Recipe([node("Slice", ["x", "a", "b", "z", "s"], ["y"])], {"x": ([3], normal(3))},
                  {"a": ints(-5), "b": ints(-2**63), "z": ints(0), "s": ints(-2)})


def table_up_to_a_length():
    """table[:n] where n is longer than the table."""
    nodes = [node("Shape", ["x"], ["s"]), node("Slice", ["w", "z", "s", "z"], ["y"])]
    return Recipe(nodes, {"x": (["N"], normal(20))}, {"w": normal(8), "z": ints(0)})


def compress_by_a_long_condition():
    """A condition longer than its axis: refused, as ONNX Runtime refuses it, or its rest is not read."""
    inputs = {"x": (["N", 5], normal(4, 5)), "c": (["L"], np.ones(6, bool))}
    return Recipe([node("Compress", ["x", "c"], ["y"], axis=0)], inputs)


def wild_attention(queries, keys, special, opset=23, **attributes):
    q, k, v = normal(1, 2, queries, 4), normal(1, 2, keys, 4), normal(1, 2, keys, 4)
    q[0, 0, -1, 1] = k[0, 1, -1, 2] = special
    inputs = {"q": ([1, 2, "S", 4], q), "k": ([1, 2, "T", 4], k), "v": ([1, 2, "T", 4], v)}
    return Recipe([node("Attention", list(inputs), ["y"], **attributes)], inputs, opset=opset)


def causal_attention_beside_nan():
    return wild_attention(4, 4, np.nan, is_causal=1)


def causal_attention_beside_infinity():
    return wild_attention(4, 4, np.inf, is_causal=1)


def causal_attention_of_many_keys_beside_nan():
    return wild_attention(40, 600, np.nan, is_causal=1)


def attention_without_a_mask_beside_infinity():
    return wild_attention(1, 1, -np.inf)


def masked_attention_beside_nan():
    q, mask = normal(1, 2, 3, 4), np.zeros((3, 2), np.float32)
    q[:, :, 1], mask[1] = np.nan, -np.inf
    inputs = {"q": ([1, 2, "S", 4], q), "k": ([1, 2, "T", 4], normal(1, 2, 2, 4)),
              "v": ([1, 2, "T", 4], normal(1, 2, 2, 4)), "m": (["S", "T"], mask)}
    return Recipe([node("Attention", list(inputs), ["y"])], inputs, opset=24)


def same_padding(op_type, length, constants=None, **attributes):
    inputs = {"x": ([1, 2, "S", "T"], normal(1, 2, length, length + 1))}
    names = ["x", *(constants or {})]
    return Recipe([node(op_type, names, ["y"], **attributes)], inputs, constants, opset=22)


def same_upper_convolution_with_strides():
    return same_padding("Conv", 7, {"w": normal(3, 2, 3, 4), "b": normal(3)}, auto_pad="SAME_UPPER", strides=[2, 3])


def same_lower_convolution_of_groups_with_strides():
    return same_padding("Conv", 8, {"w": normal(4, 1, 3, 2)}, auto_pad="SAME_LOWER", strides=[2, 3], group=2)


def same_upper_convolution_of_a_short_kernel():
    return same_padding("Conv", 6, {"w": normal(3, 2, 2, 1)}, auto_pad="SAME_UPPER", strides=[3, 2])


def same_lower_max_pool():
    return same_padding("MaxPool", 6, kernel_shape=[3, 2], strides=[2, 2], auto_pad="SAME_LOWER")


def same_upper_mean_without_padding():
    return same_padding("AveragePool", 5, kernel_shape=[4, 3], strides=[2, 3], auto_pad="SAME_UPPER")


def same_upper_mean_with_padding():
    return same_padding("AveragePool", 6, kernel_shape=[4, 3], strides=[2, 3], auto_pad="SAME_UPPER",
                        count_include_pad=1)


def same_lower_norm_pool():
    return same_padding("LpPool", 6, kernel_shape=[4, 3], strides=[2, 3], auto_pad="SAME_LOWER")


def middle_of(length, target):
    return Recipe([node("CenterCropPad", ["x", "t"], ["y"], axes=[1])], {"x": ([2, "S"], normal(2, length))},
                  {"t": ints(target)}, opset=18)


def middle_of_a_longer_axis():
    return middle_of(8, 5)


def middle_of_a_shorter_axis():
    return middle_of(4, 7)


def diagonal_of_symbols():
    return Recipe([node("EyeLike", ["x"], ["y"], k=-1)], {"x": (["R", "C"], normal(4, 5))}, opset=9)


def parts_of_a_symbolic_axis():
    nodes = [node("Split", ["x", "l"], ["a", "y"], axis=0)]
    return Recipe(nodes, {"x": (["S", 2], normal(5, 2))}, {"l": ints(2, 3)})


def rows_of_a_loop_beside_an_outer_symbol():
    """Two scanned outputs: the check of the first one's rows mentions the symbol of the second one's."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Less", ["i", "two"], ["go"]), node("Cast", ["i"], ["f"], to=1), node("Add", ["c", "f"], ["next"]),
         node("Sub", ["c", "x"], ["row"]), node("Identity", ["row"], ["more"])], "body",
        [info("i", 7, []), info("was", 9, []), info("c", 1, [None, None])],
        [info("go", 9, []), info("next", 1, [None, None]), info("row", 1, [None, None]),
         info("more", 1, [None, None])])
    nodes = [node("Loop", ["trips", "", "x"], ["last", "y", "z"], body=body)]
    return Recipe(nodes, {"x": (["S", 1], normal(3, 1))}, {"trips": np.int64(5), "two": np.int64(2)})


def loop_of_padded_rows(trips, pads, condition=False, grows=False):
    """The pads are known when it runs: the rows' dims are symbols that the body binds."""
    info = helper.make_tensor_value_info
    grown = [node("Concat", ["c", "one"], ["next"], axis=0)] if grows else [node("Add", ["c", "f"], ["next"])]
    go = [node("Less", ["i", "two"], ["go"])] if condition else [node("Identity", ["was"], ["go"])]
    body = helper.make_graph(
        [*go, node("Cast", ["i"], ["f"], to=1), *grown, node("Sub", ["c", "c" if grows else "wide"], ["row"]),
         node("Add", ["next", "f"], ["more"])], "body",
        [info("i", 7, []), info("was", 9, []), info("c", 1, [None])],
        [info("go", 9, []), info("next", 1, [None]), info("row", 1, [None]), info("more", 1, [None])])
    nodes = [node("Pad", ["x", "pads"], ["wide"]), node("Loop", ["trips", "", "wide"], ["last", "y", "z"], body=body)]
    return Recipe(nodes, {"x": ([4], normal(4)), "pads": ([2], ints(*pads)), "trips": ([], np.array(trips, np.int64))},
                  {"two": np.array(2, np.int64), "one": np.ones(1, np.float32)}, outputs=("z", "y", "last"))


def rows_whose_dims_the_body_binds():
    return loop_of_padded_rows(3, (1, 2))


def rows_whose_dims_the_body_binds_up_to_a_condition():
    return loop_of_padded_rows(9, (1, -2), condition=True)


def rows_of_no_trip():
    """Each trip finds out how long its row is, so that nobody knows it without one."""
    info = helper.make_tensor_value_info
    body = helper.make_graph(
        [node("Identity", ["was"], ["go"]), node("Neg", ["c"], ["next"]), node("Greater", ["c", "zero"], ["is_above"]),
         node("Compress", ["c", "is_above"], ["row"])], "body",
        [info("i", 7, []), info("was", 9, []), info("c", 1, [None])],
        [info("go", 9, []), info("next", 1, [None]), info("row", 1, [None])])
    nodes = [node("Loop", ["trips", "", "x"], ["last", "z"], body=body)]
    return Recipe(nodes, {"x": ([4], normal(4)), "trips": ([], np.array(0, np.int64))}, {"zero": np.float32(0)},
                  outputs=("z", "last"))


def rows_that_grow():
    """Rows of unlike lengths cannot be stacked: the call fails."""
    return loop_of_padded_rows(3, (1, 2), grows=True)


def rows_that_grow_up_to_a_condition():
    return loop_of_padded_rows(3, (1, 2), condition=True, grows=True)


def scan_whose_state_has_dims_of_a_loop():
    """The dims of the scanned rows are known when the model runs; the state keeps its shape, as Scan demands."""
    info = helper.make_tensor_value_info
    loop = helper.make_graph(
        [node("Identity", ["was"], ["go"]), node("Identity", ["c"], ["next"]), node("Neg", ["c"], ["row"])], "loop",
        [info("i", 7, []), info("was", 9, []), info("c", 1, [None, None])],
        [info("go", 9, []), info("next", 1, [None, None]), info("row", 1, [None, None])])
    step = helper.make_graph(
        [node("Add", ["a", "e"], ["b"]), node("Identity", ["b"], ["each"])], "step",
        [info("a", 1, [None]), info("e", 1, [None])], [info("b", 1, [None]), info("each", 1, [None])])
    nodes = [node("Loop", ["trips", "", "x"], ["last", "rows"], body=loop), node("Squeeze", ["rows", "one"], ["r"]),
             node("Scan", ["zero", "r"], ["sum", "y"], body=step, num_scan_inputs=1)]
    return Recipe(nodes, {"x": (["S", "T"], normal(1, 1))},
                  {"trips": np.int64(2), "one": ints(1), "zero": np.zeros(1, np.float32)})


def slices_whose_lengths_are_long_formulas():
    """Each broadcast repeats its dims; without symbols for them the last formulas do not fit into a file."""
    names, nodes, constants = [], [], {}
    for i, (begin, end, step) in enumerate([(-3, 9, 2), (1, -2, 3), (-2, -END, -3)]):
        names.append(f"s{i}")
        constants |= {f"b{i}": ints(begin), f"e{i}": ints(end), f"a{i}": ints(0), f"t{i}": ints(step)}
        nodes.append(node("Slice", ["x", f"b{i}", f"e{i}", f"a{i}", f"t{i}"], [names[-1]]))
    nodes += [node("Add", ["s0", "s1"], ["u"]), node("Mul", ["u", "s2"], ["v"]), node("Sub", ["v", "u"], ["w"]),
              node("Concat", ["w", "v", "u"], ["y"], axis=0)]
    return Recipe(nodes, {"x": (["N", 1], normal(7, 1))}, constants)


def transposed_convolution_of_infinite_weights():
    """No element lies between the data's elements: what is not there is not multiplied with infinity."""
    return Recipe([node("ConvTranspose", ["x", "w"], ["y"], strides=[2, 2], pads=[1, 1, 1, 1])],
                  {"x": ([1, 4, 3, 3], np.abs(normal(1, 4, 3, 3))),
                   "w": ([4, 3, 3, 3], np.full((4, 3, 3, 3), np.inf, np.float32))})


def center_of_a_long_formula():
    """What a node makes on the way has a longer formula than its result."""
    nodes = [node("Concat", ["x", "x"], ["d"], axis=-1), node("Slice", ["d", "from", "to", "axes", "steps"], ["s"]),
             node("CenterCropPad", ["s", "shape"], ["y"], axes=[-2, -1])]
    return Recipe(nodes, {"x": ([3, "n"], normal(3, 9))},
                  {"from": ints(6, 4), "to": ints(2**31 - 1, END), "axes": ints(-2, 1), "steps": ints(1, 3),
                   "shape": ints(6, 3)}, opset=18)


def sum_of_an_expanded_number():
    """As many equal terms as a vector has lanes are not one term."""
    return Recipe([node("Expand", ["x", "s"], ["e"]), node("ReduceSum", ["e", "axes"], ["y"])],
                  {"x": ([], np.asarray(3, np.float32))}, {"s": ints(16, 17, 3), "axes": ints(0)})


def parameters_of_length_one_when_run():
    """A normalisation's scale and slopes whose lengths have symbols of their own: equal, or 1 and repeated."""
    nodes = [node("LayerNormalization", ["x", "scale", "bias"], ["a"]), node("PRelu", ["a", "slope"], ["y"])]
    return Recipe(nodes, {"x": (["n", "c"], normal(3, 5)), "scale": (["k"], normal(1)), "bias": (["l"], normal(5)),
                          "slope": (["m"], normal(1))})


def shape_that_is_read_again():
    """The padded shape's formulas are so long that the node is imported again with symbols for them."""
    nodes = [node("Shape", ["x"], ["s"]), node("Add", ["s", "one"], ["z"]), node("Pad", ["z", "pads"], ["y"])]
    return Recipe(nodes, {"x": (["S", 1, 1, "M"], normal(3, 1, 1, 2)), "pads": ([2], ints(-1, 2))}, {"one": ints(1)},
                  outputs=("y", "z"))


def expand_of_a_dim_of_at_most_one():
    """The sliced dim is 0 or 1: the run's shape widens it, and nothing proves that it is 1."""
    nodes = [node("Slice", ["x", "last", "end", "axes"], ["row"]), node("Shape", ["like"], ["s"]),
             node("Expand", ["row", "s"], ["wide"]), node("Add", ["row", "like"], ["sum"])]
    return Recipe(nodes, {"x": ([1, "P"], normal(1, 4)), "like": ([2], normal(2))},
                  {"last": ints(-1), "end": ints(np.iinfo(np.int64).max), "axes": ints(1)}, outputs=("wide", "sum"))


def parts_whose_dims_have_many_symbols():
    """Six pads known when it runs make more symbols than a shape may have dims; the loop's body uses all of them."""
    nodes = [node("Pad", ["x", "pads"], ["wide"]), node("SplitToSequence", ["wide"], ["parts"], axis=0),
             node("SequenceAt", ["parts", "zero"], ["y"])]
    return Recipe(nodes, {"x": (["A", "B", "C"], normal(2, 3, 4)), "pads": ([6], ints(0, 1, 1, 2, 0, 3))},
                  {"zero": np.array(0, np.int64)})


def size_of_a_padded_tensor():
    """The product of the padded dims is longer than a formula may be."""
    nodes = [node("Pad", ["x", "pads"], ["wide"]), node("Size", ["wide"], ["y"])]
    return Recipe(nodes, {"x": (["A", "B", "C"], normal(2, 3, 4)), "pads": ([6], ints(0, 1, -1, 2, 0, 3))})


def parts_of_a_padded_tensor():
    """Each part's dims hold the formulas of all padded dims."""
    nodes = [node("Pad", ["x", "pads"], ["wide"]), node("SplitToSequence", ["wide", "two"], ["parts"], axis=-2),
             node("ConcatFromSequence", ["parts"], ["y"], axis=-2)]
    return Recipe(nodes, {"x": (["A", "B", 16], normal(2, 3, 16)), "pads": ([6], ints(0, 1, -1, 2, 0, 3))},
                  {"two": np.array(2, np.int64)})


def padded(length, before, after, symbolic, given=False):
    """Widths below 0 cut off, more than there is where the other end is filled; given: they are an input."""
    inputs = {"x": (["n" if symbolic else length, 2], normal(length, 2))}
    pads = ints(before, 0, after, 0)
    constants = {"v": np.float32(7)} if given else {"p": pads, "v": np.float32(7)}
    return Recipe([node("Pad", ["x", "p", "v"], ["y"])], inputs | ({"p": ([4], pads)} if given else {}), constants)


def bytes_on_both_sides_of_an_if():
    """What is known of a block's bytes says nothing of a block behind it, which does not see them."""
    branches = {name: helper.make_graph([node(op, ["v"], [name])], name, [], [onnx.ValueInfoProto(name=name)])
                for name, op in (("then_branch", "Exp"), ("else_branch", "Neg"))}
    nodes = [node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
             node("DequantizeLinear", ["q", "scale", "zero"], ["v"]), node("If", ["c"], ["z"], **branches),
             node("Sigmoid", ["v"], ["s"]), node("QuantizeLinear", ["s", "scale", "zero"], ["y"])]
    return Recipe(nodes, {"x": ([5], np.abs(normal(5))), "c": ([], np.array(True))},
                  {"scale": np.float32(1 / 255), "zero": np.uint8(0)}, outputs=("y", "z"))


def bytes_through_uint64(op, number):
    """Numbers of 2^63 and more, of which int64 knows none: from bytes, from which a table may be made."""
    nodes = [node("Cast", ["x"], ["u"], to=onnx.TensorProto.UINT64), node("Sub", ["u", "c"], ["s"]),
             node(op, ["s", "n"], ["r"]), node("Cast", ["r"], ["f"], to=onnx.TensorProto.FLOAT),
             node("Cast", ["f"], ["y"], to=onnx.TensorProto.FLOAT16 if op == "Greater" else onnx.TensorProto.FLOAT)]
    return Recipe(nodes, {"x": ([256], np.arange(256).astype(np.uint8))},
                  {"c": np.uint64(200), "n": np.uint64(number)})


def rests_of_uint64():
    return bytes_through_uint64("Mod", 3)


def quotients_of_uint64():
    return bytes_through_uint64("Div", 7)


def comparisons_of_uint64():
    return bytes_through_uint64("Greater", 5)


def greatest_of_uint64():
    return bytes_through_uint64("Max", 9)


def large_constants_of_uint64():
    nodes = [node("Greater", ["a", "b"], ["g"]), node("BitShift", ["a", "b"], ["r"], direction="RIGHT"),
             node("Cast", ["r"], ["h"], to=onnx.TensorProto.INT64), node("Cast", ["g"], ["i"], to=onnx.TensorProto.INT64),
             node("Add", ["h", "i"], ["t"]), node("Add", ["t", "x"], ["y"])]
    return Recipe(nodes, {"x": ([2], ints(0, 1))}, {"a": np.uint64(2**63 + 5), "b": np.uint64(3)})


def smallest_integer_in_parts():
    """One of the 256 bytes is -1, by which a processor does not divide it; the call has none."""
    nodes = [node("Cast", ["x"], ["i"], to=onnx.TensorProto.INT64), node("Mod", ["least", "i"], ["m"]),
             node("Div", ["least", "i"], ["d"]), node("Add", ["m", "d"], ["y"])]
    return Recipe(nodes, {"x": ([3], np.array([3, 5, 7], np.int8))}, {"least": np.array(-2**63, np.int64)})


def division_by_products_that_wrap_around():
    """A product of numbers above 0 may be below it."""
    nodes = [node("Max", ["a", "one"], ["b"]), node("Mul", ["b", "b"], ["c"]), node("Div", ["x", "c"], ["y"])]
    return Recipe(nodes, {"x": (["n"], np.arange(40).astype(np.int32)),
                          "a": (["n"], np.array([3] * 39 + [46341], np.int32))}, {"one": np.array(1, np.int32)})


def sign_of_bytes():
    return Recipe([node("Sign", ["x"], ["y"])], {"x": ([256], np.arange(256).astype(np.uint8))})


def padding_that_cuts_off_all_data_and_more():
    return padded(1, 6, -2, symbolic=False)


def padding_that_cuts_off_all_of_a_symbol_and_more():
    return padded(2, -3, 4, symbolic=True)


def padding_by_run_time_that_cuts_off_all_data_and_more():
    return padded(2, 3, -3, symbolic=True, given=True)


def padding_that_cuts_off_more_than_there_is():
    """Refused, as ONNX Runtime refuses it."""
    return padded(2, 0, -3, symbolic=True)


def padding_by_run_time_that_cuts_off_more_than_there_is():
    return padded(2, 1, -4, symbolic=True, given=True)


def bounds_of_run_time_with_steps():
    """Bounds whose own lengths have symbols: the axes say how many there are."""
    nodes = [node("Slice", ["x", "from", "to", "axes", "steps"], ["y"])]
    inputs = {"x": (["n", 9], normal(5, 9)), "from": (["a"], ints(1, -8)), "to": (["b"], ints(4, END))}
    return Recipe(nodes, inputs, {"axes": ints(0, 1), "steps": ints(1, 2)})


def walks_backwards_between_bounds_of_run_time(start, end, step, length=9):
    inputs = {"x": (["n", 2], normal(length, 2)), "from": ([1], ints(start)), "to": ([1], ints(end))}
    return Recipe([node("Slice", ["x", "from", "to", "axes", "steps"], ["y"])], inputs,
                  {"axes": ints(0), "steps": ints(step)})


def walk_backwards_to_the_first():
    return walks_backwards_between_bounds_of_run_time(7, -END, -2)


def walk_backwards_from_behind_the_last():
    return walks_backwards_between_bounds_of_run_time(END, 0, -3)


def walk_backwards_to_a_place_from_the_end():
    return walks_backwards_between_bounds_of_run_time(-2, -7, -1)


def walk_backwards_over_nothing():
    return walks_backwards_between_bounds_of_run_time(7, -END, -2, length=0)


def middle_of_run_time():
    """Longer along one axis, shorter along the other."""
    return Recipe([node("CenterCropPad", ["x", "shape"], ["y"])],
                  {"x": (["n", 9], normal(4, 9)), "shape": ([2], ints(7, 4))}, opset=18)


def parts_of_lengths_of_run_time(*lengths):
    inputs = {"x": (["n", 2], normal(7, 2)), "l": ([len(lengths)], ints(*lengths))}
    return Recipe([node("Split", ["x", "l"], ["a", "y", "b"], axis=0)], inputs, outputs=("y", "a", "b"))


def three_parts_of_lengths_of_run_time():
    return parts_of_lengths_of_run_time(3, 4, 0)


def parts_that_do_not_add_up():
    """Refused, as ONNX Runtime refuses it."""
    return parts_of_lengths_of_run_time(3, 4, 1)


def parts_whose_lengths_follow_from_a_shape():
    nodes = [node("Shape", ["x"], ["s"], start=0, end=1), node("Div", ["s", "two"], ["half"]),
             node("Sub", ["s", "half"], ["rest"]), node("Concat", ["half", "rest"], ["l"], axis=0),
             node("Split", ["x", "l"], ["a", "y"], axis=0)]
    return Recipe(nodes, {"x": (["n", 2], normal(7, 2))}, {"two": ints(2)}, outputs=("y", "a"))


def triangle_above_a_diagonal_of_run_time(k, upper):
    return Recipe([node("Trilu", ["x", "k"], ["y"], upper=upper)],
                  {"x": (["n", 7], normal(5, 7)), "k": ([], np.array(k, np.int64))})


def upper_triangle_from_below_the_diagonal():
    return triangle_above_a_diagonal_of_run_time(-2, 1)


def lower_triangle_up_to_above_the_diagonal():
    return triangle_above_a_diagonal_of_run_time(3, 0)


def places_of_a_depth_that_ranks_tell():
    inputs = {"x": (["n", 5], normal(4, 5)), "i": (["m", "depth"], ints([1, 2], [3, 0])), "u": (["m"], normal(2))}
    return Recipe([node("ScatterND", ["x", "i", "u"], ["y"])], inputs)


def gemm_whose_scaled_weights_overflow():
    return Recipe([node("Gemm", ["x", "w"], ["y"], alpha=10.0)], {"x": ([2, 3], np.full((2, 3), 1e-10, np.float32))},
                  {"w": np.full((3, 4), 1e38, np.float32)})


def clip_of_infinities(opset, **bounds):
    x = np.array([-np.inf, -2, 0.5, 3, np.inf, np.nan], np.float32)
    names = ["x"] + (["low" if "min" in bounds else "", "high" if "max" in bounds else ""] if opset > 10 else [])
    constants = {name: np.float32(bounds[key]) for name, key in (("low", "min"), ("high", "max")) if key in bounds}
    return Recipe([node("Clip", names, ["y"], **(bounds if opset < 11 else {}))], {"x": ([6], x)},
                  constants if opset > 10 else {}, opset=opset)


def clip_without_bounds():
    return clip_of_infinities(13)


def clip_from_below():
    return clip_of_infinities(13, min=0.0)


def clip_by_attribute_from_above():
    return clip_of_infinities(7, max=1.0)


def infinite_places_outside_of_a_picture():
    grid = np.array([[np.inf, 9], [9, -np.inf], [0, 0]], np.float32).reshape(1, 1, 3, 2)
    return Recipe([node("GridSample", ["x", "grid"], ["y"], padding_mode="zeros")],
                  {"x": ([1, 1, 5, 4], normal(1, 1, 5, 4)), "grid": (grid.shape, grid)})


def attention_with_mask_of_keys(keys, opset):
    inputs = {"q": ([1, 2, "S", 4], normal(1, 2, 3, 4)), "k": ([1, 2, "T", 4], normal(1, 2, 5, 4)),
              "v": ([1, 2, "T", 4], normal(1, 2, 5, 4)), "m": (["S", "M"], normal(3, keys))}
    return Recipe([node("Attention", list(inputs), ["y"])], inputs, opset=opset)


def mask_whose_keys_have_a_symbol_of_their_own():
    return attention_with_mask_of_keys(5, 23)


def mask_of_more_keys_than_there_are():
    """Refused, as ONNX Runtime refuses it."""
    return attention_with_mask_of_keys(6, 24)

def arithmetic_of_a_length(length, nodes, constants=None, cast="FLOAT"):
    """The nodes compute y of n, the length of x in the dtype; without elements where x is long."""
    first = [node("Shape", ["x"], ["s"], end=1), node("Cast", ["s"], ["n"], to=getattr(onnx.TensorProto, cast))]
    return Recipe(first + nodes, {"x": (["N", 0], np.zeros((length, 0), np.float32))}, constants)


def product_of_lengths_that_float32_rounds():
    nodes = [node("Mul", ["n", "n"], ["p"]), node("Cast", ["p"], ["y"], to=onnx.TensorProto.INT64)]
    return arithmetic_of_a_length(4099, nodes)


def length_that_float32_rounds():
    return arithmetic_of_a_length(16777217, [node("Cast", ["n"], ["y"], to=onnx.TensorProto.INT64)])


def reciprocal_of_a_negated_length_of_zero():
    return arithmetic_of_a_length(0, [node("Neg", ["n"], ["m"]), node("Reciprocal", ["m"], ["y"])])


def reciprocal_of_a_length_of_zero_times_a_negative():
    nodes = [node("Mul", ["n", "k"], ["m"]), node("Reciprocal", ["m"], ["y"])]
    return arithmetic_of_a_length(0, nodes, {"k": np.float32(-3)})


def quotient_of_lengths_of_zero():
    return arithmetic_of_a_length(0, [node("Div", ["n", "n"], ["y"])])


def zero_over_a_length_of_zero():
    nodes = [node("Mul", ["n", "k"], ["m"]), node("Div", ["m", "n"], ["y"])]
    return arithmetic_of_a_length(0, nodes, {"k": np.float32(0)})


def square_of_a_length_that_wraps_around():
    nodes = [node("Mul", ["n", "n"], ["p"]), node("Cast", ["p"], ["y"], to=onnx.TensorProto.INT64)]
    return arithmetic_of_a_length(65536, nodes, cast="INT32")


def quotient_of_a_product_that_wraps_around_in_32_bits():
    nodes = [node("Mul", ["n", "k"], ["p"]), node("Div", ["p", "k"], ["y"])]
    return arithmetic_of_a_length(300, nodes, {"k": np.int32(1 << 24)}, cast="INT32")


def quotient_of_a_product_that_wraps_around_in_64_bits():
    nodes = [node("Mul", ["n", "k"], ["p"]), node("Div", ["p", "k"], ["y"])]
    return arithmetic_of_a_length(300, nodes, {"k": np.int64(1 << 60)}, cast="INT64")


def sign_of_a_product_that_wraps_around():
    nodes = [node("Mul", ["n", "k"], ["p"]), node("Greater", ["p", "z"], ["y"])]
    return arithmetic_of_a_length(2, nodes, {"k": np.int64(1 << 62), "z": np.int64(0)}, cast="INT64")


def shape_of_rounded_up_halves():
    """The target of a Reshape by floats, as exporters write it: -floor(-n / 2)."""
    nodes = [node("Shape", ["x"], ["s"], end=1), node("Cast", ["s"], ["n"], to=onnx.TensorProto.FLOAT),
             node("Mul", ["n", "k"], ["m"]), node("Neg", ["m"], ["p"]), node("Floor", ["p"], ["q"]),
             node("Neg", ["q"], ["r"]), node("Cast", ["r"], ["t"], to=onnx.TensorProto.INT64),
             node("Concat", ["t", "one"], ["shape"], axis=0), node("Expand", ["w", "shape"], ["y"])]
    return Recipe(nodes, {"x": (["N"], normal(5)), "w": ([1], normal(1))}, {"k": np.float32(2), "one": ints(1)})


def chains_of_arithmetic(seed, lengths):
    """Forty random nodes over two lengths in int32, int64, float32 and float64, all of whose results are compared."""
    rng = np.random.default_rng(seed)
    kinds = {"INT32": np.int32, "INT64": np.int64, "FLOAT": np.float32, "DOUBLE": np.float64}
    nodes, constants, values = [], {}, {kind: [] for kind in kinds}
    for name, kind in itertools.product("ab", kinds):
        nodes.append(node("Shape", [f"x{name}"], [f"shape_{name}{kind}"], end=1))
        nodes.append(node("Cast", [f"shape_{name}{kind}"], [f"{name}{kind}"], to=getattr(onnx.TensorProto, kind)))
        values[kind].append(f"{name}{kind}")
    for i in range(40):
        kind = str(rng.choice(list(kinds)))
        is_float = kind in ("FLOAT", "DOUBLE")
        constant, result = f"c{i}", f"r{i}"
        number = rng.choice([-3, -1, 2, 3, 7, 256, 4097] + ([-0.0, 0.5] if is_float else [1 << 24, 1103515245]))
        constants[constant] = kinds[kind]([number])
        op = str(rng.choice(["Add", "Sub", "Mul", "Mul", "Max", "Min", "Neg", "Abs", "Div", "Mod", "Less", "Cast"]))
        x = str(rng.choice(values[kind]))
        # Integers are divided by constants alone, floats by anything.
        other = constant if op in ("Div", "Mod") and not is_float else str(rng.choice(values[kind] + [constant]))
        if op in ("Neg", "Abs"):
            nodes.append(node(op, [x], [result]))
        elif op in ("Less", "Cast") or (op == "Mod" and is_float):  # casts of floats to integers may be undefined
            kind, source = ("FLOAT", result) if op != "Cast" else (str(rng.choice(["FLOAT", "DOUBLE"])), x)
            if op != "Cast":
                source = f"less{i}"
                nodes.append(node("Less", [x, other], [source]))
            nodes.append(node("Cast", [source], [result], to=getattr(onnx.TensorProto, kind)))
        else:
            nodes.append(node(op, [x, other], [result]))
        values[kind].append(result)
        if kind in ("FLOAT", "DOUBLE"):  # tells zeros apart
            nodes.append(node("Reciprocal", [result], [f"over{i}"]))
            values[kind].append(f"over{i}")
    results = []
    for kind, names in values.items():
        for name in names:
            nodes.append(node("Cast", [name], [f"{name}_wide"], to=onnx.TensorProto.DOUBLE))
            results.append(f"{name}_wide")
    nodes.append(node("Concat", results, ["y"], axis=0))
    inputs = {f"x{name}": ([name.upper(), 0], np.zeros((length, 0), np.float32)) for name, length in zip("ab", lengths)}
    return Recipe(nodes, inputs, constants)


def arithmetic_of_no_elements():
    return chains_of_arithmetic(1, (0, 3))


def arithmetic_of_small_lengths():
    return chains_of_arithmetic(2, (1, 5))


def arithmetic_of_large_lengths():
    return chains_of_arithmetic(3, (4099, 65537))


def arithmetic_of_lengths_beyond_float32():
    return chains_of_arithmetic(4, (16777217, 2))


def trips(body_nodes, constants, result="INT64", count=6):
    """A loop whose rows are r of the trip's number i."""
    inputs = [helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
              helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])]
    body = helper.make_graph(body_nodes + [node("Identity", ["c"], ["more"])], "body", inputs,
                             [helper.make_tensor_value_info("more", onnx.TensorProto.BOOL, []),
                              helper.make_tensor_value_info("r", getattr(onnx.TensorProto, result), [])],
                             [numpy_helper.from_array(np.asarray(a), name) for name, a in constants.items()])
    return Recipe([node("Loop", ["t", ""], ["y"], body=body)], {"t": ([], np.array(count))})


def random_numbers_of_the_trips():
    nodes = [node("Cast", ["i"], ["n"], to=onnx.TensorProto.INT32), node("Mul", ["n", "k"], ["p"]),
             node("Add", ["p", "d"], ["q"]), node("Cast", ["q"], ["r"], to=onnx.TensorProto.FLOAT)]
    return trips(nodes, {"k": np.int32(1103515245), "d": np.int32(12345)}, "FLOAT")


def reciprocals_of_the_negated_trips():
    nodes = [node("Cast", ["i"], ["n"], to=onnx.TensorProto.FLOAT), node("Neg", ["n"], ["p"]),
             node("Reciprocal", ["p"], ["r"])]
    return trips(nodes, {}, "FLOAT")


def products_of_the_trips_that_float32_rounds():
    nodes = [node("Cast", ["i"], ["n"], to=onnx.TensorProto.FLOAT), node("Mul", ["n", "k"], ["p"]),
             node("Cast", ["p"], ["r"], to=onnx.TensorProto.INT64)]
    return trips(nodes, {"k": np.float32(16777215)})


def products_of_the_trips_that_wrap_around():
    nodes = [node("Mul", ["i", "k"], ["p"]), node("Add", ["p", "k"], ["q"]), node("Div", ["q", "k"], ["r"])]
    return trips(nodes, {"k": np.int64(1 << 62)})


def range_of_run_time(start, limit, step, dtype=np.int64):
    inputs = {name: ([], np.asarray(value, dtype))
              for name, value in (("a", start), ("b", limit), ("c", step))}
    return Recipe([node("Range", list(inputs), ["y"])], inputs)


def range_of_large_integers():
    return range_of_run_time(2**60, 2**60 + 5, 1)


def range_across_all_integers():
    return range_of_run_time(-(2**63), 2**63 - 1, 2**62)


def range_downwards():
    return range_of_run_time(7, -6, -3, np.int32)


def range_downwards_by_the_least():
    return range_of_run_time(2**63 - 1, -(2**63), -(2**63))


def range_in_the_wrong_direction():
    return range_of_run_time(3, 9, -2)


def range_by_steps_of_nothing():
    """Refused, as ONNX Runtime refuses it."""
    return range_of_run_time(3, 9, 0)


def range_of_floats_up_to_a_length():
    return arithmetic_of_a_length(5, [node("Squeeze", ["n"], ["m"]), node("Range", ["a", "m", "b"], ["y"])],
                                  {"a": np.float32(-1), "b": np.float32(1)})


def trips_by_floats_of_a_length():
    body = helper.make_graph([node("Identity", ["c"], ["more"]), node("Add", ["i", "i"], ["r"])], "body",
                             [helper.make_tensor_value_info("i", onnx.TensorProto.INT64, []),
                              helper.make_tensor_value_info("c", onnx.TensorProto.BOOL, [])],
                             [helper.make_tensor_value_info("more", onnx.TensorProto.BOOL, []),
                              helper.make_tensor_value_info("r", onnx.TensorProto.INT64, [])])
    nodes = [node("Squeeze", ["n"], ["m"]), node("Cast", ["m"], ["t"], to=onnx.TensorProto.INT64),
             node("Loop", ["t", ""], ["y"], body=body)]
    return arithmetic_of_a_length(5, nodes)


def power(base, exponent, **constants):
    inputs = {name: (list(np.shape(array)), array) for name, array in (("x", base), ("e", exponent))
              if name not in constants}
    return Recipe([node("Pow", ["x", "e"], ["y"])], inputs, constants)


def powers_of_odd_integers_beyond_float32():
    return power(np.float32([-1, -1, 1.5]), ints(16777217, 16777218, 3))


def powers_of_integers_beyond_float16():
    return power(np.float16([-1, 1]), np.int32([2049, 70000]))


def powers_of_doubles():
    return power(np.float32([-1, 1.0000001, 1.5]), np.float64([16777217, 16777217, -3]))


def integers_to_the_power_of_wider_ones():
    return power(np.int32([1, -1, -1, 0, 2, 3, -1]), ints(2**32 + 1, 2**32 + 2, -(2**32) - 1, 2**32, -1, 5, 3))


def scan_of_lengths(first, second):
    infos = [helper.make_tensor_value_info(name, onnx.TensorProto.FLOAT, []) for name in ("s", "u", "v", "t", "r")]
    body = helper.make_graph([node("Add", ["s", "u"], ["t"]), node("Mul", ["u", "v"], ["r"])], "body", infos[:3],
                             infos[3:])
    inputs = {"z": ([], np.array(0, np.float32)), "a": (["N"], normal(first)), "b": (["M"], normal(second))}
    return Recipe([node("Scan", list(inputs), ["last", "y"], body=body, num_scan_inputs=2)], inputs,
                  outputs=("y", "last"))


def scan_of_equal_lengths():
    return scan_of_lengths(5, 5)


def scan_of_unlike_lengths():
    """Refused, as ONNX Runtime refuses it."""
    return scan_of_lengths(5, 2)


def at_a_length(nodes, inputs, constants=None, cast="FLOAT"):
    """The nodes may read n, the length of x as a scalar."""
    first = [node("Shape", ["x"], ["s"]), node("Gather", ["s", "zero"], ["n0"]),
             node("Cast", ["n0"], ["n"], to=getattr(onnx.TensorProto, cast))]
    return Recipe(first + nodes, inputs, {"zero": np.int64(0), **(constants or {})})


def clip_to_a_length():
    return at_a_length([node("Clip", ["x", "", "n"], ["y"])], {"x": (["N"], np.float32([9, -3, 2, 1]))})


def padding_by_a_length():
    return at_a_length([node("Pad", ["x", "p", "n"], ["y"])], {"x": (["N"], normal(4))}, {"p": ints(1, 2)})


def places_up_to_a_length():
    return at_a_length([node("OneHot", ["i", "n", "v"], ["y"])],
                       {"x": (["N"], normal(4)), "i": (["K"], ints(0, 3, -1))}, {"v": np.float32([0, 1])}, "INT64")


def nine_parts_of_lengths_of_run_time():
    nodes = [node("Split", ["x", "s"], [f"part{i}" for i in range(9)]),
             node("Concat", [f"part{i}" for i in (8, 4, 0, 2)], ["y"], axis=0)]
    return Recipe(nodes, {"x": (["N"], normal(20)), "s": ([9], ints(1, 2, 3, 0, 5, 1, 1, 1, 6))}, opset=18)


def normalisation_whose_scale_has_more_dims():
    nodes = [node("LayerNormalization", ["x", "s", "b"], ["y"], axis=-1)]
    return Recipe(nodes, {"x": ([2, 3, 4], normal(2, 3, 4))}, {"s": normal(2, 1, 4), "b": normal(1, 3, 4)})


def blocks_that_do_not_divide_the_axis():
    nodes = [node("DequantizeLinear", ["x", "s", "z"], ["y"], axis=1, block_size=3)]
    return Recipe(nodes, {"x": ([2, 8], np.arange(16, dtype=np.uint8).reshape(2, 8))},
                  {"s": np.abs(normal(2, 3)), "z": np.uint8([[1, 2, 3], [4, 5, 6]])}, opset=21)


def of_numbers_whose_count_has_a_symbol(op_type, count, given, opset=18, **attributes):
    """The node itself says how many numbers it takes."""
    inputs = {"x": (["n", "m"], normal(5, 4)), "given": (["count"], ints(*given))}
    outputs = [f"y{i}" for i in range(count)]
    return Recipe([node(op_type, ["x", "given"], outputs, **attributes)], inputs, outputs=tuple(outputs), opset=opset)


def greatest_of_a_count_whose_length_has_a_symbol():
    return of_numbers_whose_count_has_a_symbol("TopK", 2, [3])


def repeats_whose_length_has_a_symbol():
    return of_numbers_whose_count_has_a_symbol("Tile", 1, [2, 3])


def parts_whose_number_has_a_symbol():
    return of_numbers_whose_count_has_a_symbol("Split", 2, [1, 3], axis=-1)


def middle_whose_lengths_have_a_symbol():
    return of_numbers_whose_count_has_a_symbol("CenterCropPad", 1, [3, 7])


def more_repeats_than_axes():
    """Refused, as ONNX Runtime refuses it."""
    return of_numbers_whose_count_has_a_symbol("Tile", 1, [2, 3, 1])


def nodes_in_front_of_those_whose_results_they_take():
    """As converters append them; ONNX Runtime takes them."""
    then, other = (helper.make_graph([node(op, ["b"], ["t"])], "g", [], [onnx.ValueInfoProto(name="t")])
                   for op in ("Neg", "Exp"))
    nodes = [node("If", ["c"], ["d"], then_branch=then, else_branch=other), node("Add", ["b", "d"], ["y"]),
             node("Relu", ["a"], ["b"]), node("ReduceMax", ["b"], ["m"], keepdims=0),
             node("Cast", ["m"], ["c"], to=onnx.TensorProto.BOOL), node("Sin", ["x"], ["a"])]
    return Recipe(nodes, {"x": (["n"], normal(5))})


def lengths_named_by_formulas(past, now, mask):
    """Exporters name a mask's length "past + 1", also where a prompt of more than one token is legal."""
    nodes = [node("Concat", ["k", "x"], ["all"], axis=1), node("MatMul", ["x", "all_t"], ["s"]),
             node("Add", ["s", "m"], ["z"]), node("Softmax", ["z"], ["p"], axis=-1), node("MatMul", ["p", "all"], ["y"])]
    nodes.insert(1, node("Transpose", ["all"], ["all_t"], perm=[0, 2, 1]))
    inputs = {"x": (["batch", "seq", 4], normal(2, now, 4)), "m": (["batch", 1, "past + 1"], normal(2, 1, mask)),
              "k": (["batch", "past", 4], normal(2, past, 4))}
    return Recipe(nodes, inputs)


def prompt_whose_mask_is_named_past_plus_one():
    return lengths_named_by_formulas(0, 5, 5)


def token_whose_mask_is_named_past_plus_one():
    return lengths_named_by_formulas(6, 1, 7)


def mask_of_one_column_named_past_plus_one():
    return lengths_named_by_formulas(6, 1, 1)


def mask_that_does_not_fit_named_past_plus_one():
    """Refused, as ONNX Runtime refuses it."""
    return lengths_named_by_formulas(6, 1, 3)


def dims_named(names, shapes, nodes):
    return Recipe(nodes, {f"x{i}": (list(dims), normal(*shape)) for i, (dims, shape) in enumerate(zip(names, shapes))})


def half_of_a_length_that_is_odd():
    """torch names it "s0//2", whatever rounding the model does."""
    return dims_named([["s0"], ["s0//2"]], [(5,), (3,)], [node("Concat", ["x0", "x1"], ["y"], axis=0)])


def names_that_read_as_formulas_of_no_dim():
    names = [["2*batch", "floor(h/2)"], ["N+1", "Max(1, s0)"], ["s0 + s1", "2**s0"]]
    return dims_named(names, [(2, 3)] * 3, [node("Sum", ["x0", "x1", "x2"], ["y"])])


def lengths_of_one_formula():
    return dims_named([["s0 + 1", "s0"], ["s0 + 1", "s1"]], [(3, 5), (3, 2)], [node("Concat", ["x0", "x1"], ["y"], axis=1)])


def boxes_whose_scores_are_minus_infinity(least=None):
    """Without a threshold every box is a candidate; no score is above one of minus infinity."""
    boxes = np.arange(5, dtype=np.float32).reshape(1, 5, 1) + np.float32([0, 0, 0.5, 0.5])
    scores = np.float32([[[0.5, -np.inf, np.inf, -np.inf, 0.25]]])
    names = ["b", "s", "most", "overlap"] + ([] if least is None else ["least"])
    constants = {"most": ints(5), "overlap": np.float32([0.5])} | ({} if least is None else {"least": np.float32([least])})
    return Recipe([node("NonMaxSuppression", names, ["y"])],
                  {"b": (["n", "m", 4], boxes), "s": (["n", "c", "m"], scores)}, constants)


def boxes_of_any_score_without_a_threshold():
    return boxes_whose_scores_are_minus_infinity()


def boxes_above_minus_infinity():
    return boxes_whose_scores_are_minus_infinity(-np.inf)


def groups_of_channels_of_unknown_number():
    nodes = [node("GroupNormalization", ["x", "s", "b"], ["y"], num_groups=2)]
    return Recipe(nodes, {"x": (["n", "c", "w"], normal(2, 6, 5))}, {"s": normal(2), "b": normal(2)}, opset=18)


def loss_of_classes_of_unknown_number():
    nodes = [node("SoftmaxCrossEntropyLoss", ["x", "t", "w"], ["y"], ignore_index=-1)]
    inputs = {"x": (["n", "c", "w"], normal(3, 5, 2)), "t": (["n", "w"], np.int64([[0, -1], [4, 2], [-1, -1]]))}
    return Recipe(nodes, inputs, {"w": np.abs(normal(5))})


def likelihood_of_classes_of_unknown_number():
    nodes = [node("NegativeLogLikelihoodLoss", ["x", "t"], ["y"], reduction="none")]
    return Recipe(nodes, {"x": (["n", "c"], normal(3, 5)), "t": (["n"], np.int32([0, 2, 4]))})


def boxes_that_are_far_longer_than_the_image():
    """As many samples as they are long; those outside of the image are zeros."""
    boxes = np.float32([[-1e9, -1e9, 1e9, 1e9], [0, 0, 3e38, 3e38]])
    nodes = [node("RoiAlign", ["x", "r", "b"], ["y"], output_height=2, output_width=1)]
    return Recipe(nodes, {"x": (["N", "C", "H", "W"], normal(1, 2, 9, 7)), "r": (["B", 4], boxes),
                          "b": (["B"], ints(0, 0))}, want=np.zeros((2, 2, 2, 1), np.float32))


def outputs_that_are_listed_again():
    return Recipe([node("Relu", ["x"], ["y"]), node("Neg", ["x"], ["y_1"])], {"x": (["N"], normal(5))},
                  outputs=("y", "y", "y_1", "x", "y"))
