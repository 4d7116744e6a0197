"""com.microsoft's operators: what is not supported of them is refused by its name, and never left out in silence. (Their
results: tests/fuzz/generate_contrib.py. An LSTM of quantised weights: here, beside ONNX Runtime's own rounding.)

usage: microsoft_ops.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import json
import subprocess
import unittest

from microsoft_models import (BAD_INPUT, BIN, F32, I32, U8, Compiled, TensorProto, by_onnx_runtime, free, helper, matrix,
                              model_of, normal, np, numpy_helper, onnx, onnxruntime)

HEADS = {"q": matrix("B", "S", 8), "k": matrix("B", "S", 8), "v": matrix("B", "S", 8)}
CACHE = {"pk": None, "pv": None, "l": (I32, ["B"]), "t": (I32, [1])}
WEIGHTS = {"a": matrix("N", 16), "b": (U8, [2, 1, 8]), "s": matrix(2, 1)}

# (what the message names, the model)
REFUSED = [
    ('the attribute "beta"', lambda: model_of("QuickGelu", {"x": matrix(2, 3)}, beta=1.0)),
    ('the activation "Erf"', lambda: model_of("FusedGemm", {"a": matrix("N", 3), "b": matrix(3, 4)},
                                              activation="Erf")),
    ('the activation "Gelu"', lambda: model_of("FusedConv", {"x": matrix(1, 2, 5, 5), "w": matrix(4, 2, 3, 3)},
                                               activation="Gelu")),
    ("ceil_mode beside count_include_pad over a symbolic dimension", lambda: model_of("QLinearAveragePool", {
        "x": (U8, [1, 2, 5, "W"]), "s": (F32, []), "z": (U8, []), "t": (F32, []), "u": (U8, [])}, kernel_shape=[2, 2],
        ceil_mode=1, count_include_pad=1)),
    ("inv_std_var", lambda: model_of("SkipLayerNormalization", {n: matrix(*d) for n, d in {
        "x": (1, 2, 4), "s": (1, 2, 4), "g": (4,)}.items()}, ["y", "", "d"])),
    ("do_rotary", lambda: model_of("Attention", {"x": matrix("B", "S", 4), "w": matrix(4, 24)}, num_heads=1,
                                   do_rotary=1)),
    ("past_present_share_buffer", lambda: model_of("Attention", {"x": matrix("B", "S", 4), "w": matrix(4, 24)},
                                                   num_heads=1, past_present_share_buffer=1)),
    ("rotary_embedding_dim", lambda: model_of("Attention", {"x": matrix("B", "S", 4), "w": matrix(4, 24)},
                                              num_heads=1, rotary_embedding_dim=32)),
    ("the output qk beside unidirectional", lambda: model_of("MultiHeadAttention", HEADS, ["y", "", "", "qk"],
                                                             num_heads=1, unidirectional=1)),
    ("is_packed_batching", lambda: model_of("RotaryEmbedding", {
        "x": matrix("B", "S", 8), "p": (TensorProto.INT64, [1]), "c": matrix(9, 4), "s": matrix(9, 4)},
        is_packed_batching=1)),
    ('the attribute "no_such_thing"', lambda: model_of("GroupQueryAttention", HEADS | CACHE, num_heads=1, kv_num_heads=1,
                                                       no_such_thing=1)),
    ("sliding_window_cache of 1", lambda: model_of("GroupQueryAttention", HEADS | CACHE, num_heads=1, kv_num_heads=1,
                                                   sliding_window_cache=1)),
    ("the output output_qk", lambda: model_of("GroupQueryAttention", HEADS | CACHE, ["y", "", "", "qk"], num_heads=1,
                                              kv_num_heads=1)),
    ("the input query_seqlens", lambda: model_of("GroupQueryAttention", HEADS | CACHE | {
        n: None for n in ("cos", "sin", "pos", "bias", "sink", "ks", "vs", "qn", "kn")} | {"n": (I32, ["B"])},
        num_heads=1, kv_num_heads=1)),
    ("weights that are packed for a device", lambda: model_of("MatMulNBits", WEIGHTS, K=16, N=2, bits=4,
                                                              block_size=16, weight_prepacked=1)),
    ("numbers of 3 bits", lambda: model_of("MatMulNBits", WEIGHTS, K=16, N=2, bits=3, block_size=16)),
    ("packed bytes that are not gathered by rows", lambda: model_of("GatherBlockQuantized", {
        "d": (U8, [8, 16]), "i": (TensorProto.INT64, ["N"]), "s": matrix(8, 2)}, block_size=16, gather_axis=1)),
    ("the attribute \"activation\"", lambda: model_of("NhwcConv", {"x": matrix(1, 5, 5, 2), "w": matrix(4, 2, 3, 3)},
                                                    activation="Relu")),
    ("no operator of this name", lambda: model_of("NoSuchOperator", {"x": matrix(2)})),
]


def heads_of(bias=(48,), mask=None, added=None):
    """Two sequences of three queries and keys, and two heads."""
    inputs = {n: matrix(2, 3, 16) for n in "qkv"}
    return model_of("MultiHeadAttention", inputs | {"b": matrix(*bias), "m": mask and (I32, mask),
                                                    "e": added and matrix(*added)}, num_heads=2)


def counted_heads(lengths=(2,), total=(1,), **attributes):
    inputs = {n: matrix(2, 3, 16) for n in "qkv"} | {"pk": None, "pv": None, "l": (I32, lengths), "t": (I32, total)}
    return model_of("GroupQueryAttention", inputs, **{"num_heads": 2, "kv_num_heads": 2} | attributes)


def rotation(positions=(2, 3), cosines=(9, 4), sines=(9, 4)):
    return model_of("RotaryEmbedding", {"x": matrix(2, 3, 16), "p": (TensorProto.INT64, positions),
                                        "c": matrix(*cosines), "s": matrix(*sines)})


# What has the wrong number of elements, and would be repeated by what adds it.
BAD = [
    *((f"{name} is {heads}", lambda attributes={name: heads}: counted_heads(**attributes))
      for name in ("num_heads", "kv_num_heads") for heads in (0, 2 ** 31, 2 ** 63 - 1)),
    ("less than the heads", lambda: model_of("GroupQueryAttention", {"q": matrix("B", "S", 64), "k": None, "v": None} |
                                             CACHE, num_heads=100, kv_num_heads=1)),
    *(("seqlens_k", lambda lengths=lengths: counted_heads(lengths)) for lengths in ([1], [3], [2, 2])),
    *(("total_sequence_length", lambda total=total: counted_heads(total=total)) for total in ([2], [1, 1])),
    *(("a bias for each output", lambda bias=bias: heads_of(bias)) for bias in ([1], [47], [1, 48], [3, 48])),
    *(("a bias for each output", lambda bias=bias: model_of(
        "Attention", {"x": matrix("B", "S", 16), "w": matrix(16, 48), "b": matrix(*bias)}, num_heads=2))
      for bias in ([1], [1, 48])),
    ("a bias for each output", lambda: model_of("QAttention", {
        "x": (U8, ["B", "S", 16]), "w": (U8, [16, 48]), "b": matrix(1), "s": matrix(), "t": matrix()}, num_heads=2)),
    *(("a mask that is not of the batch", lambda mask=mask: heads_of(mask=mask))
      for mask in ([1, 3], [2, 1], [1, 3, 3], [2, 1, 3], [2, 3, 1])),
    *(("what is added to the scores", lambda added=added: heads_of(added=added))
      for added in ([2, 3, 3], [3, 3], [2, 2, 1, 3], [2, 2, 3, 1], [2, 2, 3, 2], [3, 2, 3, 3], [2, 3, 3, 3])),
    *((text, lambda form=form: rotation(**form)) for text, form in (
        ("a position of each query", {"positions": [1, 3]}), ("a position of each query", {"positions": [2, 1]}),
        ("one first position", {"positions": [3]}), ("not alike in dims", {"sines": [8, 4]}),
        ("not alike in dims", {"sines": [1, 4]}), ("not alike in dims", {"sines": [9, 1]}),
        ("not of rank 2", {"cosines": [4]}), ("fewer cosines", {"cosines": [2, 4], "sines": [2, 4]}))),
    *(("parts", lambda sizes=sizes: model_of("Attention", {"x": matrix("B", "S", 16), "w": matrix(16, 48)}, num_heads=2,
                                             qkv_hidden_sizes=sizes)) for sizes in ([16, 16, 17],)),
    *(("no length that an axis has", lambda sizes=sizes: model_of(
        "Attention", {"x": matrix("B", "S", 16), "w": matrix(16, 48)}, num_heads=2, qkv_hidden_sizes=sizes))
      for sizes in ([-8, 40, 16], [2 ** 63 - 1, 2 ** 63 - 1, 50])),
]


# Masks of two sequences of four keys, by what they say: where keys end; where they end and begin; the ends, and more;
# which keys count; which of them count for a query.
MASKS = {"ends": [4, 3], "ends and beginnings": [4, 3, 1, 0], "ends and more": [4, 3, 0, 4, 7, 0, 4, 7],
         "keys": [[1, 1, 1, 1], [0, 1, 1, 0]], "numbers of keys": [[2, 1, -1, 0], [0, 1, 1, 3]],
         "queries and keys": [[[1, 0, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1], [1, 1, 1, 0]]] * 2}


def attention_with(mask):
    given = {"x": normal(0, 2, 4, 6), "m": np.array(mask, np.int32)}
    x, m = [free("B", given[n], len(mask) == 2) for n in "xm"]  # (how long a mask is tells what it says)
    constants = {"w": normal(1, 6, 24), "b": normal(2, 24)}
    return model_of("Attention", {"x": x, "w": None, "b": None, "m": m}, constants=constants, num_heads=2), given


def heads_with(mask):
    given = {n: normal(i, 2, 4, 8) for i, n in enumerate("qkv")} | {"m": np.array(mask, np.int32)}
    q, k, v, m = [free("B", given[n], len(mask) == 2) for n in "qkvm"]
    return model_of("MultiHeadAttention", {"q": q, "k": k, "v": v, "b": None, "m": m}, constants={"b": normal(4, 24)},
                    num_heads=2), given


def scores_with(form):
    """Query times key, with a mask and what is added to it; "p": behind a past."""
    given = {n: normal(i, 2, length, 16) for i, (n, length) in enumerate((("q", 3), ("k", 5), ("v", 5)))}
    past = 4 if "p" in form else 0
    given |= {n: normal(5, 2, 2, past, 8) for n in ("pk", "pv")} if past else {}
    given |= {"m": np.array([[1, 1, 0, 0, 0] + [1] * past, [1] * (5 + past)], np.int32)} if "m" in form else {}
    given |= {"e": normal(6, 1, 2, 3, 5 + past)} if "e" in form else {}
    inputs = {n: free("B", given[n], n != "e") if n in given else None for n in ("q", "k", "v", "b", "m", "e", "pk", "pv")}
    presents = ["kk", "vv"] if past else ["", ""]  # (without them ONNX Runtime does not read the past)
    model = model_of("MultiHeadAttention", inputs, ["y", *presents, "s"], num_heads=2, scale=0.3)
    model.graph.output[-1].type.tensor_type.elem_type = F32  # which ONNX Runtime does not infer
    return model, given


def heads_first(bias=False, mask=False):
    """Keys and values [batch, heads, keys, depth], as a cache has them: a bias is that of the queries."""
    given = {"q": normal(1, 2, 4, 16), "k": normal(2, 2, 2, 5, 8), "v": normal(3, 2, 2, 5, 8)}
    constants = {"b": normal(4, 48)} if bias else {}
    if mask:
        given["m"] = np.array([[1, 1, 1, 0, 0], [1, 1, 1, 1, 1]], np.int32)
    inputs = {n: free("B", given[n]) if n in given else None for n in "qkvbm"}
    return model_of("MultiHeadAttention", inputs, constants=constants, num_heads=2), given


def groups_with(sink=False, past=0, length=5, bias=False, scores=None, **attributes):
    """Four heads of two keys each, with a past, a score of their own for no key, and what is added to the scores."""
    rng = np.random.default_rng(past)
    given = {n: rng.standard_normal([2, length, h * 8]).astype(np.float32) for n, h in (("q", 4), ("k", 2), ("v", 2))}
    if past:
        given |= {n: rng.standard_normal([2, 2, past, 8]).astype(np.float32) for n in ("pk", "pv")}
    if bias:
        given["e"] = rng.standard_normal([1, 4, length, past + length]).astype(np.float32)
    given["l"] = np.full(2, past + length - 1, np.int32)
    constants = {"t": np.array(past + length, np.int32)} | ({"s": normal(5, 4)} if sink else {})
    order = ["q", "k", "v", "pk", "pv", "l", "t", "c", "d", "p", "e", "s"]
    inputs = {n: free("B", given[n], len(given[n]) == 2) if n in given else None for n in order}
    outputs = ["y", "kk", "vv"]
    if scores is not None:
        outputs, attributes = [*outputs, "qk"], attributes | {"qk_output": scores}
    return model_of("GroupQueryAttention", inputs, outputs, constants, num_heads=4, kv_num_heads=2,
                    **attributes), given


def boxes():
    """The greatest of each bin of boxes, which ONNX has in its own domain."""
    rows = [[0, 0, 0, 10, 8], [1, 2, 3, 7, 4], [1, 9, 1, 3, 1], [0, -2, -6, 6, 2]]  # (-1.5 and -4.5 are places, too)
    given = {"x": normal(0, 2, 3, 9, 11), "r": np.array(rows, np.float32)}
    model = model_of("MaxRoiPool", {n: free(n, a) for n, a in given.items()}, pooled_shape=[3, 2], spatial_scale=0.75)
    model.graph.node[0].domain = ""
    return model, given


def pools(last, pads, kernel=(3, 2)):
    """Windows that reach beyond the padding, and count what they have there."""
    rng = np.random.default_rng(7)
    given = {"x": rng.integers(0, 256, [2, 8, 7, 3] if last else [2, 3, 8, 7]).astype(np.uint8)}
    constants = {"s": np.float32(0.1), "z": np.uint8(3), "t": np.float32(0.08), "u": np.uint8(10)}
    return model_of("QLinearAveragePool", {"x": (U8, ["N", *given["x"].shape[1:]])} | dict.fromkeys(constants),
                    constants=constants, channels_last=last, kernel_shape=list(kernel), strides=[3, 2], ceil_mode=1,
                    count_include_pad=1, **pads), given


# What ONNX Runtime gives for the same.
def fours(dtype, *dims, seed=0):
    """Numbers of four bits."""
    low = -8 if dtype == "int4" else 0
    numbers = np.random.default_rng(seed).integers(low, low + 16, dims)
    return numbers.astype(helper.tensor_dtype_to_np_dtype(getattr(onnx.TensorProto, dtype.upper())))


def gathered_blocks(dtype, zeros):
    constants = {"x": fours(dtype, 10, 64), "s": np.abs(normal(1, 10, 2))} | (
        {"z": fours(dtype, 10, 2, seed=2)} if zeros else {})
    given = {"i": np.array([7, 0, 9], np.int32)}
    return model_of("GatherBlockQuantized", {"x": None, "i": free("N", given["i"]), "s": None, "z": None},
                    constants=constants, block_size=32), given


def dequantised(dtype):
    constants = {"x": fours(dtype, 5, 6), "s": np.abs(normal(1, 6)), "z": fours(dtype, 6, seed=2)}
    return model_of("DequantizeLinear", {"x": None, "s": None, "z": None}, constants=constants, axis=1), {}


SAME = [
    *((f"QLinearAveragePool {last} {pads}", lambda last=last, pads=pads: pools(last, pads))
      for last in (0, 1) for pads in ({}, {"pads": [1, 1, 2, 0]})),
    ("QLinearAveragePool, windows longer than the data", lambda: pools(0, {}, (10, 8))),
    *((f"Attention, mask of {name}", lambda mask=mask: attention_with(mask)) for name, mask in MASKS.items()),
    *((f"MultiHeadAttention, mask of {name}", lambda mask=mask: heads_with(mask)) for name, mask in MASKS.items()
      if name != "ends and beginnings"),  # (ONNX Runtime refuses it there)
    *((f"GroupQueryAttention {form} {how}", lambda form=form, how=how: groups_with(**form, **how))
      for form in ({}, {"past": 6, "length": 1})
      for how in ({"local_window_size": 1}, {"local_window_size": 3}, {"smooth_softmax": 1}, {"sink": True},
                  {"sink": True, "local_window_size": 2, "softcap": 2.0, "bias": True}, {"bias": True}, {"causal": 0},
                  {"scores": 1, "scale": 0.25}, {"scores": 2, "softcap": 2.0}, {"scores": 1, "bias": True},
                  {"scores": 2, "local_window_size": 2, "bias": True})),
    *((f"MultiHeadAttention of a cache {form}", lambda form=form: heads_first(**form))
      for form in ({}, {"bias": True}, {"mask": True}, {"bias": True, "mask": True})),
    *((f"scores of MultiHeadAttention {form}", lambda form=form: scores_with(form))
      for form in ("", "m", "e", "me", "p", "pe")),
    ("MaxRoiPool", boxes),
    *((f"GatherBlockQuantized of {dtype}{' with zero points' * zeros}",
       lambda dtype=dtype, zeros=zeros: gathered_blocks(dtype, zeros))
      for dtype in ("int4", "uint4") for zeros in (False, True)),
    *((f"DequantizeLinear of {dtype}", lambda dtype=dtype: dequantised(dtype)) for dtype in ("int4", "uint4")),
]


class MicrosoftOps(Compiled):
    def test_what_is_not_supported_is_refused_by_name(self):
        for text, model in REFUSED:
            with self.subTest(text):
                self.assert_refused(text, model())

    def test_windows_without_axes_are_refused(self):
        for dims in ([4], [2, 3]):
            self.assert_refused(f"rank {len(dims)}", model_of("QLinearAveragePool", {
                "x": (U8, dims), "s": (F32, []), "z": (U8, []), "t": (F32, []), "u": (U8, [])}, kernel_shape=[2],
                ceil_mode=1, count_include_pad=1), BAD_INPUT)

    def test_forms_are_what_onnx_runtime_gives(self):
        for name, make in SAME:
            with self.subTest(name):
                self.assert_same(*make(), name)

    def test_what_a_mask_says_may_be_told_when_the_model_runs(self):
        for name in ("ends", "ends and beginnings", "ends and more"):
            with self.subTest(name):
                model, given = attention_with(MASKS[name])
                expected = by_onnx_runtime(model, given)
                for value, dims in zip(model.graph.input, (["B", 4, 6], ["M"])):
                    for dim, text in zip(value.type.tensor_type.shape.dim, dims):
                        if isinstance(text, str):
                            dim.dim_param = text
                self.assert_same(model, given, name, expected)
        model.graph.input[1].type.tensor_type.shape.dim[0].dim_param = "M"
        self.assertEqual(self.compile(model).returncode, 0)
        np.savez(self.folder / "in.npz", **given | {"m": np.array([4, 3, 1], np.int32)})
        ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz"], capture_output=True)
        self.assertNotEqual(ran.returncode, 0)

    def test_prompts_of_unlike_lengths(self):
        """What stands behind the end of a sequence is seen by nothing before it."""
        for attributes in ({}, {"local_window_size": 2, "smooth_softmax": 1}):
            model, given = groups_with(**attributes)
            given["l"] = np.array([4, 1], np.int32)
            expected, got = by_onnx_runtime(model, given), self.run_model(model, given)
            for sequence, length in enumerate(given["l"] + 1):
                np.testing.assert_allclose(got["y"][sequence, :length], expected["y"][sequence, :length], 1e-4, 1e-5)
                for name in ("kk", "vv"):
                    np.testing.assert_allclose(got[name][sequence, :, :length], expected[name][sequence, :, :length])

    def test_norms_of_heads(self):
        """ONNX Runtime has them on GPUs alone: the same as operands that are normalised before."""
        model, given = groups_with(past=3, length=1)
        weights = {"qn": normal(7, 8), "kn": normal(8, 8)}
        epsilons = {"qk_norm_epsilon": 0.01, "k_norm_epsilon": 0.1}
        def normalised(x, weight, epsilon):
            heads = x.reshape(*x.shape[:2], -1, 8)
            return (heads / np.sqrt((heads ** 2).mean(-1, keepdims=True) + epsilon) * weight).reshape(x.shape)
        before = given | {"q": normalised(given["q"], weights["qn"], 0.01), "k": normalised(given["k"], weights["kn"], 0.1)}
        expected = by_onnx_runtime(model, before)
        node = model.graph.node[0]
        node.input.extend([""] * (14 - len(node.input)) + ["qn", "kn"])
        node.attribute.extend(helper.make_attribute(name, value) for name, value in epsilons.items())
        model.graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in weights.items())
        self.assert_same(model, given, "norms", expected)

    def test_operands_of_heads_in_one_tensor(self):
        """ONNX Runtime has them on GPUs alone: the same as three operands."""
        q, k, v = [normal(i, 2, 4, 3, 8) for i in range(3)]
        bias = {"b": normal(4, 72)}
        apart = {n: x.reshape(2, 4, 24) for n, x in zip("qkv", (q, k, v))}
        model = model_of("MultiHeadAttention", {n: free("B", x) for n, x in apart.items()} | {"b": None},
                         constants=bias, num_heads=3)
        expected = onnxruntime.InferenceSession(model.SerializeToString(),
                                                providers=["CPUExecutionProvider"]).run(None, apart)[0]
        for given in ({"q": np.stack([q, k, v], 3)}, {"q": apart["q"], "k": np.stack([k, v], 3)}):
            inputs = {n: free("B", given[n]) if n in given else None for n in "qkv"} | {"b": None}
            model = model_of("MultiHeadAttention", inputs, constants=bias, num_heads=3)
            np.testing.assert_allclose(self.run_model(model, given)["y"], expected, rtol=1e-4, atol=1e-5)

    def test_an_lstm_of_quantised_weights_rounds_as_onnx_runtime_does(self):
        for zero in (np.int8(0), np.uint8(128), np.uint8(120)):
            with self.subTest(zero=zero, dtype=zero.dtype):
                self.compare_lstm(zero)

    def test_lanes_behind_an_lstms_units_are_no_part_of_its_range(self):
        """Softplus of nothing is not 0, and the states are small beside it."""
        hidden = 17
        bias = np.zeros([1, 8, hidden], np.float32)
        bias[:, 1] = -6  # the output gate is nearly shut
        self.compare_lstm(np.int8(0), hidden, {"b": bias.reshape(1, -1)},
                          activations=["Sigmoid", "Softplus", "Softplus"])

    def compare_lstm(self, zero, hidden=32, constants=None, **attributes):
        """Bytes of another zero point are no signed ones: then the states are not rounded at each step, and the result
        lies between ONNX Runtime's and the exact one."""
        rng = np.random.default_rng(0)
        width, constants = 16, constants or {}
        weights = {}
        for name, rows in (("w", width), ("r", hidden)):
            weights[name] = (rng.integers(-120, 120, [1, rows, 4 * hidden]) + int(zero)).astype(zero.dtype)
            weights[name + "s"] = (rng.random([1, 4 * hidden]) / 300).astype(np.float32)
            weights[name + "z"] = np.full([1, 4 * hidden], zero)
        inputs = {"x": matrix("T", 1, width), "w": None, "r": None, "b": None, "l": None, "h": None, "c": None,
                  "p": None, "ws": None, "wz": None, "rs": None, "rz": None}
        model = model_of("DynamicQuantizeLSTM", inputs, ["y", "yh", "yc"], weights | constants, hidden_size=hidden,
                         **attributes)
        made = self.compile(model)
        self.assertEqual(made.returncode, 0, made.stderr)
        described = subprocess.run([BIN / "vm-inspect", self.folder / "model.ingot", "--json", "-"],
                                   capture_output=True, text=True, timeout=60)
        names = [kernel["name"] for kernel in json.loads(described.stdout)["kernels"]]
        self.assertEqual([name for name in names if "sum" in name], [])  # those of weights are known
        plain = helper.make_node("LSTM", ["x", "w", "r", *constants], ["y", "yh", "yc"], hidden_size=hidden,
                                 **attributes)
        exact = helper.make_model(helper.make_graph(
            [plain], "one", list(model.graph.input), list(model.graph.output),
            [numpy_helper.from_array(np.ascontiguousarray(np.transpose(
                (weights[n] - np.float32(zero)) * weights[n + "s"][:, None], (0, 2, 1))), n) for n in ("w", "r")] +
            [numpy_helper.from_array(array, n) for n, array in constants.items()]),
            ir_version=9, opset_imports=[helper.make_opsetid("", 17)])
        for steps in (1, 20):
            x = rng.standard_normal([steps, 1, width]).astype(np.float32)
            np.savez(self.folder / "in.npz", x=x)
            ran = subprocess.run([BIN / "vm-run", self.folder / "model.ingot", self.folder / "in.npz", "--output",
                                  f"@{self.folder / 'out.npz'}"], capture_output=True, text=True, timeout=60)
            self.assertEqual(ran.returncode, 0, ran.stderr)
            got = np.load(self.folder / "out.npz")
            for name, rounded, true in zip(("y", "yh", "yc"), *(onnxruntime.InferenceSession(
                    m.SerializeToString(), providers=["CPUExecutionProvider"]).run(None, {"x": x})
                    for m in (model, exact))):
                rounding = np.abs(rounded - true).max()
                self.assertGreater(rounding, 0)
                self.assertLessEqual(np.abs(got[name] - true).max(), rounding + 1e-5)
                share = 1.5 if zero == 120 else 0.25  # one byte of a state may be its neighbour
                self.assertLessEqual(np.abs(got[name] - rounded).max(), share * rounding + 1e-5)


