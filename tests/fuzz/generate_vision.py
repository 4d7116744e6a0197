"""Pictures: Resize and Upsample with all their modes, GridSample, AffineGrid, RoiAlign, MaxRoiPool."""
import numpy as np

from registry import generates
from tensors import F32, F64, I64, I32, U8, I8


@generates("Resize", weight=3)
def resize(g):
    if g.opset < 10:
        return None
    v = g.pick((F32, F32, F64, U8), rank=(3, 4), test=lambda v: v.full,
               make=lambda: g.choice([["N", 3, 5, "S"], [2, 3, 5, 8]]))
    mode = g.choice([None, "nearest", "linear", "cubic"]) if v.dtype == F32 else "nearest"
    # (Float64 is onnx.reference's, which multiplies what it does not take by 0.)
    if mode == "cubic" and v.rank != 4 or (mode in ("linear", "cubic") or v.dtype == F64) and not v.finite:
        return None
    transforms = ["half_pixel", "asymmetric", "align_corners", "pytorch_half_pixel"] + (
        ["half_pixel_symmetric"] if g.opset >= 19 else []) + (["tf_crop_and_resize"] if g.opset >= 11 else [])
    ratios = [1] * (v.rank - 2) + [g.choice([2, 0.5, 1.5, 1]), g.choice([2, 3, 1, 0.5])]
    if v.rank == 3:
        ratios = [1, g.choice([1, 2]), g.choice([2, 0.5])]
    if min(a.shape[-1] for a in v.arrays) < 2 or min(a.shape[-2] for a in v.arrays) < 2:
        ratios = [max(1, r) for r in ratios]
    if g.opset == 10:
        return g.emit("Resize", [v, g.constant(ratios, F32)], mode=g.choice([None, "nearest"]))
    transform = g.choice([None] + transforms)
    doubtful = ("half_pixel_symmetric", "align_corners", "tf_crop_and_resize", "pytorch_half_pixel")
    if transform in doubtful and mode in (None, "nearest") and any(
            d * r % 1 for a in v.arrays for d, r in zip(a.shape, ratios)):
        transform = "half_pixel"
    attributes = {"mode": mode, "coordinate_transformation_mode": transform}
    if mode in (None, "nearest"):
        attributes["nearest_mode"] = g.choice([None, "floor", "ceil", "round_prefer_floor", "round_prefer_ceil"])
    elif mode == "cubic":
        attributes.update(cubic_coeff_a=g.choice([None, -0.5]), exclude_outside=g.choice([None, 0, 1]))
    known = all(isinstance(d, int) for d in v.dims())
    if g.opset >= 18 and mode == "linear" and v.rank == 4 and transform != "tf_crop_and_resize":
        attributes["antialias"] = g.choice([None, 0, 1])
    roi = None
    if transform == "tf_crop_and_resize":
        ends = [1.0] * (v.rank - 2) + [1.0 if r == 1 else end for r, end in zip(ratios[-2:], (0.75, 0.5))]
        roi = g.constant([0.0] * v.rank + ends, F32)
        attributes["extrapolation_value"] = g.choice([None, 1.5])
    if g.opset < 13 and roi is None:
        roi = g.constant(np.zeros(0), F32)
    if not known and g.opset >= 18 and mode == "linear" and transform not in doubtful and g.coin(0.4):
        sizes = [g.integer(1, 9), g.integer(1, 9)]
        policy = g.choice([None, "stretch", "not_larger", "not_smaller"])
        if policy in ("not_larger", "not_smaller") and any(half_a_length(a.shape[-2:], sizes) for a in v.arrays):
            return None
        # (ONNX Runtime keeps the lengths of axes below 0 where the aspect ratio is kept.)
        axes = [v.rank - 2, v.rank - 1] if policy in ("not_larger", "not_smaller") else [-2, -1]
        return g.emit("Resize", [v, None, None, g.ints(*sizes)], axes=axes, keep_aspect_ratio_policy=policy,
                      **attributes)
    if known and g.coin(0.4):
        sizes = [max(1, int(d * r)) for d, r in zip(v.dims(), ratios)]
        if g.opset >= 18 and g.coin(0.4):
            attributes.update(axes=[v.rank - 2, v.rank - 1],
                              keep_aspect_ratio_policy=g.choice([None, "stretch", "not_larger", "not_smaller"]))
            sizes = sizes[-2:]
            roi = g.constant([0, 0, *ends[-2:]], F32) if transform == "tf_crop_and_resize" else None
        none = g.constant(np.zeros(0), F32) if g.opset < 13 else None
        return g.emit("Resize", [v, roi, none, g.ints(*sizes)], **attributes)
    return g.emit("Resize", [v, roi, g.constant(ratios, F32)], **attributes)


