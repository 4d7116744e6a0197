# from typing import TypeVar
# from tvm.script import ir as I
# from tvm.script import relax as R

# A classifier of two layers, small enough to be kept as executables (README.md). Weights are bound from a file.
n = TypeVar("n")
@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((n, 16), dtype="float32"), w1: R.Tensor((16, 16), dtype="float32"),
             b1: R.Tensor((16,), dtype="float32"), w2: R.Tensor((16, 10), dtype="float32"),
             b2: R.Tensor((10,), dtype="float32")) -> R.Tensor((n, 10), dtype="float32"):
        R.func_attr({"num_input": 1, "output_names": ["y"]})
        with R.dataflow():
            h0: R.Tensor((n, 16), dtype="float32") = R.matmul(x, w1)
            h1: R.Tensor((n, 16), dtype="float32") = R.add(h0, b1)
            h2: R.Tensor((n, 16), dtype="float32") = R.nn.relu(h1)
            s0: R.Tensor((n, 10), dtype="float32") = R.matmul(h2, w2)
            y: R.Tensor((n, 10), dtype="float32") = R.add(s0, b2)
            R.output(y)
        return y
