# A multi-layer perceptron 784-256-10 as graph functions and hand-written prim functions. Parameters are inputs; they
# are bound by name with --params. The weights have PyTorch's layout [out, in].
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T


@I.ir_module
class Module:
    @T.prim_func(private=True, s_tir=True)
    def dense_relu(x: T.Buffer((T.int64(1), T.int64(784)), "float32"),
                   w: T.Buffer((T.int64(256), T.int64(784)), "float32"), b: T.Buffer((T.int64(256),), "float32"),
                   y: T.Buffer((T.int64(1), T.int64(256)), "float32")):
        T.func_attr({"tirx.noalias": True})
        acc = T.sblock_alloc_buffer((T.int64(1), T.int64(256)))
        for i, j, k in T.grid(T.int64(1), T.int64(256), T.int64(784)):
            with T.sblock("dense"):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                T.reads(x[vi, vk], w[vj, vk])
                T.writes(acc[vi, vj])
                with T.init():
                    acc[vi, vj] = T.float32(0.0)
                acc[vi, vj] = acc[vi, vj] + x[vi, vk] * w[vj, vk]
        for i, j in T.grid(T.int64(1), T.int64(256)):
            with T.sblock("bias_relu"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(acc[vi, vj], b[vj])
                T.writes(y[vi, vj])
                y[vi, vj] = T.max(acc[vi, vj] + b[vj], T.float32(0.0))

    @R.function
    def hidden(x: R.Tensor((1, 784), dtype="float32"), w: R.Tensor((256, 784), dtype="float32"),
               b: R.Tensor((256,), dtype="float32")) -> R.Tensor((1, 256), dtype="float32"):
        cls = Module
        with R.dataflow():
            y = R.call_tir(cls.dense_relu, (x, w, b), out_ty=R.Tensor((1, 256), dtype="float32"))
            R.output(y)
        return y

    @R.function
    def main(x: R.Tensor((1, 784), dtype="float32"), w0: R.Tensor((256, 784), dtype="float32"),
             b0: R.Tensor((256,), dtype="float32"), w1: R.Tensor((10, 256), dtype="float32"),
             b1: R.Tensor((10,), dtype="float32")) -> R.Tensor((1, 10), dtype="float32"):
        R.func_attr({"num_input": 1})
        cls = Module
        h: R.Tensor((1, 256), dtype="float32") = cls.hidden(x, w0, b0)
        with R.dataflow():
            w1t: R.Tensor((256, 10), dtype="float32") = R.permute_dims(w1, axes=[1, 0])
            product: R.Tensor((1, 10), dtype="float32") = R.matmul(h, w1t)
            logits: R.Tensor((1, 10), dtype="float32") = R.add(product, b1)
            R.output(logits)
        return logits
