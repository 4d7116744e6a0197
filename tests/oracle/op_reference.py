"""Compares the operator table's reference evaluations with NumPy and ONNX Runtime.

Usage: op_reference.py build/debug/bin/dump_op_cases

Every case of tests/compiler/op/cases.cc is evaluated by one row of ORACLES. Exit code 1 when a case differs or an
operator has no oracle, 77 (skipped) without numpy, onnx and onnxruntime. float16 goes through NumPy's float16;
everything else is computed in float64 where NumPy does it, and in float32 where ONNX Runtime does.
"""

import json
import math
import re
import subprocess
import sys
import warnings

try:
    import ml_dtypes
    import numpy as np
    import onnx
    import onnx.reference
    import onnxruntime
    from onnx import helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

np.seterr(all="ignore")
warnings.simplefilter("ignore")  # means of nothing


def numpy_dtype(name):
    """NumPy has no bfloat16 and no 8-bit floats; their values are exact in float32."""
    return np.dtype("float32" if name == "bfloat16" or name.startswith("float8") else name)


def tensor(spec):
    dtype = numpy_dtype(spec["dtype"])
    if dtype.kind == "f":
        values = np.array([float(v) for v in spec["values"]], dtype=np.float64)
    else:
        values = np.array([int(v) for v in spec["values"]], dtype=np.int64)
    return values.astype(dtype).reshape(spec["dims"])


def wide(x):
    return x.astype(np.float64) if x.dtype.kind == "f" else x


def ort(op, inputs, opset=19, **attrs):
    """One ONNX node in float32."""
    names = [f"x{i}" for i in range(len(inputs))]
    node = helper.make_node(op, names, ["y"], **attrs)
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph(
        [node],
        "one",
        [helper.make_tensor_value_info(n, kind, x.shape) for n, x in zip(names, inputs)],
        [helper.make_tensor_value_info("y", kind, None)],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {n: x.astype(np.float32) for n, x in zip(names, inputs)})[0]


def unary(fn):
    return lambda c, x: fn(wide(x[0]))


def binary(fn):
    return lambda c, x: fn(wide(x[0]), wide(x[1]))


