"""Every operator of TVM's graph functions as small modules: a row of `ROWS` is an operator's name, its arguments and
the calls to make of them, static and with symbolic dims where a dim is named. `unnamed()` lists the operators of
tvm.relax.op that no row calls, so that none is left out unseen."""

import inspect

import numpy as np
import tvm
from tvm import relax, tirx
from tvm.relax import op as R
from tvm.relax.op import vm as vm_operators

SIZES = {"n": 5, "m": 3}


class Inputs:
    """Makes the parameters of one function: symbolic dims are variables of that name, or their sizes."""

    def __init__(self, symbolic):
        self.symbolic, self.symbols, self.params, self.drawn = symbolic, {}, [], []

    def dim(self, dim):
        if not isinstance(dim, str):
            return dim
        if not self.symbolic:
            return SIZES[dim]
        return self.symbols.setdefault(dim, tirx.Var(dim, "int64"))

    def __call__(self, dims, dtype="float32", low=None, high=None):
        shape = [self.dim(dim) for dim in dims]
        param = relax.Var(f"x{len(self.params)}", relax.TensorType(shape, dtype))
        self.params.append(param)
        self.drawn.append(([SIZES.get(dim, dim) for dim in dims], dtype, low, high))
        return param

    def values(self, seed=0):
        rng = np.random.default_rng(seed)
        return [drawn(rng, *item) for item in self.drawn]


def drawn(rng, dims, dtype, low, high):
    if dtype == "bool":
        return rng.integers(0, 2, dims).astype(bool)
    if "int" in dtype:
        return rng.integers(0 if low is None else low, 3 if high is None else high, dims).astype(dtype)
    return rng.uniform(-1.0 if low is None else low, 1.0 if high is None else high, dims).astype(dtype)


ROWS = []
POSITIVE = (0.1, 2.0)


def row(name, *calls):
    """Each call takes Inputs and gives the result."""
    for i, call in enumerate(calls):
        ROWS.append((name, f"{name}_{i}" if len(calls) > 1 else name, call))


def unary(name, low=None, high=None, module=R):
    function = getattr(module, name)
    row(
        name, lambda v: function(v(("n", 4), "float32", low, high)), lambda v: function(v((2, 3), "float64", low, high))
    )


def binary(name, dtypes=("float32",), low=None, high=None):
    function = getattr(R, name)
    for dtype in dtypes:
        row(name, lambda v, dtype=dtype: function(v(("n", 1, 4), dtype, low, high), v((3, 4), dtype, low, high)))
        row(name, lambda v, dtype=dtype: function(v((2, 3), dtype, low, high), v((2, 3), dtype, low, high)))
        row(name, lambda v, dtype=dtype: function(v((2, 3), dtype, low, high), v((), dtype, low, high)))


for name in (
    "abs ceil cos cosh erf exp floor isfinite isinf isnan negative round sigmoid sign sin sinh square tan tanh "
    "trunc asinh atan"
).split():
    unary(name)
for name in "log sqrt rsqrt".split():
    unary(name, *POSITIVE)
for name in "asin acos atanh".split():
    unary(name, -0.9, 0.9)
unary("acosh", 1.1, 2.0)
for name in "relu relu6 gelu gelu_tanh silu selu softplus leakyrelu log_softmax softmax".split():
    unary(name, module=R.nn)
row("bitwise_not", lambda v: R.bitwise_not(v((2, 3), "int32")))
row("logical_not", lambda v: R.logical_not(v((2, 3), "bool")))
for name in "add subtract multiply maximum minimum".split():
    binary(name, ("float32", "int32"))
binary("divide", ("float32",), *POSITIVE)
binary("power", ("float32",), *POSITIVE)
for name in "floor_divide mod floor_mod".split():
    binary(name, ("float32", "int32"), 1, 5)
for name in "equal not_equal less less_equal greater greater_equal".split():
    binary(name, ("float32", "int64"))
for name in "bitwise_and bitwise_or bitwise_xor".split():
    binary(name, ("int32", "bool"))
for name in "left_shift right_shift".split():
    binary(name, ("int32",))
for name in "logical_and logical_or logical_xor".split():
    binary(name, ("bool",))
binary("atan2")
binary("log_add_exp")
row("ewise_fma", lambda v: R.ewise_fma(v(("n", 3)), v(("n", 3)), v(("n", 3))))

# Creation.
for name in ("zeros", "ones"):
    function = getattr(R, name)
    row(
        name,
        lambda v, f=function: R.add(v((2, 3)), f((2, 3), "float32")),
        lambda v, f=function: R.add(v(("n", 3)), f((v.dim("n"), 3), "float32")),
    )
for name in ("zeros_like", "ones_like"):
    function = getattr(R, name)
    row(name, lambda v, f=function: f(v(("n", 3))), lambda v, f=function: f(v(("n", 3)), "int32"))
