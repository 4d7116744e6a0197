"""Where ONNX Runtime and onnx.reference disagree, or no document decides: what the specification says, by which the
fuzzer judges.

AVOIDED lists what the generators leave out by construction, DECIDED differences that the definitions have decided. A
failure is *explained* where the definitions (definitions.py: the specification's formulas in float64, and
onnx.reference given float64) say what Ingot gave; and where --strict-math mends it and the difference is one of
rounding, as the rewrites that it leaves out may make."""
import numpy as np

from definitions import evaluate_model
from oracle import apart
from running import differs
from tensors import eps, is_float

ROUNDING = 64.0  # units in the last place

# (operators, what is left out and why)
AVOIDED = [
    ("MaxPool GlobalMaxPool ReduceMax ReduceMin ArgMax ArgMin TopK Hardmax Unique DynamicQuantizeLinear QuantizeLinear",
     "NaN among the elements: the specification names no order for it; ONNX Runtime's pools drop it, numpy spreads it"),
    ("AveragePool LpPool", "NaN and infinities in float64, which ONNX Runtime lacks: onnx.reference pads with NaN and "
     "leaves all NaN out of its sums"),
    ("RoiAlign", "NaN and infinities: the specification names no order for the greatest sample, and does not say "
     "whether a sample outside of the data is 0 or 0 times its nearest element"),
    ("Clip", "infinities without a bound, in dtypes that ONNX Runtime lacks: the specification's default is the greatest "
     "finite number of the dtype, onnx.reference has none"),
    ("GlobalMaxPool", "float64, which ONNX Runtime lacks: onnx.reference drops dims of rank 3"),
    ("Attention", "infinite scores beside hidden ones: a row of which all that is left is -inf is NaN by the formula, "
     "0 in onnx.reference, and the mean of the masked values in ONNX Runtime"),
    ("MaxPool AveragePool LpPool", "auto_pad SAME_* of a window shorter than its stride: ONNX Runtime's mean then "
     "leaves out the data's edge, its maximum refuses"),
    ("Resize", "linear, integers: fractions are cut off, as in ONNX Runtime, where a sum that is a whole number may come out "
     "below it; antialiased ones are rounded once, in ONNX Runtime once per axis and, of int8, up to 0"),
    ("Resize", "half_pixel_symmetric, align_corners, tf_crop_and_resize and pytorch_half_pixel, nearest, of lengths "
     "that the scale rounds: places lie on borders of elements, and whether the length before rounding or after it "
     "counts is not said"),
    ("Resize", "tf_crop_and_resize of an axis whose scale is 1, of which a part is cut out: ONNX Runtime takes all"),
    ("Upsample Resize GridSample", "interpolation beside NaN and infinities: a sample at a pixel's place is the pixel, "
     "or it and 0 * infinity"),
    ("Squeeze", "without axes, of a computed tensor: a symbolic dim must not turn out to be 1"),
    ("Reshape", "without allowzero, sizes computed from dims that are 0 when the model runs where the data has another "
     "size: they stay 0 here, so that a symbol stays a symbol; ONNX Runtime copies the data's, and mostly fails then"),
    ("LSTM GRU RNN", "NaN and infinities: ONNX Runtime's activations are clamped, so that NaN becomes a number"),
    ("ReduceLogSum ReduceLogSumExp ReduceL2 ReduceMean", "integers: to what the result rounds is not said"),
    ("Col2Im", "dilations of images that are not of two axes: ONNX Runtime adds up other elements than onnx.reference; "
     "tests/acceptance/rare_ops.py has them"),
    ("ConvTranspose", "auto_pad SAME_* of a kernel shorter than its stride: the specification gives input * stride "
     "elements, ONNX Runtime fewer"),
    ("Slice", "a negative step that begins below -dim, and the least integer as its end: ONNX Runtime, onnx.reference "
     "and numpy all differ; tests/acceptance/legal_resizes.py has the case that the specification decides"),
    ("Softmax LogSoftmax Hardmax", "before opset 13 in dtypes that ONNX Runtime lacks: onnx.reference knows the newer "
     "meaning of the axis alone"),
    ("MaxPool AveragePool LpPool", "windows longer than the padded data: ONNX Runtime rounds towards zero there"),
    ("HannWindow HammingWindow BlackmanWindow", "float64: ONNX Runtime computes their coefficients in float32"),
    ("ConcatFromSequence", "parts that are unlike beside the axis: the specification asks for equal dims, ONNX Runtime "
     "leaves out empty parts"),
    ("Normalizer Binarizer LinearClassifier LinearRegressor SVMClassifier SVMRegressor", "NaN and infinities: the "
     "specification names no order for the greatest element, nor which sums vectors of other classes have a part in"),
    ("Cast", "floats that do not fit the integer dtype: not defined"),
    ("com.microsoft.MatMulNBits", "g_idx beside zero points: ONNX Runtime's kernel gives other numbers than (number - "
     "zero point of the column's block) * its scale"),
    ("Pow", "whole numbers raised by a float to what does not fit their dtype: not defined"),
]

