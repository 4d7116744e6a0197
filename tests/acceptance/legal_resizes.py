"""Recipes of legal models that resize pictures."""
import numpy as np
import onnx

from legal_recipe import Recipe, ints, node, normal


def resize_by_a_fraction_of_symbols():
    nodes = [node("Resize", ["x", "", "s"], ["y"], mode="linear")]
    return Recipe(nodes, {"x": (["N", 2, "H", "W"], normal(1, 2, 7, 9))},
                  {"s": np.array([1, 1, 1.5, 0.625], np.float32)})


def antialias_to_one_element():
    """Its place is 0 by the specification, which onnx.reference does not follow."""
    return Recipe([node("Resize", ["x", "", "scales"], ["y"], mode="cubic", antialias=1,
                        coordinate_transformation_mode="pytorch_half_pixel")],
                  {"x": ([1, 1, 1, 3], normal(1, 1, 1, 3))}, {"scales": np.array([1, 1, 1, 0.5], np.float32)}, opset=18)


def antialias_to_no_element():
    """A third of one column is none."""
    return Recipe([node("Resize", ["x", "", "", "sizes"], ["y"], mode="linear", antialias=1, axes=[2, 3],
                        keep_aspect_ratio_policy="not_larger")],
                  {"x": (["n", 1, 3, 1], normal(2, 1, 3, 1))}, {"sizes": ints(1, 7)}, opset=18)


def length_that_float32_rounds_up():
    """5 * 2.6 is 13, though the float32 next to 2.6 is less."""
    return Recipe([node("Resize", ["x", "", "scales"], ["y"], mode="linear")],
                  {"x": ([1, 1, 5], normal(1, 1, 5))}, {"scales": np.array([1, 1, 2.6], np.float32)})


def length_of_a_symbol_that_float32_rounds_up():
    return Recipe([node("Resize", ["x", "", "scales"], ["y"], mode="linear")],
                  {"x": (["n", "c", "w"], normal(1, 1, 5))}, {"scales": np.array([1, 1, 2.6], np.float32)})


def lengths_of_symbols_beside_numbers():
    """One axis by a power of two, one by a fraction, one of a known length; what is added has the resized lengths."""
    nodes = [node("Resize", ["x", "", "scales"], ["r"], mode="nearest"), node("Add", ["r", "z"], ["y"])]
    return Recipe(nodes, {"x": (["n", "h", 5, "w"], normal(1, 6, 5, 5)), "z": (["n", "h2", "k", "w2"], normal(1, 3, 13, 13))},
                  {"scales": np.array([1, 0.5, 2.6, 2.6], np.float32)})


def nearest(length, scale, **attributes):
    return Recipe([node("Resize", ["x", "", "s"], ["y"], mode="nearest", **attributes)],
                  {"x": (["n", "c", "w"], normal(1, 1, length))}, {"s": np.array([1, 1, scale], np.float32)}, opset=19)


def place_that_rounding_leaves_beside_the_middle():
    """4.5 / 0.3 - 0.5 lies between two elements, in float32 a little below."""
    return nearest(30, 0.3, nearest_mode="round_prefer_ceil")


def centred_places_between_elements():
    return nearest(38, 2 / 3, nearest_mode="round_prefer_floor",
                   coordinate_transformation_mode="half_pixel_symmetric")


def centred_places_at_elements():
    return nearest(33, 1.5, nearest_mode="ceil", coordinate_transformation_mode="half_pixel_symmetric")


def resize_of_integers(dtype, scales, want=None, **attributes):
    x = np.random.default_rng(5).integers(0 if dtype == np.uint8 else -100, 100, (1, 2, 9, 6)).astype(dtype)
    return Recipe([node("Resize", ["x", "", "s"], ["y"], **attributes)], {"x": (["n", "c", "h", "w"], x)},
                  {"s": np.array([1, 1, *scales], np.float32)}, opset=19, want=want)


def linear_resize_of_bytes():
    return resize_of_integers(np.uint8, (1 / 3, 1), mode="linear")


def linear_resize_of_signed_bytes():
    return resize_of_integers(np.int8, (2, 0.5), mode="linear")


def linear_resize_of_integers():
    return resize_of_integers(np.int32, (0.5, 2), mode="linear")


def antialias_of_bytes_along_one_axis():
    return resize_of_integers(np.uint8, (0.5, 1), mode="linear", antialias=1)


