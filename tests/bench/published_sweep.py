#!/usr/bin/env python3
"""Times what published files hold beside ONNX Runtime at sizes that a seed draws, static and symbolic: operators of
com.microsoft and ai.onnx.ml, quantised forms, and those of ai.onnx that networks seldom have.

usage: tests/bench/published_sweep.py [--seed 0] [--only REGEX] [--forms static,symbolic] [--rounds 4] [--seconds 0.1]
                                      [--bin build/release/bin] [--target cpu] [--max-ratio R] [--keep DIR]
Cases, comparisons and figures are as in quantised_sweep.py, whose cases are among these; estimators are trained by
scikit-learn and converted by skl2onnx, and left out where these are not installed. Random numbers are not compared."""
import pathlib
import re
import sys
import warnings

import numpy as np
from onnx import helper

import quantised_sweep as sweep
from quantised_sweep import IMAGE, Graph, scales, weights, whole, zero

MICROSOFT = "com.microsoft"


def normal(rng, *dims):
    return rng.standard_normal(dims).astype(np.float32)


def positive(rng, *dims):
    return rng.uniform(0.5, 1.5, dims).astype(np.float32)


def ints(*values):
    return np.asarray(values, np.int64)


def node(op, inputs, outputs="y", domain="", **attributes):
    return helper.make_node(op, inputs.split(" "), outputs.split(" "), domain=domain, **attributes)


def microsoft(op, inputs, outputs="y", **attributes):
    return node(op, inputs, outputs, MICROSOFT, **attributes)


def image(rng, low=8, high=64, kind="f32"):
    return kind, [1, whole(rng, low, high), whole(rng, 16, 96), whole(rng, 16, 96)], IMAGE


def rows(rng, width=None, kind="f32"):
    return kind, [1, whole(rng, 8, 200), width or whole(rng, 48, 1024)], {0: "b", 1: "s"}


# ---- One node of one tensor
def unary(op, make_input, domain="", tolerance=1e-3, constants=None, out="f32", **attributes):
    def make(rng):
        x = make_input(rng)
        extra = constants(rng, x[1]) if constants else {}
        return Graph([node(op, " ".join(["x", *extra]), domain=domain, **attributes)], {"x": x}, extra, {"y": out},
                     tolerance)
    return make


def same(op, make_input, count=2, domain="", **attributes):
    """An operator of `count` tensors of one shape."""
    def make(rng):
        x = make_input(rng)
        names = [f"x{i}" for i in range(count)]
        return Graph([node(op, " ".join(names), domain=domain, **attributes)], {n: x for n in names}, {}, {"y": "f32"},
                     1e-3)
    return make


# ---- com.microsoft
def fused_product(op, **attributes):
    def make(rng):
        m, k, n = whole(rng, 1, 200), whole(rng, 48, 800), whole(rng, 48, 800)
        b = normal(rng, *((n, k) if attributes.get("transB") else (k, n)))
        bias = {"c": normal(rng, n)} if op == "FusedGemm" else {}
        return Graph([microsoft(op, " ".join(["a", "b", *bias]), **attributes)],
                     {"a": ("f32", [m, k], {0: "m"})}, {"b": b, **bias}, {"y": "f32"}, 1e-2)
    return make


def fused_conv(rng):
    c, o = whole(rng, 8, 128), whole(rng, 8, 128)
    x = ("f32", [1, c, whole(rng, 8, 64), whole(rng, 8, 64)], IMAGE)
    return Graph([microsoft("FusedConv", "x w b", activation="Relu", pads=[1, 1, 1, 1])], {"x": x},
                 {"w": normal(rng, o, c, 3, 3), "b": normal(rng, o)}, {"y": "f32"}, 1e-2)


def bias_gelu(op):
    def make(rng):
        x = rows(rng)
        return Graph([microsoft(op, "x b")], {"x": x}, {"b": normal(rng, x[1][2])}, {"y": "f32"}, 1e-3)
    return make


