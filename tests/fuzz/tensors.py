"""Tensors in the fuzzer: the dtypes that it draws, their rounding units and ranges, drawn elements (among
them infinities, NaN and zeros of both signs), and the safetensors files by which vm-run takes and gives them (.npz has
no bfloat16). Nothing here knows operators or graphs."""
import json
import struct

import ml_dtypes
import numpy as np
from onnx import TensorProto, helper

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
F16, F32, F64 = np.dtype(np.float16), np.dtype(np.float32), np.dtype(np.float64)
I8, I16, I32, I64 = (np.dtype(f"int{bits}") for bits in (8, 16, 32, 64))
U8, U16, U32, U64 = (np.dtype(f"uint{bits}") for bits in (8, 16, 32, 64))
BOOL = np.dtype(np.bool_)

FLOATS = (F32, F64, F16, BFLOAT16)
INTEGERS = (I64, I32, I8, U8, I16, U16, U32, U64)
DTYPES = FLOATS + INTEGERS + (BOOL,)
# What kernels compute with in other dtypes; made and taken by generate_packed.py alone.
INT2, UINT2, INT4, UINT4 = (np.dtype(getattr(ml_dtypes, name)) for name in ("int2", "uint2", "int4", "uint4"))
FLOAT4 = np.dtype(ml_dtypes.float4_e2m1fn)
FLOAT8 = tuple(np.dtype(getattr(ml_dtypes, "float8_" + name)) for name in ("e4m3fn", "e4m3fnuz", "e5m2", "e5m2fnuz"))
SMALL = (INT2, UINT2, INT4, UINT4, FLOAT4) + FLOAT8
WIDE_FLOATS = (F32, F64)
NUMBERS = (F32, F64, F16, I64, I32)

SAFETENSORS = {"bool": "BOOL", "uint8": "U8", "int8": "I8", "uint16": "U16", "int16": "I16", "uint32": "U32",
               "int32": "I32", "uint64": "U64", "int64": "I64", "float16": "F16", "bfloat16": "BF16",
               "float32": "F32", "float64": "F64", "float8_e4m3fn": "F8_E4M3", "float8_e5m2": "F8_E5M2",
               "float8_e4m3fnuz": "F8_E4M3FNUZ", "float8_e5m2fnuz": "F8_E5M2FNUZ", "float4_e2m1fn": "F4"}
IN_BYTES = {INT2: I8, INT4: I8, UINT2: U8, UINT4: U8}  # the dtypes that files have for those of less than a byte


def onnx_type(dtype):
    return TensorProto.BFLOAT16 if dtype == BFLOAT16 else helper.np_dtype_to_tensor_dtype(np.dtype(dtype))


def bits_of(dtype):
    return {INT2: 2, UINT2: 2, INT4: 4, UINT4: 4, FLOAT4: 4}.get(np.dtype(dtype), 8 * np.dtype(dtype).itemsize)


def numpy_type(onnx_number):
    return np.dtype(helper.tensor_dtype_to_np_dtype(onnx_number))


def is_float(dtype):
    return dtype in FLOATS


def eps(dtype):
    """The distance from 1 to the next number."""
    return {F32: 2.0**-23, F64: 2.0**-52, F16: 2.0**-10, BFLOAT16: 2.0**-7}[np.dtype(dtype)]


def smallest_normal(dtype):
    return {F32: 2.0**-126, F64: 2.0**-1022, F16: 2.0**-14, BFLOAT16: 2.0**-126}[np.dtype(dtype)]


def exact_limit(dtype):
    """Whole numbers up to this, and their sums below it, are exact in the dtype."""
    return {F32: 2.0**24, F64: 2.0**53, F16: 2.0**11, BFLOAT16: 2.0**8}.get(np.dtype(dtype), 2.0**31)


def is_whole(array):
    """Does it hold whole numbers whose sums are exact alone?"""
    if not is_float(array.dtype):
        return True
    wide = array.astype(np.float64)
    return bool(np.all(np.isfinite(wide))) and bool(np.all(wide == np.round(wide))) and (
        not wide.size or np.abs(wide).max() < exact_limit(array.dtype))


def largest(array):
    """The largest magnitude among the finite elements, 0 without any."""
    wide = np.abs(array.astype(np.float64))
    wide = wide[np.isfinite(wide)]
    return float(wide.max()) if wide.size else 0.0


def draw(rng, shape, dtype, whole, low=-4, high=4, wild=False):
    """Elements of a dtype from a numpy generator: small whole numbers, or normal ones; of a wild tensor some elements
    are infinite, NaN, zeros of both signs or large."""
    dtype = np.dtype(dtype)
    if dtype == BOOL:
        return rng.integers(0, 2, shape).astype(np.bool_)
    if not is_float(dtype):
        return rng.integers(0 if dtype.kind == "u" else low, high + 1, shape).astype(dtype)
    numbers = rng.integers(low, high + 1, shape) if whole else rng.standard_normal(shape)
    array = np.array(numbers).astype(dtype)
    if wild and array.size:
        flat = array.reshape(-1)
        special = [np.nan, np.inf, -np.inf, -0.0, 0.0, float(smallest_normal(dtype)) / 4, 3e4, -3e4]
        for _ in range(1 + int(rng.integers(0, 1 + min(8, flat.size // 4)))):
            flat[int(rng.integers(flat.size))] = special[int(rng.integers(len(special)))]
    return array


def write_safetensors(path, tensors):
    header, data = {}, b""
    for name, array in tensors.items():
        array = np.ascontiguousarray(array, IN_BYTES.get(array.dtype)).reshape(array.shape)
        raw = array.tobytes()
        if array.dtype == FLOAT4:
            codes = np.frombuffer(raw + b"\0" * (len(raw) % 2), np.uint8) & 15
            raw = (codes[::2] | codes[1::2] << 4).tobytes()
        header[name] = {"dtype": SAFETENSORS[array.dtype.name], "shape": list(array.shape),
                        "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


def read_safetensors(path):
    raw = path.read_bytes()
    size, = struct.unpack_from("<Q", raw)
    header = json.loads(raw[8:8 + size])
    names = {text: name for name, text in SAFETENSORS.items()}
    arrays = {}
    for name, entry in header.items():
        if name == "__metadata__":
            continue
        begin, end = entry["data_offsets"]
        dtype, part = np.dtype(getattr(ml_dtypes, names[entry["dtype"]], None) or names[entry["dtype"]]), raw[
            8 + size + begin:8 + size + end]
        if dtype == FLOAT4:
            pairs = np.frombuffer(part, np.uint8)
            part = np.stack([pairs & 15, pairs >> 4], -1).reshape(-1)[:int(np.prod(entry["shape"]))].tobytes()
        arrays[name] = np.frombuffer(part, dtype).reshape(entry["shape"])
    return arrays