row(
    "full",
    lambda v: R.full((2, 3), v(())),
    lambda v: R.full((2, 3), relax.const(1.5, "float32"), "float32"),
    lambda v: R.full((2, 3), relax.const(3, "int32"), "float16"),
    lambda v: R.full((2, 3), v(()), "float16"),
)
row("full_like", lambda v: R.full_like(v(("n", 3)), v(())), lambda v: R.full_like(v((2, 3)), v(()), "float64"))
row(
    "arange",
    lambda v: R.arange(0, 10, 2),
    lambda v: R.arange(7, dtype="float32"),
    lambda v: R.arange(1, v.dim("n"), 2) if not v("n") is None else None,
)
row("eye", lambda v: R.eye(3), lambda v: R.eye(3, 4, 1, "int32"))
row("eye_like", lambda v: R.eye_like(v((3, 4))), lambda v: R.eye_like(v((3, 4)), 1, "int32"))
row("hamming_window", lambda v: R.hamming_window(5, True, 0.54, 0.46, "float32"))
row("tril", lambda v: R.tril(v(("n", 4, 4))), lambda v: R.tril(v((4, 4)), 1))
row("triu", lambda v: R.triu(v(("n", 4, 4))), lambda v: R.triu(v((4, 4)), -1))

# Types, shapes.
row("astype", lambda v: R.astype(v(("n", 3)), "int32"), lambda v: R.astype(v((2, 3), "int8"), "float16"))
row("wrap_param", lambda v: R.wrap_param(relax.const(np.arange(6, dtype="float32").reshape(2, 3)), "float16"))
row("shape_of", lambda v: R.shape_of(v(("n", 3))))
row("size", lambda v: R.size(v(("n", 3))), lambda v: R.size(v((2, 3, 4))))
row("shape_to_tensor", lambda v: R.shape_to_tensor(R.shape_of(v(("n", 3)))))
row("tensor_to_shape", lambda v: R.tensor_to_shape(v((3,), "int64")))
row(
    "collapse_sum_like",
    lambda v: R.collapse_sum_like(v((2, 3, 4)), v((3, 1))),
    lambda v: R.collapse_sum_like(v(("n", 4)), v((4,))),
)
row(
    "collapse_sum_to",
    lambda v: R.collapse_sum_to(v((2, 3, 4)), (3, 1)),
    lambda v: R.collapse_sum_to(v(("n", 3, 4)), (3, 1)),
    lambda v: R.collapse_sum_to(v((2, 3)), (2, 3)),
)

# Indexing and slicing.
row(
    "take",
    lambda v: R.take(v(("n", 4)), v((3,), "int64"), axis=0),
    lambda v: R.take(v((8,)), v((2, 3), "int32")),
    lambda v: R.take(v((4, 5)), v((), "int64"), axis=1),
    lambda v: R.take(v((4, 5)), relax.prim_value(2), axis=1),
    lambda v: R.take(v((4, 5)), v((3,), "int64"), axis=-1, mode="clip"),
    lambda v: R.take(v((4, 5)), v((3,), "int32"), axis=1, mode="wrap"),
    lambda v: R.take(v((4, 5)), v((8,), "int32", -3, 9), axis=1, mode="nan"),
    lambda v: R.take(v((4, 5)), relax.const(1, "int64"), axis=0),
)
row(
    "strided_slice",
    lambda v: R.strided_slice(v((8, 9)), [0], [1], [7]),
    lambda v: R.strided_slice(v((8, "n")), [0, 1], [1, 0], [7, 2], [2, 1]),
    lambda v: R.strided_slice(v((8, 9)), [1], [-1], [-7], [-2]),
    lambda v: R.strided_slice(v((8, 9)), [0], [1], [7], assume_inbound=True),
)
row(
    "dynamic_strided_slice",
    lambda v: R.dynamic_strided_slice(
        v((8, 9)), v((2,), "int64", 0, 1), v((2,), "int64", 4, 6), v((2,), "int64", 1, 2)
    ),
    lambda v: R.dynamic_strided_slice(
        v((8, 9, 4)), relax.const([1, 0, 0], "int64"), relax.const([8, 9, 3], "int64"), relax.const([2, 1, 1], "int64")
    ),
)
row("gather_elements", lambda v: R.gather_elements(v(("n", 4)), v((2, 4), "int64")))
row(
    "gather_nd",
    lambda v: R.gather_nd(v((3, 4)), v((5, 2), "int64")),
    lambda v: R.gather_nd(v((3, 4)), v((3, 1), "int64"), 1),
)
row(
    "scatter_elements",
    lambda v: R.scatter_elements(v((4, 4)), v((2, 2), "int64"), v((2, 2))),
    lambda v: R.scatter_elements(v((4, 4)), v((2, 2), "int64"), v((2, 2)), axis=1, reduction="add"),
)
row(
    "scatter_nd",
    lambda v: R.scatter_nd(v((8,)), v((4, 1), "int64"), v((4,))),
    lambda v: R.scatter_nd(v((8,)), v((4, 1), "int64"), v((4,)), "add"),
)
row("slice_scatter", lambda v: R.slice_scatter(v((8, 4)), v((3, 4)), 1, 7, 2))
row(
    "index_put",
    lambda v: R.index_put(v((8, 4)), (v((3,), "int64"), v((3,), "int64")), v((3,))),
    lambda v: R.index_put(v((8,)), (v((3,), "int64"),), v((3,)), accumulate=True),
)
row(
    "index_tensor",
    lambda v: R.index_tensor(v((8, 4)), [v((3,), "int64"), v((3,), "int64")]),
    lambda v: R.index_tensor(v((8, 4)), [v((2, 3), "int64")]),
)
row(
    "one_hot",
    lambda v: R.one_hot(v((5,), "int32"), relax.prim_value(1), relax.prim_value(0), 4, -1),
    lambda v: R.one_hot(
        v(("n", 2), "int64"),
        relax.prim_value(tirx.FloatImm("float32", 2.0)),
        relax.prim_value(tirx.FloatImm("float32", 0.0)),
        4,
        0,
    ),
)
row("masked_fill", lambda v: R.masked_fill(v((2, 3)), v((2, 3), "bool"), relax.const(2.0, "float32")))
row("where", lambda v: R.where(v(("n", 3), "bool"), v(("n", 3)), v((3,))))

