"""Tensors across the border by DLPack, without a copy: capsules of other libraries in, capsules out. An argument is
borrowed for the call; a result is a Tensor, which exports as often as asked."""

import ctypes as c

from . import _capi
from ._capi import Handle, lib

_api = c.pythonapi
_api.PyCapsule_New.restype = c.py_object
_api.PyCapsule_New.argtypes = [c.c_void_p, c.c_char_p, c.c_void_p]
_api.PyCapsule_IsValid.restype = c.c_int
_api.PyCapsule_IsValid.argtypes = [c.py_object, c.c_char_p]
_api.PyCapsule_GetPointer.restype = c.c_void_p
_api.PyCapsule_GetPointer.argtypes = [c.py_object, c.c_char_p]
_api.PyCapsule_SetName.restype = c.c_int
_api.PyCapsule_SetName.argtypes = [c.py_object, c.c_char_p]
# The same functions for a capsule that is being destroyed: no new reference to it may be made.
_is_valid = c.PYFUNCTYPE(c.c_int, c.c_void_p, c.c_char_p)(("PyCapsule_IsValid", _api))
_get_pointer = c.PYFUNCTYPE(c.c_void_p, c.c_void_p, c.c_char_p)(("PyCapsule_GetPointer", _api))



class _ExchangeTable(c.Structure):
    """DLPack's table of functions that a type of tensors has (version 1.2 and later of version 1)."""

    _fields_ = [
        ("major", c.c_uint32),
        ("minor", c.c_uint32),
        ("previous", c.c_void_p),
        ("allocate", c.c_void_p),
        ("from_object", c.c_void_p),
        ("to_object", c.c_void_p),
        ("borrow", c.PYFUNCTYPE(c.c_int, c.py_object, c.POINTER(_capi.DLTensor))),
        ("current_stream", c.PYFUNCTYPE(c.c_int, c.c_int32, c.c_int32, c.POINTER(c.c_void_p))),
    ]


def _exchange_table(kind):
    capsule = getattr(kind, "__dlpack_c_exchange_api__", None)
    if capsule is None or not _api.PyCapsule_IsValid(capsule, b"dlpack_exchange_api"):
        return None
    table = _ExchangeTable.from_address(_api.PyCapsule_GetPointer(capsule, b"dlpack_exchange_api"))
    return table if table.major == 1 and table.borrow else None


_tables = {}  # by type

LEGACY, VERSIONED = b"dltensor", b"dltensor_versioned"
_STRUCTS = {LEGACY: _capi.Managed, VERSIONED: _capi.ManagedVersioned}
_USED = {LEGACY: b"used_dltensor", VERSIONED: b"used_dltensor_versioned"}  # the names that a consumer gives
_TAKE_OVER = {LEGACY: lib.ingot_tensor_from_legacy_dlpack, VERSIONED: lib.ingot_tensor_from_dlpack}
_Deleter = c.CFUNCTYPE(None, c.c_void_p)


def _release(managed, struct):
    deleter = struct.from_address(managed).deleter
    if deleter:
        _Deleter(deleter)(managed)


@c.PYFUNCTYPE(None, c.c_void_p)
def _destroy(capsule):
    """Of a capsule that nobody consumed (a consumer renames it)."""
    for name, struct in _STRUCTS.items():
        if _is_valid(capsule, name):
            _release(_get_pointer(capsule, name), struct)


def capsule_of(managed, name):
    return _api.PyCapsule_New(managed, name, c.cast(_destroy, c.c_void_p))


