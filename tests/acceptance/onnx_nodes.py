"""Nodes and constants of an ONNX graph, as they are added one by one; results are named by the node that makes them."""
import numpy as np
from onnx import helper, numpy_helper


class Nodes:
    def __init__(self, seed):
        self.rng, self.nodes, self.constants = np.random.default_rng(seed), [], {}

    def add(self, op, *inputs, outputs=1, **attributes):
        """The name of the node's result, or the names of its results."""
        names = [f"{op}_{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(op, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, array):
        name = f"c{len(self.constants)}"
        self.constants[name] = np.asarray(array)
        return name

    def initializers(self):
        return [numpy_helper.from_array(array, name) for name, array in self.constants.items()]
