"""The C API (ingot/ingot.h) by ctypes: its structs, its functions with their types, and statuses as exceptions. Finds
libingot beside this file (in a wheel), by INGOT_LIBRARY, or where the system's loader does."""

import ctypes as c
import os
import pathlib

LIBRARY_NAMES = ("libingot.so", "libingot.so.0")


class IngotError(RuntimeError):
    """What a status says: .code (an int of ingot_status_code), .function and .location in the VM, or ""."""

    def __init__(self, code, message, function="", location=""):
        super().__init__(message)
        self.code, self.function, self.location = code, function, location


class NotFound(IngotError, KeyError):
    __str__ = RuntimeError.__str__


class BadInput(IngotError, ValueError):
    pass


class OutOfMemory(IngotError, MemoryError):
    pass


class DeadlineExceeded(IngotError, TimeoutError):
    pass


CLASSES = {1: BadInput, 2: NotFound, 3: BadInput, 7: OutOfMemory, 8: DeadlineExceeded}
CPU, CUDA = 1, 2
READ_ONLY = 1
KIND_INT, KIND_FLOAT, KIND_BOOL, KIND_STRING, KIND_DTYPE, KIND_SHAPE, KIND_TENSOR, KIND_TUPLE = range(8)


class Options(c.Structure):
    """ctypes cuts numbers to the size of their fields; here those that do not fit are refused."""

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        kept = getattr(self, name)
        if type(value) is int and type(kept) is int and kept != value:
            raise ValueError(f"{name}: {value} does not fit")


class Device(c.Structure):
    _fields_ = [("device_type", c.c_int32), ("device_id", c.c_int32)]


class DataType(c.Structure):
    _fields_ = [("code", c.c_uint8), ("bits", c.c_uint8), ("lanes", c.c_uint16)]


class DLTensor(c.Structure):
    _fields_ = [
        ("data", c.c_void_p),
        ("device", Device),
        ("ndim", c.c_int32),
        ("dtype", DataType),
        ("shape", c.POINTER(c.c_int64)),
        ("strides", c.POINTER(c.c_int64)),
        ("byte_offset", c.c_uint64),
    ]


class Managed(c.Structure):
    _fields_ = [("dl_tensor", DLTensor), ("manager_ctx", c.c_void_p), ("deleter", c.c_void_p)]


class ManagedVersioned(c.Structure):
    _fields_ = [
        ("major", c.c_uint32),
        ("minor", c.c_uint32),
        ("manager_ctx", c.c_void_p),
        ("deleter", c.c_void_p),
        ("flags", c.c_uint64),
        ("dl_tensor", DLTensor),
    ]


class Value(c.Structure):
    pass


class _Shape(c.Structure):
    _fields_ = [("extents", c.POINTER(c.c_int64)), ("rank", c.c_size_t)]


class _Tuple(c.Structure):
    _fields_ = [("elements", c.POINTER(Value)), ("count", c.c_size_t)]


class _As(c.Union):
    _fields_ = [
        ("i", c.c_int64),
        ("f", c.c_double),
        ("b", c.c_int32),
        ("string", c.c_char_p),
        ("dtype", DataType),
        ("shape", _Shape),
        ("tensor", c.POINTER(DLTensor)),
        ("owned_tensor", c.c_void_p),
        ("tuple", _Tuple),
    ]


Value._fields_ = [("kind", c.c_int), ("as_", _As)]

LogFunction = c.CFUNCTYPE(None, c.c_void_p, c.c_char_p)


class InstanceOptions(Options):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("num_threads", c.c_int32),
        ("alloc", c.c_void_p),
        ("free", c.c_void_p),
        ("parallel_for", c.c_void_p),
        ("log", LogFunction),
        ("user", c.c_void_p),
    ]


class OpenOptions(Options):
    _fields_ = [("struct_size", c.c_size_t), ("trust", c.c_int), ("kernels", c.c_int), ("verify_constants", c.c_int32)]


class ContextOptions(Options):
    _fields_ = [
        ("struct_size", c.c_size_t),
        ("device", Device),
        ("max_memory_bytes", c.c_int64),
        ("fuel", c.c_int64),
        ("externals", c.c_void_p),
        ("num_externals", c.c_size_t),
        ("deadline_seconds", c.c_double),
        ("copy_tensors", c.c_int32),
    ]


def c_text(text):
    """A C string of text or bytes, which would end at a NUL character."""
    encoded = text.encode() if isinstance(text, str) else text
    if b"\0" in encoded:
        raise ValueError(f"a NUL character in {text!r}")
    return encoded


def c_path(path):
    return c_text(os.fsencode(path))


