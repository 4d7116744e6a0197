"""Modules in TVMScript that use what no tool of TVM makes by itself: control flow, closures, calls of other functions,
memory by hand; buffers, threads and intrinsics of tensor functions. TVM reads each text, and prints it anew."""
import tvm
from tvm.script import ir as I
from tvm.script import relax as R
from tvm.script import tirx as T

GRAPHS = '''
branch
    @R.function
    def main(c: R.Tensor((), "bool"), x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        if c:
            y = R.add(x, x)
        else:
            z = R.multiply(x, x)
            y = R.exp(z)
        return y

recursion
    @R.function
    def main(n: R.Tensor((), "int32"), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        done = R.equal(n, R.const(0, "int32"))
        if done:
            r = x
        else:
            less = R.subtract(n, R.const(1, "int32"))
            more = R.add(x, x)
            r = cls.main(less, more)
        return r

closure
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        @R.function
        def inner(a: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
            b = R.add(a, x)
            return b
        z = inner(y)
        return z

functions
    @R.function(private=True)
    def half(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        y = R.multiply(x, R.const(0.5, "float32"))
        return y

    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        with R.dataflow():
            a = cls.half(x)
            b = cls.half(a)
            R.output(b)
        return b

tuples
    @R.function
    def main(t: R.Tuple(R.Tensor((2,), "float32"), R.Tuple(R.Tensor((3,), "int32"), R.Shape([2, 3])))) -> R.Tuple(R.Tensor((2,), "float32"), R.Tensor((3,), "int32")):
        a = t[0]
        b = t[1][0]
        return (a, b)

casts
    @R.function
    def main(x: R.Tensor(ndim=2, dtype="float32"), y: R.Tensor) -> R.Tensor(ndim=1, dtype="float32"):
        m = T.int64()
        n = T.int64()
        a = R.match_cast(x, R.Tensor((m, n), "float32"))
        b = R.match_cast(y, R.Tensor((n,), "float32"))
        c = R.add(a, b)
        d = R.sum(c, axis=[0])
        return d

shapes
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32"), s: R.Shape(["n"]), p: R.Prim("int64")) -> R.Shape(ndim=2):
        n = T.int64()
        m = T.int64()
        y: R.Shape([n * 2, m + 1]) = R.shape([n * 2, m + 1])
        return y

external
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        y = R.call_packed("own.function", x, ty_args=R.Tensor((2, 3), "float32"))
        _ = R.print(y, format="y = {}")
        _1 = R.assert_op(R.const(True, "bool"), y, format="wrong {}")
        z = R.call_dps_packed("own.dps", (x, y), out_ty=R.Tensor((2, 3), "float32"))
        return z

pure_external
    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        y = R.call_pure_packed("own.function", x, ty_args=R.Tensor((2, 3), "float32"))
        return y

in_place_external
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        y = R.call_inplace_packed("own.function", x, inplace_indices=[0], ty_args=[R.Tensor((2, 3), "float32")])
        return y

kernels
    @T.prim_func(private=True, s_tir=True)
    def scale(x: T.Buffer((T.int64(4), T.int64(8)), "float32"), y: T.Buffer((T.int64(4), T.int64(8)), "float32")):
        T.func_attr({"tirx.noalias": True})
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2.0)

    @R.function
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        with R.dataflow():
            y = R.call_tir(cls.scale, (x,), out_ty=R.Tensor((4, 8), dtype="float32"))
            z = R.call_tir_inplace(cls.scale, (y, y), inplace_indices=[1], out_ty=R.Tensor((4, 8), dtype="float32"))
            R.output(z)
        return z

symbolic_kernels
    @T.prim_func(private=True, s_tir=True)
    def fill(v: T.handle, n: T.int64, y: T.handle):
        x = T.match_buffer(v, (n,), "float32")
        z = T.match_buffer(y, (n,), "float32")
        for i in range(n):
            with T.sblock("fill"):
                vi = T.axis.spatial(n, i)
                z[vi] = x[vi] + T.Cast("float32", n)

    @R.function
    def main(x: R.Tensor(("n",), "float32")) -> R.Tensor(("n",), "float32"):
        n = T.int64()
        with R.dataflow():
            y = R.call_tir(cls.fill, (x,), out_ty=R.Tensor((n,), dtype="float32"))
            R.output(y)
        return y

memory
    @T.prim_func(private=True, s_tir=True)
    def scale(x: T.Buffer((T.int64(4), T.int64(8)), "float32"), y: T.Buffer((T.int64(4), T.int64(8)), "float32")):
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2.0)

    @R.function(pure=False)
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        storage = R.memory.alloc_storage(R.shape([256]), R.prim_value(0), R.str("global"), R.dtype("uint8"))
        a = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([4, 8]), R.dtype("float32"))
        _ = cls.scale(x, a)
        b = R.builtin.alloc_tensor(R.shape([4, 8]), R.dtype("float32"), R.prim_value(0))
        _1 = cls.scale(a, b)
        _2 = R.memory.kill_tensor(a)
        _3 = R.memory.kill_storage(storage)
        return b

vm_memory
    @T.prim_func(private=True, s_tir=True)
    def scale(x: T.Buffer((T.int64(4), T.int64(8)), "float32"), y: T.Buffer((T.int64(4), T.int64(8)), "float32")):
        for i, j in T.grid(T.int64(4), T.int64(8)):
            with T.sblock("scale"):
                vi, vj = T.axis.remap("SS", [i, j])
                y[vi, vj] = x[vi, vj] * T.float32(2.0)

    @R.function(pure=False)
    def main(x: R.Tensor((4, 8), "float32")) -> R.Tensor((4, 8), "float32"):
        storage = R.vm.alloc_storage(R.shape([256]), R.prim_value(0), R.dtype("uint8"))
        a = R.vm.alloc_tensor(storage, R.prim_value(0), R.shape([4, 8]), R.dtype("float32"))
        _ = cls.scale(x, a)
        b = R.vm.alloc_tensor(storage, R.prim_value(128), R.shape([4, 8]), R.dtype("float32"))
        _1 = R.vm.call_tir_dyn(cls.scale, (a, b))
        _2 = R.vm.kill_object(a)
        _3 = R.vm.kill_object(storage)
        return b

objects
    @R.function
    def main(x: R.Any, s: R.Tensor((3,), "int64")) -> R.Any:
        n = T.int64()
        a = R.tensor_to_shape(s)
        return x

attributes
    I.module_attrs({"own": 1})

    @R.function
    def main(x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        R.func_attr({"relax.force_pure": True, "num_input": 1, "tir_var_upper_bound": {"n": 4}})
        y = R.add(x, R.const(1.0, "float32"))
        return y

scalars
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), p: R.Prim("int64")) -> R.Tuple(R.Prim("int64"), R.Tensor((2, 3), "float32")):
        y = R.add(x, R.const(1.0, "float32"))
        z = R.full(R.shape([2, 3]), R.const(2.0, "float32"), "float32")
        w = R.subtract(y, z)
        q = R.prim_value(3)
        return (q, w)

callable_param
    @R.function
    def main(f: R.Callable((R.Tensor((4,), "float32"),), R.Tensor((4,), "float32")), x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        y = f(x)
        return y

callable_object
    @R.function
    def main(f: R.Callable, x: R.Any) -> R.Any:
        return x

tuple_get
    @R.function
    def main(x: R.Tensor((32, 32), "float32")) -> R.Tuple(R.Tensor((32, 32), "float32"), R.Tensor):
        with R.dataflow():
            lv0 = R.add(x, x)
            gv = (x, lv0)
            R.output(gv)
        return gv

nested_dataflow
    @R.function
    def main(x: R.Tensor((8, 8), "float32")):
        with R.dataflow():
            lv0 = R.add(x, x)
            lv1 = R.multiply(lv0, lv0)
            R.output(lv1)
        gv = R.sum(lv1)
        with R.dataflow():
            lv2 = R.add(gv, gv)
            R.output(lv2)
        return lv2

no_annotation_if
    @R.function(pure=False)
    def main(cond: R.Tensor((), "bool"), x: R.Tensor((1,), "float32")):
        if cond:
            w = R.add(x, x)
            _ = R.print(w)
            r = R.multiply(w, w)
        else:
            w = R.multiply(x, x)
            r = R.add(w, w)
        return r

match_cast_shape
    @R.function
    def main(x: R.Tensor(("m",), "float32"), y: R.Tensor(dtype="float32", ndim=2)) -> R.Tensor(dtype="float32", ndim=1):
        m = T.int64()
        q = T.int64()
        gv0 = R.match_cast(y, R.Tensor((q, m * 2), "float32"))
        gv1 = R.match_cast(R.shape_of(gv0), R.Shape([q, m * 2]))
        gv2 = R.sum(gv0, axis=[1])
        return gv2

func_attr
    @R.function
    def main(x: R.Tensor((1,), "float32")) -> R.Tensor((1,), "float32"):
        R.func_attr({"Primitive": True, "Codegen": "own", "WorkspaceSize": 1024, "global_symbol": "main", "list": ["a", "b"], "nested": {"k": [1, 2]}, "f": 1.5})
        return x

extern_func
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float32"):
        f = R.ExternFunc("my_extern")
        y = R.call_packed("my_extern", x, ty_args=R.Tensor((4,), "float32"))
        return y

call_tir_many
    @T.prim_func(private=True, s_tir=True)
    def two(A: T.Buffer((T.int64(4),), "float32"), B: T.Buffer((T.int64(4),), "float32"), C: T.Buffer((T.int64(4),), "int32")):
        for i in range(T.int64(4)):
            with T.sblock("two"):
                vi = T.axis.spatial(T.int64(4), i)
                B[vi] = A[vi]
                C[vi] = T.Cast("int32", A[vi])

    @R.function
    def main(x: R.Tensor((4,), "float32")):
        gv = R.call_tir(cls.two, (x,), out_ty=[R.Tensor((4,), dtype="float32"), R.Tensor((4,), dtype="int32")])
        y = gv[0]
        z = gv[1]
        return (y, z)

closures_made
    @R.function(pure=False)
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        c = R.make_closure(cls.lifted, (x,))
        z = R.invoke_closure(c, (y,), ty_args=R.Tensor((2, 3), "float32"))
        return z

    @R.function(private=True)
    def lifted(y: R.Tensor((2, 3), "float32"), x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        s = R.add(x, y)
        return s

closures_pure
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), y: R.Tensor((2, 3), "float32")):
        c = R.make_closure(cls.lifted, (x,))
        z = R.invoke_pure_closure(c, (y,), ty_args=R.Tensor((2, 3), "float32"))
        return z

    @R.function(private=True)
    def lifted(y: R.Tensor((2, 3), "float32"), x: R.Tensor((2, 3), "float32")) -> R.Tensor((2, 3), "float32"):
        s = R.add(x, y)
        return s

vdevice
    I.module_attrs({"own": 1})
    I.module_global_infos({"vdevice": [I.vdevice({"kind": "llvm"}, 0), I.vdevice({"kind": "cuda", "arch": "sm_80"}, 0)]})

    @R.function
    def main(x: R.Tensor((2, 3), "float32", "llvm:0")) -> R.Tensor((2, 3), "float32"):
        y = R.add(x, x)
        return y

prim_value_args
    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor(("n",), "float32")) -> R.Shape(ndim=2):
        m = T.int64()
        s = R.shape([4, 5])
        return s

string_and_dtype
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Tensor((4,), "float16"):
        y = R.call_packed("cast", x, R.str("hello"), R.dtype("float16"), R.prim_value(T.float32(0.5)), ty_args=R.Tensor((4,), "float16"))
        return y

null_value
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Any:
        n = R.null_value()
        y = R.call_packed("own", x, n, ty_args=R.Any)
        return y

shape_in_tuple
    @R.function
    def main(t: R.Tuple(R.Shape(["n", "m"]), R.Tensor(("n", "m"), "float32"))):
        n = T.int64()
        m = T.int64()
        x = t[1]
        y = R.reshape(x, R.shape([n * m]))
        return y

empty_tuple
    @R.function
    def main(x: R.Tensor((4,), "float32")) -> R.Tuple:
        return R.tuple()

assert_msg
    @R.function(pure=False)
    def main(x: R.Tensor((), "bool")) -> R.Tensor((), "bool"):
        _ = R.assert_op(x)
        _1 = R.assert_op(x, format="x is false")
        _2 = R.print(x, x, format="{} {}")
        _3 = R.print(format="nothing")
        return x

call_builtin
    @R.function(pure=False)
    def main(x: R.Tensor((4,), "float32")) -> R.Any:
        y = R.call_builtin_with_ctx("vm.builtin.own", [x, R.prim_value(3)], ty_args=R.Any)
        return y

composite_codegen
    @R.function
    def main(x: R.Tensor((1, 64, 56, 56), "float32"), w: R.Tensor((64, 64, 3, 3), "float32")) -> R.Tensor((1, 64, 56, 56), "float32"):
        with R.dataflow():
            gv = cls.fused(x, w)
            R.output(gv)
        return gv

    @R.function
    def fused(x: R.Tensor((1, 64, 56, 56), "float32"), w: R.Tensor((64, 64, 3, 3), "float32")) -> R.Tensor((1, 64, 56, 56), "float32"):
        R.func_attr({"Codegen": "dnnl", "global_symbol": "fused"})

        @R.function
        def local(x1: R.Tensor((1, 64, 56, 56), "float32"), w1: R.Tensor((64, 64, 3, 3), "float32")) -> R.Tensor((1, 64, 56, 56), "float32"):
            R.func_attr({"Composite": "dnnl.conv2d_relu", "Primitive": True})
            with R.dataflow():
                lv = R.nn.conv2d(x1, w1, padding=[1, 1, 1, 1])
                gv = R.nn.relu(lv)
                R.output(gv)
            return gv

        gv1 = local(x, w)
        return gv1

with_grad
    @T.prim_func(private=True, s_tir=True)
    def f_mul(A: T.Buffer((T.int64(5), T.int64(5)), "float32"), B: T.Buffer((T.int64(5), T.int64(5)), "float32"), C: T.Buffer((T.int64(5), T.int64(5)), "float32")):
        for i, j in T.grid(T.int64(5), T.int64(5)):
            with T.sblock("f_mul"):
                vi, vj = T.axis.remap("SS", [i, j])
                C[vi, vj] = A[vi, vj] * B[vi, vj]

    @R.function
    def main(a: R.Tensor((5, 5), "float32"), b: R.Tensor((5, 5), "float32")) -> R.Tensor((), "float32"):
        with R.dataflow():
            lv = R.call_tir_with_grad(cls.f_mul, (a, b), out_ty=R.Tensor((5, 5), dtype="float32"), te_grad_name="f_mul_grad", te_grad_kwargs={"k": 1})
            gv = R.sum(lv)
            R.output(gv)
        return gv

recursive_branch
    @R.function
    def main(x: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
        @R.function
        def loop(i: R.Tensor((), "int32"), s: R.Tensor((), "int32")) -> R.Tensor((), "int32"):
            cond = R.less(i, R.const(10, "int32"))
            if cond:
                j = R.add(i, R.const(1, "int32"))
                r = loop(j, R.add(s, i))
            else:
                r = s
            return r
        y = loop(R.const(0, "int32"), x)
        return y

symbol_in_out
    @R.function
    def main(x: R.Tensor(("n", "m"), "float32")) -> R.Tensor(("n * m + 1",), "float32"):
        n = T.int64()
        m = T.int64()
        y = R.call_dps_packed("own.flat", (x,), out_ty=R.Tensor((n * m + 1,), dtype="float32"))
        return y

min_max_dims
    @R.function
    def main(x: R.Tensor(("n",), "float32"), y: R.Tensor(("m",), "float32")):
        n = T.int64()
        m = T.int64()
        z = R.call_dps_packed("own", (x, y), out_ty=R.Tensor((T.min(n, m) // 2, T.max(n, 4) % 3, T.if_then_else(n < m, n, m)), dtype="float32"))
        return z

storage_reuse
    @T.prim_func(private=True, s_tir=True)
    def add(A: T.Buffer((T.int64(8),), "float32"), B: T.Buffer((T.int64(8),), "float32")):
        for i in range(T.int64(8)):
            with T.sblock("a"):
                vi = T.axis.spatial(T.int64(8), i)
                B[vi] = A[vi] + T.float32(1)

    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        storage: R.Any = R.memory.alloc_storage(R.shape([32]), virtual_device_index=R.prim_value(0), storage_scope=R.str("global"), dtype=R.dtype("float32"))
        alloc: R.Tensor((8,), dtype="float32") = R.memory.alloc_tensor(storage, offset=R.prim_value(0), shape=R.shape([8]), dtype=R.dtype("float32"))
        _: R.Tuple = cls.add(x, alloc)
        storage1: R.Any = R.memory.alloc_storage(R.shape([32]), R.prim_value(0), R.str("global"), R.dtype("float32"))
        alloc1: R.Tensor((8,), dtype="float32") = R.memory.alloc_tensor(storage1, R.prim_value(0), R.shape([8]), R.dtype("float32"))
        _1: R.Tuple = cls.add(alloc, alloc1)
        _2: R.Tuple = R.memory.kill_tensor(alloc)
        alloc2: R.Tensor((8,), dtype="float32") = R.memory.alloc_tensor(storage, R.prim_value(0), R.shape([8]), R.dtype("float32"))
        _3: R.Tuple = cls.add(alloc1, alloc2)
        return alloc2

hints
    @R.function
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        with R.dataflow():
            lv = R.builtin.stop_lift_params(x)
            lv1 = R.memory.view(lv, R.shape([2, 4]), R.dtype("float32"), R.prim_value(0))
            lv2 = R.memory.ensure_zero_offset(lv1)
            lv3 = R.reshape(lv2, R.shape([8]))
            R.output(lv3)
        return lv3

cuda_graph
    @R.function(private=True)
    def cuda_graph_capture(a: R.Tensor((8,), "float32"), b: R.Tensor((8,), "float32")) -> R.Tuple:
        R.func_attr({"relax.force_pure": True})
        return R.tuple()

    @R.function(pure=False)
    def main(x: R.Tensor((8,), "float32")) -> R.Tensor((8,), "float32"):
        gv: R.Any = R.call_builtin_with_ctx("vm.builtin.cuda_graph.get_cached_alloc", (x, R.prim_value(0)), ty_args=(R.Any,))
        return x

dtype_default
    @R.function
    def main(x: R.Tensor((2, 3)), y: R.Tensor(ndim=2), z: R.Tensor(dtype="int8")) -> R.Tensor:
        return y

multi_return_tuple
    @R.function
    def main(x: R.Tensor((4, 4), "float32")):
        with R.dataflow():
            lv = R.split(x, 2, axis=1)
            a = lv[0]
            b = lv[1]
            c = R.concat((b, a), axis=1)
            R.output(a, c)
        return (a, (c, x))

te_ops
    @R.function
    def main(x: R.Tensor((2, 3), "float32"), i: R.Tensor((2,), "int64")):
        a = R.nn.dropout(x, rate=0.5)
        b = R.nn.pad(x, pad_width=[0, 1, 0, 1], pad_mode="constant", pad_value=1.0)
        c = R.sort(x, axis=-1, descending=True)
        d = R.argsort(x, axis=1, descending=False, dtype="int64")
        e = R.scatter_elements(x, R.const([[0, 0]], "int64"), R.const([[1.0, 2.0]], "float32"))
        f = R.one_hot(i, R.prim_value(1), R.prim_value(0), depth=3, axis=-1)
        return (a[0], b, c, d, e, f)

numbers_as_dims
    @R.function
    def main(n: R.Prim("int64"), x: R.Tensor(("n", 4), "float32")) -> R.Tensor(("n", 4), "float32"):
        n = T.int64()
        y = R.add(x, x)
        return y
'''