class Lengths(Compiled):
    """What the dims do not say when a model is compiled is compared when it runs."""
    options = ("-O", "0")

    def test_what_does_not_fit_is_refused(self):
        for text, model in BAD:
            with self.subTest(text):
                self.assert_refused(text, model(), BAD_INPUT)

    def compare(self, model, given, free_dims, others):
        """The model gives ONNX Runtime's results, and what is given otherwise is refused."""
        for value in model.graph.input:
            names = free_dims.get(value.name, [])
            for dim, name in zip(value.type.tensor_type.shape.dim, names):
                dim.dim_param = name
        self.assert_same(model, given, "what fits")
        for other in others:
            with self.subTest({name: array.shape for name, array in other.items()}):
                self.assert_given_is_refused(given | other)

    def test_sequences_of_groups(self):
        given = {n: normal(i, 2, 5, 16) for i, n in enumerate("qkv")}
        given |= {"l": np.array([4, 4], np.int32), "t": np.array([5], np.int32), "e": normal(4, 2, 1, 5, 5)}
        order = ["q", "k", "v", "pk", "pv", "l", "t", "c", "d", "p", "e"]
        free_dims = {n: ["B", "S"] for n in "qkv"} | {"l": ["L"], "t": ["T"], "e": [*"efgh"]}
        model = model_of("GroupQueryAttention", {n: free(n, given[n]) if n in given else None for n in order},
                         num_heads=1, kv_num_heads=1)
        numbers = [{"l": lengths} for lengths in ([4], [4, 4, 4], [-1, 4], [-6, 4], [-2 ** 31, 4], [5, 4])]
        numbers += [{"t": total} for total in ([3], [4], [9], [5, 5])]
        others = [{name: np.array(array, np.int32) for name, array in one.items()} for one in numbers]
        others += [{"e": normal(5, *dims)} for dims in ((2, 1, 5, 1), (2, 1, 5, 6), (2, 1, 1, 5), (3, 1, 5, 5), (2, 3, 5, 5))]
        self.compare(model, given, free_dims, others)
        shared = given | {"e": given["e"][:1]}
        np.testing.assert_allclose(self.run_model(model, shared)["y"], by_onnx_runtime(model, shared)["y"], 1e-4, 1e-5)
        nothing = {n: array if n == "t" else array[:1] if n == "e" else array[:0] for n, array in given.items()}
        self.assertEqual(self.run_model(model, nothing)["y"].shape, (0, 5, 16))

    def test_sequences_behind_a_past(self):
        model, given = groups_with(past=4, length=1)
        total = model.graph.initializer.pop()
        model.graph.input.append(helper.make_tensor_value_info("t", I32, []))
        given["t"] = numpy_helper.to_array(total)
        self.compare(model, given, {}, [{"l": np.array(lengths, np.int32)} for lengths in ([3, 4], [4], [5, 5])] +
                     [{"t": np.int32(4)}, {"t": np.int32(6)}])

    def test_what_hides_is_finite_in_halves(self):
        """A sequence that has no key sees all of them alike, as one of float32 does."""
        given = {n: normal(i, 2, 3, 16).astype(np.float16) for i, n in enumerate("qkv")}
        given["m"] = np.array([[0, 0, 0], [1, 0, 1]], np.int32)
        inputs = {n: free("B", given[n]) if n in given else None for n in ("q", "k", "v", "b", "m")}
        for hidden in (-1e9, -3.4028234663852886e38):
            model = model_of("MultiHeadAttention", inputs, num_heads=2, mask_filter_value=hidden)
            self.assert_same(model, given, f"hidden by {hidden}", rtol=2e-2, atol=1e-2)

    def test_rotations(self):
        """The caches have all positions, and there is one of each query."""
        order = ["q", "k", "v", "pk", "pv", "l", "t", "c", "s", "p"]
        given = {n: normal(i, 2, 1, 16) for i, n in enumerate("qkv")} | {n: normal(3, 2, 1, 4, 16) for n in ("pk", "pv")}
        given |= {"l": np.array([4, 4], np.int32), "t": np.array([5], np.int32)}
        given |= {n: normal(6, 5, 8) for n in "cs"}
        free_dims = {n: ["B", "S"] for n in "qkv"} | {n: ["B", "K", "P"] for n in ("pk", "pv")} | {"c": "m", "s": "n"}
        for positions in (None, np.array([[4], [2]])):
            one = given if positions is None else given | {"p": positions}
            model = model_of("GroupQueryAttention", {n: free(n, one[n]) if n in one else None for n in order},
                             ["y", "kk", "vv"], num_heads=1, kv_num_heads=1, do_rotary=1)
            short = {n: one[n][:4] for n in "cs"} if positions is None else {"p": positions[:1]}
            self.compare(model, one, free_dims, [{"s": one["s"][:4]}, {"s": one["s"][:1]}, short])

    def test_masks_and_what_is_added(self):
        given = {n: normal(i, 2, 3, 16) for i, n in enumerate("qkv")}
        given |= {"b": normal(3, 48), "m": np.ones([2, 3, 3], np.int32), "e": normal(4, 2, 2, 3, 3)}
        given["m"][0, :, 1] = 0
        free_dims = {n: ["B", n] for n in "qkv"} | {"b": ["b"], "m": ["l", "m", "n"], "e": [*"efgh"]}
        free_dims["v"] = ["B", "k"]
        model = model_of("MultiHeadAttention", {n: free(n, array) for n, array in given.items()}, num_heads=2)
        others = [{"b": normal(5, length)} for length in (1, 47)]
        others += [{"m": np.ones(dims, np.int32)} for dims in ((1, 3, 3), (2, 1, 3), (2, 3, 1), (2, 3, 4))]
        others += [{"e": normal(5, *dims)} for dims in ((2, 2, 3, 1), (2, 2, 1, 3), (3, 2, 3, 3), (2, 3, 3, 3))]
        self.compare(model, given, free_dims, others)


if __name__ == "__main__":
    unittest.main()
