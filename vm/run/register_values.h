// Registers of a frame and the values in them: dropping and copying what a register holds, the view of a tensor
// register, and conversion from and to a Value.
#pragma once

#include <cstdint>

#include "runtime/tensor.h"
#include "vm/program/type.h"
#include "vm/run/devices.h"
#include "vm/run/value.h"

namespace ingot::vm {

// Gives up what the register refers to; it holds nothing then.
void Drop(const Type& type, int64_t* slot);
// Copies a value from one register to another, which holds nothing, of the same or a looser type.
void CopyRegister(const Type& to, int64_t* to_slot, const Type& from, const int64_t* from_slot);

// The memory of a tensor register.
Result<TensorView> ViewOf(const Devices& devices, const Type& type, const int64_t* slot);
// A compact copy of a tensor of the host, in the device's pool.
Result<Tensor> CopyToOwned(const Devices& devices, const TensorView& view, uint8_t device, bool may_be_later = false);

// The value in a register. Tensors that the register does not own are copied.
Result<Value> Box(const Devices& devices, const Type& type, const int64_t* slot);
// The same for any kind but a tensor.
Value BoxWords(const Type& type, const int64_t* slot);
// Stores a value in a register that holds nothing; registers of tensors must be of storage owned.
Status Unbox(const Devices& devices, const Type& type, int64_t* slot, const Value& value);

}  // namespace ingot::vm
