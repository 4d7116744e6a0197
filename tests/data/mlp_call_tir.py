# A multi-layer perceptron 784-256-10, every operator of which is a tensor function already: the form that an ONNX model
# or a class of layers has after legalising (apps/examples/mlp.cc compares the three).
from tvm.script import ir as I
from tvm.script import tirx as T
from tvm.script import relax as R


@I.ir_module
class Module:
    @R.function
    def main(x: R.Tensor((1, 784), dtype="float32"), fc1_weight: R.Tensor((256, 784), dtype="float32"),
             fc1_bias: R.Tensor((256,), dtype="float32"), fc2_weight: R.Tensor((10, 256), dtype="float32"),
             fc2_bias: R.Tensor((10,), dtype="float32")) -> R.Tensor((1, 10), dtype="float32"):
        R.func_attr({"num_input": 1})
        cls = Module
        with R.dataflow():
            permute_dims = R.call_tir(cls.transpose, (fc1_weight,), out_ty=R.Tensor((784, 256), dtype="float32"))
            matmul = R.call_tir(cls.matmul, (x, permute_dims), out_ty=R.Tensor((1, 256), dtype="float32"))
            h = R.call_tir(cls.add, (matmul, fc1_bias), out_ty=R.Tensor((1, 256), dtype="float32"))
            r = R.call_tir(cls.relu, (h,), out_ty=R.Tensor((1, 256), dtype="float32"))
            permute_dims1 = R.call_tir(cls.transpose1, (fc2_weight,), out_ty=R.Tensor((256, 10), dtype="float32"))
            matmul1 = R.call_tir(cls.matmul1, (r, permute_dims1), out_ty=R.Tensor((1, 10), dtype="float32"))
            y = R.call_tir(cls.add1, (matmul1, fc2_bias), out_ty=R.Tensor((1, 10), dtype="float32"))
            R.output(y)
        return y

    @T.prim_func(private=True, s_tir=True)
    def transpose(x: T.Buffer((T.int64(256), T.int64(784)), "float32"),
                  T_transpose: T.Buffer((T.int64(784), T.int64(256)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1 in T.grid(T.int64(784), T.int64(256)):
            with T.sblock("T_transpose"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(x[v_i1, v_i0])
                T.writes(T_transpose[v_i0, v_i1])
                T_transpose[v_i0, v_i1] = x[v_i1, v_i0]

    @T.prim_func(private=True, s_tir=True)
    def matmul(x1: T.Buffer((T.int64(1), T.int64(784)), "float32"),
               x2: T.Buffer((T.int64(784), T.int64(256)), "float32"),
               matmul: T.Buffer((T.int64(1), T.int64(256)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1, k in T.grid(T.int64(1), T.int64(256), T.int64(784)):
            with T.sblock("matmul"):
                v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
                T.reads(x1[v_i0, v_k], x2[v_k, v_i1])
                T.writes(matmul[v_i0, v_i1])
                with T.init():
                    matmul[v_i0, v_i1] = T.float32(0.0)
                matmul[v_i0, v_i1] = matmul[v_i0, v_i1] + x1[v_i0, v_k] * x2[v_k, v_i1]

    @T.prim_func(private=True, s_tir=True)
    def add(x1: T.Buffer((T.int64(1), T.int64(256)), "float32"), x2: T.Buffer((T.int64(256),), "float32"),
            T_add: T.Buffer((T.int64(1), T.int64(256)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1 in T.grid(T.int64(1), T.int64(256)):
            with T.sblock("T_add"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(x1[v_i0, v_i1], x2[v_i1])
                T.writes(T_add[v_i0, v_i1])
                T_add[v_i0, v_i1] = x1[v_i0, v_i1] + x2[v_i1]

    @T.prim_func(private=True, s_tir=True)
    def relu(x: T.Buffer((T.int64(1), T.int64(256)), "float32"),
             compute: T.Buffer((T.int64(1), T.int64(256)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1 in T.grid(T.int64(1), T.int64(256)):
            with T.sblock("compute"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(x[v_i0, v_i1])
                T.writes(compute[v_i0, v_i1])
                compute[v_i0, v_i1] = T.max(x[v_i0, v_i1], T.float32(0.0))

    @T.prim_func(private=True, s_tir=True)
    def transpose1(x: T.Buffer((T.int64(10), T.int64(256)), "float32"),
                   T_transpose: T.Buffer((T.int64(256), T.int64(10)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1 in T.grid(T.int64(256), T.int64(10)):
            with T.sblock("T_transpose"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(x[v_i1, v_i0])
                T.writes(T_transpose[v_i0, v_i1])
                T_transpose[v_i0, v_i1] = x[v_i1, v_i0]

    @T.prim_func(private=True, s_tir=True)
    def matmul1(x1: T.Buffer((T.int64(1), T.int64(256)), "float32"),
                x2: T.Buffer((T.int64(256), T.int64(10)), "float32"),
                matmul: T.Buffer((T.int64(1), T.int64(10)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1, k in T.grid(T.int64(1), T.int64(10), T.int64(256)):
            with T.sblock("matmul"):
                v_i0, v_i1, v_k = T.axis.remap("SSR", [i0, i1, k])
                T.reads(x1[v_i0, v_k], x2[v_k, v_i1])
                T.writes(matmul[v_i0, v_i1])
                with T.init():
                    matmul[v_i0, v_i1] = T.float32(0.0)
                matmul[v_i0, v_i1] = matmul[v_i0, v_i1] + x1[v_i0, v_k] * x2[v_k, v_i1]

    @T.prim_func(private=True, s_tir=True)
    def add1(x1: T.Buffer((T.int64(1), T.int64(10)), "float32"), x2: T.Buffer((T.int64(10),), "float32"),
             T_add: T.Buffer((T.int64(1), T.int64(10)), "float32")):
        T.func_attr({"tirx.noalias": True})
        # with T.sblock("root"):
        for i0, i1 in T.grid(T.int64(1), T.int64(10)):
            with T.sblock("T_add"):
                v_i0, v_i1 = T.axis.remap("SS", [i0, i1])
                T.reads(x1[v_i0, v_i1], x2[v_i1])
                T.writes(T_add[v_i0, v_i1])
                T_add[v_i0, v_i1] = x1[v_i0, v_i1] + x2[v_i1]