def layer_norm(op, skip, bias, domain=MICROSOFT, **attributes):
    def make(rng):
        x = rows(rng)
        inputs = {"x": x, "s": x} if skip else {"x": x}
        constants = {"g": positive(rng, x[1][2])}
        if bias:
            constants["b"] = normal(rng, x[1][2])
        return Graph([node(op, " ".join([*inputs, *constants]), domain=domain, **attributes)], inputs, constants,
                     {"y": "f32"}, 1e-3)
    return make


def embed_norm(rng):
    s, d, words = whole(rng, 8, 200), whole(rng, 48, 768), 5000
    ids = ("i32", words), [1, s], {0: "b", 1: "s"}
    return Graph([microsoft("EmbedLayerNormalization", "ids types words places kinds g b", "y m")],
                 {"ids": ids, "types": (("i32", 2), *ids[1:])},
                 {"words": normal(rng, words, d), "places": normal(rng, 512, d), "kinds": normal(rng, 2, d),
                  "g": positive(rng, d), "b": normal(rng, d)}, {"y": "f32"}, 1e-3)


def attention(rng):
    s, heads, depth = whole(rng, 8, 200), whole(rng, 2, 12), int(rng.choice([32, 48, 64]))
    d = heads * depth
    return Graph([microsoft("Attention", "x w b", num_heads=heads)], {"x": ("f32", [1, s, d], {0: "b", 1: "s"})},
                 {"w": normal(rng, d, 3 * d) * np.float32(d ** -0.5), "b": normal(rng, 3 * d)}, {"y": "f32"}, 1e-2)


def quantised_attention(rng):
    s, heads, depth = whole(rng, 8, 200), whole(rng, 2, 12), int(rng.choice([32, 48, 64]))
    d = heads * depth
    constants = {"w": weights(rng, "i8", [d, 3 * d]), "b": normal(rng, 3 * d), "xs": scales(rng, None),
                 "ws": np.float32(0.003), "m": None, "xz": np.uint8(120), "wz": np.int8(0)}
    return Graph([microsoft("QAttention", "x w b xs ws  xz wz", num_heads=heads)],
                 {"x": ("u8", [1, s, d], {0: "b", 1: "s"})}, {n: c for n, c in constants.items() if c is not None},
                 {"y": "f32"}, 5e-2)


def heads_of(op, **options):
    def make(rng):
        s, heads, depth = whole(rng, 8, 200), 4 * whole(rng, 1, 3), int(rng.choice([32, 48, 64]))
        x = ("f32", [1, s, heads * depth], {0: "b", 1: "s"})
        return Graph([microsoft(op, "q k v", num_heads=heads)], {"q": x, "k": x, "v": x}, {}, {"y": "f32"}, 1e-2)
    return make


def grouped_heads(rng):
    s, groups, depth = whole(rng, 8, 200), whole(rng, 1, 4), int(rng.choice([32, 64]))
    q = ("f32", [1, s, 4 * groups * depth], {})
    k = ("f32", [1, s, groups * depth], {})
    return Graph([microsoft("GroupQueryAttention", "q k v   n t", "y pk pv", num_heads=4 * groups,
                            kv_num_heads=groups)],
                 {"q": q, "k": k, "v": k}, {"n": np.asarray([s - 1], np.int32), "t": np.asarray([s], np.int32)},
                 {"y": "f32"}, 1e-2)


