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
