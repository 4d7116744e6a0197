"""What recipes of legal models are made of (legal_models.py runs them)."""
import sys

try:
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper
except ImportError as error:
    print("SKIP:", error)
    sys.exit(77)

END = 2**63 - 1
node = helper.make_node


def normal(*shape):
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32)


def ints(*values):
    return np.asarray(values, np.int64)


class Recipe:
    """A model and a call. inputs: (dims, array) by name; constants by name; the first output is compared. want: what it
    is, if ONNX Runtime does not run the model. refusal: what vm-run says of a call beyond Ingot's stated limits."""

    def __init__(self, nodes, inputs, constants=None, outputs=("y",), opset=17, want=None,
                 refusal=None):
        infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(array.dtype), dims)
                 for name, (dims, array) in inputs.items()]
        graph = helper.make_graph(nodes, "recipe", infos, [onnx.ValueInfoProto(name=name) for name in outputs],
                                  [numpy_helper.from_array(np.asarray(array), name)
                                   for name, array in (constants or {}).items()])
        self.model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], ir_version=9)
        self.inputs = {name: array for name, (_, array) in inputs.items()}
        self.output, self.want, self.refusal = outputs[0], want, refusal
