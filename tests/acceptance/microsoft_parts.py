"""com.microsoft's operators around attention: what positions add to scores, gates, caches of bytes, and what converters
wrote. Those that ONNX Runtime has on a CPU are beside it in tests/fuzz/generate_converted.py and generate_gates.py, too;
those that it has on GPUs alone are beside their definitions here. All with free dims and without; what has the wrong form
is refused by name.

usage: microsoft_parts.py BIN_DIR    exits 77 (skipped) without numpy, onnx and onnxruntime"""
import itertools
import unittest

from microsoft_models import (BAD_INPUT, F32, FAILED, I32, U8, Compiled, TensorProto, free, matrix, model_of, normal,
                              np)

I64, I8 = TensorProto.INT64, TensorProto.INT8


def sigmoid(x):
    return 1 / (1 + np.exp(-x.astype(np.float64)))


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


# ---- scores

def bias_softmax(axis, bias, is_free):
    given = {"x": normal(1, 2, 3, 4, 5), "b": normal(2, *bias)}
    sums = (given["x"] + given["b"]).reshape(*given["x"].shape[:axis], -1)
    model = model_of("BiasSoftmax", {"x": free("N", given["x"], is_free), "b": free("N", given["b"], False)}, axis=axis,
                     is_inner_broadcast=int(bias[1] == 1))
    return model, given, {"y": softmax(sums).reshape(given["x"].shape)}


def bucket_of(distance, buckets, farthest, is_bidirectional):
    """As the T5 model has it (transformers' _relative_position_bucket)."""
    first = 0
    if is_bidirectional:
        buckets //= 2
        first, distance = (buckets if distance > 0 else 0), abs(distance)
    else:
        distance = max(-distance, 0)
    near = buckets // 2
    if distance < near:
        return first + distance
    part = np.log(np.float32(distance) / near) / np.log(np.float32(farthest) / near)
    return first + min(buckets - 1, near + int(part * (buckets - near)))


def positions(is_bidirectional, queries, keys, is_free, buckets=8, farthest=20, heads=3):
    table = normal(1, buckets, heads)
    expected = np.array([[table[bucket_of(k - q, buckets, farthest, is_bidirectional)] for k in range(keys)]
                         for q in range(queries)]).transpose(2, 0, 1)[None]
    numbers = {"q": np.array(queries, np.int64), "k": np.array([keys], np.int64)}
    constants = {"t": np.ascontiguousarray(table.T).reshape(buckets, heads)}  # (its dims are those of its transposition)
    model = model_of("RelativePositionBias", {"t": None} | {n: (I64, a.shape) if is_free else None
                                                            for n, a in numbers.items()},
                     constants=constants | ({} if is_free else numbers), is_bidirectional=int(is_bidirectional),
                     max_distance=farthest)
    return model, numbers if is_free else {}, {"y": expected}