# Movement.
row(
    "broadcast_to",
    lambda v: R.broadcast_to(v((3, 1)), (2, 3, 4)),
    lambda v: R.broadcast_to(v((1, 4)), (v.dim("n"), 4)) if v(("n",)) else None,
)
row(
    "concat",
    lambda v: R.concat([v(("n", 3)), v((2, 3))]),
    lambda v: R.concat((v((2, 3)), v((2, 1))), axis=1),
    lambda v: R.concat([v((2,)), v((3,))], axis=None),
    lambda v: R.concat([v((2, 3))], axis=-1),
)
row("expand_dims", lambda v: R.expand_dims(v(("n", 3)), [0, -1]), lambda v: R.expand_dims(v((2,)), 1))
row("flatten", lambda v: R.flatten(v(("n", 3))))
row("batch_flatten", lambda v: R.nn.batch_flatten(v(("n", 3, 4))), lambda v: R.nn.batch_flatten(v((2, 3))))
row("flip", lambda v: R.flip(v(("n", 3)), 1))
row(
    "layout_transform",
    lambda v: R.layout_transform(v((4, 8)), lambda i, j: (j, i)),
    lambda v: R.layout_transform(v((4, 8)), lambda i, j: (i, j // 4, j % 4)),
    lambda v: R.layout_transform(v((10,)), lambda i: (i // 4, i % 4), pad_value=0.0),
)
row("permute_dims", lambda v: R.permute_dims(v(("n", 3, 4)), [2, 0, 1]), lambda v: R.permute_dims(v((2, 3))))
row("repeat", lambda v: R.repeat(v(("n", 3)), 2, 1), lambda v: R.repeat(v((2, 3)), 2))
row(
    "reshape",
    lambda v: R.reshape(v((4, 6)), (2, 12)),
    lambda v: R.reshape(v(("n", 6)), (v.dim("n"), 2, 3)),
    lambda v: R.reshape(v((4, 6)), (-1, 3)),
    lambda v: R.reshape(v((4, 6)), (-1,)),
    lambda v: R.reshape(v((2, 3)), (0, 3, 1)),
)
row("reverse_sequence", lambda v: R.reverse_sequence(v((4, 5)), v((4,), "int32", 1, 5)))
row(
    "split",
    lambda v: R.split(v((6, 4)), 3),
    lambda v: R.split(v((6, 4)), [2, 5]),
    lambda v: R.split(v((6, 4)), 1),
    lambda v: R.split(v((6, "n")), [2], axis=0),
    lambda v: R.split(v((6, 4)), [3, 3], axis=-2),
)
row("squeeze", lambda v: R.squeeze(v(("n", 1, 3)), [1]), lambda v: R.squeeze(v((1, 2, 1))))
row("stack", lambda v: R.stack([v(("n", 3)), v(("n", 3))], 1), lambda v: R.stack((v((2,)), v((2,)))))
row("tile", lambda v: R.tile(v(("n", 3)), (2, 1, 2)), lambda v: R.tile(v((2, 3)), 2))
row("meshgrid", lambda v: R.meshgrid([v((3,)), v((4,))]), lambda v: R.meshgrid((v((3,)), v((4,))), "xy"))

# Reductions, scans, order.
for name in "sum mean max min prod variance std median".split():
    function = getattr(R, name)
    row(
        name,
        lambda v, f=function: f(v(("n", 4))),
        lambda v, f=function: f(v((2, 3, 4)), 1),
        lambda v, f=function: f(v((2, 3, 4)), [-1], True),
    )
for name in ("argmax", "argmin"):
    function = getattr(R, name)
    row(
        name,
        lambda v, f=function: f(v(("n", 4)), 1),
        lambda v, f=function: f(v((2, 3))),
        lambda v, f=function: f(v((2, 3)), -1, True),
    )
for name in ("cumsum", "cumprod"):
    function = getattr(R, name)
    row(
        name,
        lambda v, f=function: f(v(("n", 4)), 1),
        lambda v, f=function: f(v((2, 3))),
        lambda v, f=function: f(v((2, 3)), -1, "float64", True),
    )
row("sort", lambda v: R.sort(v((3, 4))), lambda v: R.sort(v(("n", 4)), 1, True))
row("argsort", lambda v: R.argsort(v((3, 4))), lambda v: R.argsort(v(("n", 4)), 0, True, "int64"))
row(
    "topk",
    lambda v: R.topk(v((3, 4)), 2),
    lambda v: R.topk(v((3, 4)), 1, 0, "values", False),
    lambda v: R.topk(v((3, 4)), 2, 1, "indices", True, "int64"),
)
row(
    "unique",
    lambda v: R.unique(v((6,), "int32")),
    lambda v: R.unique(v((2, 3), "int64"), True, True, True, True),
    lambda v: R.unique(v((2, 3)), True, False, False, False, 1),
)
row("nonzero", lambda v: R.nonzero(v((2, 3), "bool")))
row("bucketize", lambda v: R.bucketize(v((2, 3)), v((4,))), lambda v: R.bucketize(v((2, 3)), v((4,)), True, True))
row(
    "multinomial_from_uniform",
    lambda v: R.multinomial_from_uniform(
        v((3, 5), "float32", 0.1, 1.0), v((6, 1), "float32", 0, 1), v((6, 1), "int64")
    ),
)

# Linear algebra.
row(
    "matmul",
    lambda v: R.matmul(v(("n", 4)), v((4, 3))),
    lambda v: R.matmul(v((2, "n", 4)), v((4, 3)), "float64"),
    lambda v: R.matmul(v((4,)), v((4, 3))),
    lambda v: R.matmul(v((4,)), v((4,))),
    lambda v: R.matmul(v((2, 1, 3, 4)), v((5, 4, 2))),
    lambda v: R.matmul(v((2, 4), "int8"), v((4, 3), "int8"), "int32"),
    lambda v: R.matmul(v((2, 4), "float16"), v((4, 3), "float16"), "float32"),
)
row(
    "linear",
    lambda v: R.linear(v(("n", 4)), v((3, 4)), v((3,))),
    lambda v: R.linear(v((2, 4)), v((3, 4))),
    lambda v: R.linear(v((2, 4)), v((4,))),
)
row(
    "einsum",
    lambda v: R.einsum((v((2, 3)), v((3, 4))), "ij,jk->ik"),
    lambda v: R.einsum([v((3, 3))], "ii->i"),
    lambda v: R.einsum((v(("n", 3)), v((3,))), "...j,j"),
)
row("outer", lambda v: R.outer(v((3,)), v((4,))))

# Networks.
for d, (data, kernel, transposed) in enumerate(
    (("NCW", "OIW", "IOW"), ("NCHW", "OIHW", "IOHW"), ("NCDHW", "OIDHW", "IODHW")), 1
):
    x, w = (2, 4) + (6,) * d, (6, 4) + (3,) * d
    conv, back = getattr(R.nn, f"conv{d}d"), getattr(R.nn, f"conv{d}d_transpose")
    last = data[0] + data[2:] + "C"
    row(
        f"conv{d}d",
        lambda v, c=conv, x=x, w=w: c(v(x), v(w)),
        lambda v, c=conv, x=x, w=w: c(v(("n",) + x[1:]), v(w), strides=2, padding=1),
        lambda v, c=conv, x=x, w=w: c(v(x), v((6, 2) + w[2:]), groups=2, dilation=2, padding=2),
        lambda v, c=conv, x=x, w=w, l=last: c(v((2,) + x[2:] + (4,)), v(w), data_layout=l),
        lambda v, c=conv, x=x, w=w, l=last, k=last.replace("N", "O").replace("C", "I"): c(
            v((2,) + x[2:] + (4,)), v((6,) + w[2:] + (4,)), data_layout=l, kernel_layout=k
        ),
        lambda v, c=conv, x=x, w=w: c(v(x, "int8"), v(w, "int8"), out_dtype="int32"),
        lambda v, c=conv, x=x, w=w: c(v(x, "float16"), v(w, "float16"), out_dtype="float32"),
        lambda v, c=conv, x=x, w=w, l=last: c(v(x), v(w), out_layout=l),
    )
    row(
        f"conv{d}d_transpose",
        lambda v, c=back, x=x, w=w: c(v(x), v((4, 3) + w[2:])),
        lambda v, c=back, x=x, w=w: c(v(x), v((4, 3) + w[2:]), strides=2, padding=1, output_padding=1),
        lambda v, c=back, x=x, w=w: c(v(x), v((4, 2) + w[2:]), groups=2),
    )
    for kind in ("max", "avg"):
        pool = getattr(R.nn, f"{kind}_pool{d}d")
        row(
            f"{kind}_pool{d}d",
            lambda v, p=pool, x=x, d=d: p(v(("n",) + x[1:]), (2,) * d, strides=(2,) * d),
            lambda v, p=pool, x=x, d=d: p(v(x), (3,) * d, strides=(2,) * d, padding=(1,) * d, ceil_mode=True),
            lambda v, p=pool, x=x, d=d, l=last: p(v((2,) + x[2:] + (4,)), (2,) * d, layout=l),
            lambda v, p=pool, x=x, d=d: p(v(x), (3,) * d, padding=(1,) * (2 * d), count_include_pad=True),
            lambda v, p=pool, x=x, d=d: p(v(x), (2,) * d, dilation=(2,) * d),
        )
    adaptive = getattr(R.nn, f"adaptive_avg_pool{d}d")
    row(
        f"adaptive_avg_pool{d}d",
        lambda v, a=adaptive, x=x: a(v(("n",) + x[1:]), 1),
        lambda v, a=adaptive, x=x, d=d: a(v(x), (3,) * d),
        lambda v, a=adaptive, x=x, d=d: a(v(x), (4,) * d),
        lambda v, a=adaptive, x=x: a(v(x)),
        lambda v, a=adaptive, x=x, d=d, l=last: a(v((2,) + x[2:] + (4,)), (2,) * d, layout=l),
    )
row(
    "conv2d",
    lambda v: R.nn.conv2d(v((2, 6, 6, 4)), v((3, 3, 4, 6)), data_layout="NHWC", kernel_layout="HWIO"),
    lambda v: R.nn.conv2d(
        v((2, 1, 6, 6, 4)), v((2, 1, 3, 3, 4, 3)), data_layout="NCHW4c", kernel_layout="OIHW4i3o", out_layout="NCHW3c"
    ),
)
row(
    "pad",
    lambda v: R.nn.pad(v(("n", 3)), (0, 0, 1, 2)),
    lambda v: R.nn.pad(v((4, 5)), (1, 1, 2, 2), "reflect"),
    lambda v: R.nn.pad(v((4, 5)), (1, 1, 2, 2), "circular"),
    lambda v: R.nn.pad(v((4, 5)), (1, 1, 2, 2), "replicate"),
    lambda v: R.nn.pad(v((4, 5)), (1, 1, 2, 2), "constant", 2.0),
)
row("pixel_shuffle", lambda v: R.nn.pixel_shuffle(v(("n", 8, 3, 3)), 2))
row(
    "prelu",
    lambda v: R.nn.prelu(v((2, 3, 4)), v((3,))),
    lambda v: R.nn.prelu(v((2, 3, 4)), v((1,))),
    lambda v: R.nn.prelu(v((2, 3, 4)), v((4,)), 2),
)
row("leakyrelu", lambda v: R.nn.leakyrelu(v((2, 3)), 0.2))
row("softplus", lambda v: R.nn.softplus(v((2, 3)), 2.0, 10.0))
row("softmax", lambda v: R.nn.softmax(v(("n", 3)), 0))
row("log_softmax", lambda v: R.nn.log_softmax(v(("n", 3)), 0))
row(
    "batch_norm",
    lambda v: R.nn.batch_norm(
        v((2, 4, 3)), v((4,)), v((4,)), v((4,)), v((4,), "float32", *POSITIVE), 1, training=False
    ),
    lambda v: R.nn.batch_norm(v((2, 4, 3)), v((4,)), v((4,)), v((4,)), v((4,), "float32", *POSITIVE), 1),
    lambda v: R.nn.batch_norm(
        v((2, 4, 3)),
        v((3,)),
        v((3,)),
        v((3,)),
        v((3,), "float32", *POSITIVE),
        2,
        center=False,
        scale=False,
        momentum=0.2,
    ),
    lambda v: relax.TupleGetItem(
        R.nn.batch_norm(v(("n", 4)), v((4,)), v((4,)), v((4,)), v((4,), "float32", *POSITIVE), 1, training=False), 0
    ),
)
row(
    "layer_norm",
    lambda v: R.nn.layer_norm(v(("n", 4)), v((4,)), v((4,)), -1),
    lambda v: R.nn.layer_norm(v((2, 3, 4)), v((3, 4)), v((3, 4)), [1, 2], 1e-3, False, False),
)
row(
    "group_norm",
    lambda v: R.nn.group_norm(v((2, 4, 5)), v((4,)), v((4,)), 2, 1, [2]),
    lambda v: R.nn.group_norm(v((2, 3, 4)), v((4,)), v((4,)), 2, -1, [1]),
)
row("instance_norm", lambda v: R.nn.instance_norm(v((2, 4, 5)), v((4,)), v((4,)), 1, [2]))
row(
    "rms_norm",
    lambda v: R.nn.rms_norm(v(("n", 4)), v((4,))),
    lambda v: R.nn.rms_norm(v((2, 3, 4)), v((3, 4)), [-2, -1], 1e-3),
)
row("dropout", lambda v: R.nn.dropout(v(("n", 4))), lambda v: relax.TupleGetItem(R.nn.dropout(v((2, 4)), 0.2), 0))
row(
    "attention",
    lambda v: R.nn.attention(v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 8, 2, 16))),
    lambda v: R.nn.attention(
        v((1, 8, 2, 16)),
        v((1, 8, 2, 16)),
        v((1, 8, 2, 16)),
        causal_mask="BottomRight",
        scale=tirx.FloatImm("float32", 0.2),
    ),
    lambda v: R.nn.attention(v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 2, 8, 8))),
    lambda v: R.nn.attention(
        v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 8, 2, 16)), causal_mask="TopLeft", window_size=4
    ),
)
row(
    "attention_bias",
    lambda v: R.nn.attention_bias(v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 2, 8, 8))),
    lambda v: R.nn.attention_bias(
        v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 2, 8, 8)), causal_mask="TopLeft"
    ),
)
row(
    "attention_var_len",
    lambda v: R.nn.attention_var_len(
        v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((1, 8, 2, 16)), v((3,), "int32"), v((), "int32")
    ),
)
row(
    "cross_entropy_with_logits",
    lambda v: R.nn.cross_entropy_with_logits(v((3, 4)), v((3, 4))),
    lambda v: R.nn.cross_entropy_with_logits(v((4,)), v((4,))),
    lambda v: R.nn.cross_entropy_with_logits(v(("n", 4)), v(("n", 4))),
)
row(
    "nll_loss",
    lambda v: R.nn.nll_loss(v((3, 5)), v((3,), "int64"), v((5,))),
    lambda v: R.nn.nll_loss(v((3, 5)), v((3,), "int64"), reduction="sum"),
    lambda v: R.nn.nll_loss(v((3, 5, 4)), v((3, 4), "int64"), v((5,)), reduction="none", ignore_index=1),
    lambda v: R.nn.nll_loss(v((5,)), v((), "int64"), v((5,))),
    lambda v: R.nn.nll_loss(v(("n", 5)), v(("n",), "int64"), v((5,))),
)

