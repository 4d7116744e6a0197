"""Kernels for Triton, which compiles them without a GPU. Their PTX is kept beside this file.

usage: kernels_triton.py      writes kernels_triton_KERNEL_sm_80.ptx here; needs triton 3.9.0 from PyPI"""
import os
import pathlib
import tempfile

scratch = tempfile.TemporaryDirectory()
os.environ.update(TRITON_CACHE_DIR=scratch.name, TRITON_DISABLE_LINE_INFO="1", TRITON_DEFAULT_FP_FUSION="1")
import triton
import triton.language as tl
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource


@triton.jit
def softmax(x, y, columns, WIDTH: tl.constexpr):
    row = tl.program_id(0)
    at = tl.arange(0, WIDTH)
    values = tl.load(x + row * columns + at, mask=at < columns, other=-float("inf"))
    values = tl.exp(values - tl.max(values, axis=0))
    tl.store(y + row * columns + at, values / tl.sum(values, axis=0), mask=at < columns)


@triton.jit
def matmul(a, b, c, m, n, k, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    columns = tl.program_id(1) * N + tl.arange(0, N)
    steps = tl.arange(0, K)
    sums = tl.zeros((M, N), dtype=tl.float32)
    for first in range(0, k, K):
        at = first + steps
        left = tl.load(a + rows[:, None] * k + at[None, :], mask=(rows[:, None] < m) & (at[None, :] < k), other=0.0)
        right = tl.load(b + at[:, None] * n + columns[None, :], mask=(at[:, None] < k) & (columns[None, :] < n), other=0.0)
        sums = tl.dot(left, right, sums)
    tl.store(c + rows[:, None] * n + columns[None, :], sums, mask=(rows[:, None] < m) & (columns[None, :] < n))


@triton.jit
def attention(q, k, v, o, queries, keys, scale, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    rows = tl.program_id(0) * M + tl.arange(0, M)
    depth = tl.arange(0, D)
    columns = tl.arange(0, N)
    query = tl.load(q + rows[:, None] * D + depth[None, :], mask=rows[:, None] < queries, other=0.0)
    most = tl.full((M,), -float("inf"), dtype=tl.float32)
    total = tl.zeros((M,), dtype=tl.float32)
    sums = tl.zeros((M, D), dtype=tl.float32)
    for first in range(0, keys, N):
        at = first + columns
        key = tl.load(k + at[None, :] * D + depth[:, None], mask=at[None, :] < keys, other=0.0)
        scores = tl.where(at[None, :] < keys, tl.dot(query, key) * scale, -float("inf"))
        higher = tl.maximum(most, tl.max(scores, axis=1))
        weights = tl.exp(scores - higher[:, None])
        factor = tl.exp(most - higher)
        value = tl.load(v + at[:, None] * D + depth[None, :], mask=at[:, None] < keys, other=0.0)
        sums = tl.dot(weights.to(tl.float16), value, sums * factor[:, None])
        total = total * factor + tl.sum(weights, axis=1)
        most = higher
    tl.store(o + rows[:, None] * D + depth[None, :], sums / total[:, None], mask=rows[:, None] < queries)


def write(kernel, types, constants, warps, stages, aligned=()):
    """aligned: positions of pointers and sizes that are multiples of 16."""
    names = [name for name in kernel.arg_names if name not in constants]
    signature = {**dict(zip(names, types, strict=True)), **dict.fromkeys(constants, "constexpr")}
    attributes = {(position,): [["tt.divisibility", 16]] for position in aligned}
    made = triton.compile(ASTSource(fn=kernel, signature=signature, constexprs=constants, attrs=attributes),
                          target=GPUTarget("cuda", 80, 32), options={"num_warps": warps, "num_stages": stages})
    lines = [line for line in made.asm["ptx"].splitlines() if line.strip() and not line.strip().startswith("//")]
    file = pathlib.Path(__file__).with_name(f"kernels_triton_{kernel.__name__}_sm_80.ptx")
    file.write_text("\n".join(lines) + "\n")
    print(f"{file.name}: {32 * warps} threads, {made.metadata.shared} bytes of shared memory")


write(softmax, ["*fp32", "*fp32", "i32"], {"WIDTH": 1024}, 4, 1)
write(matmul, ["*fp16", "*fp16", "*fp32", "i32", "i32", "i32"], {"M": 64, "N": 64, "K": 32}, 4, 3,
      aligned=(0, 1, 2, 4, 5))
write(attention, ["*fp16", "*fp16", "*fp16", "*fp32", "i32", "i32", "fp32"], {"M": 64, "N": 32, "D": 64}, 4, 2,
      aligned=(0, 1, 2, 3))