def cubic_resize_of_bytes():
    """ONNX Runtime has none; the reference rounds the sums, and what leaves the dtype is its last number."""
    x = np.array([0, 255, 255, 0], np.uint8)
    return Recipe([node("Resize", ["x", "", "s"], ["y"], mode="cubic")], {"x": (["w"], x)},
                  {"s": np.array([2], np.float32)}, want=np.array([0, 58, 197, 255, 255, 197, 58, 0], np.uint8))


def linear_resize_of_what_is_everywhere(dtype):
    """The weights of float32 do not add up to 1."""
    greatest = np.iinfo(dtype).max
    return Recipe([node("Resize", ["x", "", "", "z"], ["y"], mode="linear")],
                  {"x": (["n", "c", "h", "w"], np.full((1, 1, 7, 9), greatest, dtype))}, {"z": ints(1, 1, 12, 31)},
                  opset=19, want=np.full((1, 1, 12, 31), greatest, dtype))


def linear_resize_of_the_greatest_uint16():
    return linear_resize_of_what_is_everywhere(np.uint16)


def linear_resize_of_the_greatest_int16():
    return linear_resize_of_what_is_everywhere(np.int16)


def crop_of_integers(dtype, outside, want, mode="linear"):
    """What lies outside becomes the dtype's nearest number, as where a cast saturates."""
    result = np.full((1, 1, 6, 6), want, dtype)
    result[:, :, 2:4, 2:4] = 1
    return Recipe([node("Resize", ["x", "r", "", "z"], ["y"], mode=mode, extrapolation_value=outside,
                        coordinate_transformation_mode="tf_crop_and_resize")],
                  {"x": (["n", "c", "h", "w"], np.ones((1, 1, 3, 3), dtype))},
                  {"r": np.array([0, 0, -1, -1, 1, 1, 2, 2], np.float32), "z": ints(1, 1, 6, 6)}, opset=19, want=result)


def crop_beside_more_than_a_byte_has():
    return crop_of_integers(np.uint8, 300.0, 255)


def crop_beside_less_than_a_byte_has():
    return crop_of_integers(np.uint8, -5.0, 0, mode="nearest")


def crop_of_signed_bytes_beside_infinity():
    return crop_of_integers(np.int8, float("-inf"), -128)


def crop_of_integers_beside_no_number():
    return crop_of_integers(np.int64, float("nan"), 0, mode="nearest")


def picture(h, w):
    return (["n", "c", "h", "w"], normal(1, 2, h, w))


def by_data(h, w, scales, **attrs):
    return Recipe([node("Resize", ["x", "", "s"], ["y"], **attrs)],
                  {"x": picture(h, w), "s": ([4], np.array(scales, np.float32))})


def linear_by_scales_of_data():
    return by_data(5, 7, [1, 1, 1.5, 2.6], mode="linear")


def cubic_by_scales_of_data():
    return by_data(5, 7, [1, 1, 3.3, 0.4], mode="cubic")


def nearest_by_scales_of_data():
    return by_data(6, 9, [1, 1, 0.5, 33 / 9], mode="nearest")


def to_nothing_by_scales_of_data():
    return by_data(3, 7, [1, 1, 0.25, 2], mode="linear")


def linear_antialias_by_scales_of_data():
    return antialias_by_data([1, 1, 0.6, 0.3], "linear")


def cubic_antialias_by_scales_of_data():
    return antialias_by_data([1, 1, 0.55, 1.7], "cubic")


def antialias_by_data(scales, mode):
    return Recipe([node("Resize", ["x", "", "s"], ["y"], mode=mode, antialias=1)],
                  {"x": picture(9, 14), "s": ([4], np.array(scales, np.float32))}, opset=18)


def region_of_data(region, sizes, want=None, opset=19, axes=None, **attributes):
    """A part of a picture that an input gives, as converters of TensorFlow's crop_and_resize write it."""
    given = {} if axes is None else {"axes": axes}
    return Recipe([node("Resize", ["x", "r", "", "z"], ["y"], coordinate_transformation_mode="tf_crop_and_resize",
                        extrapolation_value=1.5, **given, **attributes)],
                  {"x": picture(6, 7), "r": ([len(region)], np.array(region, np.float32)),
                   "z": ([len(sizes)], ints(*sizes))}, opset=opset, want=want)