class Borrowed:
    """An argument as a DLTensor, with what keeps it alive. Where the function writes it, it is the value's own memory."""

    def __init__(self, value, is_written=False):
        self.is_written = is_written
        kind = type(value)
        if kind not in _tables:
            _tables[kind] = _exchange_table(kind)
        table = _tables[kind]
        # The table does not say what is read-only.
        if table is not None and not is_written and self._from_table(value, table):
            return
        interface = getattr(value, "__array_interface__", None)
        # Where the elements are in a buffer of their own, as a picture's bytes, NumPy knows how to read it.
        has_address = interface is not None and isinstance(interface.get("data"), tuple)
        if has_address and _dtype(interface["typestr"]) is not None:
            self._from_array(value, interface)
        elif hasattr(value, "__dlpack__"):
            self._from_dlpack(value)
        else:
            import numpy

            self._check_written("no array")
            array = numpy.asarray(value)
            self._from_array(array, array.__array_interface__)

    def _check_written(self, got):
        if self.is_written:
            raise TypeError(f"the function writes this argument, and {got} cannot be written")

    def _from_table(self, value, table):
        """Ten times as fast as __dlpack__, which is left what has to wait for another stream, what is refused, and says
        why, complex numbers, whose conjugates PyTorch keeps as a mark, and what may be padded, which a table does not
        say."""
        tensor = _capi.DLTensor()
        try:
            if table.borrow(value, tensor) != 0 or tensor.dtype.code == 5 or tensor.dtype.bits < 8:
                return False
        except Exception:
            return False
        if tensor.device.device_type == _capi.CUDA:
            stream = c.c_void_p()
            table.current_stream(_capi.CUDA, tensor.device.device_id, stream)
            if (stream.value or 0) > 1:  # 0 and 1 are the default stream, on which calls run
                return False
        elif tensor.device.device_type != _capi.CPU:
            return False
        self.keep, self.tensor = value, tensor
        return True

    def _from_array(self, array, interface):
        dtype = _dtype(interface["typestr"])
        if interface["data"][1]:
            self._check_written("a read-only array")
        if dtype is None:
            raise TypeError(f"elements of type {interface['typestr']} cannot be passed")
        code, bits = dtype
        shape = interface["shape"]
        strides = interface.get("strides")
        size = bits // 8
        if strides is not None and any(s < 0 or s % size for s in strides):  # which DLPack cannot say
            import numpy

            self._check_written("an array of such strides")
            array = numpy.ascontiguousarray(array)
            interface, strides = array.__array_interface__, None
        if strides is not None:
            strides = (c.c_int64 * len(shape))(*(s // size for s in strides))
        self.keep = (array, (c.c_int64 * len(shape))(*shape), strides)
        self.tensor = _capi.DLTensor(
            interface["data"][0],
            _capi.Device(_capi.CPU, 0),
            len(shape),
            _capi.DataType(code, bits, 1),
            self.keep[1],
            strides,
            0,
        )

    def _from_dlpack(self, value):
        # What is on a GPU is made ready for the default stream, on which calls run: 1 in DLPack's numbers of CUDA.
        is_cuda = hasattr(value, "__dlpack_device__") and value.__dlpack_device__()[0] == _capi.CUDA
        stream = {"stream": 1} if is_cuda else {}
        try:
            capsule = value.__dlpack__(max_version=(1, 1), **stream)
        except TypeError:  # a library of before DLPack 1.0
            capsule = value.__dlpack__(**stream)
        # The C API takes it over, and refuses what it does not understand.
        name = VERSIONED if _api.PyCapsule_IsValid(capsule, VERSIONED) else LEGACY
        managed = _api.PyCapsule_GetPointer(capsule, name)
        _api.PyCapsule_SetName(capsule, _USED[name])
        taken = Handle(lib.ingot_tensor_release)
        _TAKE_OVER[name](managed, c.byref(taken.value))
        if name == VERSIONED and _is_read_only(managed):
            self._check_written("a read-only tensor")
        self.keep, self.tensor = (value, taken), lib.ingot_tensor_view(taken.value).contents


def _is_read_only(managed):
    """Of a versioned tensor in the layout that the C API knows."""
    return bool(_capi.ManagedVersioned.from_address(managed).flags & _capi.READ_ONLY)


def _dtype(typestr):
    """(code, bits) of NumPy's description; None for what DLPack names otherwise (ml_dtypes) or not at all."""
    codes = {"i": 0, "u": 1, "f": 2, "c": 5, "b": 6}
    if typestr[0] == ">" or typestr[1] not in codes:
        return None
    return codes[typestr[1]], int(typestr[2:]) * 8


_TYPESTR = {0: "i", 1: "u", 2: "f", 5: "c", 6: "b"}
_NAMES = {0: "int", 1: "uint", 2: "float", 4: "bfloat", 5: "complex", 6: "bool"}


class Tensor:
    """A result. numpy.asarray(t) and torch.from_dlpack(t) share its memory; so does t.numpy(). One on a GPU is for
    torch.from_dlpack and cupy.asarray alone; before it is dropped, what reads it on another stream than the default one
    has to have ended."""

    def __init__(self, managed):
        self._handle = Handle(lib.ingot_tensor_release)
        self._is_read_only = _is_read_only(managed)
        lib.ingot_tensor_from_dlpack(managed, c.byref(self._handle.value))
        self._view = lib.ingot_tensor_view(self._handle.value).contents

    @property
    def shape(self):
        return tuple(self._view.shape[i] for i in range(self._view.ndim))

    @property
    def dtype(self):
        d = self._view.dtype
        return "bool" if d.code == 6 else _NAMES.get(d.code, f"type{d.code}_") + str(d.bits)

    @property
    def data_ptr(self):
        return (self._view.data or 0) + self._view.byte_offset

    @property
    def __array_interface__(self):
        if self._view.device.device_type == _capi.CUDA:
            raise AttributeError("the tensor is on a GPU; load(..., copy=True) copies results to the host")
        return self._interface()

    def __array__(self, *args, **kwargs):
        # NumPy comes here where there is no __array_interface__, and would make an array of one object otherwise.
        raise TypeError(f"NumPy cannot have {self!r}: it is on a GPU, or NumPy has no such elements")

    @property
    def __cuda_array_interface__(self):
        if self._view.device.device_type != _capi.CUDA:
            raise AttributeError("the tensor is not on a GPU")
        return {**self._interface(), "stream": 1}  # complete for the default stream, and every other

    def _interface(self):
        d = self._view.dtype
        if d.code not in _TYPESTR or d.bits % 8:
            raise AttributeError(f"NumPy has no {self.dtype}; use torch.from_dlpack")
        return {
            "version": 3,
            "shape": self.shape,
            "typestr": ("|" if d.bits == 8 else "<") + _TYPESTR[d.code] + str(d.bits // 8),
            "data": (self.data_ptr, self._is_read_only),
            "strides": tuple(self._view.strides[i] * (d.bits // 8) for i in range(self._view.ndim)),
        }

    def numpy(self):
        import numpy

        if self._view.device.device_type == _capi.CUDA:  # asarray would make an array of one object
            raise BufferError("the tensor is on a GPU; load(..., copy=True) copies results to the host")
        return numpy.asarray(self)

    def __dlpack_device__(self):
        return (self._view.device.device_type, self._view.device.device_id)

    def __dlpack__(self, *, stream=None, max_version=None, dl_device=None, copy=None):
        # The call that made the tensor has waited for the GPU, so it is ready for every stream.
        if copy or (dl_device is not None and tuple(dl_device) != self.__dlpack_device__()):
            raise BufferError("only the tensor's own memory can be exported")
        managed = c.c_void_p()
        if max_version is not None and max_version[0] >= 1:
            lib.ingot_tensor_to_dlpack(self._handle.value, c.byref(managed))
            return capsule_of(managed, VERSIONED)
        lib.ingot_tensor_to_legacy_dlpack(self._handle.value, c.byref(managed))
        return capsule_of(managed, LEGACY)

    def __repr__(self):
        return f"ingot.Tensor({self.dtype}{list(self.shape)})"
