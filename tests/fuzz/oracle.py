"""The results of a node, and how far another correct evaluation may be from them.

A node is evaluated alone, as a model of one node: by ONNX Runtime without optimisations, and by onnx.reference where
ONNX Runtime has no kernel for it. bfloat16 is evaluated in float32 and rounded, as neither has it everywhere.

Every element carries an error bound. A node's bound comes from its operator's rounding class and from its inputs'
bounds: it is evaluated again with inputs moved by their bounds (and by the units in the last place that the class
stands for: sums and products are backward stable), all up, all down, to numbers of few digits and at random. What
moves, times a margin, plus what the class adds to a result, is its bound. Where a whole number, a truth value, a shape
or the finiteness of an element moves, the node is *unstable*: it jumps at these inputs, and a graph leaves it out. So
no comparison ever has to ignore a difference, and a value that no rounding touched has the bound 0: it must be met bit
by bit."""
import numpy as np
import onnx
import onnxruntime
from onnx import helper
from onnx.reference import ReferenceEvaluator

from tensors import (BFLOAT16, F32, SMALL, eps, exact_limit, is_float, is_whole, largest, numpy_type, onnx_type,
                     smallest_normal)

onnxruntime.set_default_logger_severity(4)
NUM_MOVED = 8  # evaluations with moved inputs; two terms that cancel are moved apart in half of the random ones
MARGIN = 4.0

# Rounding classes: (units by which inputs move, units of the result added, absolute units added to results that are
# differences of numbers around 1, or as large as the inputs for a body of nodes). "exact": the result is an input's
# element or does not depend on rounding. "sum" and "body": exact where all numbers are whole and small, else backward
# stable.
CLASSES = {"exact": (0, 0, 0), "sum": (8, 4, 0), "relative": (2, 16, 0), "saturating": (2, 16, 16),
           "normalised": (8, 32, 64), "sampled": (64, 64, 64), "body": (8, 4, 8)}

EXACT = frozenset("""Abs And ArgMax ArgMin BitCast BitShift BitwiseAnd BitwiseNot BitwiseOr BitwiseXor Cast CastLike
    Ceil CenterCropPad Clip Compress Concat ConcatFromSequence Constant ConstantOfShape DepthToSpace Dropout Equal Expand
    EyeLike Flatten Floor Gather GatherElements GatherND GlobalMaxPool Greater GreaterOrEqual Hardmax Identity IsInf
    IsNaN Less LessOrEqual Max MaxPool MaxUnpool Min Neg NonMaxSuppression NonZero Not OneHot Optional
    OptionalGetElement OptionalHasElement Or Pad ReduceMax ReduceMin Relu Reshape ReverseSequence Round Scatter
    SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength Shape Sign Size Slice
    SpaceToDepth Split SplitToSequence Squeeze TensorScatter ThresholdedRelu Tile TopK Transpose Trilu Unique Unsqueeze
    Where Xor MatMulInteger ConvInteger TfIdfVectorizer Crop com.microsoft.ExpandDims com.microsoft.NGramRepeatBlock
    com.microsoft.Pad com.microsoft.UnfoldTensor com.microsoft.Unique""".split())
SUMS = frozenset("""Add Sub Mul Sum MatMul Gemm Conv ConvTranspose CumSum ReduceSum ReduceL1 ReduceSumSquare Einsum
    ScatterElements ScatterND Mod Range CausalConvWithState LeakyRelu PRelu Mean AveragePool GlobalAveragePool
    ReduceMean Div Col2Im com.microsoft.ConvTransposeWithDynamicPads""".split())
RELATIVE = frozenset("Exp Sqrt Reciprocal Pow Log ReduceL2 ReduceProd CumProd".split())
NORMALISED = frozenset("""BatchNormalization LayerNormalization InstanceNormalization GroupNormalization
    RMSNormalization LpNormalization DFT STFT MeanVarianceNormalization LSTM GRU RNN Attention LRN LinearAttention Det
    com.microsoft.GatedRMSNorm com.microsoft.LinearAttention ai.onnx.preview.FlexAttention ai.onnx.preview.training.Adagrad
    ai.onnx.preview.training.Adam ai.onnx.preview.training.Momentum""".split())