# name: (result, arguments). A result of STATUS is checked: a failure is raised.
STATUS = object()
P = c.c_void_p
FUNCTIONS = {
    "ingot_version": (c.c_char_p, []),
    "ingot_instance_create": (STATUS, [c.POINTER(InstanceOptions), c.POINTER(P)]),
    "ingot_instance_release": (None, [P]),
    "ingot_executable_open": (STATUS, [P, c.c_char_p, c.POINTER(OpenOptions), c.POINTER(P)]),
    "ingot_executable_open_memory": (STATUS, [P, P, c.c_size_t, c.c_char_p, c.POINTER(OpenOptions), c.POINTER(P)]),
    "ingot_executable_release": (None, [P]),
    "ingot_executable_metadata_count": (c.c_size_t, [P]),
    "ingot_executable_metadata_key": (c.c_char_p, [P, c.c_size_t]),
    "ingot_executable_metadata_value": (c.c_char_p, [P, c.c_size_t]),
    "ingot_executable_function_count": (c.c_size_t, [P]),
    "ingot_executable_function": (P, [P, c.c_size_t]),
    "ingot_executable_find_function": (STATUS, [P, c.c_char_p, c.POINTER(P)]),
    "ingot_function_name": (c.c_char_p, [P]),
    "ingot_function_signature": (c.c_char_p, [P]),
    "ingot_function_input_count": (c.c_size_t, [P]),
    "ingot_function_input_name": (c.c_char_p, [P, c.c_size_t]),
    "ingot_function_input_type": (P, [P, c.c_size_t]),
    "ingot_function_input_is_written": (c.c_int32, [P, c.c_size_t]),
    "ingot_function_output_count": (c.c_size_t, [P]),
    "ingot_function_output_name": (c.c_char_p, [P, c.c_size_t]),
    "ingot_type_kind": (c.c_int, [P]),
    "ingot_type_text": (c.c_char_p, [P]),
    "ingot_value_clear": (None, [c.POINTER(Value)]),
    "ingot_tensor_from_dlpack": (STATUS, [P, c.POINTER(P)]),
    "ingot_tensor_from_legacy_dlpack": (STATUS, [P, c.POINTER(P)]),
    "ingot_tensor_to_dlpack": (STATUS, [P, c.POINTER(P)]),
    "ingot_tensor_to_legacy_dlpack": (STATUS, [P, c.POINTER(P)]),
    "ingot_tensor_view": (c.POINTER(DLTensor), [P]),
    "ingot_tensor_release": (None, [P]),
    "ingot_context_create": (STATUS, [P, c.POINTER(ContextOptions), c.POINTER(P)]),
    "ingot_context_release": (None, [P]),
    "ingot_invoke": (STATUS, [P, P, c.POINTER(Value), c.c_size_t, c.POINTER(Value), c.c_size_t]),
    "ingot_context_set_input": (STATUS, [P, P, c.c_char_p, c.POINTER(DLTensor)]),
    "ingot_context_set_input_value": (STATUS, [P, P, c.c_char_p, c.POINTER(Value)]),
    "ingot_context_run": (STATUS, [P, P]),
    "ingot_context_get_output": (STATUS, [P, c.c_size_t, c.POINTER(Value)]),
    "ingot_context_set_deadline": (STATUS, [P, c.c_double]),
    "ingot_context_cancel": (None, [P]),
    "ingot_context_memory_in_use": (c.c_int64, [P]),
    "ingot_context_memory_peak": (c.c_int64, [P]),
}


class Handle:
    """Owns an object of the C API, which is released once: what is copied with a Handle in it shares the Handle."""

    def __init__(self, release):
        self.value = c.c_void_p()
        self._release = release

    def __del__(self):
        self._release(self.value)

    def __reduce__(self):
        raise TypeError("objects of the C API cannot be copied")


def _open():
    given = os.environ.get("INGOT_LIBRARY")
    if given:
        return c.CDLL(given)
    here = pathlib.Path(__file__).resolve().parent
    for name in LIBRARY_NAMES:
        if (here / name).exists():
            return c.CDLL(str(here / name))
    return c.CDLL(LIBRARY_NAMES[1])


def bind(library, functions):
    """Gives functions of a library their types; those that return a status raise what it says."""
    library.ingot_status_get_code.restype = c.c_int
    library.ingot_status_get_code.argtypes = [P]
    for name in ("message", "function", "location"):
        getattr(library, "ingot_status_" + name).restype = c.c_char_p
        getattr(library, "ingot_status_" + name).argtypes = [P]
    library.ingot_status_release.restype = None
    library.ingot_status_release.argtypes = [P]

    def check(status, _function, _arguments):
        if not status:
            return
        code = library.ingot_status_get_code(status)
        texts = [
            getattr(library, "ingot_status_" + name)(status).decode() for name in ("message", "function", "location")
        ]
        library.ingot_status_release(status)
        raise CLASSES.get(code, IngotError)(code, *texts)

    for name, (result, arguments) in functions.items():
        function = getattr(library, name)
        function.argtypes = arguments
        function.restype = P if result is STATUS else result
        if result is STATUS:
            function.errcheck = check
    return library


lib = bind(_open(), FUNCTIONS)