TENSORS = '''
assumed
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32"), n: T.int32):
        for i in T.serial(16):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                T.evaluate(T.assume(vi < n or A[vi] == 0))
                A[vi] = T.if_then_else(vi < 14, A[vi] * 2, 0)

assumed_flat
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32"), n: T.int32):
        T.evaluate(T.assume(0 <= n and n < 16))
        A[n] = 5

shifted
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "int32"), B: T.Buffer((8,), "int32")):
        for i in T.serial(8):
            B[i] = T.q_multiply_shift(A[i], T.int32(1395864371), T.int32(31), T.int32(-2))

strided
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, n: T.int32):
        s = T.int32()
        A = T.match_buffer(a, (n, 8), "float32", strides=[s, 1], elem_offset=T.int32(), offset_factor=1)
        B = T.match_buffer(b, (n, 8), "float32", align=64)
        for i, j in T.grid(n, 8):
            with T.sblock("copy"):
                vi, vj = T.axis.remap("SS", [i, j])
                B[vi, vj] = A[vi, vj]

retyped
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "int32")):
        bits = T.decl_buffer((16,), "int32", data=A.data)
        for i in range(16):
            B[i] = bits[i] & 255

retyped_narrow
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((64,), "uint8")):
        parts = T.decl_buffer((64,), "uint8", data=A.data)
        for i in range(64):
            B[i] = parts[i]

retyped_store
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "float32")):
        bits = T.decl_buffer((16,), "int32", data=B.data)
        for i in range(16):
            bits[i] = A[i] + 1

retyped_vector
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        vectors = T.decl_buffer((4,), "float32x4", data=A.data)
        others = T.decl_buffer((4,), "float32x4", data=B.data)
        for i in range(4):
            others[i] = vectors[i] + T.Broadcast(T.float32(1), 4)

shared_pool
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        pool = T.alloc_buffer((128,), "uint8")
        first = T.decl_buffer((16,), "float32", data=pool.data)
        second = T.decl_buffer((16,), "float32", data=pool.data, elem_offset=16)
        for i in range(16):
            first[i] = A[i]
        for i in range(16):
            second[i] = first[i] * T.float32(2)
        for i in range(16):
            B[i] = second[i]

let
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            x: T.let[T.float32] = A[i] + T.float32(1)
            y: T.let = x * x
            B[i] = y + x

variables
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in range(16):
            x: T.float32 = A[i] + T.float32(1)
            x = x * x
            y: T.int32 = i
            B[i] = x + T.Cast("float32", y)

loops
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32"), n: T.int32):
        for i in T.parallel(16):
            for j in T.vectorized(4):
                B[i, j] = A[i, j]
            for k in T.unroll(4, 8):
                B[i, k] = A[i, k]
            for k in T.serial(8, 12, annotations={"pragma_unroll_explicit": 1}):
                B[i, k] = A[i, k]
        i = T.alloc_local((1,), "int32") if False else T.alloc_buffer((1,), "int32", scope="local")
        i[0] = 12
        while i[0] < 16:
            B[0, i[0]] = A[0, i[0]]
            i[0] = i[0] + 1

asserts
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), n: T.int32):
        assert n < 16, "n is too large"
        if n > 0:
            A[n] = T.float32(1)
        else:
            T.evaluate(0)

vectors
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float16")):
        B[T.Ramp(0, 1, 4)] = A[T.Ramp(0, 1, 4)] + T.Broadcast(T.float32(1), 4)
        B[T.Ramp(4, 2, 4)] = A[T.Ramp(0, 1, 4)]
        C[T.Ramp(0, 1, 8)] = T.Cast("float16x8", A[T.Ramp(0, 1, 8)])
        B[T.Ramp(8, 1, 4)] = T.Select(A[T.Ramp(8, 1, 4)] < T.Broadcast(T.float32(0), 4), T.Broadcast(T.float32(0), 4), A[T.Ramp(8, 1, 4)])
        B[T.Ramp(12, 1, 4)] = T.Shuffle([A[T.Ramp(0, 1, 4)], A[T.Ramp(4, 1, 4)]], [0, 2, 4, 6])

threads
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        bx = T.launch_thread("blockIdx.x", 4)
        tx = T.launch_thread("threadIdx.x", 64)
        shared = T.alloc_buffer((64,), "float32", scope="shared")
        shared[tx] = A[bx * 64 + tx]
        T.evaluate(T.tvm_storage_sync("shared"))
        B[bx * 64 + tx] = shared[63 - tx]

env_threads
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((256,), "float32"), B: T.Buffer((256,), "float32")):
        bx = T.env_thread("blockIdx.x")
        tx = T.env_thread("threadIdx.x")
        T.launch_thread(bx, 4)
        T.launch_thread(tx, 64)
        B[bx * 64 + tx] = A[bx * 64 + tx]

reduction_block
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16,), "float32")):
        for i, k in T.grid(16, 16):
            with T.sblock("sum"):
                vi, vk = T.axis.remap("SR", [i, k])
                T.where(k < 15)
                T.reads(A[vi, vk])
                T.writes(B[vi])
                T.sblock_attr({"own": [1, 2], "text": "x"})
                with T.init():
                    B[vi] = T.float32(0)
                B[vi] = B[vi] + A[vi, vk]

sub_region
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 16), "float32"), B: T.Buffer((16, 16), "float32")):
        for i, j in T.grid(4, 4):
            with T.sblock("tile"):
                vi, vj = T.axis.remap("SS", [i, j])
                T.reads(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                T.writes(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4])
                a = T.match_buffer(A[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), strides=[16, 1], offset_factor=1)
                b = T.match_buffer(B[vi * 4:vi * 4 + 4, vj * 4:vj * 4 + 4], (4, 4), strides=[16, 1], offset_factor=1)
                for x, y in T.grid(4, 4):
                    with T.sblock("inner"):
                        vx, vy = T.axis.remap("SS", [x, y])
                        b[vx, vy] = a[vx, vy] * T.float32(2)

calls
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T.evaluate(T.call_packed("own.function", A.data, 16))
        T.evaluate(T.call_extern("int32", "own_function", A.data, B.data, 16))
        T.call_cpacked("own.c", A.data) if False else T.evaluate(0)
        for i in range(16):
            B[i] = T.call_extern("float32", "own_scalar", A[i])

accesses
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T.evaluate(T.call_extern("int32", "own_function", A.access_ptr("r"), B.access_ptr("w", offset=4), 16))
        T.evaluate(T.call_extern("int32", "own_address", T.address_of(A[3])))

math
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((32,), "float32"), B: T.Buffer((32,), "float32"), C: T.Buffer((8,), "int32"), D: T.Buffer((8,), "uint32")):
        for i in range(32):
            B[i] = T.exp(A[i]) + T.log(A[i]) + T.sqrt(A[i]) + T.sin(A[i]) * T.cos(A[i]) + T.tanh(A[i])
            B[i] = T.pow(A[i], T.float32(2)) + T.fabs(A[i]) + T.floor(A[i]) + T.ceil(A[i]) + T.round(A[i]) + T.trunc(A[i])
            B[i] = T.atan2(A[i], A[i]) + T.hypot(A[i], A[i]) + T.ldexp(A[i], 2) + T.copysign(A[i], A[i]) + T.nextafter(A[i], A[i])
            B[i] = T.exp2(A[i]) + T.exp10(A[i]) + T.log2(A[i]) + T.log10(A[i]) + T.log1p(A[i]) + T.rsqrt(A[i]) + T.sigmoid(A[i])
            B[i] = T.erf(A[i]) + T.nearbyint(A[i]) + T.fmod(A[i], A[i]) + T.acos(A[i]) + T.asin(A[i]) + T.atan(A[i])
            B[i] = T.acosh(A[i]) + T.asinh(A[i]) + T.atanh(A[i]) + T.sinh(A[i]) + T.cosh(A[i]) + T.tan(A[i])
        for i in range(8):
            C[i] = T.popcount(C[i]) + T.clz(C[i]) + T.truncdiv(C[i], 3) + T.truncmod(C[i], 3) + C[i] // 3 + C[i] % 3
            C[i] = T.shift_left(C[i], 2) | T.shift_right(C[i], 1) & (C[i] ^ 7) + T.bitwise_not(C[i])
            D[i] = T.reinterpret("uint32", A[i]) + T.max(D[i], T.uint32(3)) + T.likely(i < 4)

large
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "uint64"), B: T.Buffer((8,), "int64"), C: T.Buffer((8,), "bfloat16"), D: T.Buffer((8,), "float8_e4m3fn")):
        for i in range(8):
            A[i] = T.large_uint_imm(3435973837, 3435973836) if False else A[i] + T.uint64(7)
            B[i] = T.int64(9223372036854775807) - B[i]
            C[i] = T.Cast("bfloat16", T.Cast("float32", C[i]) * T.float32(2))
            D[i] = T.Cast("float8_e4m3fn", T.Cast("float32", D[i]))

infinities
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32")):
        A[0] = T.float32("inf")
        A[1] = T.float32("-inf")
        A[2] = T.float32("nan")
        A[3] = T.max_value("float32")
        A[4] = T.min_value("float32")
        A[5] = T.float32(1e-30)

two_outputs
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 8), "float32"), best: T.Buffer((8,), "float32"), place: T.Buffer((8,), "int32")):
        for i, k in T.grid(8, 8):
            with T.sblock("argmax"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    best[vi] = T.min_value("float32")
                    place[vi] = -1
                v: T.let[T.float32] = T.if_then_else(A[vi, vk] > best[vi], A[vi, vk], best[vi])
                p: T.let[T.int32] = T.if_then_else(A[vi, vk] > best[vi], vk, place[vi])
                best[vi] = v
                place[vi] = p

attributes
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "float32")):
        T.func_attr({"tirx.noalias": True, "own.list": [1, 2], "target": T.target({"kind": "llvm", "mcpu": "skylake-avx512"})})
        with T.attr(0, "pragma_own", 1):
            A[0] = T.float32(1)
        T.attr(A.data, "own_scope", "x")
        A[1] = T.float32(2)

pointers
    @T.prim_func(s_tir=True)
    def main(p: T.handle("float32"), n: T.int32):
        A = T.decl_buffer((16,), "float32", data=p)
        for i in range(16):
            A[i] = A[i] + T.float32(1)

zero_rank
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((), "float32"), B: T.Buffer((), "float32")):
        with T.sblock("copy"):
            vi = T.axis.spatial(1, 0)
            B[()] = A[()]

conditions
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "bool"), B: T.Buffer((8,), "int8"), n: T.int64):
        for i in range(8):
            A[i] = T.bool(True) if False else not A[i]
            if A[i] and i < 4 or n == 3:
                B[i] = T.Cast("int8", A[i])

double_buffer
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 4), "float32"), B: T.Buffer((16, 4), "float32")):
        for i in T.serial(16, annotations={"software_pipeline_stage": [0, 1], "software_pipeline_order": [0, 1]}):
            with T.sblock("outer"):
                vi = T.axis.spatial(16, i)
                T.reads(A[vi, 0:4])
                T.writes(B[vi, 0:4])
                C = T.sblock_alloc_buffer((16, 4), "float32", scope="shared")
                for j in range(4):
                    with T.sblock("load"):
                        vj = T.axis.spatial(4, j)
                        C[vi, vj] = A[vi, vj]
                for j in range(4):
                    with T.sblock("store"):
                        vj = T.axis.spatial(4, j)
                        B[vi, vj] = C[vi, vj] + T.float32(1)

tensor_cores
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16, 16), "float16"), B: T.Buffer((16, 16), "float16"), C: T.Buffer((16, 16), "float32")):
        a = T.alloc_buffer((256,), "float16", scope="wmma.matrix_a")
        c = T.alloc_buffer((256,), "float32", scope="wmma.accumulator")
        T.tvm_fill_fragment(c.data, 16, 16, 16, 0, T.float32(0))
        T.tvm_load_matrix_sync(a.data, 16, 16, 16, 0, A.data, 16, "row_major")
        T.tvm_mma_sync(c.data, 0, a.data, 0, a.data, 0, c.data, 0)
        T.tvm_store_matrix_sync(c.data, 16, 16, 16, 0, C.data, 16, "row_major")

undefined
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "int32")):
        for i in range(8):
            with T.sblock("b"):
                vi = T.axis.spatial(8, i)
                A[vi] = T.undef(dtype="int32")

macro_free
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, c: T.handle):
        T.func_attr({"global_symbol": "mmult", "tirx.noalias": True})
        A = T.match_buffer(a, [1024, 1024], elem_offset=0, align=64, offset_factor=1)
        B = T.match_buffer(b, [1024, 1024], elem_offset=0, align=64, offset_factor=1)
        C = T.match_buffer(c, [1024 * 1024], elem_offset=0, align=64, offset_factor=1)
        packedB = T.alloc_buffer([32768], "float32")
        for x in T.parallel(0, 32):
            for y in T.serial(0, 1024):
                for z in T.vectorized(0, 32):
                    packedB[x * 1024 + y] = B[y, x * 32 + z]
        for x_outer in T.parallel(0, 32):
            C_global = T.alloc_buffer((1024,), "float32")
            for y_outer in T.serial(0, 32):
                for x_c_init in T.serial(0, 32):
                    C_global[x_c_init * 32] = T.float32(0)
                for k_outer in T.serial(0, 256):
                    for x_c in T.serial(0, 32):
                        C_global[x_c * 32] = C_global[x_c * 32] + A[x_outer * 32 + x_c, k_outer * 4] * packedB[y_outer * 1024 + k_outer]
                for x_inner in T.serial(0, 32):
                    for y_inner in T.serial(0, 32):
                        C[x_outer * 32768 + y_outer * 32 + x_inner * 1024 + y_inner] = C_global[x_inner * 32 + y_inner]

elementwise_opaque
    @T.prim_func(s_tir=True)
    def main(a: T.handle, c: T.handle):
        A = T.match_buffer(a, (16, 16), "float32")
        C = T.match_buffer(c, (16, 16), "float32")
        for i in range(0, 16):
            with T.sblock():
                T.reads(A[i, 0:16])
                T.writes(C[i, 0:16])
                B = T.sblock_alloc_buffer((16, 16), "float32")
                for j in range(0, 16):
                    with T.sblock():
                        T.reads(A[i, j])
                        T.writes(B[i, j])
                        B[i, j] = A[i, j] + T.float32(1)
                for j in range(0, 16):
                    with T.sblock():
                        T.reads(B[i, j])
                        T.writes(C[i, j])
                        C[i, j] = B[i, j] * T.float32(2)

symbolic_shape
    @T.prim_func(s_tir=True)
    def main(a: T.handle, c: T.handle, n: T.int32, m: T.int32):
        A = T.match_buffer(a, (n, m), "float32")
        C = T.match_buffer(c, (n, m), "float32")
        for i in range(0, n):
            with T.sblock():
                T.reads(A[i, 0:m])
                T.writes(C[i, 0:m])
                B = T.sblock_alloc_buffer((m,), "float32")
                for j in range(0, m):
                    with T.sblock():
                        T.reads(A[i, j])
                        T.writes(B[j])
                        B[j] = A[i, j] + T.float32(1)
                for j in range(0, m):
                    with T.sblock():
                        C[i, j] = B[j] * T.float32(2)

cross_thread
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle):
        A = T.match_buffer(a, [128, 128], dtype="float32")
        B = T.match_buffer(b, [128], dtype="float32")
        for i in T.serial(0, 128):
            for ko in T.thread_binding(0, 4, thread="blockIdx.x"):
                for ki in T.thread_binding(0, 32, thread="threadIdx.x"):
                    with T.sblock("B"):
                        vi = T.axis.S(128, i)
                        vk = T.axis.R(128, ko * 32 + ki)
                        T.reads([A[vi, vk]])
                        T.writes([B[vi]])
                        with T.init():
                            B[vi] = T.float32(0)
                        B[vi] = B[vi] + A[vi, vk]

lowered_cross_thread
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((128, 32), "float32"), B: T.Buffer((128,), "float32")):
        for i in T.serial(0, 128):
            with T.sblock("B"):
                vi = T.axis.S(128, i)
                T.reads(A[vi, 0:32])
                T.writes(B[vi])
                reduce_temp0 = T.sblock_alloc_buffer([1], dtype="float32", strides=[1], scope="local")
                for k in T.thread_binding(0, 32, thread="threadIdx.x"):
                    with T.sblock("B_cross_thread_reduction"):
                        T.reads(A[vi, k])
                        T.writes(reduce_temp0[0])
                        T.attr(T.comm_reducer(lambda x, y: x + y, [T.float32(0)]), "reduce_scope", T.reinterpret("handle", T.uint64(0)))
                        T.evaluate(T.tvm_thread_allreduce(T.uint32(1), A[vi, k], True, reduce_temp0[0], k))
                    with T.sblock("B_write_back"):
                        T.where(k == 0)
                        T.reads(reduce_temp0[0])
                        T.writes(B[vi])
                        B[vi] = reduce_temp0[0]

two_reducers
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((32,), "float32"), I: T.Buffer((32,), "int32"), B: T.Buffer((1,), "float32"), C: T.Buffer((1,), "int32")):
        v = T.alloc_buffer((1,), "float32", scope="local")
        w = T.alloc_buffer((1,), "int32", scope="local")
        k = T.launch_thread("threadIdx.x", 32)
        with T.attr(T.comm_reducer(lambda x0, x1, y0, y1: (T.Select(x1 >= y1, x0, y0), T.Select(x1 >= y1, x1, y1)), [T.int32(-1), T.min_value("float32")]), "reduce_scope", 0):
            T.tvm_thread_allreduce(T.uint32(2), I[k], A[k], T.bool(True), w[0], v[0], k)
        B[0] = v[0]
        C[0] = w[0]

match_buffer_region
    @T.prim_func(s_tir=True)
    def main(a: T.handle, c: T.handle, n: T.int32):
        A = T.match_buffer(a, (n, 16, 16), "float32")
        C = T.match_buffer(c, (n, 16, 16), "float32")
        for i, j in T.grid(n, 4):
            with T.sblock():
                vi, vj = T.axis.remap("SS", [i, j])
                s0 = T.int32()
                s1 = T.int32()
                A0 = T.match_buffer(A[vi, vj * 4:vj * 4 + 4, 0:16], (1, 4, 16), strides=[s0, s1, 1], offset_factor=1)
                for a1, b1 in T.grid(4, 16):
                    with T.sblock():
                        va, vb = T.axis.remap("SS", [a1, b1])
                        C[vi, vj * 4 + va, vb] = A0[0, va, vb]

elem_offset_var
    @T.prim_func(s_tir=True)
    def main(a: T.handle, c: T.handle):
        o = T.int32()
        A = T.match_buffer(a, (16, 16), "float32", elem_offset=o, offset_factor=1)
        C = T.match_buffer(c, (16, 16), "float32")
        for i, j in T.grid(16, 16):
            C[i, j] = A[i, j]

tensor_intrin_desc
    @T.prim_func(s_tir=True)
    def main(a: T.handle, b: T.handle, c: T.handle):
        A = T.match_buffer(a, (16, 16), "float16", align=64, offset_factor=8, scope="shared")
        B = T.match_buffer(b, (16, 16), "float16", align=64, offset_factor=8, scope="shared")
        C = T.match_buffer(c, (16, 16), "float32", align=64, offset_factor=8, scope="wmma.accumulator")
        with T.sblock("root"):
            T.reads(C[0:16, 0:16], A[0:16, 0:16], B[0:16, 0:16])
            T.writes(C[0:16, 0:16])
            for i, j, k in T.grid(16, 16, 16):
                with T.sblock("update"):
                    vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                    C[vi, vj] = C[vi, vj] + T.cast(A[vi, vk], "float32") * T.cast(B[vj, vk], "float32")

wmma_impl
    @T.prim_func(s_tir=True)
    def main(a: T.handle, c: T.handle):
        s1 = T.int32()
        s0 = T.int32()
        A = T.match_buffer(a, (16, 16), "float16", align=32, offset_factor=16, scope="shared", strides=[s1, s0])
        C = T.match_buffer(c, (16, 16), "float16", align=32, offset_factor=16, scope="wmma.matrix_a")
        with T.sblock("root"):
            T.reads(A[0:16, 0:16])
            T.writes(C[0:16, 0:16])
            T.evaluate(T.tvm_load_matrix_sync(C.data, 16, 16, 16, C.elem_offset // 256 + T.floordiv(T.floormod(C.elem_offset, 256), 16), A.access_ptr("r"), s1, "row_major"))

allocs
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), C: T.Buffer((16,), "float32")):
        B = T.alloc_buffer((16,), "float32", scope="global")
        D = T.decl_buffer((4, 4), "float32", data=B.data)
        E = T.decl_buffer((4, 4), "float32", data=B.data, strides=[1, 4])
        for i, j in T.grid(4, 4):
            D[i, j] = A[i * 4 + j]
        for i, j in T.grid(4, 4):
            C[i * 4 + j] = E[i, j]

while_loops
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((16,), "int32"), n: T.int32):
        lo = T.alloc_buffer((1,), "int32", scope="local")
        hi = T.alloc_buffer((1,), "int32", scope="local")
        for i in range(16):
            lo[0] = 0
            hi[0] = n
            while lo[0] < hi[0]:
                mid: T.let[T.int32] = lo[0] + hi[0] >> 1
                if A[mid] < B[i]:
                    lo[0] = mid + 1
                else:
                    hi[0] = mid
            B[i] = lo[0]

if_elif
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32")):
        for i in range(16):
            if i < 4:
                A[i] = 0
            elif i < 8:
                A[i] = 1
            else:
                A[i] = 2

predicates
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for i0, i1 in T.grid(13, 10):
            with T.sblock("b"):
                T.where(i0 * 10 + i1 < 128)
                vi = T.axis.spatial(128, i0 * 10 + i1)
                B[vi] = A[vi] + T.float32(1)

opaque_axis
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32")):
        for i in T.serial(16):
            with T.sblock("o"):
                vi = T.axis.opaque(16, i)
                T.reads()
                T.writes(A[vi])
                A[vi] = T.float32(1)

scan_axis
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in T.serial(16):
            with T.sblock("o"):
                vi = T.axis.scan(16, i)
                B[vi] = T.if_then_else(vi == 0, A[0], B[vi - 1] + A[vi])

ranged_axis
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32")):
        for i in T.serial(4, 12):
            with T.sblock("o"):
                vi = T.axis.spatial((4, 12), i)
                A[vi] = T.float32(1)

thread_attr
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((128,), "float32"), B: T.Buffer((128,), "float32")):
        for bx in T.thread_binding(4, thread="blockIdx.x"):
            for vx in T.thread_binding(2, thread="vthread.x"):
                for tx in T.thread_binding(16, thread="threadIdx.x"):
                    with T.sblock("B"):
                        vi = T.axis.spatial(128, bx * 32 + vx * 16 + tx)
                        B[vi] = A[vi] * T.float32(2)

meta_var
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32")):
        n = T.meta_var(8)
        for i in range(n):
            A[i] = T.float32(n)

comments_attrs
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        for i in T.serial(16, annotations={"pragma_loop_partition_hint": 1, "own": "x", "stage": [0, 0, 1], "f": T.float32(0.5)}):
            with T.sblock("b"):
                vi = T.axis.spatial(16, i)
                T.sblock_attr({"meta_schedule.random_compute_producer": 1, "warp_execution": 1, "buffer_dim_align": [[0, 0, 32, 8]]})
                B[vi] = A[vi]

float8_ops
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float8_e5m2"), B: T.Buffer((16,), "float16"), C: T.Buffer((16,), "float8_e4m3fn")):
        for i in range(16):
            B[i] = T.Cast("float16", A[i])
            C[i] = T.Cast("float8_e4m3fn", B[i])

int4_ops
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "int32"), B: T.Buffer((128,), "float16")):
        for i in range(128):
            B[i] = T.Cast("float16", T.bitwise_and(T.shift_right(A[i // 8], i % 8 * 4), 15) - 7)

dequant_exp
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "uint32"), B: T.Buffer((128,), "float16")):
        for i in range(128):
            B[i] = T.Cast("float16", T.bitwise_and(T.shift_right(A[i // 8], T.Cast("uint32", i % 8) * T.uint32(4)), T.uint32(15))) * T.float16(0.5)

sparse_like
    @T.prim_func(s_tir=True)
    def main(indptr: T.Buffer((17,), "int32"), data: T.Buffer((64,), "float32"), out: T.Buffer((16,), "float32")):
        for i in range(16):
            with T.sblock("row"):
                vi = T.axis.spatial(16, i)
                T.reads(indptr[vi:vi + 2], data[0:64])
                T.writes(out[vi])
                out[vi] = T.float32(0)
                for j in range(indptr[vi + 1] - indptr[vi]):
                    with T.sblock("elem"):
                        vj = T.axis.opaque(64, indptr[vi] + j)
                        T.reads(data[vj], out[vi])
                        T.writes(out[vi])
                        out[vi] = out[vi] + data[vj]

packed_call
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((16,), "float32"), B: T.Buffer((16,), "float32")):
        T.call_packed("own", A, B)
        T.evaluate(T.call_extern("int32", "f", A.data, T.int64(3), T.float32(1.5), "text"))

unsized_for
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8, 8, 8), "float32")):
        for i, j, k in T.grid(8, 8, 8):
            A[i, j, k] = T.Cast("float32", i * 64 + j * 8 + k)

bool_ops
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((8,), "bool"), B: T.Buffer((8,), "int32"), C: T.Buffer((8,), "float32")):
        for i in range(8):
            A[i] = T.And(i < 4, T.Or(i > 2, T.Not(A[i])))
            B[i] = T.Select(A[i], 1, 0) + T.if_then_else(A[i], B[i], -B[i]) + T.Cast("int32", A[i])
            C[i] = T.max(T.min(C[i], T.float32(1)), T.float32(-1)) + T.abs(C[i])

iter_dtype
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((T.int64(8),), "float32"), n: T.int64):
        for i in T.serial(T.int64(0), T.int64(8)):
            with T.sblock("x"):
                vi = T.axis.spatial(T.int64(8), i)
                A[vi] = A[(vi + T.int64(1)) % T.int64(8)]

shuffle_down
    @T.prim_func(s_tir=True)
    def main(A: T.Buffer((32,), "float32"), B: T.Buffer((1,), "float32")):
        tx = T.launch_thread("threadIdx.x", 32)
        r = T.alloc_buffer((1,), "float32", scope="local")
        m = T.alloc_buffer((1,), "uint32", scope="local")
        r[0] = A[tx]
        m[0] = T.tvm_warp_activemask()
        r[0] = r[0] + T.tvm_warp_shuffle_down(m[0], r[0], 16, 32, 32)
        if tx == 0:
            B[0] = r[0]

pointers_of_two
    @T.prim_func(s_tir=True)
    def main(p: T.handle("float32"), q: T.handle("float32"), n: T.int32):
        A = T.decl_buffer((n,), "float32", data=p)
        B = T.decl_buffer((n,), "float32", data=q)
        for i in range(n):
            B[i] = A[i]
'''


def modules(texts):
    """Those that TVM reads, by name; the others with its error."""
    result = {}
    for part in texts.strip("\n").split("\n\n"):
        head, _, body = part.partition("\n")
        if head and head[0] != " ":
            name = head.strip()
            result[name] = body
        else:
            result[name] += "\n\n" + part
    parsed = {}
    for name, body in result.items():
        text = f"@I.ir_module\nclass Module:\n{body.replace('cls.', 'Module.')}\n"
        try:
            parsed[name] = tvm.script.from_source(text, {"I": I, "R": R, "T": T})
        except Exception as error:  # whatever TVM raises
            FAILED[name] = error
    return parsed


FAILED = {}
GRAPH_MODULES, TENSOR_MODULES = modules(GRAPHS), modules(TENSORS)

if __name__ == "__main__":
    for name, error in FAILED.items():
        print("TVM refused", name, str(error).strip().splitlines()[-6:])