# Their weights come from coordinates, which round before they are multiplied by lengths.
SAMPLED = frozenset("Resize Upsample GridSample RoiAlign AffineGrid com.microsoft.CropAndResize".split())
# What their bodies compute may be larger than the result.
BODIES = frozenset("If Loop Scan SequenceMap".split())


MICROSOFT = "com.microsoft"
BLOCKS = MICROSOFT + ".nchwc"
MACHINE_LEARNING = "ai.onnx.ml"
PREVIEW = "ai.onnx.preview"
TRAINING = "ai.onnx.preview.training"
# Domains besides ONNX's own, and their versions.
DOMAINS = {MICROSOFT: 1, BLOCKS: 1, MACHINE_LEARNING: 3, PREVIEW: 1, TRAINING: 1}


def name_of(proto):
    """An operator's name, behind its domain where that is not ONNX's own."""
    return f"{proto.domain}.{proto.op_type}" if proto.domain else proto.op_type


class Unstable(Exception):
    """The node's result jumps within its inputs' bounds, or means nothing any more."""


class Rejected(Exception):
    """Neither oracle evaluates the node."""


def class_of(op_type):
    if op_type in EXACT:
        return "exact"
    if op_type in SUMS:
        return "sum"
    if op_type in RELATIVE:
        return "relative"
    if op_type in SAMPLED:
        return "sampled"
    if op_type in BODIES:
        return "body"
    return "normalised" if op_type in NORMALISED else "saturating"


def session(model):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.log_severity_level = 1, 4
    options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def small_model(nodes, names, arrays, opset, fixed=()):
    """fixed: inputs whose dims are declared."""
    # (ONNX Runtime's shape inference wants Resize's sizes to be constants.)
    shaping = shaping_inputs(nodes[0])
    inputs = [helper.make_tensor_value_info(name, onnx_type(array.dtype),
                                            array.shape if name in fixed else [None] * array.ndim)
              for name, array in arrays.items() if name not in shaping]
    constants = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items() if name in shaping]
    outputs = [onnx.ValueInfoProto(name=name) for name in names]
    return make_model(helper.make_graph(nodes, "one", inputs, outputs, constants), opset)


def shaping_inputs(proto):
    """Of a node whose other inputs decide the result's shape: they are what they are under all assignments."""
    return set(proto.input[1:]) if proto.op_type in ("Resize", "Upsample") else set()


def make_model(graph, opset, functions=()):
    imports = [helper.make_opsetid("", opset)] + ([helper.make_opsetid("local", 1)] if functions else [])
    used = {node.domain for part in [graph, *functions] for node in part.node}
    imports += [helper.make_opsetid(domain, version) for domain, version in DOMAINS.items() if domain in used]
    model = helper.make_model(graph, opset_imports=imports, functions=list(functions))
    model.ir_version = 8 if opset < 19 else 10
    return model


def decomposed(nodes):
    """ONNX Runtime lacks a kernel of NhwcConv on CPUs: a Conv between transpositions."""
    node = nodes[0]
    if name_of(node) != MICROSOFT + ".NhwcConv":
        return nodes
    fronts = [helper.make_node("Transpose", [name], [f"front{i}"], perm=[0, 3, 1, 2])
              for i, name in enumerate(node.input[:2])]
    conv, end = type(node)(), helper.make_node("Transpose", ["conv"], node.output, perm=[0, 2, 3, 1])
    conv.CopyFrom(node)
    conv.op_type, conv.domain, conv.output[0] = "Conv", "", "conv"
    conv.input[0], conv.input[1] = "front0", "front1"
    return [*fronts, conv, end]