# Gradients.
row(
    "nll_loss_backward",
    lambda v: R.grad.nll_loss_backward(v(()), v((3, 5)), v((3,), "int64"), v((5,))),
    lambda v: R.grad.nll_loss_backward(v((3, 4)), v((3, 5, 4)), v((3, 4), "int64"), reduction="none", ignore_index=1),
    lambda v: R.grad.nll_loss_backward(v(()), v((3, 5)), v((3,), "int64"), reduction="sum"),
    lambda v: R.grad.nll_loss_backward(v(()), v((5,)), v((), "int64"), v((5,))),
)
row(
    "max_pool2d_backward",
    lambda v: R.grad.max_pool2d_backward(v((2, 3, 3, 3)), v((2, 3, 6, 6)), (2, 2), (2, 2)),
    lambda v: R.grad.max_pool2d_backward(v((2, 3, 3, 3)), v((2, 3, 5, 5)), (3, 3), (2, 2), (1, 1, 1, 1)),
)
row(
    "avg_pool2d_backward",
    lambda v: R.grad.avg_pool2d_backward(v((2, 3, 3, 3)), v((2, 3, 6, 6)), (2, 2), (2, 2)),
    lambda v: R.grad.avg_pool2d_backward(
        v((2, 3, 3, 3)), v((2, 3, 5, 5)), (3, 3), (2, 2), (1, 1, 1, 1), count_include_pad=True
    ),
)
row(
    "take_backward",
    lambda v: R.grad.take_backward(v((3, 4)), v((5, 4)), v((3,), "int64"), 0),
    lambda v: R.grad.take_backward(v((3,)), v((5,)), v((3,), "int64")),
    lambda v: R.grad.take_backward(v((3, 2)), v((3, 4)), v((2,), "int32"), 1),
)
row("no_grad", lambda v: R.grad.no_grad(v((2, 3))))
row("start_checkpoint", lambda v: R.grad.start_checkpoint(v((2, 3))))
row("end_checkpoint", lambda v: R.grad.end_checkpoint(v((2, 3))))