# (operators, how the oracle differs and by how much, as measured; each is made by a generator)
DECIDED = [
    ("HardSwish", "float64, which ONNX Runtime lacks: the specification says alpha = 1/6, onnx.reference takes the "
     "float32 next to it, as its function body has it. The graph of seed 41002100 normalises the result "
     "(LayerNormalization, whose epsilon is the float32 next to 1e-5 for both): Ingot gives what 1/6 gives, "
     "onnx.reference is 4.6e-12 away, and within 1.2e-16 of what the float32 gives"),
    ("DFT", "of lengths with large factors: of 65 points, seed 600001994, the greatest of them 16.4, ONNX Runtime is "
     "1.9e-4 away from numpy's transform in float64, Ingot 2.5e-6"),
]



def settled(case, results):
    """Do the definitions say what Ingot gave (by assignment) rather than what was expected?"""
    try:
        for inputs, expected, got in zip(case.inputs, case.expected, results):
            with np.errstate(all="ignore"):
                values = evaluate_model(case.model, inputs)
            if not all(not differs(got[name], want, bound) or is_nearer(got[name], want, bound, values[name])
                       for name, (want, bound) in expected.items()):
                return False
        return True
    except KeyError:  # a value that the definitions do not have
        return False


def is_nearer(got, want, bound, defined):
    """Is every element what the definition says, to within its error bound or what is expected differs from it by?"""
    if got.shape != want.shape or got.dtype != want.dtype or got.shape != defined.shape:
        return False
    if not is_float(got.dtype):
        return np.array_equal(got, defined)
    with np.errstate(all="ignore"):
        target = defined.astype(got.dtype)
        finite = np.isfinite(target.astype(np.float64))
        distance = apart(want, target)
    bound = np.broadcast_to(bound, want.shape)
    # Where what is expected is not finite it has no bound: that of its neighbours.
    usual = np.maximum(bound.max(initial=0), ROUNDING * eps(got.dtype) * np.abs(defined))
    allowed = np.maximum(bound, np.where(np.isfinite(distance), distance, usual))
    return bool((apart(got, target) <= np.where(finite, allowed, 0)).all())


def is_bounded(case, results):
    """Does what a model gives without --strict-math lie as near as a bounded rewrite's rounding may be: a few units in
    the last place of the greatest number that the model computes with?"""
    try:
        for inputs, expected, got in zip(case.inputs, case.expected, results):
            with np.errstate(all="ignore"):
                values = [v for v in evaluate_model(case.model, inputs).values() if is_float(v.dtype)]
            greatest = max(float(np.abs(v[np.isfinite(v)]).max(initial=0)) for v in values)
            for name, (want, bound) in expected.items():
                slack = ROUNDING * eps(want.dtype) * greatest if is_float(want.dtype) else 0
                if differs(got[name], want, bound + slack):
                    return False
        return True
    except Exception:
        return False