class Evaluator:
    """A node or a group, made ready once and evaluated many times: arrays by name in, arrays by name out."""

    def __init__(self, nodes, names, example, opset, fixed):
        self.narrow = any(a.dtype == BFLOAT16 for a in example.values())
        self.names = names
        model = small_model(decomposed(nodes), names, self.widened(example), opset, fixed)
        try:
            if uses_small(nodes, example):
                raise NotImplementedError("NOT_IMPLEMENTED: ONNX Runtime has few kernels of these dtypes")
            run = session(model)
            taken = {i.name for i in model.graph.input}
            self.run = lambda arrays: run.run(self.names, {n: a for n, a in arrays.items() if n in taken})
        except Exception as error:
            text = str(error)
            # (onnx.reference knows the newest meaning of an operator, such as Softmax's axis, alone.)
            lacks = any(part in text for part in ("NOT_IMPLEMENTED", "not a registered function", "is till opset"))
            lacks |= nodes[0].domain in (PREVIEW, TRAINING)
            if opset < 13 or not lacks or nodes[0].domain in (MICROSOFT, BLOCKS, MACHINE_LEARNING):
                raise Rejected(text.splitlines()[0]) from error
            try:
                onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True)
                reference = ReferenceEvaluator(model)
            except Exception as why:
                raise Rejected(str(why).splitlines()[0] if str(why) else "reference") from why
            taken = {i.name for i in model.graph.input}
            # (Its optimizers give float64 where float32 goes in.)
            dtype = example[nodes[0].input[2]].dtype if nodes[0].domain == TRAINING else None
            self.run = lambda arrays: [np.asarray(y, dtype) for y in reference.run(
                None, {n: a for n, a in arrays.items() if n in taken})]

    def widened(self, arrays):
        if not self.narrow:
            return arrays
        return {name: a.astype(np.float32) if a.dtype == BFLOAT16 else a for name, a in arrays.items()}

    def __call__(self, arrays):
        try:
            with np.errstate(all="ignore"):
                results = self.run(self.widened(arrays))
        except Exception as error:
            raise Rejected(str(error).splitlines()[0] if str(error) else type(error).__name__) from error
        if any(not isinstance(y, np.ndarray) for y in results):
            raise Rejected("a result that is no tensor")
        if self.narrow:
            results = [np.asarray(y).astype(BFLOAT16) if y.dtype == F32 else y for y in results]
        return dict(zip(self.names, results))


def uses_small(nodes, example):
    """Are there elements of eight-bit floats, or of less than a byte?"""
    numbers = [a.i for node in nodes for a in node.attribute if a.name in ("to", "output_dtype") and a.i]
    return any(a.dtype in SMALL for a in example.values()) or any(numpy_type(n) in SMALL for n in numbers)


def evaluator(nodes, names, example, opset, fixed):
    """A Cast to or from bfloat16 says its own dtype: it is evaluated here."""
    if nodes[0].op_type == "Cast":
        to = next((numpy_type(a.i) for a in nodes[0].attribute if a.name == "to"), None)
        if to is None:
            raise Rejected("a Cast to nothing")
        source = next(iter(example.values()))
        if BFLOAT16 in (to, source.dtype):
            def cast(arrays):
                with np.errstate(all="ignore"):
                    return {names[0]: next(iter(arrays.values())).astype(to)}
            return cast
    return Evaluator(nodes, names, example, opset, fixed)


def moved(array, bound, units, rng, how):
    """The array with each element moved by at most its bound and the units of its dtype."""
    if not is_float(array.dtype):
        return array
    wide = array.astype(np.float64)
    reach = np.where(np.isfinite(wide), bound + units * eps(array.dtype) * np.abs(wide), 0)
    if not np.any(reach):
        return array
    with np.errstate(all="ignore"):
        if how == 2:  # to numbers of few digits, which other ones are compared with
            few = np.round(wide * 1024) / 1024
            return np.where(np.abs(few - wide) <= reach, few, wide).astype(array.dtype)
        sign = 1 if how == 0 else -1 if how == 1 else rng.choice([-1.0, 1.0], array.shape)
        return np.asarray(wide + sign * reach).astype(array.dtype)


def apart(got, want):
    """|got - want| by element; infinite where one is not finite and they are unlike."""
    a, b = got.astype(np.float64), want.astype(np.float64)
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        distance = np.abs(a - b)
    return np.where(same, 0, np.where(np.isfinite(distance), distance, np.inf))