# Quantised.
row(
    "quantize",
    lambda v: R.quantize(v((2, 3)), v((3,), "float32", 0.01, 0.1), v((3,), "int8"), 1),
    lambda v: R.quantize(v((2, 3)), relax.const(0.1, "float32"), relax.const(1, "int8")),
    lambda v: R.quantize(v((2, 3)), v((2,), "float32", 0.01, 0.1), v((2,), "uint8"), 0, "uint8"),
)
row(
    "dequantize",
    lambda v: R.dequantize(v((2, 3), "int8"), v((3,)), v((3,), "int8"), 1),
    lambda v: R.dequantize(v((2, 3), "uint8"), relax.const(0.1, "float32"), relax.const(1, "uint8")),
    lambda v: R.dequantize(v((2, 3), "int8"), v((2,)), v((2,), "int8"), 0, "float32"),
)

# Images and detection.
row(
    "resize2d",
    lambda v: R.image.resize2d(v((1, 2, 4, 4)), (8, 8)),
    lambda v: R.image.resize2d(v((1, 4, 4, 2)), (8, 8), layout="NHWC", method="nearest_neighbor"),
    lambda v: R.image.resize2d(v((1, 2, 4, 4)), (7, 5), method="cubic", coordinate_transformation_mode="align_corners"),
    lambda v: R.image.resize2d(
        v((1, 2, 8, 8)),
        (3, 3),
        method="nearest_neighbor",
        coordinate_transformation_mode="asymmetric",
        rounding_method="floor",
    ),
    lambda v: R.image.resize2d(v((1, 2, 8, 8)), (12, 12), method="nearest_neighbor"),
    lambda v: R.image.resize2d(v(("n", 2, 4, 4)), (8, 8), out_dtype="float16"),
    lambda v: R.image.resize2d(v((1, 2, 4, 4)), 8),
)
row(
    "resize3d",
    lambda v: R.image.resize3d(v((1, 2, 3, 4, 4)), (6, 8, 8)),
    lambda v: R.image.resize3d(
        v((1, 2, 3, 4, 4)),
        (6, 8, 8),
        method="nearest_neighbor",
        rounding_method="floor",
        coordinate_transformation_mode="asymmetric",
    ),
    lambda v: R.image.resize3d(v((1, 3, 4, 4, 2)), (6, 8, 8), layout="NDHWC"),
)
row(
    "grid_sample",
    lambda v: R.image.grid_sample(v((1, 2, 4, 4)), v((1, 2, 3, 3))),
    lambda v: R.image.grid_sample(
        v((1, 2, 4, 4)), v((1, 2, 3, 3)), method="nearest", padding_mode="border", align_corners=True
    ),
    lambda v: R.image.grid_sample(v((1, 2, 4, 4)), v((1, 2, 3, 3)), method="bicubic", padding_mode="reflection"),
    lambda v: R.image.grid_sample(v(("n", 2, 4, 4)), v(("n", 2, 3, 3))),
    lambda v: R.image.grid_sample(v((1, 4, 4, 2)), v((1, 2, 3, 3)), layout="NHWC"),
    lambda v: R.image.grid_sample(v((1, 2, 3, 4, 4)), v((1, 3, 2, 3, 3)), layout="NCDHW"),
)
row(
    "affine_grid",
    lambda v: R.image.affine_grid(v((2, 2, 3)), (4, 5)),
    lambda v: R.image.affine_grid(v((2, 2, 3)), (4, 5), align_corners=False),
)
row(
    "roi_align",
    lambda v: R.vision.roi_align(
        v((1, 2, 8, 8)), relax.const(np.array([[0, 1, 1, 6, 6], [0, 0, 2, 5, 7]], "float32")), (3, 3), 1.0
    ),
    lambda v: R.vision.roi_align(v((1, 8, 8, 2)), v((3, 5), "float32", 0, 0.9), (3, 3), 0.5, 2, True, "NHWC"),
    lambda v: R.vision.roi_align(v((1, 2, 8, 8)), v((3, 5), "float32", 0, 0.9), 2, 4.0, 2, False, "NCHW", "max"),
    lambda v: R.vision.roi_align(v((1, 2, 8, 8)), v((3, 5), "float32", 0, 0.9), 2, 8.0, 3, True, "NCHW", "max"),
)
row(
    "roi_pool",
    lambda v: R.vision.roi_pool(v((1, 2, 8, 8)), v((3, 5), "float32", 0, 0.9), (3, 3), 4.0),
    lambda v: R.vision.roi_pool(v((1, 2, 8, 8)), v((3, 5), "float32", 0, 0.9), 2, 8.0),
)
row(
    "get_valid_counts",
    lambda v: R.vision.get_valid_counts(v((1, 5, 6)), 0.1),
    lambda v: R.vision.get_valid_counts(v((2, 5, 5)), 0.0, -1, 0),
)
row(
    "multibox_transform_loc",
    lambda v: R.vision.multibox_transform_loc(v((1, 3, 5)), v((1, 20)), v((1, 5, 4))),
    lambda v: R.vision.multibox_transform_loc(
        v((2, 3, 5)), v((2, 20)), v((1, 5, 4)), True, 0.2, (0.1, 0.1, 0.2, 0.2), False
    ),
)
row(
    "non_max_suppression",
    lambda v: R.vision.non_max_suppression(v((1, 5, 6)), v((1,), "int32", 5, 6), v((1, 5), "int32")),
    lambda v: R.vision.non_max_suppression(
        v((1, 5, 6)),
        v((1,), "int32", 5, 6),
        v((1, 5), "int32"),
        return_indices=False,
        invalid_to_bottom=True,
        iou_threshold=0.7,
        top_k=3,
    ),
)
row(
    "all_class_non_max_suppression",
    lambda v: R.vision.all_class_non_max_suppression(
        v((1, 6, 4)), v((1, 2, 6)), relax.const(3, "int64"), relax.const(0.5, "float32"), relax.const(0.1, "float32")
    ),
    lambda v: R.vision.all_class_non_max_suppression(
        v((1, 6, 4)),
        v((1, 2, 6)),
        relax.const(3, "int64"),
        relax.const(0.5, "float32"),
        relax.const(0.1, "float32"),
        "tensorflow",
    ),
)
row("clip", lambda v: R.clip(v(("n", 3)), -0.5, 0.75), lambda v: R.clip(v((2, 3), "int32"), 0, 2))

