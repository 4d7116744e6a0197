"""com.microsoft's operators of whole layers: pictures in blocks of channels, mixtures of experts, weights in blocks."""
import numpy as np

from graph import Skip
from oracle import BLOCKS, MICROSOFT
from registry import generates
from tensors import F32, U8

MS = MICROSOFT + "."
IN_BLOCKS = BLOCKS + "."
WINDOWS = ("AveragePool", "MaxPool")
LAYERS = ("Conv", "GlobalAveragePool", "GlobalMaxPool", "Upsample", *WINDOWS)


def in_blocks(g, channels):
    last = g.choice([None, 0, 1])
    dims = ["N", 6, 5, channels] if last else ["N", channels, 6, 5]
    x = g.add_input(dims, F32, True, wild=False)
    if not x.full:
        raise Skip
    return g.emit(IN_BLOCKS + "ReorderInput", [x], channels_last=last)


def convolution(g):
    """Of blocks, of a picture of few channels, or of each channel alone; 16 and 32 are blocks of 8, too."""
    kind, out = g.choice(["blocks", "few", "alone"]), g.choice([16, 32])
    if kind == "few":
        x = g.add_input(["N", 3, 6, 5], F32, True, wild=False)
        if not x.full:
            raise Skip
    else:
        x = in_blocks(g, 16 if kind == "blocks" else out)
    size = g.choice([1, 3])
    w = g.weight([out, {"few": 3, "blocks": 16, "alone": 1}[kind], size, size])
    w.kind = "constant"
    groups = {"group": out} if kind == "alone" else {"group": g.choice([None, 1])}
    attributes = {"dilations": g.choice([None, [1, 1]]), "strides": g.choice([None, [2, 1]]),
                  "kernel_shape": g.choice([None, [size, size]]), **groups}
    attributes |= {"auto_pad": "SAME_UPPER"} if g.coin(0.3) else {"pads": g.choice([None, [1, 0, 0, 1]])}
    name = g.choice([None, "Relu", "Tanh", "Sigmoid", "LeakyRelu", "Clip", "HardSigmoid"])
    numbers = {"LeakyRelu": [0.1], "Clip": [-1.0, 2.0], "HardSigmoid": [0.2, 0.5]}.get(name)
    inputs = [x, w, g.weight([out]) if g.coin(0.7) else None]
    if name in (None, "Relu") and g.coin(0.4):
        inputs.append(g.emit(IN_BLOCKS + "Conv", inputs, **attributes))
    return g.emit(IN_BLOCKS + "Conv", inputs, activation=name, activation_params=numbers, **attributes)


def layer(g):
    op = g.choice(LAYERS)
    if op == "Conv":
        return convolution(g)
    x = in_blocks(g, g.choice([12, 16]))
    if op == "Upsample":
        mode = g.choice([None, "nearest", "linear"])
        places = g.choice(["asymmetric", "half_pixel", "align_corners"]) if mode == "linear" else None
        return g.emit(IN_BLOCKS + op, [x], mode=mode, coordinate_transformation_mode=places, scales=[1, 1, 2, 3])
    if op not in WINDOWS:
        return g.emit(IN_BLOCKS + op, [x])
    attributes = {"kernel_shape": [2, g.choice([1, 3])], "strides": g.choice([None, [2, 1]]),
                  "ceil_mode": g.choice([None, 0, 1])}
    attributes |= {"auto_pad": "SAME_UPPER"} if g.coin(0.3) else {"pads": g.choice([None, [1, 0, 1, 0]])}
    if op == "MaxPool":
        attributes |= {"dilations": g.choice([None, [1, 1]]), "storage_order": g.choice([None, 0])}
    elif not attributes["ceil_mode"]:
        attributes |= {"count_include_pad": g.choice([None, 0, 1]), "dilations": g.choice([None, [1, 1]])}
    return g.emit(IN_BLOCKS + op, [x], **attributes)


@generates(*(IN_BLOCKS + name for name in (*LAYERS, "ReorderInput", "ReorderOutput")), weight=2)
def picture_in_blocks(g):
    y = layer(g)
    g.emit(IN_BLOCKS + "ReorderOutput", [y], channels=y.dims()[1] - g.choice([0, 4]),
           channels_last=g.choice([None, 0, 1]))


# ---- experts

def gates(g):
    if g.coin(0.6):
        return {"activation_type": g.choice([None, "relu", "gelu", "silu", "identity"])}
    return {"activation_type": "swiglu", "swiglu_fusion": 1, "activation_alpha": g.choice([None, 1.5]),
            "activation_beta": g.choice([None, 1.0]), "swiglu_limit": g.choice([None, 2.0])}


def routed(g, count, hidden):
    x = g.add_input(["N", hidden], F32, True, wild=False)
    if not x.full:
        raise Skip
    router = g.keep(type(x)(g.fresh("x"), [g.rng.standard_normal([len(a), count]).astype(np.float32) for a in x.arrays],
                            g.zeros(), "input"))
    return x, router


def fixed(g, *dims):
    return g.constant(g.rng.integers(-8, 9, dims) / 16, F32)


@generates(MS + "MoE")
def experts(g):
    count, hidden, inner, attributes = 4, g.choice([8, 16]), g.choice([8, 16]), gates(g)
    wide = 2 * inner if "swiglu_fusion" in attributes else inner
    x, router = routed(g, count, hidden)
    biases = [fixed(g, count, n) if g.coin() else None for n in (wide, hidden)]
    g.emit(MS + "MoE", [x, router, fixed(g, count, wide, hidden), biases[0], fixed(g, count, hidden, inner), biases[1]],
           k=g.choice([None, 1, 2]), normalize_routing_weights=g.choice([None, 0, 1]), **attributes)


@generates(MS + "QMoE")
def quantised_experts(g):
    count, hidden, inner, bits = 4, g.choice([16, 32]), g.choice([16, 32]), g.choice([4, 8])
    attributes, block = gates(g), None
    if bits == 4:  # (of blocks of bytes ONNX Runtime rounds the data)
        block = g.choice([None, 16])
    wide = 2 * inner if "swiglu_fusion" in attributes else inner
    x, router = routed(g, count, hidden)
    layers = []
    for out, width in ((wide, hidden), (hidden, inner)):
        w = g.constant(g.rng.integers(0, 256, [count, out, width * bits // 8]), U8)
        parts = [width // block] if block else []
        scales = g.constant(g.rng.choice([2, 4], [count, out, *parts]) / 2 ** (bits + 2), F32)
        layers += [w, scales, fixed(g, count, out) if g.coin() else None]
    g.emit(MS + "QMoE", [x, router, *layers], k=g.choice([None, 1, 2]), expert_weight_bits=bits, block_size=block,
           normalize_routing_weights=g.choice([None, 0, 1]), accuracy_level=g.choice([None, 0]), **attributes)


# ---- weights in blocks

@generates(MS + "MatMulBnb4")
def bnb4(g):
    k, n, block = g.choice([16, 20, 33]), g.choice([1, 8, 17]), g.choice([16, 64])
    a = g.add_input(g.choice([["N", k], [2, "S", k]]), F32, True, wild=False)
    codes = g.constant(g.rng.integers(0, 256, [(n * k + 1) // 2]), U8)
    scales = g.constant(g.rng.choice([0.5, 0.25, 1], [-(-n * k // block)]), F32)
    g.emit(MS + "MatMulBnb4", [a, codes, scales], K=k, N=n, block_size=block, quant_type=g.choice([0, 1]),
           transB=g.choice([None, 1]), training_mode=g.choice([None, 0]))