def evaluate(nodes, names, arrays, bounds, opset, rng):
    """Of a node, or of a group of exact ones, for every assignment: [(results, bounds)] by name. Raises Unstable and
    Rejected."""
    proto = nodes[0]
    # (com.microsoft's operators ask for the dims of their weights.)
    fixed = [name for name in arrays[0] if proto.domain and len({given[name].shape for given in arrays}) == 1]
    run = evaluator(nodes, names, arrays[0], opset, fixed)
    move, relative, absolute = CLASSES[class_of(name_of(proto))]
    outcome = []
    for given, given_bounds in zip(arrays, bounds):
        results = run(given)
        has_bounds = any(np.any(b) for b in given_bounds.values())
        if not has_bounds and is_exact(proto, given, results):
            outcome.append((results, {name: np.zeros(()) for name in results}))
            continue
        moves = move if not has_bounds or class_of(name_of(proto)) != "exact" else 0
        reach = {name: np.zeros(y.shape) for name, y in results.items()}
        shaping = shaping_inputs(proto)
        for how in range(NUM_MOVED):
            nearby = {name: a if name in shaping else moved(a, given_bounds[name], moves, rng, how)
                      for name, a in given.items()}
            for name, y in run(nearby).items():
                want = results[name]
                if y.shape != want.shape or (not is_float(y.dtype) and not np.array_equal(y, want)):
                    raise Unstable("a result that jumps")
                if is_float(y.dtype):
                    reach[name] = np.maximum(reach[name], apart(y, want))
        result_bounds = {}
        scale = 1.0
        if class_of(name_of(proto)) == "sampled":  # what is wrong with a weight counts as often as the data is large
            data = next(iter(given.values()))
            scale = max(1.0, largest(data) / 16) if is_float(data.dtype) else 1.0
        elif class_of(name_of(proto)) == "body":
            scale = max([1.0] + [largest(a) for a in (*given.values(), *results.values()) if is_float(a.dtype)])
        for name, y in results.items():
            result_bounds[name] = bound_of(y, reach[name], relative, absolute * scale)
        outcome.append((results, result_bounds))
    return outcome


def bound_of(y, reach, relative, absolute):
    if not is_float(y.dtype):
        return np.zeros(())
    if not np.all(np.isfinite(reach)):
        raise Unstable("finiteness that jumps")
    wide = np.abs(y.astype(np.float64))
    wide = np.where(np.isfinite(wide), wide, 0)
    bound = MARGIN * reach + eps(y.dtype) * (relative * wide + absolute)
    bound = np.where(np.isfinite(y.astype(np.float64)), bound + (relative > 0) * 4 * smallest_normal(y.dtype), 0)
    if bound.size and bound.max() > max(1e-6, largest(y)) * (0.25 if y.dtype == BFLOAT16 else 0.05):
        raise Unstable("a bound as large as the result")
    if y.size and (wide + bound > float(ml_finfo_max(y.dtype))).any():
        raise Unstable("a result near overflow")
    return bound


def ml_finfo_max(dtype):
    return 3.38e38 if dtype == BFLOAT16 else np.finfo(dtype).max


def is_exact(proto, given, results):
    """May no correct evaluation round anything?"""
    kind = class_of(name_of(proto))
    if kind == "exact" or not any(is_float(y.dtype) for y in results.values()):
        return True
    if kind not in ("sum", "body"):
        return False
    everything = list(given.values()) + list(results.values())
    if not all(is_whole(a) for a in everything):
        return False
    # Every sum of products of these numbers stays below what the dtype holds exactly.
    narrowest = min(exact_limit(y.dtype) for y in results.values() if is_float(y.dtype))
    terms = max([a.size for a in given.values()] + [1])
    product = 1.0
    for array in given.values():
        product *= max(1.0, largest(array))
    return proto.op_type not in ("Div", "ReduceMean", "AveragePool", "GlobalAveragePool", "Mean") and (
        product * terms < narrowest)