# Memory, views.
row(
    "view",
    lambda v: R.memory.view(v((4, 6)), (2, 12)),
    lambda v: R.memory.view(v((4, 6)), (24,), "int32"),
    lambda v: R.memory.view(v((4, 6)), dtype="uint32"),
    lambda v: R.memory.view(v((4, 6)), (2, 3), "float32", 48),
    lambda v: R.memory.view(v((4096,), "uint8"), (16, 64), "float32", 0),
    lambda v: R.memory.view(v((4096,), "uint8"), (16, 16), "float16", 256),
)
row("ensure_zero_offset", lambda v: R.memory.ensure_zero_offset(v((2, 3))))
row("stop_lift_params", lambda v: R.builtin.stop_lift_params(v((2, 3))))
# Several devices.
row("hint_on_device", lambda v: R.hint_on_device(v((2, 3)), tvm.cpu()))
for name in ("allreduce",):
    row(name, lambda v: R.ccl.allreduce(v((2, 3)), "sum", True))
row("allgather", lambda v: R.ccl.allgather(v((2, 3)), 2))
row("broadcast_from_worker0", lambda v: R.ccl.broadcast_from_worker0(v((2, 3))))
row("scatter_from_worker0", lambda v: R.ccl.scatter_from_worker0(v((4, 3)), 2, 0))

