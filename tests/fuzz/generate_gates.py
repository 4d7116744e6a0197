"""com.microsoft's operators of language models whose layers have gates and states."""
import numpy as np

from generate_contrib import MS, angles, microsoft, normal
from graph import Skip
from tensors import F32, I64


@microsoft("GatedRMSNorm", weight=2)
def gated_norm(g):
    width, rows = g.choice([4, 8, 17]), g.choice([1, 2])
    dims = ["N", "S", rows * width]
    x, gate = normal(g, dims), normal(g, dims)
    g.emit(MS + "GatedRMSNorm", [x, g.weight([width], whole=False, scale=1), gate],
           activation=g.choice([None, "silu", "swish", "sigmoid"]), epsilon=g.choice([None, 1e-3]))


@microsoft("LinearAttentionGate")
def attention_gate(g):
    heads, has_rate = g.choice([2, 5]), g.coin()
    x = [normal(g, ["N", "S", heads]) for _ in range(1 + has_rate)]
    vectors = [g.weight([heads], whole=False, scale=1) for _ in range(2)]
    g.emit(MS + "LinearAttentionGate", [x[0], *vectors, *x[1:]], 1 + has_rate)


@microsoft("MRotaryEmbedding", weight=2)
def rotation(g):
    heads, depth = g.choice([1, 2]), g.choice([8, 16])
    flat = g.coin(0.7)
    x = normal(g, ["N", "S", heads * depth] if flat else ["N", heads, "S", depth])
    part = depth // 2 if g.coin(0.3) else None
    half = (part or depth) // 2
    second = g.integer(0, half // 3)
    sections = [half - 2 * second, second, second]
    positions = g.add_input([3, "N", "S"], I64, True, 0, 19)
    for array in positions.arrays:
        array[array < 0] = 0
    g.emit(MS + "MRotaryEmbedding", [x, positions, *angles(g, 32, half)], mrope_section=sections,
           mrope_layout=g.choice([None, 0, 1]), interleaved=g.choice([None, 0, 1]),
           num_heads=heads if part or g.coin() else None, rotary_embedding_dim=part, scale=g.choice([None, 1.0]))


@microsoft("CausalConvWithState", weight=2)
def causal_conv(g):
    channels, width, dilation = g.choice([1, 4]), g.choice([1, 2, 4]), g.choice([None, 1, 2])
    last = g.choice([None, 0, 1])
    state = (width - 1) * (dilation or 1)
    def laid(length):
        if last:
            return ["N", length, 2, channels] if has_parts else ["N", length, channels]
        return ["N", channels, length]
    has_parts = bool(last) and g.coin(0.4)
    x = normal(g, laid(g.choice(["S", 5])))
    past = normal(g, laid(state)) if state and g.coin() else None
    many = channels * (2 if has_parts else 1)
    weight = g.weight([many, 1, width], whole=False)
    bias = g.weight([many], whole=False, scale=1) if g.coin() else None
    g.emit(MS + "CausalConvWithState", [x, weight, bias, past], 2, dilation=dilation, channels_last=last,
           activation=g.choice([None, "none", "silu", "swish"]), ndim=g.choice([None, 1]))


@microsoft("NGramRepeatBlock")
def repeated_words(g):
    size = g.choice([1, 2, 3])
    ids = g.add_input(["N", g.choice(["S", 6])], I64, True, 0, 3)
    for array in ids.arrays:
        array[array < 0] = 0
    if not ids.full:
        raise Skip
    g.emit(MS + "NGramRepeatBlock", [ids, normal(g, ["N", 5])], ngram_size=size)
