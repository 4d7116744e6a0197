"""com.microsoft's operators of whole layers: what ONNX Runtime's optimiser makes of convolutions and pools for a CPU
(com.microsoft.nchwc: networks that it writes itself, and single nodes), mixtures of experts, weights in blocks of four
bits, and the layers of diffusion models, of which ONNX Runtime has kernels for GPUs alone: their definition is here.

usage: microsoft_layers.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import itertools
import unittest

from microsoft_models import (BAD_INPUT, F32, I32, U8, Compiled, by_onnx_runtime, free, helper, matrix, model_of, normal, np,
                              numpy_helper, onnx, onnxruntime)

NCHWC = "com.microsoft.nchwc"


# ---- com.microsoft.nchwc

def network(nodes, channels, weights, outputs=("y",), size=("H", "W")):
    """A model of a picture [N, channels, H, W] "x". nodes: (operator, inputs, output, attributes)."""
    graph = helper.make_graph(
        [helper.make_node(op, list(inputs), [output], **attributes) for op, inputs, output, attributes in nodes], "net",
        [helper.make_tensor_value_info("x", F32, ["N", channels, *size])],
        [onnx.ValueInfoProto(name=n) for n in outputs],
        [numpy_helper.from_array(array, name) for name, array in weights.items()])
    return helper.make_model(graph, ir_version=9, opset_imports=[helper.make_opsetid("", 17)])


def stem(first, other, groups=1):
    """A convolution of three channels, one in groups beside which a residue goes, and one of few results."""
    weights = {"a": normal(1, first, 3, 3, 3) / 4, "ab": normal(2, first),
               "b": normal(3, first, first // groups, 3, 3) / 9, "c": normal(4, other, first, 1, 1) / 4, "cb": normal(5, other)}
    nodes = [("Conv", "x a ab".split(), "p", {"pads": [1] * 4, "strides": [2, 2]}), ("Relu", ["p"], "q", {}),
             ("Conv", ["q", "b"], "r", {"pads": [1] * 4, "group": groups}), ("Add", ["r", "q"], "s", {}),
             ("Relu", ["s"], "t", {}), ("Conv", "t c cb".split(), "y", {})]
    return network(nodes, 3, weights)


def activated(op, **attributes):
    weights = {"a": normal(1, 20, 3, 3, 3) / 4, "ab": normal(2, 20), "low": np.float32(-0.5), "high": np.float32(0.75)}
    bounds = ["low", "high"] if op == "Clip" else []
    return network([("Conv", "x a ab".split(), "p", {}), (op, ["p", *bounds], "y", attributes)], 3, weights)


def pools(channels, op, **attributes):
    weights = {"a": normal(1, channels, 4, 1, 1)}
    nodes = [("Conv", ["x", "a"], "p", {}), (op, ["p"], "y", attributes)]
    return network(nodes, 4, weights)


def gated():
    """Channels that are multiplied by numbers of their own: views of five axes, and a concatenation."""
    weights = {"a": normal(1, 32, 3, 3, 3) / 4, "b": normal(2, 32, 32, 1, 1) / 6, "c": normal(3, 16, 64, 1, 1) / 8}
    nodes = [("Conv", ["x", "a"], "p", {}), ("GlobalAveragePool", ["p"], "g", {}), ("Conv", ["g", "b"], "h", {}),
             ("Sigmoid", ["h"], "s", {}), ("Mul", ["p", "s"], "m", {}), ("Concat", ["m", "p"], "j", {"axis": 1}),
             ("Conv", ["j", "c"], "y", {})]
    return network(nodes, 3, weights)


def scaled(**attributes):
    weights = {"a": normal(1, 16, 3, 3, 3) / 4, "b": normal(2, 16, 16, 1, 1) / 4,
               "f": np.array([1, 1, 2, 3], np.float32)}
    nodes = [("Conv", ["x", "a"], "p", {}), ("Resize", ["p", "", "f"], "q", attributes), ("Conv", ["q", "b"], "y", {})]
    return network(nodes, 3, weights)


NETWORKS = [
    *((f"convolutions of {first} and {other} channels in {groups} groups",
       lambda first=first, other=other, groups=groups: stem(first, other, groups))
      for first, other, groups in ((16, 32, 1), (24, 20, 1), (32, 8, 2), (16, 64, 16), (40, 12, 40))),
    *((f"{op} {attributes or ''}", lambda op=op, attributes=attributes: activated(op, **attributes))
      for op, attributes in (("Relu", {}), ("Sigmoid", {}), ("Tanh", {}), ("LeakyRelu", {"alpha": 0.2}),
                             ("HardSigmoid", {"alpha": 0.3, "beta": 0.4}), ("Clip", {}), ("HardSwish", {}))),
    *((f"{op} {attributes}", lambda op=op, attributes=attributes: pools(24, op, **attributes))
      for op, attributes in (
          ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "pads": [1] * 4}),
          ("MaxPool", {"kernel_shape": [3, 2], "strides": [2, 3], "ceil_mode": 1, "dilations": [2, 1]}),
          ("MaxPool", {"kernel_shape": [3, 3], "strides": [2, 2], "auto_pad": "SAME_UPPER"}),
          ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4}),
          ("AveragePool", {"kernel_shape": [3, 3], "pads": [1] * 4, "count_include_pad": 1}),
          ("AveragePool", {"kernel_shape": [2, 3], "strides": [2, 2], "ceil_mode": 1}),
          ("GlobalAveragePool", {}), ("GlobalMaxPool", {}))),
    ("gates", gated),
    *((f"Resize {attributes}", lambda attributes=attributes: scaled(**attributes))
      for attributes in ({"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"},
                         {"mode": "linear", "coordinate_transformation_mode": "half_pixel"},
                         {"mode": "linear", "coordinate_transformation_mode": "align_corners"},
                         {"mode": "linear", "coordinate_transformation_mode": "asymmetric"})),
]


def blocked(x, block):
    """What lies in blocks, in the dims that it has there."""
    n, c, h, w = x.shape
    return np.ascontiguousarray(x.reshape(n, c // block, block, h, w).transpose(0, 1, 3, 4, 2)).reshape(n, c, h, w)


# ---- experts

def experts_of(quantised=None, rows=("T",), count=4, hidden=16, inner=32, **attributes):
    """quantised: (bits, the length of blocks or None, whether there are zero points)."""
    gates = attributes.get("activation_type") == "swiglu"
    widths = [(2 * inner if gates else inner, hidden), (hidden, inner)]
    constants = {}
    for i, (out, width) in enumerate(widths):
        if quantised is None:
            constants[f"w{i}"] = normal(i, count, out, width) / 4
        else:
            bits, block, has_zeros = quantised
            rng, blocks = np.random.default_rng(i), [] if block is None else [width // block]
            constants[f"w{i}"] = rng.integers(0, 256, [count, out, width * bits // 8]).astype(np.uint8)
            constants[f"s{i}"] = (rng.random([count, out, *blocks]) / 2 ** bits).astype(np.float32)
            per_byte = 8 // bits
            if has_zeros:
                packed = [out, -(-blocks[0] // per_byte)] if blocks else [-(-out // per_byte)]
                constants[f"z{i}"] = rng.integers(0, 256, [count, *packed]).astype(np.uint8)
            attributes = {"expert_weight_bits": bits, **({"block_size": block} if block else {}), **attributes}
        constants[f"b{i}"] = normal(9 + i, count, out)
    order = ["w0", "b0", "w1", "b1"]
    if quantised is not None:
        order = ["w0", "s0", "b0", "w1", "s1", "b1", "", "", "", "z0", "z1"]
    sizes = {"T": 5, "B": 2, "S": 3}
    dims = [sizes[name] for name in rows]
    given = {"x": normal(20, *dims, hidden), "r": normal(21, int(np.prod(dims)), count)}
    inputs = {"x": (F32, [*rows, hidden]), "r": (F32, ["R", count])}
    names = [name if name in constants else "" for name in order]
    while names and not names[-1]:
        names.pop()
    model = model_of("MoE" if quantised is None else "QMoE", inputs, constants=constants, k=2, **attributes)
    model.graph.node[0].input[:] = ["x", "r", *names]
    return model, given


GATES = {"activation_type": "swiglu", "swiglu_fusion": 1}
EXPERTS = [
    *((f"MoE {attributes}", lambda attributes=attributes: experts_of(**attributes))
      for attributes in ({}, {"activation_type": "gelu"}, {"activation_type": "silu", "normalize_routing_weights": 1},
                         {"activation_type": "identity", "rows": ("B", "S")}, GATES,
                         GATES | {"activation_alpha": 1.702, "activation_beta": 1.0, "swiglu_limit": 0.5})),
    *((f"QMoE {form} {attributes}", lambda form=form, attributes=attributes: experts_of(form, **attributes))
      for form in ((4, None, False), (8, None, False), (4, 16, False), (4, 16, True), (4, None, True))
      for attributes in ({"normalize_routing_weights": 1}, {"activation_type": "silu"})),
    ("QMoE, gated", lambda: experts_of((4, 16, False), **GATES, normalize_routing_weights=1)),
]
# ONNX Runtime rounds the data to bytes.
ROUNDED = [("QMoE of blocks of bytes", lambda: experts_of((8, 16, True), activation_type="silu"))]


# ---- weights in blocks

def bnb4(kind, rows, columns, block, **attributes):
    """All codes, and a last block that may be shorter."""
    rng = np.random.default_rng(kind)
    codes = rng.integers(0, 256, [(rows * columns + 1) // 2]).astype(np.uint8)
    codes[:16] = np.arange(16) * 17 if len(codes) >= 16 else codes[:16]
    constants = {"b": codes, "s": rng.random(-(-rows * columns // block)).astype(np.float32)}
    given = {"a": normal(3, 5, columns if attributes.get("transB", 1) else rows)}
    return model_of("MatMulBnb4", {"a": free("M", given["a"]), "b": None, "s": None}, constants=constants, K=columns,
                    N=rows, block_size=block, quant_type=kind, **attributes), given


BLOCKS = [(f"MatMulBnb4 {form} {attributes}", lambda form=form, attributes=attributes: bnb4(*form, **attributes))
          for form in ((0, 8, 16, 16), (1, 8, 16, 16), (0, 7, 20, 64), (1, 3, 5, 16))
          for attributes in ({}, {"training_mode": 1})]


# ---- diffusion models

def grouped(x, gamma, beta, groups, epsilon, activation):
    """Of channels that come last."""
    n, h, w, c = x.shape
    apart = x.astype(np.float64).reshape(n, h * w, groups, c // groups)
    mean = apart.mean((1, 3), keepdims=True)
    variance = ((apart - mean) ** 2).mean((1, 3), keepdims=True)
    y = ((apart - mean) / np.sqrt(variance + epsilon)).reshape(x.shape) * gamma + beta
    return y / (1 + np.exp(-y)) if activation else y


def gelu(x, tanh=False):
    from math import erf
    x = x.astype(np.float64)
    if tanh:
        return x / 2 * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x ** 3)))
    return x / 2 * (1 + np.vectorize(erf)(x / np.sqrt(2)))


def group_norm(last, activation, skip=None, bias=False, dtype=np.float32, epsilon=1e-5):
    """skip: the dims of what is added, by their letters."""
    n, h, w, c, groups = 2, 3, 5, 8, 4
    x, gamma, beta = (normal(1, n, h, w, c) * 3).astype(dtype), normal(2, c), normal(3, c)
    constants, given = {"g": gamma, "b": beta}, {"x": x if last else x.transpose(0, 3, 1, 2).copy()}
    s = x
    if skip is not None:
        sizes = {"n": n, "h": h, "w": w, "c": c, "1": 1}
        given["s"] = normal(4, *[sizes[d] for d in skip]).astype(dtype)
        spread = given["s"].reshape(n, 1, 1, c) if len(skip) == 2 else given["s"]
        if len(skip) == 4 and not last:
            spread = spread.transpose(0, 2, 3, 1)
        s = x + spread
    if bias:
        constants["e"] = normal(5, c).astype(dtype)
        s = s + constants["e"]
    y = grouped(s, gamma, beta, groups, epsilon, activation)
    expected = {"y": y, "t": s} if skip is not None else {"y": y}
    if not last:
        expected = {name: array.transpose(0, 3, 1, 2) for name, array in expected.items()}
    inputs = {"x": free("N", given["x"]), "g": None, "b": None}
    if skip is not None:
        inputs["s"] = free("N", given["s"])
    model = model_of("GroupNorm" if skip is None else "SkipGroupNorm", inputs | ({"e": None} if bias else {}),
                     list(expected), constants, groups=groups, activation=activation, epsilon=epsilon,
                     **({} if last else {"channels_last": 0}))
    return model, given, expected


def biased(op, dtype=np.float32):
    given = {"x": normal(1, 2, 3, 8).astype(dtype)}
    constants = {"b": normal(2, 8).astype(dtype)}
    sums = given["x"].astype(np.float64) + constants["b"]
    if op == "BiasAdd":
        given["s"] = normal(3, 2, 3, 8).astype(dtype)
        expected = sums + given["s"]
    else:
        expected = sums[..., :4] * gelu(sums[..., 4:])
    inputs = {"x": free("N", given["x"]), "b": None} | ({"s": free("N", given["s"])} if "s" in given else {})
    return model_of(op, inputs, constants=constants), given, {"y": expected}


def gemm_gelu(bias):
    given, constants = {"x": normal(1, 2, 3, 8)}, {"w": normal(2, 8, 4)} | ({"b": normal(3, 4)} if bias else {})
    expected = gelu(given["x"] @ constants["w"] + constants.get("b", 0), tanh=True)
    model = model_of("GemmFastGelu", {"x": free("N", given["x"])} | dict.fromkeys(constants), constants=constants)
    return model, given, {"y": expected}


DEFINED = [
    *((f"GroupNorm {last} {activation}", lambda last=last, activation=activation: group_norm(last, activation))
      for last, activation in itertools.product((True, False), (0, 1))),
    ("GroupNorm of float16", lambda: group_norm(True, 1, dtype=np.float16)),
    *((f"SkipGroupNorm {last} {skip} {bias}",
       lambda last=last, skip=skip, bias=bias: group_norm(last, 1, skip=skip, bias=bias))
      for last, skip, bias in ((True, "nhwc", True), (True, "nc", False), (True, "n11c", True), (False, "nchw", True),
                               (False, "nc", True))),
    *((f"{op} of {dtype.__name__}", lambda op=op, dtype=dtype: biased(op, dtype))
      for op in ("BiasAdd", "BiasSplitGelu") for dtype in (np.float32, np.float16)),
    *((f"GemmFastGelu {bias}", lambda bias=bias: gemm_gelu(bias)) for bias in (False, True)),
]

PICTURE = {"x": matrix("N", 16, 4, 4)}
SMALL = {"x": matrix("T", 8), "r": matrix("T", 4)}
REFUSED = [
    ("a symbolic number of channels", lambda: model_of("ReorderInput", {"x": matrix("N", "C", 4, 4)}, domain=NCHWC)),
    ('mode "cubic"', lambda: model_of("Upsample", PICTURE, domain=NCHWC, mode="cubic", scales=[1, 1, 2, 2])),
    ('coordinate_transformation_mode "half_pixel"',
     lambda: model_of("Upsample", PICTURE, domain=NCHWC, scales=[1, 1, 2, 2],
                      coordinate_transformation_mode="half_pixel")),
    ('the attribute "dilation"', lambda: model_of("MaxPool", PICTURE, domain=NCHWC, kernel_shape=[2, 2], dilation=1)),
    ("activation 2", lambda: model_of("GroupNorm", {"x": matrix("N", 4, 4, 8), "g": matrix(8), "b": matrix(8)},
                                      groups=2, activation=2)),
    ("quant_type 2", lambda: model_of("MatMulBnb4", {"a": matrix("M", 16), "b": (U8, [64]), "s": matrix(8)}, K=16, N=8,
                                      block_size=16, quant_type=2)),
    ("use_sparse_mixer", lambda: model_of("MoE", SMALL | {"w": matrix(4, 8, 8), "b": None, "v": matrix(4, 8, 8)}, k=2,
                                          use_sparse_mixer=1)),
    ('the activation "geglu"', lambda: model_of("MoE", SMALL | {"w": matrix(4, 8, 8), "b": None, "v": matrix(4, 8, 8)},
                                                activation_type="geglu")),
    ('quant_type "nvfp4"', lambda: model_of("QMoE", SMALL | {"w": (U8, [4, 8, 4]), "s": matrix(4, 8), "b": None,
                                                             "v": (U8, [4, 8, 4]), "t": matrix(4, 8)},
                                          quant_type="nvfp4")),
    ("numbers of 3 bits", lambda: model_of("QMoE", SMALL | {"w": (U8, [4, 8, 3]), "s": matrix(4, 8), "b": None,
                                                            "v": (U8, [4, 8, 3]), "t": matrix(4, 8)},
                                           expert_weight_bits=3)),
    ('attribute "channel_block"', lambda: model_of("GlobalMaxPool", PICTURE, domain=NCHWC, channel_block=8)),
    *(("weights of symbolic dims", lambda dims=dims: model_of(
        "Conv", {"x": matrix("N", 32, 4, 4), "w": matrix(*dims)}, domain=NCHWC))
      for dims in (("O", 32, 3, 3), (32, 32, "H", 3))),
    ("swiglu_limit_after_activation", lambda: model_of(
        "MoE", SMALL | {"w": matrix(4, 8, 8), "b": None, "v": matrix(4, 8, 8)}, swiglu_limit_after_activation=1)),
]
BAD = [
    *(("expected a number for each channel", lambda dims=dims: model_of(
        "MatMulNBits", {"a": matrix("M", 16), "w": (U8, [8, 1, 8]), "s": matrix(8), "z": None, "g": None,
                        "b": matrix(*dims)}, K=16, N=8, block_size=16)) for dims in ((1,), (1, 8), (3, 8))),
    *(("its dims do not fit", lambda dims=dims: model_of(
        "DynamicQuantizeMatMul", {"a": matrix("M", 16), "w": (U8, [16, 8]), "s": matrix(1), "z": None,
                                  "b": matrix(*dims)})) for dims in ((1,), (3, 8))),
    *((text, lambda dims=dims, t=t: model_of("MatMulIntegerToFloat", {
        "a": (U8, ["M", 16]), "w": (U8, [16, 8]), "s": matrix(), "t": matrix(*t), "z": None, "u": (U8, dims)}))
      for text, dims, t in (("or one for each column", [16, 8], [8]), ("or one for each column", [16, 1], [8]),
                            ("or one for each column", [7], [8]), ("or one for each column", [8], [16, 1]))),
    *((text, lambda s=s, b=b: model_of("QLinearConv", {
        "x": (U8, ["N", 4, 5, 5]), "s": matrix(), "z": (U8, []), "w": (U8, [8, 4, 3, 3]), "t": matrix(*s),
        "u": (U8, []), "p": matrix(), "q": (U8, []), "b": (I32, b)}))
      for text, s, b in (("input 4: expected a number for each channel", (8, 1, 1, 1), [8]),
                         ("input 8: expected a number for each channel", (8,), [1]),
                         ("input 8: expected a number for each channel", (8,), [1, 8]))),
    ("expected a zero point for each scale", lambda: model_of("QMoE", SMALL | {
        "w": (U8, [4, 8, 4]), "s": matrix(4, 8), "b": None, "v": (U8, [4, 8, 4]), "t": matrix(4, 8),
        **dict.fromkeys(("c", "d", "e", "f")), "z": (U8, [4, 5])})),
    ("block_size is no power of two from 16 to 256", lambda: model_of("MatMulBnb4", {
        "a": matrix("M", 512), "b": (U8, [2048]), "s": matrix(8)}, K=512, N=8, block_size=512, quant_type=1)),
    ("input 3: its dims do not fit", lambda: model_of("SkipGroupNorm", {
        "x": matrix(2, 4, 4, 8), "g": matrix(8), "b": matrix(8), "s": matrix(1, 4, 4, 8)}, groups=2, activation=0)),
    ("12 channels are no whole blocks of", lambda: model_of("MaxPool", {"x": matrix("N", 12, 4, 4)}, domain=NCHWC,
                                                               kernel_shape=[2, 2])),
    ("channels is 17, of 16", lambda: model_of("ReorderOutput", PICTURE, domain=NCHWC, channels=17)),
    ("rank 4", lambda: model_of("ReorderInput", {"x": matrix("N", 16, 4)}, domain=NCHWC)),
    ("channels are no blocks of", lambda: model_of("Conv", {"x": matrix("N", 32, 4, 4), "w": None}, domain=NCHWC,
                                             constants={"w": normal(1, 20, 32, 1, 1)}, kernel_shape=[1, 1])),
    ("k is 5 of 4 experts", lambda: model_of("MoE", SMALL | {"w": matrix(4, 8, 8), "b": None, "v": matrix(4, 8, 8)},
                                             k=5)),
    ("rows of 0 packed bytes", lambda: model_of("QMoE", SMALL | {
        "w": None, "s": matrix(4, 8), "b": None, "v": (U8, [4, 8, 4]), "t": matrix(4, 8)},
                                                 constants={"w": np.zeros([4, 8, 0], np.uint8)})),
    *((text, lambda w=w, b=b, v=v, u=u: model_of("MoE", SMALL | {
        "w": matrix(*w), "b": matrix(*b), "v": matrix(*v), "c": None, "u": u and matrix(*u)}))
      for text, w, b, v, u in (
          ("outputs of an expert that are not 8", (4, 16, 8), (4, 16), (4, 2, 16), None),
          ("inputs of an expert that are not 8", (4, 16, 9), (4, 16), (4, 8, 16), None),
          ("not alike in outputs", (4, 16, 8), (4, 16), (4, 8, 16), (4, 1, 8)),
          *(("a bias for each output", (4, 16, 8), b, (4, 8, 16), None) for b in ((16,), (4, 1), (1, 16))))),
    ("swiglu_fusion does not fit", lambda: model_of(
        "MoE", SMALL | {"w": matrix(4, 8, 8), "b": None, "v": matrix(4, 8, 8)}, activation_type="swiglu")),
    ("no power of two", lambda: model_of("MatMulBnb4", {"a": matrix("M", 24), "b": (U8, [96]), "s": matrix(8)}, K=24,
                                         N=8, block_size=24, quant_type=1)),
    ("the last axis has no two halves", lambda: model_of("BiasSplitGelu", {"x": matrix("N", 3, 7), "b": matrix(7)})),
    ("skip: expected a rank of 2 or 4", lambda: model_of(
        "SkipGroupNorm", {"x": matrix("N", 4, 4, 8), "g": matrix(8), "b": matrix(8), "s": matrix("N", 4, 8)}, groups=2,
        activation=0)),
]


class MicrosoftLayers(Compiled):
    options = ("-O", "0")  # (all that is asked is what the importer makes)

    def optimised(self, model):
        """The model as ONNX Runtime's optimiser writes it for this CPU."""
        options = onnxruntime.SessionOptions()
        options.optimized_model_filepath = str(self.folder / "optimised.onnx")
        onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
        return onnx.load(self.folder / "optimised.onnx")

    def test_networks_as_onnx_runtime_writes_them(self):
        for name, make in NETWORKS:
            with self.subTest(name):
                model = make()
                channels = model.graph.input[0].type.tensor_type.shape.dim[1].dim_value
                changed = self.optimised(model)
                self.assertIn(NCHWC, {node.domain for node in changed.graph.node})
                for n, h, w in ((2, 9, 14), (1, 12, 7)):
                    given = {"x": normal(8, n, channels, h, w)}
                    self.assert_same(changed, given, name, by_onnx_runtime(model, given))

    def test_blocks_of_eight_are_told_by_the_channels(self):
        """As a CPU with vectors of eight floats has them: 24 channels are no blocks of 16."""
        x, w, v = normal(1, 2, 3, 6, 7), normal(2, 24, 3, 3, 3), normal(3, 16, 24, 1, 1)
        plain = network([("Conv", ["x", "w"], "p", {}), ("Conv", ["p", "v"], "y", {})], 3, {"w": w, "v": v})
        expected = by_onnx_runtime(plain, {"x": x})
        weights = {"w": np.ascontiguousarray(w.reshape(3, 8, 3, 3, 3).transpose(0, 2, 3, 4, 1)).reshape(w.shape),
                   "v": np.ascontiguousarray(v.reshape(2, 8, 3, 8, 1, 1).transpose(0, 2, 4, 5, 3, 1)).reshape(v.shape)}
        nodes = [("Conv", ["x", "w"], "p", {"domain": NCHWC}), ("Conv", ["p", "v"], "q", {"domain": NCHWC}),
                 ("ReorderOutput", ["q"], "y", {"domain": NCHWC, "channels": 16})]
        model = network(nodes, 3, weights)
        model.opset_import.append(helper.make_opsetid(NCHWC, 1))
        self.assert_same(model, {"x": x}, "eight", expected)

    def test_blocks_of_eight_are_told_by_a_function(self):
        """The channels of a convolution in a function of the model, whose weights are constants there."""
        x, w = normal(1, 2, 3, 6, 7), normal(2, 24, 3, 1, 1)
        weight = np.ascontiguousarray(w.reshape(3, 8, 3, 1, 1).transpose(0, 2, 3, 4, 1)).reshape(w.shape)
        nodes = [helper.make_node("Constant", [], ["w"], value=numpy_helper.from_array(weight)),
                 helper.make_node("Conv", ["x", "w"], ["p"], domain=NCHWC),
                 helper.make_node("ReorderOutput", ["p"], ["y"], domain=NCHWC, channels=24)]
        opsets = [helper.make_opsetid("", 17), helper.make_opsetid(NCHWC, 1)]
        model = network([("stem", ["x"], "y", {"domain": "local"})], 3, {})
        model.functions.append(helper.make_function("local", "stem", ["x"], ["y"], nodes, opsets))
        model.opset_import.append(helper.make_opsetid("local", 1))
        self.assert_same(model, {"x": x}, "in a function", {"y": np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])})

    def test_what_lies_in_blocks_may_be_read_by_any_operator(self):
        """A result, or a sum over an axis, has the elements as they lie."""
        x, w = normal(1, 2, 3, 6, 7), normal(2, 24, 3, 1, 1)
        y = np.einsum("nchw,oc->nohw", x, w[:, :, 0, 0])
        weight = np.ascontiguousarray(w.reshape(3, 8, 3, 1, 1).transpose(0, 2, 3, 4, 1)).reshape(w.shape)
        nodes = [("Conv", ["x", "w"], "y", {"domain": NCHWC}), ("ReduceSum", ["y", "axis"], "z", {})]
        model = network(nodes, 3, {"w": weight, "axis": np.array([1])}, ("y", "z"))
        model.opset_import.append(helper.make_opsetid(NCHWC, 1))
        lies = blocked(y, 8)
        self.assert_same(model, {"x": x}, "as they lie", {"y": lies, "z": lies.sum(1, keepdims=True)})

    def test_forms_are_what_onnx_runtime_gives(self):
        for name, make in EXPERTS + BLOCKS:
            with self.subTest(name):
                self.assert_same(*make(), name)
        for name, make in ROUNDED:
            with self.subTest(name):
                self.assert_same(*make(), name, rtol=0.05, atol=0.05)

    def test_forms_are_what_their_definition_gives(self):
        for name, make in DEFINED:
            with self.subTest(name):
                model, given, expected = make()
                rough = given["x"].dtype == np.float16
                self.assert_same(model, given, name, expected, *((2e-2, 1e-2) if rough else (1e-4, 1e-5)))

    def test_what_is_not_supported_is_refused_by_name(self):
        for text, model in REFUSED:
            with self.subTest(text):
                self.assert_refused(text, model())
        for text, model in BAD:
            with self.subTest(text):
                self.assert_refused(text, model(), BAD_INPUT)


if __name__ == "__main__":
    unittest.main()