def linear_region_of_data():
    return region_of_data([0, 0, 0.1, -0.2, 1, 1, 0.8, 1.1], [1, 2, 5, 8], mode="linear")


def nearest_region_of_data():
    return region_of_data([0, 0, 0.15, 0.2, 1, 1, 0.8, 0.95], [1, 2, 4, 9], mode="nearest")


def cubic_region_of_data():
    return region_of_data([0.15, 0.2, 0.85, 0.95], [4, 9], axes=[2, 3], mode="cubic", cubic_coeff_a=-0.5)


def region_of_data_by_axes_in_another_order():
    return region_of_data([0.2, 0.1, 0.9, 0.7], [5, 3], axes=[3, 2], mode="linear")


def middle_of_a_region_of_data():
    return region_of_data([0.2, 0.1, 0.9, 0.7], [1, 1], axes=[2, 3], mode="linear")


def one_axis_by_a_scale_of_data():
    return Recipe([node("Resize", ["x", "", "s"], ["y"], mode="linear", axes=[2])],
                  {"x": ([1, 2, "h"], normal(1, 2, 5)), "s": (["k"], np.array([3.7], np.float32))}, opset=19)


def quotients_of_lengths(opset, resize):
    """The scales that bring a picture to the size of another one, as exporters spell them out."""
    nodes = []
    for name in ("x", "t"):
        nodes += [node("Shape", [name], [f"{name}_shape"]),
                  node("Slice", [f"{name}_shape"], [f"{name}_lengths"], starts=[2], ends=[4]) if opset < 10 else
                  node("Slice", [f"{name}_shape", "two", "four"], [f"{name}_lengths"]),
                  node("Cast", [f"{name}_lengths"], [f"{name}_floats"], to=1)]
    nodes += [node("Div", ["t_floats", "x_floats"], ["r"]), node("Concat", ["ones", "r"], ["s"], axis=0), resize]
    bounds = {} if opset < 10 else {"two": ints(2), "four": ints(4)}
    return Recipe(nodes, {"x": picture(49, 9), "t": (["n", "c", "h2", "w2"], normal(1, 2, 60, 33))},
                  {"ones": np.ones(2, np.float32), **bounds}, opset=opset)


def upsample_by_quotients_of_lengths():
    return quotients_of_lengths(9, node("Upsample", ["x", "s"], ["y"], mode="nearest"))


def old_resize_by_quotients_of_lengths():
    return quotients_of_lengths(10, node("Resize", ["x", "s"], ["y"], mode="linear"))


def resize_by_quotients_of_lengths():
    return quotients_of_lengths(13, node("Resize", ["x", "", "s"], ["y"], mode="linear"))


def places_that_float32_finds():
    """Place 11 of 33 lies at 3 of 9, not below it, though the scale is rounded."""
    return Recipe([node("Resize", ["x", "", "s"], ["y"], mode="nearest", nearest_mode="floor",
                        coordinate_transformation_mode="asymmetric")],
                  {"x": ([1, 1, 9], normal(1, 1, 9))}, {"s": np.array([1, 1, 33 / 9], np.float32)})


def old_nearest(dims, scales, constant=True):
    """Until opset 10 nearest goes up along an axis that gets shorter."""
    scales = np.float32(scales)
    inputs = {"x": (["n", "c", "h", "w"], np.arange(np.prod(dims), dtype=np.float32).reshape(dims))}
    if not constant:
        inputs["s"] = ([4], scales)
    return Recipe([node("Resize", ["x", "s"], ["y"], mode="nearest")], inputs, {"s": scales} if constant else {},
                  opset=10)


def old_resize_to_fewer():
    return old_nearest([1, 1, 2, 4], [1, 1, 0.6, 0.6])


def old_resize_to_fewer_rows_and_more_columns():
    return old_nearest([1, 2, 7, 5], [1, 1, 0.3, 2.5])


def old_resize_by_scales_of_data():
    return old_nearest([1, 1, 7, 5], [1, 1, 0.7, 1.5], constant=False)


def scales_of_one_that_data_give():
    """Float32 does not tell the halves of places from 2^23 on."""
    x = np.arange(2**23 + 64, dtype=np.int64).astype(np.uint8).reshape(1, -1)
    return Recipe([node("Resize", ["x", "", "s"], ["y"], mode="nearest")],
                  {"x": (["n", "w"], x), "s": ([2], np.array([2, 1], np.float32))})