def rotary(rng):
    s, heads, depth = whole(rng, 8, 200), whole(rng, 2, 12), int(rng.choice([32, 64]))
    angles = rng.uniform(0, 6, (256, depth // 2))
    return Graph([microsoft("RotaryEmbedding", "x p cos sin")],
                 {"x": ("f32", [1, heads, s, depth], {0: "b", 2: "s"})},
                 {"p": ints(0), "cos": np.cos(angles).astype(np.float32), "sin": np.sin(angles).astype(np.float32)},
                 {"y": "f32"}, 1e-3)


def packed_product(bits, many):
    def make(rng):
        k, n, block = 32 * whole(rng, 4, 32), 8 * whole(rng, 8, 128), 32
        m = whole(rng, 16, 128) if many else whole(rng, 1, 3)
        return Graph([microsoft("MatMulNBits", "a b s", K=k, N=n, bits=bits, block_size=block)],
                     {"a": ("f32", [m, k], {0: "m"})},
                     {"b": rng.integers(0, 256, (n, k // block, block * bits // 8)).astype(np.uint8),
                      "s": rng.uniform(0.01, 0.02, n * (k // block)).astype(np.float32)}, {"y": "f32"}, 5e-2)
    return make


def packed_gather(rng):
    d, block, count = 32 * whole(rng, 2, 16), 32, 2000
    return Graph([microsoft("GatherBlockQuantized", "w i s", bits=4, block_size=block, gather_axis=0,
                            quantize_axis=1)],
                 {"i": ("i64", [whole(rng, 4, 200)], {0: "n"})},
                 {"w": rng.integers(0, 256, (count, d // 2)).astype(np.uint8),
                  "s": rng.uniform(0.01, 0.02, (count, d // block)).astype(np.float32)}, {"y": "f32"}, 1e-3)


def integer_product_to_float(rng):
    m, k, n = whole(rng, 1, 200), whole(rng, 48, 800), whole(rng, 48, 800)
    return Graph([microsoft("MatMulIntegerToFloat", "a b as bs az bz")], {"a": ("u8", [m, k], {0: "m"})},
                 {"b": weights(rng, "i8", [k, n]), "as": scales(rng, None), "bs": scales(rng, n), "az": np.uint8(99),
                  "bz": np.zeros(n, np.int8)}, {"y": "f32"}, 1e-2)


def quantised_gemm(rng):
    m, k, n = whole(rng, 1, 200), whole(rng, 48, 800), whole(rng, 48, 800)
    constants = {"as": scales(rng, None), "az": np.uint8(99), "b": weights(rng, "i8", [k, n]), "bs": scales(rng, None),
                 "bz": np.int8(0), "c": rng.integers(-999, 999, n).astype(np.int32), "ys": np.float32(0.5),
                 "yz": np.uint8(120)}
    return Graph([microsoft("QGemm", "a as az b bs bz c ys yz")], {"a": ("u8", [m, k], {0: "m"})}, constants,
                 {"y": "u8"}, 1)


def quantised_concat(rng):
    h, w = whole(rng, 8, 48), whole(rng, 8, 48)
    inputs = {n: ("u8", [1, whole(rng, 8, 100), h, w], IMAGE) for n in "ab"}
    return Graph([microsoft("QLinearConcat", "ys yz a as az b bs bz", axis=1)], inputs,
                 {"ys": np.float32(0.02), "yz": np.uint8(7), "as": scales(rng, None), "az": np.uint8(9),
                  "bs": scales(rng, None), "bz": np.uint8(120)}, {"y": "u8"}, 1)


def quantised_softmax(rng):
    return Graph([microsoft("QLinearSoftmax", "x xs xz ys yz", axis=-1, opset=13)],
                 {"x": ("u8", [1, whole(rng, 8, 400), whole(rng, 16, 400)], {0: "b", 1: "s"})},
                 {"xs": scales(rng, None), "xz": np.uint8(100), "ys": np.float32(1 / 256), "yz": np.uint8(0)},
                 {"y": "u8"}, 1)


# ---- Quantised operators as they are written between QuantizeLinear and DequantizeLinear, or quantised on the way
def quantised(names, constants, rng, tensor):
    """Nodes that quantise `tensor` and back."""
    constants.update({f"{tensor}_s": np.float32(0.03), f"{tensor}_z": np.uint8(128)})
    names += [node("QuantizeLinear", f"{tensor} {tensor}_s {tensor}_z", f"{tensor}_q"),
              node("DequantizeLinear", f"{tensor}_q {tensor}_s {tensor}_z", f"{tensor}_d")]


def between(op, kernel=3, stride=1, groups=False):
    def make(rng):
        nodes, constants = [], {}
        quantised(nodes, constants, rng, "x")
        if op == "MatMul":
            k, n = whole(rng, 48, 800), whole(rng, 48, 800)
            x, dims, attributes = ("f32", [1, whole(rng, 1, 200), k], {0: "b", 1: "s"}), [k, n], {}
        else:
            c = whole(rng, 16, 128)
            o = c if groups else whole(rng, 16, 128)
            x = ("f32", [1, c, whole(rng, 8, 64), whole(rng, 8, 64)], IMAGE)
            dims = [o, 1 if groups else c, kernel, kernel]
            attributes = dict(group=c if groups else 1, pads=[kernel // 2] * 4, strides=[stride] * 2)
        constants.update(w=weights(rng, "i8", dims), w_s=np.float32(0.003), w_z=np.int8(0))
        nodes += [node("DequantizeLinear", "w w_s w_z", "w_d"), node(op, "x_d w_d", "v", **attributes)]
        quantised(nodes, constants, rng, "v")
        return Graph(nodes, {"x": x}, constants, {"v_d": "f32"}, 0.031)
    return make


def on_the_way(op):
    """As quantize_dynamic writes it."""
    def make(rng):
        constants = {"z": np.int8(0), "ws": np.float32(0.003)}
        nodes = [node("DynamicQuantizeLinear", "x", "q s xz")]
        if op == "MatMulInteger":
            k, n = whole(rng, 48, 800), whole(rng, 48, 800)
            x = ("f32", [1, whole(rng, 1, 200), k], {0: "b", 1: "s"})
            constants.update(w=weights(rng, "i8", [k, n]), b=normal(rng, n))
            nodes.append(node(op, "q w xz z", "i"))
        else:
            c, o = whole(rng, 16, 128), whole(rng, 16, 128)
            x = ("f32", [1, c, whole(rng, 8, 64), whole(rng, 8, 64)], IMAGE)
            constants.update(w=weights(rng, "u8", [o, c, 3, 3]), z=np.uint8(128), b=normal(rng, o, 1, 1))
            nodes.append(node(op, "q w xz z", "i", pads=[1] * 4))
        nodes += [node("Cast", "i", "f", to=1), node("Mul", "s ws", "t"), node("Mul", "f t", "p"), node("Add", "p b")]
        return Graph(nodes, {"x": x}, constants, {"y": "f32"}, 5e-2)
    return make


# ---- ai.onnx
def recurrent(op, gates, direction="forward"):
    def make(rng):
        steps, width, hidden = whole(rng, 4, 100), whole(rng, 16, 300), whole(rng, 16, 300)
        d = 2 if direction == "bidirectional" else 1
        return Graph([node(op, "x w r b", hidden_size=hidden, direction=direction)],
                     {"x": ("f32", [steps, 1, width], {0: "s", 1: "b"})},
                     {"w": normal(rng, d, gates * hidden, width) * np.float32(0.1),
                      "r": normal(rng, d, gates * hidden, hidden) * np.float32(0.1),
                      "b": normal(rng, d, 2 * gates * hidden)}, {"y": "f32"}, 1e-3)
    return make


def top_k(rng):
    n = whole(rng, 64, 20000)
    return Graph([node("TopK", "x k", "y i", axis=-1)], {"x": ("f32", [whole(rng, 1, 50), n], {0: "b", 1: "n"})},
                 {"k": ints(whole(rng, 1, min(n, 300)))}, {"y": "f32"}, 0)


def suppression(rng):
    boxes, classes = whole(rng, 50, 3000), whole(rng, 1, 20)
    nodes = [node("Slice", "r a c two", "corner"), node("Slice", "r c e two", "size"),
             node("Mul", "size half", "small"), node("Add", "corner small", "far"),
             node("Concat", "corner far", "boxes", axis=2),
             node("NonMaxSuppression", "boxes scores most iou least", "y")]
    return Graph(nodes, {"r": ("f32u", [1, boxes, 4], {1: "n"}), "scores": ("f32u", [1, classes, boxes], {2: "n"})},
                 {"a": ints(0), "c": ints(2), "e": ints(4), "two": ints(2), "half": np.float32(0.3), "most": ints(100),
                  "iou": np.float32(0.5), "least": np.float32(0.3)}, {"y": "i64"}, 0)


def transform(rng):
    n = int(rng.choice([64, 100, 256, 400, 512, 1000]))
    return Graph([node("DFT", "x n a")], {"x": ("f32", [whole(rng, 1, 60), n, 1], {0: "b"})},
                 {"n": ints(n), "a": ints(1)}, {"y": "f32"}, 1e-2)


def short_time(rng):
    frame = int(rng.choice([128, 256, 400, 512]))
    return Graph([node("STFT", "x step window length")],
                 {"x": ("f32", [1, whole(rng, 4000, 32000), 1], {1: "n"})},
                 {"step": ints(frame // 2), "window": np.hanning(frame).astype(np.float32), "length": ints(frame)},
                 {"y": "f32"}, 1e-2)


def deformed(rng):
    c, o, h, w = whole(rng, 8, 64), whole(rng, 8, 64), whole(rng, 8, 48), whole(rng, 8, 48)
    return Graph([node("DeformConv", "x w o", pads=[1] * 4)],
                 {"x": ("f32", [1, c, h, w], IMAGE), "o": ("f32", [1, 18, h, w], IMAGE)},
                 {"w": normal(rng, o, c, 3, 3)}, {"y": "f32"}, 1e-2)


def regions(mode, size):
    def make(rng):
        n, c = whole(rng, 1, 100), whole(rng, 8, 256)
        low = rng.uniform(0, 100, (n, 2))
        return Graph([node("RoiAlign", "x r i", output_height=size, output_width=size, sampling_ratio=2, mode=mode,
                           spatial_scale=0.25)],
                     {"x": ("f32", [1, c, whole(rng, 20, 64), whole(rng, 20, 64)], {2: "h", 3: "w"})},
                     {"r": np.concatenate([low, low + rng.uniform(5, 100, (n, 2))], 1).astype(np.float32),
                      "i": np.zeros(n, np.int64)}, {"y": "f32"}, 1e-3)
    return make


def grid_sample(mode, padding):
    def make(rng):
        h, w = whole(rng, 16, 64), whole(rng, 16, 64)
        return Graph([node("GridSample", "x g", mode=mode, padding_mode=padding)],
                     {"x": image(rng), "g": ("f32", [1, h, w, 2], {0: "n", 1: "p", 2: "q"})}, {}, {"y": "f32"}, 2e-3)
    return make


def conv_transpose(kernel, stride):
    def make(rng):
        c, o = whole(rng, 8, 128), whole(rng, 8, 128)
        x = ("f32", [1, c, whole(rng, 8, 48), whole(rng, 8, 48)], IMAGE)
        return Graph([node("ConvTranspose", "x w", strides=[stride] * 2, pads=[kernel // 4] * 4)], {"x": x},
                     {"w": normal(rng, c, o, kernel, kernel)}, {"y": "f32"}, 1e-2)
    return make


def gathered(op, **attributes):
    def make(rng):
        m, n, k = whole(rng, 16, 400), whole(rng, 16, 400), whole(rng, 16, 400)
        if op == "GatherElements":
            return Graph([node(op, "x i", axis=0)], {"x": ("f32", [m, n], {0: "m", 1: "n"})},
                         {"i": rng.integers(0, m, (k, n))}, {"y": "f32"}, 0)
        if op == "GatherND":
            return Graph([node(op, "x i")], {"x": ("f32", [m, n, 16], {})},
                         {"i": np.stack([rng.integers(0, m, 99), rng.integers(0, n, 99)], 1)}, {"y": "f32"}, 0)
        if op == "ScatterElements":
            return Graph([node(op, "x i u", axis=0, **attributes)],
                         {"x": ("f32", [m, n], {}), "u": ("f32", [k, n], {})},
                         {"i": np.stack([rng.permutation(max(m, k))[:k] % m for _ in range(n)], 1)}, {"y": "f32"}, 1e-3)
        return Graph([node(op, "x i u", **attributes)], {"x": ("f32", [m, n], {}), "u": ("f32", [m // 2, n], {})},
                     {"i": rng.permutation(m)[:m // 2][:, None]}, {"y": "f32"}, 1e-3)
    return make


def pool(op, **attributes):
    def make(rng):
        return Graph([node(op, "x", kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4, **attributes)],
                     {"x": image(rng)}, {}, {"y": "f32"}, 1e-3)
    return make


def pool_places(rng):
    return Graph([node("MaxPool", "x", "y i", kernel_shape=[2, 2], strides=[2, 2])], {"x": image(rng)}, {},
                 {"y": "f32", "i": "i64"}, 0)


def col2im(rng):
    h, w, c = whole(rng, 8, 48), whole(rng, 8, 48), whole(rng, 4, 32)
    return Graph([node("Col2Im", "x s b", pads=[1] * 4)], {"x": ("f32", [1, 9 * c, h * w], {0: "n"})},
                 {"s": ints(h, w), "b": ints(3, 3)}, {"y": "f32"}, 1e-3)


def determinant(rng):
    n = whole(rng, 2, 12)
    return Graph([node("Det", "x")], {"x": ("f32", [whole(rng, 10, 2000), n, n], {0: "b"})}, {}, {"y": "f32"}, 1e9)


def words(rng):
    return Graph([node("TfIdfVectorizer", "x", mode="TF", min_gram_length=1, max_gram_length=2, max_skip_count=0,
                       ngram_counts=[0, 50], ngram_indexes=list(range(75)),
                       pool_int64s=[*range(50), *range(50)])],
                 {"x": (("i64", 60), [whole(rng, 1, 30), whole(rng, 8, 100)], {0: "b"})}, {}, {"y": "f32"}, 0)


def random(op, **attributes):
    def make(rng):
        dims = [whole(rng, 4, 100), whole(rng, 64, 1000)]
        return Graph([node(op, "x", seed=3.0, **attributes)], {"x": ("f32u", dims, {0: "b"})}, {}, {"y": "f32"}, 1e9)
    return make


def one_hot(rng):
    return Graph([node("OneHot", "x d v", axis=-1)], {"x": ("i64", [whole(rng, 8, 400)], {0: "n"})},
                 {"d": np.int64(whole(rng, 100, 1000)), "v": np.asarray([0, 1], np.float32)}, {"y": "f32"}, 0)


def summed(rng):
    return Graph([node("CumSum", "x a")], {"x": ("f32", [whole(rng, 4, 200), whole(rng, 16, 1000)], {0: "m", 1: "n"})},
                 {"a": np.int64(rng.integers(0, 2))}, {"y": "f32"}, 1e-2)


def einsum(rng):
    h, s, d = whole(rng, 2, 12), whole(rng, 16, 200), whole(rng, 16, 100)
    x = ("f32", [1, s, h, d], {1: "s"})
    return Graph([node("Einsum", "a b", equation="bqhd,bkhd->bhqk")], {"a": x, "b": x}, {}, {"y": "f32"}, 1e-2)


def loss(rng):
    c = whole(rng, 8, 1000)
    n = whole(rng, 8, 200)
    return Graph([node("SoftmaxCrossEntropyLoss", "x t")],
                 {"x": ("f32", [n, c], {0: "n"}), "t": (("i64", 8), [n], {0: "n"})}, {}, {"y": "f32"}, 1e-3)


def resize(mode, **attributes):
    def make(rng):
        scale = np.array([1, 1, rng.uniform(0.5, 3), rng.uniform(0.5, 3)], np.float32)
        return Graph([node("Resize", "x  scales", mode=mode, **attributes)], {"x": image(rng)}, {"scales": scale},
                     {"y": "f32"}, 2e-3)
    return make


CASES = {
    "fused_matmul": fused_product("FusedMatMul", alpha=0.5), "fused_matmul_t": fused_product("FusedMatMul", transB=1),
    "fused_gemm": fused_product("FusedGemm", activation="Relu"), "fused_conv": fused_conv,
    "gelu": unary("Gelu", rows, MICROSOFT), "fast_gelu": unary("FastGelu", rows, MICROSOFT),
    "quick_gelu": unary("QuickGelu", rows, MICROSOFT, alpha=1.702), "bias_gelu": bias_gelu("BiasGelu"),
    "fast_gelu_bias": bias_gelu("FastGelu"),
    "skip_layer_norm": layer_norm("SkipLayerNormalization", True, True),
    "simplified_norm": layer_norm("SimplifiedLayerNormalization", False, False, ""),
    "skip_simplified_norm": layer_norm("SkipSimplifiedLayerNormalization", True, False),
    "embed_norm": embed_norm, "attention_contrib": attention, "quantised_attention": quantised_attention,
    "multi_head_attention": heads_of("MultiHeadAttention"), "group_query_attention": grouped_heads, "rotary": rotary,
    "matmul_4_bits_few": packed_product(4, False), "matmul_4_bits_many": packed_product(4, True),
    "matmul_8_bits_few": packed_product(8, False), "matmul_8_bits_many": packed_product(8, True),
    "gather_packed": packed_gather, "matmul_integer_to_float": integer_product_to_float, "qgemm": quantised_gemm,
    "qlinear_concat": quantised_concat, "qlinear_softmax": quantised_softmax,
    "qdq_matmul": between("MatMul"), "qdq_conv_1x1": between("Conv", 1), "qdq_conv_3x3": between("Conv"),
    "qdq_conv_strided": between("Conv", 3, 2), "qdq_depthwise": between("Conv", 3, groups=True),
    "dynamic_matmul": on_the_way("MatMulInteger"), "dynamic_conv": on_the_way("ConvInteger"),
    "lstm": recurrent("LSTM", 4), "lstm_both": recurrent("LSTM", 4, "bidirectional"), "gru": recurrent("GRU", 3),
    "gru_both": recurrent("GRU", 3, "bidirectional"), "rnn": recurrent("RNN", 1), "top_k": top_k, "nms": suppression,
    "dft": transform, "stft": short_time, "deform_conv": deformed, "roi_align_avg": regions("avg", 7),
    "roi_align_max": regions("max", 5), "grid_linear": grid_sample("linear", "zeros"),
    "grid_nearest": grid_sample("nearest", "border"), "grid_cubic": grid_sample("cubic", "reflection"),
    "conv_transpose_4": conv_transpose(4, 2), "conv_transpose_2": conv_transpose(2, 2),
    "gather_elements": gathered("GatherElements"), "gather_nd": gathered("GatherND"),
    "scatter_elements": gathered("ScatterElements", reduction="add"), "scatter_nd": gathered("ScatterND"),
    "lp_pool": pool("LpPool"), "average_pool": pool("AveragePool"), "max_pool_places": pool_places, "col2im": col2im,
    "det": determinant, "tf_idf": words, "random_normal": random("RandomNormalLike"),
    "random_uniform": random("RandomUniformLike"), "bernoulli": random("Bernoulli"), "one_hot": one_hot,
    "cumsum": summed, "einsum": einsum, "loss": loss,
    "depth_to_space": unary("DepthToSpace", lambda rng: ("f32", [1, 4 * whole(rng, 4, 32), whole(rng, 8, 64),
                                                                  whole(rng, 8, 64)], IMAGE), blocksize=2),
    "space_to_depth": unary("SpaceToDepth", lambda rng: ("f32", [1, whole(rng, 4, 32), 2 * whole(rng, 8, 48),
                                                                  2 * whole(rng, 8, 48)], {0: "n"}), blocksize=2),
    "instance_norm": unary("InstanceNormalization", image, constants=lambda rng, d: {
        "g": positive(rng, d[1]), "b": normal(rng, d[1])}),
    "lrn": unary("LRN", image, size=5), "mean_variance": unary("MeanVarianceNormalization", image),
    "hardmax": unary("Hardmax", rows, tolerance=0), "log_softmax": unary("LogSoftmax", rows),
    "softmax_middle": unary("Softmax", image, axis=1), "mish": unary("Mish", rows), "softplus": unary("Softplus", rows),
    "celu": unary("Celu", rows), "hard_swish": unary("HardSwish", rows), "erf": unary("Erf", rows),
    "non_zero": unary("NonZero", rows, out="i64", tolerance=0), "trilu": unary("Trilu", rows, tolerance=0),
    "arg_max": unary("ArgMax", image, out="i64", tolerance=0, axis=1),
    "reduce_l2": unary("ReduceL2", rows, constants=lambda rng, d: {"a": ints(-1)}),
    "reduce_log_sum_exp": unary("ReduceLogSumExp", rows, constants=lambda rng, d: {"a": ints(-1)}),
    "mod": same("Mod", rows, fmod=1), "max_of_four": same("Max", rows, 4), "pow": unary(
        "Pow", lambda rng: ("f32u", *rows(rng)[1:]), constants=lambda rng, d: {"e": np.float32(1.7)}),
    "resize_cubic": resize("cubic"), "resize_linear": resize("linear", coordinate_transformation_mode="align_corners"),
    "resize_nearest": resize("nearest", nearest_mode="floor", coordinate_transformation_mode="asymmetric"),
    "pad_reflect": unary("Pad", image, constants=lambda rng, d: {"p": ints(0, 0, 3, 3, 0, 0, 3, 3)}, mode="reflect"),
}


# ---- ai.onnx.ml
def data(rng, features, classes=3):
    x = rng.standard_normal((400, features)).astype(np.float32)
    return x, (np.abs(x[:, :4].sum(axis=1) + 0.3 * rng.standard_normal(400)) % classes).astype(int)


def estimator(make_estimator, many, regression=False):
    """One that scikit-learn trained: of one row, or of many."""
    def make(rng):
        from skl2onnx import to_onnx
        warnings.simplefilter("ignore")
        features = whole(rng, 6, 60)
        x, labels = data(rng, features)
        trained = make_estimator(rng).fit(x, labels + 0.1 * x[:, 0] if regression else labels)
        options = {} if regression else {id(trained): {"zipmap": False}}
        model = to_onnx(trained, x[:1], options=options, target_opset=18)
        return sweep.Converted(model, x, whole(rng, 50, 1000) if many else 1, 1e-3)
    return make


def estimators():
    try:
        import skl2onnx
        from sklearn import ensemble, linear_model, neural_network, preprocessing, svm, tree
    except ImportError as error:
        print("no estimators:", error)
        return {}
    del skl2onnx
    makers = {
        "tree": (lambda rng: tree.DecisionTreeClassifier(max_depth=whole(rng, 3, 12)), False),
        "forest": (lambda rng: ensemble.RandomForestClassifier(whole(rng, 10, 150), random_state=0), False),
        "forest_regressor": (lambda rng: ensemble.RandomForestRegressor(whole(rng, 10, 150), random_state=0), True),
        "boosting": (lambda rng: ensemble.GradientBoostingClassifier(n_estimators=whole(rng, 10, 60)), False),
        "boosted_regressor": (lambda rng: ensemble.GradientBoostingRegressor(n_estimators=whole(rng, 10, 200)), True),
        "svc": (lambda rng: svm.SVC(probability=False), False),
        "svc_poly": (lambda rng: svm.SVC(kernel="poly", degree=3), False),
        "svr": (lambda rng: svm.SVR(), True),
        "logistic": (lambda rng: linear_model.LogisticRegression(), False),
        "ridge": (lambda rng: linear_model.Ridge(), True), "scaler": (lambda rng: preprocessing.StandardScaler(), True),
        "normalizer": (lambda rng: preprocessing.Normalizer(), True),
        "perceptron": (lambda rng: neural_network.MLPClassifier((whole(rng, 8, 100),), max_iter=20), False)}
    return {f"{name}_{'many' if many else 'one'}": estimator(make, many, regression)
            for name, (make, regression) in makers.items() for many in (False, True)}


def main():
    cases = {**sweep.CASES, **CASES, **estimators()}
    return sweep.main(cases, __doc__)


if __name__ == "__main__":
    sys.exit(main())