def gated_positions(is_free):
    batch, length, heads, depth, width = 2, 5, 3, 4, 6
    given = {"x": normal(1, batch, length, heads * depth), "p": normal(2, 1, heads, length, length)}
    constants = {"b": normal(3, heads * depth), "w": normal(4, depth, width), "c": normal(5, width),
                 "e": normal(6, 1, heads, 1, 1)}
    query = (given["x"] + constants["b"]).reshape(batch, length, heads, depth).transpose(0, 2, 1, 3)
    gates = sigmoid((query @ constants["w"] + constants["c"]).reshape(batch, heads, length, 2, width // 2).sum(-1))
    expected = (gates[..., :1] * (gates[..., 1:] * constants["e"] - 1) + 2) * given["p"]
    inputs = {"x": free("N", given["x"], is_free), "b": None, "p": free("P", given["p"], False), "w": None, "c": None,
              "e": None}
    return model_of("GatedRelativePositionBias", inputs, constants=constants, num_heads=heads), given, {"y": expected}


# ---- sums, products, activations

def dropout(bias, skip, is_free):
    """Nothing is dropped where a model is not trained."""
    given = {"x": normal(1, 2, 3, 8), "b": normal(2, *bias)} | ({"s": normal(3, 2, 3, 8)} if skip else {})
    inputs = {n: free("N", a, is_free and len(a.shape) == 3) for n, a in given.items()}
    model = model_of("BiasDropout", inputs | ({} if skip else {"s": None}) | {"r": None}, ["y", "m"],
                     {"r": np.float32(0.5)})
    return model, given, {"y": given["x"] + given["b"] + given.get("s", 0), "m": np.ones([2, 3, 8], bool)}


def product_activated(is_free):
    given, weights = {"a": normal(1, 3, 4)}, normal(2, 5, 4)
    product = 0.5 * given["a"] @ weights.T
    model = model_of("FusedMatMulActivation", {"a": free("N", given["a"], is_free), "b": None}, constants={"b": weights},
                     activation="LeakyRelu", activation_alpha=0.25, alpha=0.5, transB=1)
    return model, given, {"y": np.where(product < 0, 0.25 * product, product)}


def embedding(is_free):
    given, table = {"i": np.array([[4, 0, 3], [1, 1, 2]])}, normal(1, 5, 6)
    model = model_of("TorchEmbedding", {"t": None, "i": free("N", given["i"], is_free)}, constants={"t": table})
    return model, given, {"y": table[given["i"]]}


def gate(is_joined, is_free, dtype=np.float32, alpha=1.702, beta=1.0, limit=1.5):
    x, up = (normal(i, 2, 3, 8).astype(dtype) for i in (1, 2))
    given = {"x": np.concatenate([x, up], -1)} if is_joined else {"x": x, "u": up}
    g, u = (a.astype(np.float64) for a in (x, up))
    if limit > 0:
        g, u = np.minimum(g, limit), np.clip(u, -limit, limit)
    model = model_of("SwiGLU", {n: free("N", a, is_free) for n, a in given.items()}, activation_alpha=alpha,
                     activation_beta=beta, limit=limit)
    return model, given, {"y": g * sigmoid(alpha * g) * (u + beta)}


FREE = (False, True)
DEFINED = [
    *((f"BiasSoftmax {axis} {bias} {is_free}", lambda axis=axis, bias=bias, is_free=is_free: bias_softmax(
        axis, bias, is_free)) for axis, bias, is_free in itertools.product(
            (1, 2, 3), ((2, 1, 1, 5), (1, 3, 4, 5), (1, 1, 4, 5)), FREE)),
    *((f"RelativePositionBias {form}", lambda form=form: positions(*form))
      for form in itertools.product(FREE, (1, 30), (7, 30), FREE)),
    *((f"{make.__name__} {is_free}", lambda make=make, is_free=is_free: make(is_free))
      for make in (gated_positions, product_activated, embedding) for is_free in FREE),
    *((f"BiasDropout {form}", lambda form=form: dropout(*form))
      for form in itertools.product(((8,), (2, 3, 8)), FREE, FREE) if not (form[2] and len(form[0]) == 3)),
    *((f"SwiGLU {form}", lambda form=form: gate(**form)) for form in (
        {"is_joined": True, "is_free": True}, {"is_joined": False, "is_free": False},
        {"is_joined": False, "is_free": True, "alpha": 1.0, "beta": 0.0, "limit": 0.0},
        {"is_joined": True, "is_free": False, "dtype": np.float16})),
]


# ---- words that may not follow

def words(size):
    return model_of("NGramRepeatBlock", {"i": (I64, ["B", "S"]), "s": matrix("B", 4)}, ngram_size=size)


def spoken(*ids, scores=(0.5, -1.5, 2.5, 3.5)):
    return {"i": np.array([ids], np.int64), "s": np.array([scores], np.float32)}


SPOKEN = [*((size, spoken(*[0, 1, 2, 0, 1][:length])) for size in (1, 2, 3, 5) for length in range(6)),
          # What is no word counts where a row ends with it that is like the last one.
          *((3, spoken(*ids)) for ids in ((1, 2, 9, 1, 3), (1, 2, -1, 1, 3), (9, 2, 1, 9, 2), (-1, 2, 1, 1, 3))),
          (3, spoken(1, 2, 1, 1, 2, scores=(np.nan, np.nan, 1, np.inf)))]
NO_WORDS = (4, 9, -1, -4, 2 ** 63 - 1, -2 ** 63)


# ---- caches of bytes

def cached(kind, bits, past, length, is_free, batch=1, has_zero=False, **attributes):
    """Two heads share one of keys; what is written into a cache is what is seen."""
    heads, shared, depth = 4, 2, 8
    rng = np.random.default_rng(bits + past)
    given = {n: normal(i, batch, length, h * depth) for i, (n, h) in enumerate((("q", heads), ("k", shared), ("v", shared)))}
    held = (I8, np.int8, depth) if bits == 8 else (U8, np.uint8, depth // 2)
    low, high = (-128, 128) if bits == 8 else (0, 256)
    for name in ("pk", "pv"):
        given[name] = rng.integers(low, high, [batch, shared, past, held[2]]).astype(held[1])
    given["l"] = np.full(batch, past + length - 1, np.int32)
    constants = {"t": np.array(past + length, np.int32)}
    for name in ("ks", "vs"):
        dims = [1] if kind == "PER_TENSOR" else [1, shared, 1, depth]
        constants[name] = (rng.random(dims) * 0.3 / 2 ** (bits - 4) + 0.01).astype(np.float32)
        constants[name].flat[0] *= not has_zero
    order = ["q", "k", "v", "pk", "pv", "l", "t", "", "", "", "", "", "ks", "vs"]
    inputs = {n or f"none{i}": free("B", given[n], is_free) if n in given else None for i, n in enumerate(order)}
    model = model_of("GroupQueryAttention", inputs, ["y", "kk", "vv"], constants, num_heads=heads, kv_num_heads=shared,
                     k_quant_type=kind, v_quant_type=kind, kv_cache_bit_width=bits, **attributes)
    for value in model.graph.input:  # how long a past is, is free, too
        if is_free and value.name in ("pk", "pv"):
            value.type.tensor_type.shape.dim[2].dim_param = "P"
    del model.graph.output[1:]
    model.graph.output.extend([type(model.graph.output[0])(name=name) for name in ("kk", "vv")])
    return model, given


CACHES = [(f"GroupQueryAttention {form}", lambda form=form, more=more: cached(*form, **more))
          for form, more in [((kind, bits, past, length, is_free), {})
                             for kind, bits, (past, length), is_free in itertools.product(
                                 ("PER_TENSOR", "PER_CHANNEL"), (4, 8), ((4, 1), (0, 3), (3, 2)), FREE)] +
          [(("PER_CHANNEL", 8, 6, 1, True), {"batch": 2, "local_window_size": 3, "softcap": 4.0}),
           (("PER_TENSOR", 4, 6, 1, False), {"batch": 2, "smooth_softmax": 1}),
           *(((kind, bits, 3, 2, True), {"has_zero": True})
             for kind, bits in itertools.product(("PER_TENSOR", "PER_CHANNEL"), (4, 8)))]]

GROUPS = {"q": matrix("B", 1, 32), "k": matrix("B", 1, 16), "v": matrix("B", 1, 16)}
LENGTHS = {"l": (I32, ["B"]), "t": (I32, [1])}


def caches(scale, element=I8, depth=8, **attributes):
    past = {n: (element, ["B", 2, "P", depth]) for n in ("pk", "pv")}
    rest = {f"none{i}": None for i in range(5)} | {"ks": matrix(*scale), "vs": matrix(*scale)}
    return model_of("GroupQueryAttention", GROUPS | past | LENGTHS | rest, ["y", "kk", "vv"],
                    **{"num_heads": 4, "kv_num_heads": 2, "k_quant_type": "PER_TENSOR", "v_quant_type": "PER_TENSOR",
                       "kv_cache_bit_width": 8} | attributes)


PICTURE, CROPS = matrix("N", 3, 8, 8), {"b": matrix("R", 4), "i": (I32, ["R"])}
REFUSED = [
    ("a cache of uint8 for numbers of 8 bits", lambda: caches([1], U8)),
    ("a cache of int8 for numbers of 4 bits", lambda: caches([1], kv_cache_bit_width=4)),
    ("the input token_offset", lambda: model_of("GatedRelativePositionBias", {
        "x": matrix("T", 8), "b": matrix(8), "p": matrix(1, 2, 4, 4), "w": matrix(4, 6), "c": matrix(6),
        "e": matrix(1, 2, 1, 1), "o": (I32, [2, 4])}, num_heads=2)),
    ("is_packed_batching", lambda: model_of("MRotaryEmbedding", {
        "x": matrix("B", "S", 8), "p": (I64, [3, "B", "S"]), "c": matrix(9, 4), "s": matrix(9, 4)},
        is_packed_batching=1, mrope_section=[2, 1, 1])),
    ("a scale", lambda: model_of("MRotaryEmbedding", {
        "x": matrix("B", "S", 8), "p": (I64, [3, "B", "S"]), "c": matrix(9, 4), "s": matrix(9, 4)}, scale=2.0,
        mrope_section=[2, 1, 1])),
    *((name, lambda name=name, value=value: model_of("CausalConvWithState", {
        "x": matrix("B", 4, "S"), "w": matrix(4, 1, 3)}, **{name: value}))
      for name, value in (("ndim", 2), ("state_window", 1), ("state_update_capacity", 1), ("state_length", 5),
                          ("state_channels_last", 1), ("input_channel_offset", 2), ("input_channels", 2))),
    ("state_update", lambda: model_of("CausalConvWithState", {"x": matrix("B", 4, "S"), "w": matrix(4, 1, 3)},
                                      ["y", "", "u"])),
    ('auto_pad "SAME_UPPER" beside pads', lambda: model_of("ConvTransposeWithDynamicPads", {
        "x": matrix("N", 4, 5, 5), "w": matrix(4, 3, 3, 3), "p": (I64, [4])}, auto_pad="SAME_UPPER")),
    ('the activation "Erf"', lambda: model_of("FusedMatMulActivation", {"a": matrix("N", 4), "b": matrix(4, 5)},
                                             activation="Erf")),
    ('the attribute "beta"', lambda: model_of("BiasSoftmax", {"x": matrix(2, 3), "b": matrix(3)}, axis=1, beta=1.0)),
    ("the axis is not a constant", lambda: model_of("ExpandDims", {"x": matrix("N", 3), "a": (I32, [])})),
]
HUGE = 2 ** 62
BAD = [
    ("kv_cache_bit_width is 3", lambda: caches([1], kv_cache_bit_width=3)),
    ("kv_cache_bit_width is 0", lambda: caches([1], kv_cache_bit_width=0)),
    ('k_quant_type is "PER_ROW"', lambda: caches([1], k_quant_type="PER_ROW")),
    ("v_quant_type without k_quant_type", lambda: caches([1], k_quant_type="NONE")),
    ("k_quant_type without v_quant_type", lambda: caches([1], v_quant_type="NONE")),
    ("is not of this kind", lambda: caches([2])),
    ("is not of this kind", lambda: caches([1, 2, 1, 7], k_quant_type="PER_CHANNEL", v_quant_type="PER_CHANNEL")),
    *(("max_distance is", lambda far=far, buckets=buckets: model_of("RelativePositionBias", {
        "t": matrix(buckets, 2), "q": (I64, []), "k": (I64, [])}, max_distance=far, is_bidirectional=1))
      for far, buckets in ((0, 8), (-1, 8), (2, 8), (HUGE, 8), (9, 2))),
    ("the heads or the gates", lambda: model_of("GatedRelativePositionBias", {
        "x": matrix("B", "S", 8), "b": matrix(8), "p": matrix(1, 2, "S", "S"), "w": matrix(4, 5), "c": matrix(5),
        "e": matrix(1, 2, 1, 1)}, num_heads=2)),
    *(("ngram_size is", lambda size=size: model_of("NGramRepeatBlock", {"i": (I64, ["B", "S"]), "s": matrix("B", 9)},
                                                   ngram_size=size)) for size in (0, -1, HUGE)),
    *(("size or step is no length", lambda form=form: model_of("UnfoldTensor", {"x": matrix("N", 5)}, **form))
      for form in ({"size": 0}, {"size": HUGE}, {"size": 2, "step": 0}, {"size": 2, "step": HUGE})),
    ("parts of 6 elements of an axis of 5", lambda: model_of("UnfoldTensor", {"x": matrix("N", 5)}, size=6)),
    *((text, lambda form=form: model_of("MRotaryEmbedding", {
        "x": matrix("B", "S", 8), "p": (I64, [3, "B", "S"]), "c": matrix(9, 4), "s": matrix(9, 4)}, **form))
      for text, form in (("mrope_section is not of 4 angles", {"mrope_section": [1, 1, 1]}),
                         ("mrope_section has -1", {"mrope_section": [3, 2, -1]}),
                         (f"mrope_section has {HUGE}", {"mrope_section": [HUGE, HUGE, HUGE]}),
                         ("mrope_layout is 2", {"mrope_section": [2, 1, 1], "mrope_layout": 2}))),
    ("the scales do not divide the last axis", lambda: model_of("GatedRMSNorm", {
        "x": matrix("N", 8), "s": matrix(3), "g": matrix("N", 8)})),
    ('activation is "relu"', lambda: model_of("GatedRMSNorm", {"x": matrix("N", 8), "s": matrix(8), "g": matrix("N", 8)},
                                            activation="relu")),
    ("a rate without its projection", lambda: model_of("LinearAttentionGate", {
        "a": matrix("B", "S", 4), "d": matrix(4), "f": matrix(4)}, ["y", "r"])),
    *(("dilation is", lambda value=value: model_of("CausalConvWithState", {"x": matrix("B", 4, "S"),
                                                                           "w": matrix(4, 1, 3)}, dilation=value))
      for value in (0, -1, HUGE)),
    ("input 3: its dims", lambda: model_of("CausalConvWithState", {
        "x": matrix("B", 4, "S"), "w": matrix(4, 1, 3), "b": None, "s": matrix("B", 4, 3)})),
    ("channels are not those of the weight", lambda: model_of("CausalConvWithState", {
        "x": matrix("B", "S", 2, 3), "w": matrix(4, 1, 3)}, channels_last=1)),
    ('mode is "cubic"', lambda: model_of("CropAndResize", {"x": PICTURE} | CROPS | {"s": (I32, [2])}, mode="cubic")),
    ("a crop of length 0", lambda: model_of("CropAndResize", {"x": PICTURE} | CROPS | {"s": None},
                                            constants={"s": np.array([0, 4], np.int32)})),
    ("the last axis has no two halves", lambda: model_of("SwiGLU", {"x": matrix("N", 7)})),
    ("expected one row of widths", lambda: model_of("Pad", {"x": matrix("N", 3), "p": None},
                                                    constants={"p": np.zeros([2, 4], np.int64)})),
]


class MicrosoftParts(Compiled):
    options = ("-O", "0")  # (all that is asked is what the importer makes)

    def test_forms_are_what_their_definition_gives(self):
        for name, make in DEFINED:
            with self.subTest(name):
                model, given, expected = make()
                rough = any(array.dtype == np.float16 for array in given.values())
                self.assert_same(model, given, name, expected, *((2e-3, 2e-3) if rough else ()))

    def test_words_that_would_repeat_a_row_have_no_score(self):
        for size, given in SPOKEN:
            with self.subTest(f"{size} {given}"):
                self.assert_same(words(size), given, "NGramRepeatBlock")

    def test_what_repeats_a_row_and_is_no_word_is_refused(self):
        self.assert_same(words(3), spoken(1, 2, 3, 1, 2), "NGramRepeatBlock")
        for word in NO_WORDS:
            with self.subTest(word):
                self.assert_given_is_refused(spoken(1, 2, word, 1, 2), FAILED)

    def test_a_state_of_another_length_is_refused(self):
        for is_last in FREE:
            def state(length, is_last=is_last):
                return normal(2, *((2, length, 4) if is_last else (2, 4, length)))
            dims = ["B", "P", 4] if is_last else ["B", 4, "P"]
            given = {"x": state(6), "w": normal(1, 4, 1, 3), "s": state(2)}
            model = model_of("CausalConvWithState", {"x": matrix(*dims), "w": matrix(4, 1, 3), "b": None,
                                                     "s": matrix(*[d if d != "P" else "Q" for d in dims])}, ["y", "t"],
                             channels_last=int(is_last))
            self.assert_same(model, given, "a state")
            for length in (0, 1, 3):
                with self.subTest(f"{is_last} {length}"):
                    self.assert_given_is_refused(given | {"s": state(length)})

    def test_products_of_sixteen_bits_have_the_type_of_the_schema(self):
        for a, b in itertools.product((np.int16, np.uint16), repeat=2):
            with self.subTest(f"{a.__name__} {b.__name__}"):
                given = {"a": np.array([[-3, 7, 1], [2, -1, -9]]).astype(a), "b": np.array([[5], [-2], [11]]).astype(b)}
                got = self.run_model(model_of("MatMulInteger16", {n: free(n, x) for n, x in given.items()}), given)["y"]
                self.assertEqual(got.dtype, np.uint32 if a == b == np.uint16 else np.int32)
                expected = given["a"].astype(np.int64) @ given["b"].astype(np.int64)  # (which wraps around)
                np.testing.assert_array_equal(got, expected.astype(got.dtype))

    def test_crops_of_no_length_and_of_no_picture_are_refused(self):
        given = {"x": normal(1, 2, 3, 8, 8), "b": np.array([[0, 0, 1, 1], [0.1, 0.2, 0.7, 0.9]], np.float32),
                 "i": np.array([1, 0], np.int32), "s": np.array([2, 3], np.int32)}
        self.assert_same(model_of("CropAndResize", {"x": PICTURE} | CROPS | {"s": (I32, [2])}), given, "crops")
        others = [*(("s", size) for size in ([0, 3], [2, 0], [-1, 3], [2, -2 ** 31])),
                  *(("i", pictures) for pictures in ([2, 0], [1, -1], [0, 2 ** 31 - 1], [-2 ** 31, 1]))]
        for name, numbers in others:
            with self.subTest(f"{name} {numbers}"):
                self.assert_given_is_refused(given | {name: np.array(numbers, np.int32)},
                                             FAILED if name == "s" and 0 in numbers else BAD_INPUT)

    def test_caches_of_bytes_are_what_onnx_runtime_has(self):
        for name, make in CACHES:
            with self.subTest(name):
                self.assert_same(*make(), name)

    def test_what_is_not_supported_is_refused_by_name(self):
        for text, make in REFUSED:
            with self.subTest(text):
                self.assert_refused(text, make())

    def test_what_does_not_fit_is_refused(self):
        for text, make in BAD:
            with self.subTest(text):
                self.assert_refused(text, make(), BAD_INPUT)


if __name__ == "__main__":
    unittest.main()
