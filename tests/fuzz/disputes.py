"""Where ONNX Runtime and onnx.reference disagree, or no document decides: what the specification says, so that the
fuzzer knows whom to follow.

AVOIDED lists what the generators leave out by construction. A failure whose minimised case onnx.reference evaluates as
Ingot does is *disputed*: it counts as explained only where a row of DISPUTES names the operator and the circumstance,
and says why the specification is on onnx.reference's side."""
import dataclasses
from typing import Callable

import numpy as np
from onnx.reference import ReferenceEvaluator

from running import compare


@dataclasses.dataclass
class Dispute:
    op_type: str
    applies: Callable  # of the minimised model's node: whether it is this case
    reason: str


def attribute(node, name, default=None):
    for a in node.attribute:
        if a.name == name:
            return {1: a.f, 2: a.i, 3: a.s.decode(), 7: list(a.ints)}.get(a.type)
    return default


# (operators, what is left out and why)
AVOIDED = [
    ("MaxPool GlobalMaxPool ReduceMax ReduceMin ArgMax ArgMin TopK Hardmax Unique DynamicQuantizeLinear QuantizeLinear",
     "NaN among the elements: the specification names no order for it; ONNX Runtime's pools drop it, numpy spreads it"),
    ("GlobalMaxPool", "float64, which ONNX Runtime lacks: onnx.reference drops dims of rank 3"),
    ("LSTM GRU RNN", "NaN and infinities: ONNX Runtime's activations are clamped, so that NaN becomes a number"),
    ("ReduceLogSum ReduceLogSumExp ReduceL2 ReduceMean", "integers: to what the result rounds is not said"),
    ("ConvTranspose", "auto_pad SAME_* of a kernel shorter than its stride: the specification gives input * stride "
     "elements, ONNX Runtime fewer"),
    ("Slice", "a negative step that begins below -dim, and the least integer as its end: ONNX Runtime, onnx.reference "
     "and numpy all differ; tests/acceptance/legal_models.py has the case that the specification decides"),
    ("Softmax LogSoftmax Hardmax", "before opset 13 in dtypes that ONNX Runtime lacks: onnx.reference knows the newer "
     "meaning of the axis alone"),
    ("MaxPool AveragePool LpPool", "windows longer than the padded data: ONNX Runtime rounds towards zero there"),
    ("HannWindow HammingWindow BlackmanWindow", "float64: ONNX Runtime computes their coefficients in float32"),
    ("Cast", "floats that do not fit the integer dtype: not defined"),
]

DISPUTES = []


def explanation(case):
    """The reason why a minimised case's difference is ONNX Runtime's, or None."""
    for node in case.model.graph.node:
        for dispute in DISPUTES:
            if node.op_type == dispute.op_type and dispute.applies(node):
                return dispute.reason
    return None


def reference_agrees(case, results):
    """Does onnx.reference give these results (by assignment) rather than the expected ones?"""
    try:
        evaluator = ReferenceEvaluator(case.model)
        names = [o.name for o in case.model.graph.output]
        for inputs, expected, got in zip(case.inputs, case.expected, results):
            with np.errstate(all="ignore"):
                values = dict(zip(names, evaluator.run(None, inputs)))
            theirs = {n: (np.asarray(values[n]), expected[n][1]) for n in names}
            if compare(got, theirs):
                return False
        return True
    except Exception:  # it does not know every operator
        return False