def half_a_length(dims, sizes):
    """Is a length, scaled by one of the quotients, close to a half, which float32 rounds to either side?"""
    return any(abs(d * size / own % 1 - 0.5) < 1e-3 for d in dims for own, size in zip(dims, sizes))


@generates("Upsample")
def upsample(g):
    if g.opset > 9:
        return None
    mode = g.choice([None, "nearest", "linear"])
    v = g.pick((F32,), rank=4, test=lambda v: v.full and (mode != "linear" or v.finite), make=lambda: ["N", 3, 5, "S"],
               wild=None if mode != "linear" else False)
    ratios = [1.0, 1.0, g.choice([2.0, 1.0]), g.choice([2.0, 3.0])]
    if g.opset < 9:
        return g.emit("Upsample", [v], scales=ratios, mode=mode)
    return g.emit("Upsample", [v, g.constant(ratios, F32)], mode=mode)


@generates("GridSample", weight=2)
def grid_sample(g):
    if g.opset < 16:
        return None
    modes = ["linear", "nearest", "cubic"] if g.opset >= 20 else ["bilinear", "nearest", "bicubic"]
    mode = g.choice([None] + modes)
    v = g.pick((F32,), rank=4, test=lambda v: v.full and isinstance(v.dims()[0], int) and (
        mode == "nearest" or v.finite), make=lambda: [2, 3, 5, "S"])
    grid = g.constant(g.rng.uniform(-1.3, 1.3, [v.dims()[0], 3, 4, 2]), F32)
    grid.kind = g.choice(["input", "constant"])
    g.emit("GridSample", [v, grid], mode=mode,
           padding_mode=g.choice([None, "zeros", "border", "reflection"]), align_corners=g.choice([None, 0, 1]))


@generates("AffineGrid")
def affine_grid(g):
    g.schema("AffineGrid")
    two = g.coin()
    theta = g.add_input([2, 2, 3] if two else [2, 3, 4], F32, False, wild=False)
    size = g.given_ints(2, 3, *g.choice([[4, 5], [1, 7]])) if two else g.given_ints(2, 3, 2, 3, 4)
    g.emit("AffineGrid", [theta, size], align_corners=g.choice([None, 0, 1]))


@generates("RoiAlign")
def roi_align(g):
    if g.opset < 10:
        return None
    v = g.pick((F32,), rank=4, test=lambda v: v.full and v.finite and isinstance(v.dims()[0], int),
               make=lambda: [2, 3, 8, 9], wild=False)
    count = g.choice([1, 3])
    low = g.rng.uniform(0, 4, [count, 2])
    rois = g.constant(np.concatenate([low, low + g.rng.uniform(1, 4, [count, 2])], 1), F32)
    which = g.constant(g.rng.integers(0, v.dims()[0], [count]), I64)
    modes = [None, "half_pixel", "output_half_pixel"] if g.opset >= 16 else [None]
    g.emit("RoiAlign", [v, rois, which], mode=g.choice([None, "avg", "max"]),
           output_height=g.choice([None, 2, 3]), output_width=g.choice([None, 2]),
           sampling_ratio=g.choice([None, 0, 2]), spatial_scale=g.choice([None, 0.5]),
           coordinate_transformation_mode=g.choice(modes))


@generates("MaxRoiPool")
def max_roi_pool(g):
    v = g.pick((F32,), rank=4, test=lambda v: v.full and v.finite and isinstance(v.dims()[0], int),
               make=lambda: [2, 3, g.choice([8, "S"]), 9], wild=False)
    count, scale = g.choice([1, 3]), g.choice([None, 0.5, 2.0])
    low = g.rng.integers(0, 4, [count, 2])
    # (Corners at whole places and halves of even ones: which way a half is rounded is left open.)
    corners = np.concatenate([low, low + g.rng.integers(0, 6, [count, 2])], 1) * 2
    boxes = np.concatenate([g.rng.integers(0, v.dims()[0], [count, 1]), corners], 1)
    g.emit("MaxRoiPool", [v, g.constant(boxes, F32)], pooled_shape=[g.choice([1, 2, 3]), g.choice([1, 2, 5])],
           spatial_scale=scale)