def truncating_divide(a, b):
    if a.dtype.kind == "f":
        return a / b
    safe = np.where(b == 0, 1, b)
    return np.where(b == 0, 0, np.sign(a) * np.sign(safe) * (abs(a) // abs(safe)))


def floor_mod(a, b):
    if a.dtype.kind == "f":
        return np.mod(a, b)
    return np.where(b == 0, 0, np.mod(a, np.where(b == 0, 1, b)))


def floor_divide(a, b):
    if a.dtype.kind == "f":
        return np.floor(a / b)
    return np.where(b == 0, 0, np.floor_divide(a, np.where(b == 0, 1, b)))


def reduction(fn):
    def run(c, x):
        axis = c["attrs"]["axis"]
        axis = None if axis is None else tuple(axis)
        return fn(wide(x[0]), axis=axis, keepdims=c["attrs"]["keepdims"])

    return run


def log_sum_exp(a, axis, keepdims):
    shift = np.maximum.reduce(a, axis=axis, keepdims=True, initial=-np.inf)
    shift = np.where(np.isfinite(shift), shift, 0)
    with np.errstate(divide="ignore"):
        result = np.log(np.exp(a - shift).sum(axis=axis, keepdims=True)) + shift
    return result if keepdims else np.squeeze(result, tuple(range(a.ndim)) if axis is None else axis)


def extremum(ufunc, empty):
    def run(a, axis, keepdims):
        initial = empty if a.dtype.kind == "f" else np.iinfo(a.dtype).min if empty < 0 else np.iinfo(a.dtype).max
        return ufunc.reduce(a, axis=axis, keepdims=keepdims, initial=initial)

    return run


def ort_softmax(op):
    return lambda c, x: ort(op, x, axis=c["attrs"]["axis"]) if x[0].size else x[0]


def split_layout(layout):
    """NCHW16c: [N, C, H, W, c], a small letter being the inner part of its capital."""
    return re.findall("[A-Za-z]", layout)


def axes_in_order(letters):
    """The capitals as ONNX orders them: of images or of weights, channels, then the places."""
    return sorted(filter(str.isupper, letters), key="NOCIDHW".index)


def plain(x, layout):
    """x with its axes in ONNX's order, inner parts joined."""
    letters = split_layout(layout)
    order, dims = [], []
    for letter in axes_in_order(letters):
        parts = [i for i, other in enumerate(letters) if other.upper() == letter]
        parts.sort(key=lambda i: letters[i].islower())
        order += parts
        dims.append(int(np.prod([x.shape[i] for i in parts])))
    return x.transpose(order).reshape(dims)


def in_layout(y, layout, dims):
    """The way back: y into a layout whose dims are given."""
    letters = split_layout(layout)
    order = [i for letter in axes_in_order(letters) for i, other in enumerate(letters) if other.upper() == letter]
    split = [dims[i] for i in order]
    return y.reshape(split).transpose(np.argsort(order))


def conv(c, x):
    a = c["attrs"]
    dims = c["outputs"][0]["dims"]
    if x[0].size == 0:
        return np.zeros(dims, np.float32)
    x = [plain(x[0], a["data_layout"]), plain(x[1], a["kernel_layout"])]
    y = ort("Conv", x, strides=a["strides"], pads=a["padding"], dilations=a["dilation"], group=a["groups"])
    return in_layout(y, a["out_layout"], dims)


def conv_transpose(c, x):
    a = c["attrs"]
    if x[0].size == 0:
        return np.zeros(c["outputs"][0]["dims"], np.float32)
    attrs = dict(strides=a["strides"], pads=a["padding"], dilations=a["dilation"], group=a["groups"])
    return ort("ConvTranspose", x, output_padding=a["output_padding"], **attrs)


def fold(c, x):
    a, (n, rows, count) = c["attrs"], x[0].shape
    size, block = c["outputs"][0]["dims"][2:], a["block"]
    rank = len(block)
    strides, dilation, pads = a["strides"] or [1] * rank, a["dilation"] or [1] * rank, a["padding"] or [0] * 2 * rank
    padded = np.zeros([n, rows // int(np.prod(block)), *[s + pads[i] + pads[rank + i] for i, s in enumerate(size)]],
                      wide(x[0]).dtype)
    counts = [(padded.shape[2 + i] - dilation[i] * (block[i] - 1) - 1) // strides[i] + 1 for i in range(rank)]
    parts = wide(x[0]).reshape([n, padded.shape[1], *block, *counts])
    for tap in np.ndindex(*block):
        places = tuple(slice(t * d, t * d + (k - 1) * s + 1, s) for t, d, k, s in zip(tap, dilation, counts, strides))
        padded[(slice(None), slice(None), *places)] += parts[(slice(None), slice(None), *tap)]
    inside = tuple(slice(pads[i], pads[i] + s) for i, s in enumerate(size))
    return padded[(slice(None), slice(None), *inside)]


def pool(op):
    def run(c, x):
        a = c["attrs"]
        if x[0].size == 0:
            return np.zeros(c["outputs"][0]["dims"], x[0].dtype)
        attrs = dict(kernel_shape=a["pool_size"], strides=a["strides"], pads=a["padding"], dilations=a["dilation"])
        attrs["ceil_mode"] = int(a["ceil_mode"])
        if op == "LpPool":
            attrs["p"] = a["p"]
        if op == "AveragePool":
            attrs["count_include_pad"] = int(a["count_include_pad"])
        return in_layout(ort(op, [plain(x[0], a["layout"])], **attrs), a["out_layout"], c["outputs"][0]["dims"])

    return run


def normalise(x, axes, epsilon):
    x = wide(x)
    mean = x.mean(axis=axes, keepdims=True)
    return (x - mean) / np.sqrt(((x - mean) ** 2).mean(axis=axes, keepdims=True) + epsilon)


def scale_and_shift(c, x, y, axes):
    """gamma and beta have the dims of these axes."""
    shape = [1] * y.ndim
    for axis in axes:
        shape[axis] = y.shape[axis]
    if c["attrs"].get("scale", True):
        y = y * wide(x[1]).reshape(shape)
    if c["attrs"].get("center", True) and len(x) > 2:
        y = y + wide(x[2]).reshape(shape)
    return y


def layer_norm(c, x):
    axes = tuple(c["attrs"]["axes"])
    return scale_and_shift(c, x, normalise(x[0], axes, c["attrs"]["epsilon"]), axes)


def rms_norm(c, x):
    axes = tuple(c["attrs"]["axes"])
    a = wide(x[0])
    y = a / np.sqrt((a**2).mean(axis=axes, keepdims=True) + c["attrs"]["epsilon"])
    return scale_and_shift(c, x, y, axes)


def group_norm(c, x):
    a = c["attrs"]
    channel = a["channel_axis"] % x[0].ndim
    shape = list(x[0].shape)
    shape[channel : channel + 1] = [a["num_groups"], shape[channel] // a["num_groups"]]
    axes = (channel + 1,) + tuple(i + 1 if i > channel else i for i in a["axes"])
    y = normalise(x[0].reshape(shape), axes, a["epsilon"]).reshape(x[0].shape)
    return scale_and_shift(c, x, y, [channel])


def instance_norm(c, x):
    y = normalise(x[0], tuple(c["attrs"]["axes"]), c["attrs"]["epsilon"])
    return scale_and_shift(c, x, y, [c["attrs"]["channel_axis"]])


def lrn(c, x):
    a = c["attrs"]
    y = np.moveaxis(wide(x[0]), a["axis"], -1)
    squares = np.pad(y**2, [(0, 0)] * (y.ndim - 1) + [((a["size"] - 1) // 2, a["size"] // 2)])
    sums = sum(squares[..., i : i + y.shape[-1]] for i in range(a["size"]))
    return np.moveaxis(y / (a["bias"] + a["alpha"] * sums / a["size"]) ** a["beta"], -1, a["axis"])


def with_attrs(op, *names):
    """An ONNX activation, whose attributes have our names."""
    return lambda c, x: ort(op, x, opset=22, **{n: c["attrs"][n] for n in names}) if x[0].size else x[0]


def selu(c, x):
    return ort("Selu", x, alpha=c["attrs"]["alpha"], gamma=c["attrs"]["scale"]) if x[0].size else x[0]


def softplus(c, x):
    beta, a = c["attrs"]["beta"], wide(x[0])
    return np.where(a * beta > c["attrs"]["threshold"], a, np.log1p(np.exp(a * beta)) / beta)


def prelu(c, x):
    shape = [1] * x[0].ndim
    shape[c["attrs"]["axis"]] = -1
    return np.where(x[0] < 0, wide(x[0]) * wide(x[1]).reshape(shape), x[0]) if x[0].size else x[0]


def hardmax(c, x):
    return ort("Hardmax", x, axis=c["attrs"]["axis"]) if x[0].size else x[0]


def scale_of(ratios, policy):
    """The least or the greatest quotient of pairs of lengths."""
    return (max if policy == "not_smaller" else min)(n / d for n, d in zip(ratios[::2], ratios[1::2]))


def resize_weights(c, x):
    """A row per element of the result: the stretched kernel around its place, of which what lies outside is the
    border's or nobody's; from the first element on that may have a weight."""
    a, (length, out, taps), ratios = c["attrs"], c["args"][0], c["args"][1]
    scale = scale_of(ratios, a["policy"]) if len(ratios) else a["scale"]
    i, scaled, alpha = np.arange(out), length * scale, a["cubic_alpha"]
    half = (i + 0.5) / scale - 0.5
    places = {"half_pixel": half, "asymmetric": i / scale, "pytorch_half_pixel": half if out > 1 else half * 0,
              "half_pixel_symmetric": half + length / 2 * (1 - out / scaled) if scaled else half,
              "align_corners": i * (length - 1) / (scaled - 1) if scaled != 1 else 0 * i}
    places = places[a["coordinate_transformation_mode"]]
    shrink = min(scale, 1)
    k = np.arange(-3 * length - 20, 4 * length + 20)
    d = np.abs(k[:, None] - places) * shrink
    w = np.maximum(1 - d, 0)
    if a["method"] == "cubic":
        far = np.where(d < 2, ((alpha * d - 5 * alpha) * d + 8 * alpha) * d - 4 * alpha, 0)
        w = np.where(d <= 1, ((alpha + 2) * d - (alpha + 3)) * d * d + 1, far)
    if a["cubic_exclude"]:
        w = w * ((k >= 0) & (k < length))[:, None]
    y, begins = np.zeros([out, taps]), np.zeros(out, np.int64)
    if length and taps:
        first = np.floor(places - (1 if a["method"] == "linear" else 2) / shrink) + 1
        begins = np.clip(first, 0, length - 1).astype(np.int64)
        dense = np.zeros([length + taps, out])
        np.add.at(dense, np.clip(k, 0, length - 1), w / w.sum(axis=0))
        y = np.take_along_axis(dense, begins + np.arange(taps)[:, None], 0).T
    return [y, begins]


def window_sum(c, x):
    """By a matrix of all weights; what has none is left out."""
    x, weights, begins = x
    x = np.moveaxis(wide(x), c["attrs"]["axis"], -1)
    y = np.zeros([*x.shape[:-1], len(begins)])
    for i, tap in np.ndindex(*weights.shape):
        if weights[i, tap] and x.shape[-1]:
            y[..., i] += weights[i, tap] * x[..., np.clip(begins[i] + tap, 0, x.shape[-1] - 1)]
    return np.moveaxis(y, -1, c["attrs"]["axis"])


def resize(c, x):
    """ONNX's reference evaluation, which computes in float64; ONNX Runtime for the mode that it does not know, and for the
    nearest elements by scales, which are found in float32."""
    a = c["attrs"]
    if x[0].size == 0:
        return np.zeros(c["outputs"][0]["dims"], np.float32)
    axes = list(range(x[0].ndim)) if a["axes"] is None else a["axes"]
    size = c["args"][1]
    if len(x) > 1:  # a tensor of scales
        a, x = {**a, "scales": x[1].tolist()}, x[:1]
    if a["rounding_method"] == "by_scale":  # up along an axis that gets shorter, down along others, one by one
        y = x[0]
        for i, axis in enumerate(axes):
            scale = a["scales"][i] if a["scales"] else size[axis] / x[0].shape[axis]
            dims = list(y.shape)
            dims[axis] = size[axis]
            part = {
                **a,
                "axes": [axis],
                "scales": a["scales"][i : i + 1] if a["scales"] else None,
                "roi": [a["roi"][i], a["roi"][len(axes) + i]] if a["roi"] else None,
                "rounding_method": "ceil" if scale < 1 else "floor",
            }
            y = resize({**c, "attrs": part, "args": [None, dims]}, [np.asarray(y)])
        return y
    if len(c["args"]) > 2 and c["args"][2] is not None:
        a = {**a, "scales": [scale_of(c["args"][2], a["policy"])] * len(axes)}
    inputs = ["x", "roi" if a["roi"] else "", "scales" if a["scales"] else "", "" if a["scales"] else "sizes"]
    constants = []
    if a["roi"]:
        roi = np.zeros(2 * x[0].ndim, np.float32)
        roi[x[0].ndim :] = 1
        for i, axis in enumerate(axes):
            roi[axis], roi[x[0].ndim + axis] = a["roi"][i], a["roi"][len(axes) + i]
        constants.append(onnx.numpy_helper.from_array(roi, "roi"))
    if a["scales"]:
        scales = np.ones(x[0].ndim, np.float32)
        scales[axes] = a["scales"]
        constants.append(onnx.numpy_helper.from_array(scales, "scales"))
    else:
        constants.append(onnx.numpy_helper.from_array(np.array(size, np.int64), "sizes"))
    node = helper.make_node(
        "Resize",
        inputs,
        ["y"],
        mode=a["method"],
        coordinate_transformation_mode=a["coordinate_transformation_mode"],
        nearest_mode=a["rounding_method"],
        cubic_coeff_a=a["cubic_alpha"],
        exclude_outside=int(a["cubic_exclude"]),
        extrapolation_value=a["extrapolation_value"],
    )
    info = [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, s) for n, s in (("x", x[0].shape), ("y", None))]
    graph = helper.make_graph([node], "one", info[:1], info[1:], constants)
    is_old = a["coordinate_transformation_mode"] == "tf_half_pixel_for_nn"  # went with opset 13
    if is_old:
        for i, name in ((1, "no_roi"), (2, "no_scales")):
            node.input[i] = name
            graph.initializer.append(onnx.numpy_helper.from_array(np.zeros(0, np.float32), name))
        del graph.node[:]
        graph.node.append(node)
    opset = helper.make_opsetid("", 11 if is_old else 19)
    model = helper.make_model(graph, opset_imports=[opset], ir_version=9)
    finds_in_float32 = a["method"] == "nearest" and a["scales"]
    if not is_old and not finds_in_float32:
        y = onnx.reference.ReferenceEvaluator(model).run(None, {"x": x[0].astype(np.float64)})[0]
        if x[0].dtype.kind in "iu" and a["method"] == "linear":  # as ONNX Runtime, which cuts the fraction off
            return np.trunc(y + np.copysign(1e-3, y))
        if x[0].dtype.kind in "iu" and a["method"] == "cubic":
            return np.clip(np.rint(y), np.iinfo(x[0].dtype).min, np.iinfo(x[0].dtype).max)
        return y
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x[0].astype(np.float32)})[0]


def grid_sample(c, x):
    a = c["attrs"]
    if x[0].size == 0:
        return np.zeros(c["outputs"][0]["dims"], np.float32)
    attrs = dict(mode=a["method"], padding_mode=a["padding_mode"], align_corners=int(a["align_corners"]))
    node = helper.make_node("GridSample", ["x", "grid"], ["y"], **attrs)
    kind = onnx.TensorProto.DOUBLE
    info = [helper.make_tensor_value_info(n, kind, v.shape) for n, v in zip(["x", "grid"], x)]
    graph = helper.make_graph([node], "one", info, [helper.make_tensor_value_info("y", kind, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    feeds = {"x": wide(x[0]), "grid": wide(x[1])}
    if (a["method"], a["padding_mode"]) == ("cubic", "border"):
        # ONNX's reference evaluation moves the place to the border; PyTorch and ONNX Runtime move each tap.
        return onnxruntime.InferenceSession(model.SerializeToString()).run(None, feeds)[0]
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0]


def tree_leaves(c, x):
    data, features, thresholds, children, roots = x
    leaves, inner, last = np.zeros((len(data), len(roots)), np.int64), c["attrs"]["inner"], len(features) - 1
    for i, row in enumerate(wide(data)):
        for j, node in enumerate(np.clip(roots, 0, last).tolist()):
            for _ in range(c["attrs"]["depth"]):
                if node >= inner:
                    break
                value = row[np.clip(features[node], 0, data.shape[1] - 1)]
                child = int(children[node][2 if np.isnan(value) else int(not value <= thresholds[node])])
                node = min(max(child, 0), last)
            leaves[i, j] = max(node - inner, 0)
    return leaves


def pairwise_coupling(c, x):
    """The least p' Q p of the sum 1 that the published iteration reaches, written with matrices."""
    rows, classes = x[0].shape[:2]
    p = np.full((rows, classes), 1 / classes)
    for row, r in enumerate(wide(x[0])):
        r = np.where(np.eye(classes, dtype=bool), 0, r)
        q = np.diag((r**2).sum(0)) - r.T * r
        for _ in range(100):
            product = q @ p[row]
            total = p[row] @ product
            if not (abs(product - total) >= 0.005 / classes).any():
                break
            for i in range(classes):
                step = (total - product[i]) / q[i, i]
                total = (total + step * (step * q[i, i] + 2 * product[i])) / (1 + step) ** 2
                product = (product + step * q[i]) / (1 + step)
                p[row, i] += step
                p[row] /= 1 + step
    return p


def roi_align(c, x):
    """ONNX's reference evaluation. The greatest place of a bin: of as many bins of one place."""
    a = c["attrs"]
    if x[1].size == 0:
        return np.zeros(c["outputs"][0]["dims"], np.float32)
    if a["mode"] == "max_place":
        n, (h, w) = a["sample_ratio"], a["pooled_size"]
        alone = {**c, "attrs": {**a, "mode": "avg", "sample_ratio": 1, "pooled_size": [h * n, w * n]}}
        places = roi_align(alone, x)
        return places.reshape(*places.shape[:2], h, n, w, n).max(axis=(3, 5))
    node = helper.make_node(
        "RoiAlign",
        ["x", "rois", "batch"],
        ["y"],
        coordinate_transformation_mode="half_pixel" if a["aligned"] else "output_half_pixel",
        mode=a["mode"],
        output_height=a["pooled_size"][0],
        output_width=a["pooled_size"][1],
        sampling_ratio=a["sample_ratio"],
        spatial_scale=a["spatial_scale"],
    )
    feeds = {"x": wide(x[0]), "rois": wide(x[1]), "batch": x[2]}
    kinds = [onnx.TensorProto.DOUBLE, onnx.TensorProto.DOUBLE, onnx.TensorProto.INT64]
    info = [helper.make_tensor_value_info(n, kind, v.shape) for (n, v), kind in zip(feeds.items(), kinds)]
    result = helper.make_tensor_value_info("y", onnx.TensorProto.DOUBLE, None)
    model = helper.make_model(helper.make_graph([node], "one", info, [result]), ir_version=9,
                              opset_imports=[helper.make_opsetid("", 16)])
    return onnx.reference.ReferenceEvaluator(model).run(None, feeds)[0]


def strided_slice(c, x):
    index = [slice(None)] * x[0].ndim
    args = c["args"]
    strides = args[4] if len(args) > 4 else [1] * len(args[1])
    for axis, begin, end, stride in zip(args[1], args[2], args[3], strides):
        index[axis] = slice(begin, end, stride)
    return x[0][tuple(index)]


def pad(c, x):
    width = np.array(c["attrs"]["pad_width"], dtype=int).reshape(-1, 2)
    mode = {"constant": "constant", "reflect": "reflect", "replicate": "edge",
            "circular": "wrap"}[c["attrs"]["pad_mode"]]
    if not len(width):
        return x[0]
    if mode == "constant":
        return np.pad(x[0], width, constant_values=x[0].dtype.type(c["attrs"]["pad_value"]))
    return np.pad(x[0], width, mode=mode)


def places(indices, extent, from_end=True):
    """Indices count from the end below 0, and are limited to the axis."""
    indices = indices.astype(np.int64)
    if from_end:
        indices = np.where(indices < 0, indices + extent, indices)
    return np.clip(indices, 0, max(extent - 1, 0))


def take(c, x):
    axis = c["attrs"]["axis"]
    if c["attrs"]["mode"] == "wrap":
        return np.take(x[0], x[1], axis=axis, mode="wrap")
    return np.take(x[0], places(x[1], x[0].shape[axis], c["attrs"]["mode"] == "fast"), axis=axis)


def gather_elements(c, x):
    axis = c["attrs"]["axis"] % x[0].ndim
    index = list(np.indices(x[1].shape))
    index[axis] = places(x[1], x[0].shape[axis])
    return x[0][tuple(index)]


def gather_nd(c, x):
    batch = c["attrs"]["batch_dims"]
    index = [np.indices(x[1].shape[:-1])[i] for i in range(batch)]
    index += [places(x[1][..., k], x[0].shape[batch + k]) for k in range(x[1].shape[-1])]
    return x[0][tuple(index)]


def one_hot(c, x):
    on, off = c["args"][1], c["args"][2]
    depth, axis = c["attrs"]["depth"], c["attrs"]["axis"]
    indices = np.expand_dims(x[0].astype(np.int64), axis)
    shape = [1] * indices.ndim
    shape[axis] = depth
    place = np.arange(depth).reshape(shape)
    return np.where((place == indices) | (place == indices + depth), on, off)


SCATTER = {
    "update": lambda a, b: b,
    "add": lambda a, b: a + b,
    "mul": lambda a, b: a * b,
    "max": np.maximum,
    "min": np.minimum,
}


def scatter_elements(c, x):
    out, axis, combine = x[0].copy(), c["attrs"]["axis"], SCATTER[c["attrs"]["reduction"]]
    for at in np.ndindex(*x[1].shape):
        to = list(at)
        to[axis] = x[1][at]
        out[tuple(to)] = combine(out[tuple(to)], x[2][at])
    return out


def scatter_nd(c, x):
    out, combine = x[0].copy(), SCATTER[c["attrs"]["reduction"]]
    for at in np.ndindex(*x[1].shape[:-1]):
        to = tuple(x[1][at])
        out[to] = combine(out[to], x[2][at])
    return out


def split(c, x):
    how, axis = c["attrs"]["indices_or_sections"], c["attrs"]["axis"]
    if isinstance(how, int):
        part = -(-x[0].shape[axis] // how)
        how = [part * i for i in range(1, how)]
    return np.split(x[0], how, axis)


def reverse_sequence(c, x):
    seq, batch = c["attrs"]["seq_axis"], c["attrs"]["batch_axis"]
    out = np.moveaxis(x[0], (batch, seq), (0, 1)).copy()
    for i, length in enumerate(x[1]):
        length = np.clip(length, 0, out.shape[1])
        out[i, :length] = out[i, :length][::-1].copy()
    return np.moveaxis(out, (0, 1), (batch, seq))


def arange(c, x):
    start, end, step = c["args"]
    if all(isinstance(value, int) for value in (start, end, step)):  # no double holds the greatest ones
        return np.array(range(start, end, step), np.int64)
    return np.arange(start, end, step, dtype=np.float64)


def arg(least):
    def run(c, x):
        axis, keepdims = c["attrs"]["axis"], c["attrs"]["keepdims"]
        axis = axis[0] if axis else 0
        if x[0].size == 0:
            return np.zeros(c["outputs"][0]["dims"])
        # Ranks instead of values, NaN behind all others; a NaN in the first place is kept, as ONNX Runtime does.
        data = wide(x[0]).astype(np.float64)
        ranks = np.unique(data, return_inverse=True)[1].reshape(data.shape)
        ranks = -ranks if least else ranks
        ranks = np.where(np.isnan(data), ranks.min() - 1, ranks)
        if c["attrs"]["select_last_index"]:
            best = data.shape[axis] - 1 - np.argmax(np.flip(ranks, axis), axis)
        else:
            best = np.argmax(ranks, axis)
        best = np.where(np.isnan(np.take(data, 0, axis)), 0, best)
        return np.expand_dims(best, axis) if keepdims else best

    return run


def scan(fn, start):
    def run(c, x):
        a, axis = wide(x[0]), c["attrs"]["axis"]
        out = fn(a if a.dtype.kind == "f" else a.astype(np.int64), axis=axis)
        if c["attrs"]["exclusive"] and a.shape[axis]:
            out = np.delete(np.insert(out, 0, start, axis), -1, axis)
        return out

    return run


def order(x, axis, descending):
    """Stable; NaN is the greatest."""
    ranks = np.unique(wide(x), return_inverse=True)[1].reshape(x.shape)
    return np.argsort(-ranks if descending else ranks, axis=axis, kind="stable")


def sort(c, x):
    return np.take_along_axis(x[0], order(x[0], c["attrs"]["axis"], c["attrs"]["descending"]), c["attrs"]["axis"])


def argsort(c, x):
    return order(x[0], c["attrs"]["axis"], c["attrs"]["descending"])


def topk(c, x):
    a = c["attrs"]
    indices = np.take(order(x[0], a["axis"], a["largest"]), np.arange(a["k"]), a["axis"])
    values = np.take_along_axis(x[0], indices, a["axis"])
    return {"both": [values, indices], "values": values, "indices": indices}[a["ret_type"]]


def expand_dims(c, x):
    return np.expand_dims(x[0], tuple(c["attrs"]["axis"]))


def squeeze(c, x):
    axis = c["attrs"]["axis"]
    return np.squeeze(x[0], None if axis is None else tuple(axis))


def clip(c, x):
    return np.minimum(np.maximum(wide(x[0]), c["args"][1]), c["args"][2])


def astype(c, x):
    if c["attrs"]["dtype"].startswith("float8"):
        return x[0].astype(np.float32).astype(getattr(ml_dtypes, c["attrs"]["dtype"])).astype(np.float32)
    dtype = numpy_dtype(c["attrs"]["dtype"])
    if x[0].dtype.kind == "f" and dtype.kind in "iu":  # NumPy leaves open what is out of range; ours saturates
        limits = np.iinfo(dtype)
        return np.nan_to_num(np.clip(np.trunc(wide(x[0])), limits.min, limits.max), nan=0).astype(dtype)
    return x[0].astype(dtype)


def unique(c, x):
    is_sorted, return_index, return_inverse, return_counts = c["args"][1:5]
    axis = c["args"][5] if len(c["args"]) > 5 else None
    values, *places = np.unique(x[0], return_index=True, return_inverse=True, return_counts=True, axis=axis)
    first, inverse, counts = (p.ravel() for p in places)
    if not is_sorted:
        order = np.argsort(first)
        values = np.take(values, order, axis=axis or 0)
        first, inverse, counts = first[order], np.argsort(order)[inverse], counts[order]
    wanted = ((first, return_index), (inverse, return_inverse), (counts, return_counts))
    return [values] + [result for result, is_wanted in wanted if is_wanted]


def batch_norm(c, x):
    a = c["attrs"]
    data, gamma, beta, mean, variance = map(wide, x)
    axis = a["axis"] % data.ndim
    others = tuple(i for i in range(data.ndim) if i != axis)
    shape = [-1 if i == axis else 1 for i in range(data.ndim)]
    old = mean, variance
    if a["training"]:
        mean, variance = data.mean(others), data.var(others)
    y = (data - mean.reshape(shape)) / np.sqrt(variance.reshape(shape) + a["epsilon"])
    y = y * gamma.reshape(shape) if a["scale"] else y
    y = y + beta.reshape(shape) if a["center"] else y
    if a["training"]:  # as in TVM's topi.nn.batch_norm
        old = [o * (1 - a["momentum"]) + n * a["momentum"] for o, n in zip(old, (mean, variance))]
    return [y, *old]


def max_pool_indices(c, x):
    a = c["attrs"]
    if x[0].size == 0:
        return np.zeros(x[1].shape, np.int64)
    names = {"kernel_shape": "pool_size", "pads": "padding", "strides": "strides", "dilations": "dilation"}
    node = helper.make_node("MaxPool", ["x"], ["y", "places"], storage_order=int(a["column_major"]),
                            **{name: a[row] for name, row in names.items()})
    kind = onnx.TensorProto.FLOAT
    graph = helper.make_graph([node], "one", [helper.make_tensor_value_info("x", kind, x[0].shape)],
                              [helper.make_tensor_value_info("places", onnx.TensorProto.INT64, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    return session.run(None, {"x": x[0].astype(np.float32)})[0]


def non_max_suppression(c, x):
    boxes, scores = x[0].astype(np.float32), x[1].astype(np.float32)
    kinds = [onnx.TensorProto.FLOAT] * 2 + [onnx.TensorProto.INT64] + [onnx.TensorProto.FLOAT] * 2
    values = [boxes, scores, x[2].astype(np.int64), x[3].astype(np.float32), x[4].astype(np.float32)]
    names = ["boxes", "scores", "most", "overlap", "least"][: 5 if x[4].size else 4]
    graph = helper.make_graph(
        [helper.make_node("NonMaxSuppression", names, ["y"])], "one",
        [helper.make_tensor_value_info(n, k, v.shape) for n, k, v in zip(names, kinds, values)],
        [helper.make_tensor_value_info("y", onnx.TensorProto.INT64, None)])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 11)], ir_version=9)
    session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    places = session.run(None, dict(zip(names, values)))[0]
    return [places, np.array([len(places)])]


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def matmul(c, x):
    dtype = np.int64 if x[0].dtype.kind == "i" else np.float64
    return np.matmul(x[0].astype(dtype), x[1].astype(dtype))


def matmul_packed(c, x):
    """The panels [p, k, c] beside each other are the weight [k, p * c], filled up with columns beyond the units."""
    panels = x[1].astype(np.float64)
    weight = panels.transpose(1, 0, 2).reshape(panels.shape[1], panels.shape[0] * panels.shape[2])
    return np.matmul(x[0].astype(np.float64), weight)[..., : c["attrs"]["units"]]


def conv_pairs(c, x):
    """Each word of the weights is two input channels, the first one lowest."""
    words = np.ascontiguousarray(x[1]).astype("<i4")
    block = words.shape[4] * 2
    weight = np.moveaxis(words.view("<i2").reshape(*words.shape, 2), -1, -2).reshape(*words.shape[:4], block, 16)
    layouts = {"data_layout": f"NCHW{block}c", "kernel_layout": f"OIHW{block}i16o", "out_layout": "NCHW16c"}
    if x[0].size == 0:
        return np.zeros(c["outputs"][0]["dims"], np.int32)
    return conv({**c, "attrs": {**c["attrs"], **layouts}}, [x[0].astype(np.float32), weight.astype(np.float32)])


def conv_bytes(c, x):
    """Each word of the weights is four input channels, the first one lowest; the third argument is around the data."""
    words = np.ascontiguousarray(x[1]).astype("<i4")
    block = words.shape[4] * 4
    weight = np.moveaxis(words.view("i1").reshape(*words.shape, 4), -1, -2).reshape(*words.shape[:4], block, 16)
    top, left, bottom, right = c["attrs"].get("padding", [0] * 4)
    around = ((0, 0), (0, 0), (top, bottom), (left, right), (0, 0))
    data = np.pad(x[0], around, constant_values=x[2])
    layouts = {"data_layout": f"NCHW{block}c", "kernel_layout": f"OIHW{block}i16o", "out_layout": "NCHW16c",
               "padding": [0] * 4}
    if x[0].size == 0:
        return np.zeros(c["outputs"][0]["dims"], np.int32)
    return conv({**c, "attrs": {**c["attrs"], **layouts}}, [data.astype(np.float32), weight.astype(np.float32)])


def pack_bytes(c, x):
    data = np.ascontiguousarray(x[0])
    data = data.view(np.uint8) ^ np.uint8(128 if c["attrs"]["flip"] else 0)
    return data.reshape(*data.shape[:-1], data.shape[-1] // 4, 4).view("<i4")[..., 0]


def packed_dtype(c):
    return np.dtype(getattr(ml_dtypes, c["attrs"]["dtype"]))


def narrow(c, x):
    return x[0].astype(packed_dtype(c)).astype(np.float64)


def codes_of(c, x):
    """The code of each element, which NumPy's dtypes of less than a byte have in a byte."""
    return x.astype(packed_dtype(c)).view(np.uint8) & (2 ** bits_of(c) - 1)


def bits_of(c):
    return 2 if c["attrs"]["dtype"].endswith("int2") else 4


def pack_bits(c, x):
    codes, count = codes_of(c, x[0]), 8 // bits_of(c)
    codes = np.pad(codes, [(0, 0)] * (codes.ndim - 1) + [(0, -codes.shape[-1] % count)])
    codes = codes.reshape(*codes.shape[:-1], -1, count)
    return np.bitwise_or.reduce([codes[..., i] << i * bits_of(c) for i in range(count)])


def unpack_bits(c, x):
    bits = bits_of(c)
    codes = np.stack([x[0] >> i * bits & 2**bits - 1 for i in range(8 // bits)], -1).astype(np.uint8)
    codes = codes.reshape(*x[0].shape[:-1], -1)[..., :c["outputs"][0]["dims"][-1]]
    signed = c["attrs"]["dtype"].startswith("int")
    if not signed:
        return codes.view(packed_dtype(c)).astype(np.float64) if "float" in c["attrs"]["dtype"] else codes
    return (codes ^ 2 ** (bits - 1)).astype(np.int64) - 2 ** (bits - 1)


def bitcast(c, x):
    names = {"bfloat16": ml_dtypes.bfloat16, "float8_e4m3fn": ml_dtypes.float8_e4m3fn}
    of = lambda name: np.dtype(names.get(name, name))
    result = x[0].astype(of(c["inputs"][0]["dtype"])).view(of(c["attrs"]["dtype"]))
    return result.astype(np.float64) if c["attrs"]["dtype"] in names else result


def matmul_bytes(c, x):
    """The bytes of a word are four rows of the weight."""
    left = np.ascontiguousarray(x[0]).astype("<i4").view(np.uint8).astype(np.int64)
    panels, depth, columns = x[1].shape
    right = np.ascontiguousarray(x[1]).astype("<i4").view(np.int8).reshape(panels, depth, columns, 4).astype(np.int64)
    right = right.transpose(1, 3, 0, 2).reshape(depth * 4, panels * columns)
    left = left.reshape(*x[0].shape[:-1], depth * 4)
    return np.matmul(left, right)[..., : c["attrs"]["units"]].astype(np.int32)


def matmul_integer(c, x):
    wide = [t.astype(np.int64) for t in x]
    return np.matmul(wide[0] - wide[2], wide[1] - wide[3])


def attention(c, x):
    """softmax(q k^T scale + bias) v per head, of every key that a query may see; no key: 0, or NaN if stepwise, unless
    masked_gives_zero and the masks hide every key. Stepwise, a causal mask adds -inf to scores that nothing replaced."""
    a = c["attrs"]
    layouts = a.get("layouts") or ["BSNH"] * 4
    q, k, v = (t.astype(np.float64).transpose([layout.index(axis) for axis in "BNSH"])
               for t, layout in zip(x[:3], layouts))
    group = max(q.shape[1] // k.shape[1], 1) if k.shape[1] else 1
    k, v = (t.repeat(group, axis=1) for t in (k, v))
    queries, keys = q.shape[2], k.shape[2]
    scores = q @ k.swapaxes(2, 3) * (q.shape[3] ** -0.5 if a.get("scale") is None else a["scale"])
    if a.get("softcap"):
        scores = a["softcap"] * np.tanh(scores / a["softcap"])
    masks = np.zeros(scores.shape)  # what bias and causal mask alone add
    if len(x) > 3 and x[3].dtype == bool:
        hidden = -np.inf if a.get("hidden") is None else a["hidden"]
        scores = np.where(x[3], scores, hidden)
        masks = np.broadcast_to(np.where(x[3], 0.0, hidden), scores.shape)
    elif len(x) > 3:
        scores = scores + x[3]
        masks = np.broadcast_to(x[3], scores.shape)
    if a.get("causal_mask"):
        first = 0 if a["causal_mask"] == "TopLeft" else keys - queries
        seen = np.tri(queries, keys, first, dtype=bool)
        shows = a.get("stepwise") and a.get("hidden") is None
        scores = np.where(seen, scores, scores - np.inf if shows else -np.inf)
        masks = np.where(seen, masks, -np.inf)
    is_masked = np.zeros((*scores.shape[:3], 1), bool)
    if a.get("masked_gives_zero"):
        is_masked = np.isneginf(masks.max(axis=3, keepdims=True, initial=-np.inf))
    scores = np.where(is_masked, -np.inf, scores)
    greatest = scores.max(axis=3, keepdims=True, initial=-np.inf)
    weights = np.where(np.isneginf(greatest), 0, np.exp(scores - greatest))
    total = weights.sum(axis=3, keepdims=True)
    values = weights @ v  # of no share at all 0, or NaN where a value is not finite
    unseen = np.where(np.logical_and(a.get("stepwise", False) and keys > 0, ~is_masked), np.nan, values)
    y = np.where(total == 0, unseen, values / np.where(total == 0, 1, total))
    return y.transpose(["BNSH".index(axis) for axis in layouts[3]])


# F(4x4, 3x3) over the points 0, 1, -1, 2, -2 and infinity: Lavin and Gray, "Fast Algorithms for Convolutional Neural
# Networks" (2016), section 4.3.
WINOGRAD_INPUT = np.array([[4, 0, -5, 0, 1, 0], [0, -4, -4, 1, 1, 0], [0, 4, -4, -1, 1, 0],
                           [0, -2, -1, 2, 1, 0], [0, 2, -1, -2, 1, 0], [0, 4, 0, -5, 0, 1]], np.float64)
WINOGRAD_OUTPUT = np.array([[1, 1, 1, 1, 1, 0], [0, 1, -1, 2, -2, 0], [0, 1, 1, 4, 4, 0], [0, 1, -1, 8, -8, 1]],
                           np.float64)


def winograd_input(c, x):
    """[n, C, h, w, c] to [n, 6, 6, C, tiles of h, tiles of w, c]."""
    top, left, _, _ = c["attrs"]["padding"]
    dims = c["outputs"][0]["dims"]
    rows, columns = dims[4], dims[5]
    n, blocks, h, w, inner = x[0].shape
    whole = np.zeros((n, blocks, max(4 * rows + 2, top + h), max(4 * columns + 2, left + w), inner))
    whole[:, :, top : top + h, left : left + w] = x[0]
    y = np.empty(dims)
    for i in range(rows):
        for j in range(columns):
            tile = whole[:, :, 4 * i : 4 * i + 6, 4 * j : 4 * j + 6]
            y[:, :, :, :, i, j] = np.einsum("ay,bx,nCyxc->nabCc", WINOGRAD_INPUT, WINOGRAD_INPUT, tile)
    return y


def winograd_output(c, x):
    """The way back, cut to the size."""
    y = np.einsum("ay,bx,nyxCijc->nCiajbc", WINOGRAD_OUTPUT, WINOGRAD_OUTPUT, x[0].astype(np.float64))
    n, blocks, rows, _, columns, _, inner = y.shape
    h, w = c["outputs"][0]["dims"][2:4]
    return y.reshape(n, blocks, 4 * rows, 4 * columns, inner)[:, :, :h, :w]


def power(c, x):
    if x[0].dtype.kind == "f":
        return np.power(wide(x[0]), wide(x[1]))
    exponent = np.abs(x[1])  # NumPy takes no negative ones: 1 over the power, rounded towards zero
    positive = np.power(x[0], exponent)
    return np.where(x[1] >= 0, positive, np.where(np.abs(positive) == 1, positive, 0)).astype(x[0].dtype)


erf = np.vectorize(math.erf, otypes=[np.float64])


def gelu(x):
    return np.where(x == -np.inf, np.nan, 0.5 * x * (1 + erf(x / math.sqrt(2))))


def recurrent(op, gates):
    """ONNX Runtime's layer, whose inputs are the gates themselves and whose W picks them."""

    def run(c, x):
        a = c["attrs"]
        x = [v if v.dtype.kind != "f" else v.astype(np.float32) for v in x]
        d, panels, hidden, _, lanes = x[1].shape
        steps, batch = x[0].shape[:2]
        if steps == 0 or batch == 0:  # ONNX Runtime refuses them
            states = x[2:4] if gates == 4 else x[2:3]
            return [np.zeros((steps, d, batch, hidden), np.float32), *states]
        # (direction, panel, gate, lane) to (direction, gate, unit)
        order = np.arange(d * panels * gates * lanes).reshape(d, panels, gates, lanes).transpose(0, 2, 1, 3)
        order = order.reshape(d, gates, -1)[:, :, :hidden].reshape(d, -1)
        w = np.zeros((d, gates * hidden, x[0].shape[2]), np.float32)
        for direction in range(d):
            w[direction, np.arange(gates * hidden), order[direction]] = 1
        r = x[1].transpose(0, 3, 1, 4, 2).reshape(d, gates, -1, hidden)[:, :, :hidden].reshape(d, -1, hidden)
        lengths = [v for v in x[3:] if v.dtype.kind == "i"]
        extra = [v for v in x[3 if gates != 4 else 4 :] if v.dtype.kind == "f"]
        inputs = {"X": x[0], "W": w, "R": r, "h": x[2]}
        names = ["X", "W", "R", "", "", "h"]
        if lengths:
            inputs["lengths"], names[4] = lengths[0].astype(np.int32), "lengths"
        if gates == 4:
            inputs["c"] = x[3]
            names.append("c")
        if gates == 4 and extra:
            inputs["P"] = extra[0].transpose(0, 2, 1, 3).reshape(d, 3, -1)[:, :, :hidden].reshape(d, -1)
            names.append("P")
        if gates == 3 and extra:
            bias = np.zeros((d, 6, hidden), np.float32)
            bias[:, 5] = extra[0].reshape(d, -1)[:, :hidden]
            inputs["B"], names[3] = bias.reshape(d, -1), "B"
        attrs = {"direction": a["direction"], "hidden_size": hidden}
        if a["clip"] is not None:
            attrs["clip"] = a["clip"]
        if a["activations"] is not None:
            attrs["activations"] = a["activations"]
            takes = {"affine": "ab", "scaledtanh": "ab", "hardsigmoid": "ab", "leakyrelu": "a", "thresholdedrelu": "a",
                     "elu": "a"}
            defaults = {"affine": (1.0, 0.0), "scaledtanh": (1.0, 1.0), "hardsigmoid": (0.2, 0.5),
                        "leakyrelu": (0.01, 0.0), "thresholdedrelu": (1.0, 0.0), "elu": (1.0, 0.0)}
            alphas, betas = [], []
            for i, name in enumerate(a["activations"]):
                uses, (alpha, beta) = takes.get(name.lower(), ""), defaults.get(name.lower(), (0, 0))
                if "a" in uses:
                    alphas.append(a["activation_alpha"][i] if a["activation_alpha"] else alpha)
                if "b" in uses:
                    betas.append(a["activation_beta"][i] if a["activation_beta"] else beta)
            if alphas:
                attrs["activation_alpha"] = alphas
            if betas:
                attrs["activation_beta"] = betas
        if a.get("input_forget"):
            attrs["input_forget"] = 1
        if a.get("linear_before_reset"):
            attrs["linear_before_reset"] = 1
        outputs = ["Y", "Y_h", "Y_c"][: 3 if gates == 4 else 2]
        kind = helper.np_dtype_to_tensor_dtype
        graph = helper.make_graph(
            [helper.make_node(op, names, outputs, **attrs)],
            "one",
            [helper.make_tensor_value_info(n, kind(v.dtype), v.shape) for n, v in inputs.items()],
            [helper.make_tensor_value_info(n, onnx.TensorProto.FLOAT, None) for n in outputs],
        )
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 19)], ir_version=9)
        session = onnxruntime.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
        return session.run(None, inputs)

    return run


def lstm_of_bytes(c, x):
    """An LSTM whose recurrence is of words of signed bytes, beside scales and sums of its columns: the states of all
    sequences are rounded to 256 numbers at each step."""
    gates, words, h, cell, scales = x[:5]
    steps, batch, _ = gates.shape
    d, panels, _, _, lanes = words.shape
    hidden = h.shape[2]
    given = [v for v in x[5:] if v.dtype.kind == "i"]
    lengths = given[0].clip(0, steps) if given else np.full(batch, steps)
    peepholes = next((v for v in x[5:] if v.dtype.kind == "f"), np.zeros((d, panels, 3, lanes)))
    by_gate = lambda v: v.transpose(0, 2, 1, 3).reshape(d, v.shape[2], -1)[:, :, :hidden]
    scale, peepholes = by_gate(scales[:, :, :4]), by_gate(wide(peepholes))
    bytes_of = words.astype(np.int32)[..., None].view(np.int8)  # [d, panel, word, gate, lane, byte]
    r = bytes_of.transpose(0, 3, 2, 5, 1, 4).reshape(d, 4, 4 * words.shape[2], panels * lanes)[:, :, :hidden, :hidden].astype(np.int64)
    gates = gates.reshape(steps, batch, d, panels, 4, lanes).transpose(2, 1, 0, 4, 3, 5)
    gates = wide(gates.reshape(d, batch, steps, 4, panels * lanes)[..., :hidden])
    sigmoid = lambda v: 1 / (1 + np.exp(-v))
    y, h, cell = np.zeros((steps, d, batch, hidden)), wide(h).copy(), wide(cell).copy()
    for direction in range(d):
        reverse = direction == 1 or c["attrs"]["direction"] == "reverse"
        for s in range(steps):
            state = h[direction].astype(np.float32)
            low, high = state.min(initial=0), state.max(initial=0)
            step = (high - low) / np.float32(255) or np.float32(1)  # 0: there are zeros alone
            zero = np.rint(np.clip(-low / step, 0, 255))
            q = np.clip(np.rint(state / step) + zero, 0, 255).astype(np.int64) - np.int64(zero)
            for b in np.flatnonzero(s < lengths):
                t = lengths[b] - 1 - s if reverse else s
                i, o, f, g = gates[direction, b, t] + (q[b] @ r[direction]) * float(step) * scale[direction]
                p, own = peepholes[direction], cell[direction, b]
                i, f = sigmoid(i + p[0] * own), sigmoid(f + p[2] * own)
                cell[direction, b] = own = f * own + i * np.tanh(g)
                y[t, direction, b] = h[direction, b] = sigmoid(o + p[1] * own) * np.tanh(own)
    for b in np.flatnonzero(lengths == 0) if given else ():
        h[:, b] = cell[:, b] = 0
    return [y, h, cell]


def linear_attention(c, x):
    """The state as a matrix per head, step by step."""
    a, (query, key, value, state, *more) = c["attrs"], [wide(v) for v in x]
    heads, group = a["key_heads"], a["query_heads"] // a["key_heads"]
    batch, steps = query.shape[:2]
    split = lambda v, count: v.reshape(batch, steps, count, v.shape[-1] // count)
    query, key, value = split(query, heads * group), split(key, heads), split(value, heads)
    factors = split(more.pop(0), heads) if a["update_rule"].startswith("gated") else None
    rates = more.pop(0)[..., None] if a["update_rule"].endswith("delta") else None
    y = np.zeros([batch, steps, heads * group, value.shape[-1]])
    for t in range(steps):
        if factors is not None:
            state = state * factors[:, t, :, :, None]
        v = value[:, t]
        if rates is not None:
            v = rates[:, t] * (v - np.einsum("bhdm,bhd->bhm", state, key[:, t]))
        state = state + key[:, t, :, :, None] * v[:, :, None, :]
        y[:, t] = a["scale"] * np.einsum("bhdm,bhd->bhm", np.repeat(state, group, axis=1), query[:, t])
    return [y.reshape(batch, steps, math.prod(y.shape[2:])), state]


ORACLES = {
    "linalg.det": lambda c, x: np.linalg.det(wide(x[0])),
    "nn.fold": fold,
    "nn.linear_attention": linear_attention,
    "einsum": lambda c, x: np.einsum(c["attrs"]["subscripts"], *map(wide, x)),
    "nn.rnn": recurrent("RNN", 1),
    "nn.gru": recurrent("GRU", 3),
    "nn.lstm": lambda c, x: (lstm_of_bytes if x[1].dtype == np.int32 else recurrent("LSTM", 4))(c, x),
    "abs": unary(np.abs),
    "acos": unary(np.arccos),
    "acosh": unary(np.arccosh),
    "asin": unary(np.arcsin),
    "asinh": unary(np.arcsinh),
    "atan": unary(np.arctan),
    "atanh": unary(np.arctanh),
    "cosh": unary(np.cosh),
    "sinh": unary(np.sinh),
    "bitwise_not": unary(np.invert),
    "ceil": unary(np.ceil),
    "cos": unary(np.cos),
    "erf": unary(erf),
    "exp": unary(np.exp),
    "floor": unary(np.floor),
    "isfinite": unary(np.isfinite),
    "isinf": unary(np.isinf),
    "isnan": unary(np.isnan),
    "log": unary(np.log),
    "logical_not": unary(np.logical_not),
    "negative": unary(np.negative),
    "nn.gelu": unary(gelu),
    "nn.gelu_tanh": unary(lambda x: 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))),
    "nn.leakyrelu": lambda c, x: np.where(x[0] < 0, x[0] * c["attrs"]["alpha"], x[0]),
    "nn.relu": unary(lambda x: np.maximum(x, 0)),
    "nn.silu": unary(lambda x: x * sigmoid(x)),
    "round": unary(np.rint),
    "rsqrt": unary(lambda x: 1 / np.sqrt(x)),
    "sigmoid": unary(sigmoid),
    "sign": unary(np.sign),
    "sin": unary(np.sin),
    "sqrt": unary(np.sqrt),
    "square": unary(np.square),
    "tan": unary(np.tan),
    "tanh": unary(np.tanh),
    "trunc": unary(np.trunc),
    "clip": clip,
    "astype": astype,
    "nn.batch_norm": batch_norm,
    "nn.max_pool_indices": max_pool_indices,
    "kv_cache.view": lambda c, x: x[0][tuple(slice(extent) for extent in c["args"][1])],
    "nonzero": lambda c, x: np.array(np.nonzero(np.atleast_1d(x[0])))[: x[0].ndim],
    "unique": unique,
    "vision.all_class_non_max_suppression": non_max_suppression,
    "where": lambda c, x: np.where(x[0], x[1], x[2]),
    "add": binary(np.add),
    "divide": binary(truncating_divide),
    "equal": binary(np.equal),
    "floor_divide": binary(floor_divide),
    "floor_mod": binary(floor_mod),
    "greater": binary(np.greater),
    "greater_equal": binary(np.greater_equal),
    "less": binary(np.less),
    "less_equal": binary(np.less_equal),
    "logical_and": binary(np.logical_and),
    "logical_or": binary(np.logical_or),
    "logical_xor": binary(np.logical_xor),
    "maximum": binary(np.maximum),
    "minimum": binary(np.minimum),
    "multiply": binary(np.multiply),
    "not_equal": binary(np.not_equal),
    "power": power,
    "mod": binary(np.fmod),
    "bitwise_and": binary(np.bitwise_and),
    "bitwise_or": binary(np.bitwise_or),
    "bitwise_xor": binary(np.bitwise_xor),
    "left_shift": lambda c, x: np.left_shift(x[0], x[1]),
    "right_shift": lambda c, x: np.right_shift(x[0], x[1]),
    "subtract": binary(np.subtract),
    "zeros": lambda c, x: np.zeros(c["args"][0]),
    "ones": lambda c, x: np.ones(c["args"][0]),
    "full": lambda c, x: np.full(c["args"][0], x[0]),
    "shape_to_tensor": lambda c, x: np.array(c["args"][0], np.int64),
    "reshape": lambda c, x: np.reshape(x[0], c["args"][1]),
    "flatten": lambda c, x: x[0].reshape(-1),
    "expand_dims": expand_dims,
    "squeeze": squeeze,
    "permute_dims": lambda c, x: np.transpose(x[0], c["attrs"]["axes"]),
    "broadcast_to": lambda c, x: np.broadcast_to(x[0], c["args"][1]),
    "concat": lambda c, x: np.concatenate(x, c["attrs"]["axis"]),
    "strided_slice": strided_slice,
    "nn.pad": pad,
    "take": take,
    "gather_elements": gather_elements,
    "gather_nd": gather_nd,
    "one_hot": one_hot,
    "scatter_elements": scatter_elements,
    "scatter_nd": scatter_nd,
    "split": split,
    "tile": lambda c, x: np.tile(x[0], c["attrs"]["repeats"]),
    "repeat": lambda c, x: np.repeat(x[0], c["attrs"]["repeats"], c["attrs"]["axis"] and c["attrs"]["axis"][0]),
    "flip": lambda c, x: np.flip(x[0], c["attrs"]["axis"]),
    "reverse_sequence": reverse_sequence,
    "tril": lambda c, x: np.tril(x[0], c["args"][1]),
    "triu": lambda c, x: np.triu(x[0], c["args"][1]),
    "arange": arange,
    "eye": lambda c, x: np.eye(*c["args"]),
    "argmax": arg(False),
    "argmin": arg(True),
    "cumsum": scan(np.cumsum, 0),
    "cumprod": scan(np.cumprod, 1),
    "sort": sort,
    "argsort": argsort,
    "topk": topk,
    "sum": reduction(np.sum),
    "prod": reduction(np.prod),
    "max": reduction(extremum(np.maximum, -np.inf)),
    "min": reduction(extremum(np.minimum, np.inf)),
    "mean": reduction(np.mean),
    "variance": reduction(np.var),
    "log_sum_exp": reduction(log_sum_exp),
    "nn.softmax": ort_softmax("Softmax"),
    "nn.log_softmax": ort_softmax("LogSoftmax"),
    "matmul": matmul,
    "matmul_packed": matmul_packed,
    "pack_bits": pack_bits,
    "pack_bytes": pack_bytes,
    "unpack_bits": unpack_bits,
    "narrow": narrow,
    "bitcast": bitcast,
    "matmul_bytes": matmul_bytes,
    "matmul_integer": matmul_integer,
    "nn.attention": attention,
    "nn.conv2d_bytes": conv_bytes,
    "nn.conv2d_pairs": conv_pairs,
    "nn.winograd_input": winograd_input,
    "nn.winograd_output": winograd_output,
    "nn.celu": with_attrs("Celu", "alpha"),
    "nn.elu": with_attrs("Elu", "alpha"),
    "nn.hard_sigmoid": with_attrs("HardSigmoid", "alpha", "beta"),
    "nn.hard_swish": with_attrs("HardSwish"),
    "nn.mish": unary(lambda x: x * np.tanh(np.logaddexp(0, x))),
    "nn.prelu": prelu,
    "nn.selu": selu,
    "nn.shrink": with_attrs("Shrink", "lambd", "bias"),
    "nn.softplus": softplus,
    "nn.softsign": unary(lambda x: x / (1 + abs(x))),
    "nn.thresholded_relu": with_attrs("ThresholdedRelu", "alpha"),
    "nn.layer_norm": layer_norm,
    "nn.rms_norm": rms_norm,
    "nn.group_norm": group_norm,
    "nn.instance_norm": instance_norm,
    "nn.lrn": lrn,
    "nn.hardmax": hardmax,
    "image.resize": resize,
    "image.resize_weights": resize_weights,
    "window_sum": window_sum,
    "image.grid_sample": grid_sample,
    "pairwise_coupling": pairwise_coupling,
    "tree_leaves": tree_leaves,
    "vision.roi_align": roi_align,
    **{f"nn.conv{n}d": conv for n in (1, 2, 3)},
    **{f"nn.conv{n}d_transpose": conv_transpose for n in (1, 2, 3)},
    **{f"nn.max_pool{n}d": pool("MaxPool") for n in (1, 2, 3)},
    **{f"nn.avg_pool{n}d": pool("AveragePool") for n in (1, 2, 3)},
    **{f"nn.lp_pool{n}d": pool("LpPool") for n in (1, 2, 3)},
}

# Where an oracle leaves the result open or is known to differ, with the reason.
EXCEPTIONS = {
    "nn.max_pool_indices/specials": "a NaN wins; ONNX Runtime passes over it",
    **{f"nn.{op}/specials": "the oracle multiplies infinite inputs with 0" for op in ("rnn", "gru", "lstm")},
    "linalg.det/specials": "LAPACK's choice of a pivot passes over NaN",
    "einsum/repeated_ones": "np.einsum repeats no axis of 1 that a label shares",
    **dict.fromkeys(("image.resize/specials", "image.resize/kept_axes", "image.resize/kept_axes_cropped"),
                    "the oracle multiplies what it does not take by 0"),
    "nn.max_pool2d/infinite_window": "ONNX Runtime starts from the lowest finite value",
    **{f"nn.max_pool{n}d/specials": "ONNX Runtime's maximum drops NaN" for n in (1, 2, 3)},
}


def main():
    if len(sys.argv) != 2:
        print(__doc__, file=sys.stderr)
        return 2
    cases = json.loads(subprocess.run([sys.argv[1]], check=True, capture_output=True).stdout)
    failures = 0
    skipped = 0
    for case in cases:
        name = f"{case['op']}/{case['label']}"
        if EXCEPTIONS.get(name):
            skipped += 1
            continue
        oracle = ORACLES.get(case["op"])
        if oracle is None:
            print(f"{name}: no oracle")
            failures += 1
            continue
        results = oracle(case, [tensor(t) for t in case["inputs"]])
        results = results if isinstance(results, list) else [results]  # several: a list
        if len(results) != len(case["outputs"]):
            print(f"{name}: {len(case['outputs'])} results, expected {len(results)}")
            failures += 1
            continue
        for spec, expected in zip(case["outputs"], map(np.asarray, results)):
            got = tensor(spec)
            rtol = {"float16": 1e-3, "bfloat16": 4e-3}.get(spec["dtype"], 2e-5)
            # Weights of both signs; sums of hundreds of products that each step of a recurrence rounds.
            is_coarse = "cubic" in case["attrs"].values() or case["op"] in ("nn.rnn", "nn.gru", "nn.lstm")
            atol = 1e-5 if is_coarse else 1e-6
            if expected.shape != got.shape:
                print(f"{name}: shape {got.shape}, expected {expected.shape}")
                failures += 1
            elif not np.allclose(wide(got), expected.astype(got.dtype), rtol=rtol, atol=atol, equal_nan=True):
                worst = np.abs(wide(got) - expected).argmax()
                print(f"{name}: got {got.ravel()[worst]} at {worst}, expected {expected.ravel()[worst]}")
                failures += 1
    print(f"{len(cases)} cases, {skipped} left out, {failures} failed")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