# Operators that stand in modules that passes make (tvm_corpus.py has those), or that are no operators.
ELSEWHERE = set(
    """assert_op print call_builtin_with_ctx call_dps_packed call_inplace_packed call_pure_packed call_py_func
call_tir call_tir_inplace call_tir_with_grad call_tir_dyn invoke_closure invoke_pure_closure make_closure null_value
register_gradient to_vdevice alloc_storage alloc_tensor kill_storage kill_tensor kill_object annotate_sharding
call_tir_local_view redistribute redistribute_replica_to_shard""".split()
)


def unnamed():
    named = {name for name, _, _ in ROWS} | ELSEWHERE
    modules = [R, R.nn, R.image, R.vision, R.memory, R.builtin, R.grad, vm_operators, R.ccl, R.distributed]
    known = {name for module in modules for name, f in vars(module).items() if inspect.isfunction(f) and name[0] != "_"}
    return sorted(known - named)


def modules(names=None):
    """(operator, name, module, Inputs) of every row, static and where it differs symbolic; TVM's error where it refuses."""
    counts = {}
    for operator, name, call in ROWS:
        counts[name] = counts.get(name, -1) + 1
        name = f"{name}_{counts[name]}" if counts[name] else name
        if names is not None and operator not in names:
            continue
        for symbolic in (False, True):
            inputs = Inputs(symbolic)
            try:
                result = call(inputs)
            except Exception as error:  # whatever TVM raises
                yield operator, name, error, inputs
                break
            if symbolic and not inputs.symbols:
                continue
            builder = relax.BlockBuilder()
            try:
                with builder.function("main", inputs.params):
                    with builder.dataflow():
                        output = builder.emit_output(result)
                    builder.emit_func_output(output)
            except Exception as error:  # whatever TVM raises
                yield operator, name, error, inputs
                break
            yield operator, name + ("_sym" if symbolic else ""), builder.get(), inputs
