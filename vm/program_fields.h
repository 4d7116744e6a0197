// What every row of a program's tables is made of, field by field in the order of the file: one description, which the
// encoder's Writer and the decoder's Reader both follow (vm/program_encoder.cc, program_decoder.cc), so that what is
// written is what is read. formats/README.md says the same in prose.
//
// A Codec has a function per kind of field; the Writer takes rows as they are (const), the Reader fills them and judges
// what it reads. What the two do differently on purpose is a function of theirs, too: interned texts, types and
// signatures, payloads of constants, how long code is.
#pragma once

#include "vm/checks.h"
#include "vm/program.h"

namespace ingot::vm {

Verdict DeviceFields(auto& codec, auto& device) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(device.kind));
  return codec.Word(device.index);
}

// ---- types and signatures

Verdict TypeFields(auto& codec, auto& type) {
  INGOT_RETURN_UNLESS_PASSED(codec.Named(type.kind, kNumValueKinds));
  switch (type.kind) {
    case ValueKind::kInt:
    case ValueKind::kFloat:
    case ValueKind::kBool:
    case ValueKind::kString:
    case ValueKind::kDataType:
      return Verdict();
    case ValueKind::kShape:
      return codec.TypeDims(type.dims);
    case ValueKind::kTensor:
      INGOT_RETURN_UNLESS_PASSED(codec.Element(type.dtype));
      INGOT_RETURN_UNLESS_PASSED(codec.Named(type.storage, kNumStorages));
      INGOT_RETURN_UNLESS_PASSED(codec.Byte(type.device));
      return codec.TypeDims(type.dims);
    case ValueKind::kTuple:
    case ValueKind::kOptional:
      return codec.EarlierTypes(type.elements);
    case ValueKind::kClosure:
      INGOT_RETURN_UNLESS_PASSED(codec.EarlierTypes(type.elements));
      return codec.EarlierTypes(type.results);
    case ValueKind::kObject:
      return codec.Text(type.class_name);
  }
  INGOT_UNREACHABLE();
}

Verdict SignatureFields(auto& codec, auto& signature) {
  INGOT_RETURN_UNLESS_PASSED(codec.List(signature.symbols, [&](auto& symbol) -> Verdict {
    INGOT_RETURN_UNLESS_PASSED(codec.Text(symbol.name));
    INGOT_RETURN_UNLESS_PASSED(codec.Signed(symbol.min));
    INGOT_RETURN_UNLESS_PASSED(codec.Signed(symbol.max));
    return codec.Optional(symbol.state);
  }));
  const auto named_type = [&](auto& named) -> Verdict {
    INGOT_RETURN_UNLESS_PASSED(codec.Text(named.name));
    return codec.TypeOf(named.type);
  };
  INGOT_RETURN_UNLESS_PASSED(codec.List(signature.params, named_type));
  return codec.List(signature.results, named_type);
}

Verdict ExternalFields(auto& codec, auto& external) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(external.name));
  INGOT_RETURN_UNLESS_PASSED(codec.SignatureOf(external.signature));
  return codec.Number(external.effects, UINT32_MAX);
}

// ---- functions

Verdict OperandFields(auto& codec, OperandKind kind, auto& operand) {
  switch (kind) {
    case OperandKind::kDefList:
    case OperandKind::kUseList:
      return codec.Registers(codec.template Part<RegisterList>(operand));
    case OperandKind::kDim:
      return codec.Dim(codec.template Part<DimCode>(operand));
    case OperandKind::kDimList:
      return codec.Dims(codec.template Part<std::vector<DimCode>>(operand));
    case OperandKind::kText:
      return codec.Text(codec.template Part<std::string>(operand));
    case OperandKind::kInt:
      return codec.Signed(codec.template Part<int64_t>(operand));
    case OperandKind::kFloat:
      return codec.Long(codec.template Part<int64_t>(operand));
    case OperandKind::kDef:
    case OperandKind::kUse:
    case OperandKind::kBool:
    case OperandKind::kDType:
    case OperandKind::kLabel:
    case OperandKind::kKernel:
    case OperandKind::kBuiltin:
    case OperandKind::kFunction:
    case OperandKind::kExternal:
    case OperandKind::kConstant:
    case OperandKind::kState:
    case OperandKind::kPlanEntry:
    case OperandKind::kStream:
      return codec.Number(codec.template Part<int64_t>(operand), UINT32_MAX);
  }
  INGOT_UNREACHABLE();
}

Verdict InstructionFields(auto& codec, auto& instruction) {
  INGOT_RETURN_UNLESS_PASSED(codec.Opcode(instruction));
  const std::span<const OperandSpec> specs = InfoOf(instruction.opcode).operands;
  for (size_t i = 0; i < specs.size(); ++i) {
    INGOT_RETURN_UNLESS_PASSED(OperandFields(codec, specs[i].kind, instruction.operands[i]));
  }
  return Verdict();
}

Verdict FunctionFields(auto& codec, auto& function) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(function.name));
  INGOT_RETURN_UNLESS_PASSED(codec.Named(function.exported, 2));
  INGOT_RETURN_UNLESS_PASSED(codec.SignatureOf(function.signature));
  INGOT_RETURN_UNLESS_PASSED(codec.FrameTypes(function));
  return codec.Code(function.code);
}

// ---- kernels

Verdict ImageFields(auto& codec, auto& image) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(image.name));
  INGOT_RETURN_UNLESS_PASSED(codec.Named(image.format, 2));
  INGOT_RETURN_UNLESS_PASSED(codec.Text(image.arch));
  return codec.Long(image.features);
}

Verdict KernelParamFields(auto& codec, auto& param) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(param.name));
  INGOT_RETURN_UNLESS_PASSED(codec.Named(param.role, 3));
  INGOT_RETURN_UNLESS_PASSED(codec.Element(param.dtype));
  INGOT_RETURN_UNLESS_PASSED(codec.Dims(param.extents));
  INGOT_RETURN_UNLESS_PASSED(codec.Number(param.alignment, UINT32_MAX));
  return codec.Optional(param.in_place);
}

Verdict LaunchFields(auto& codec, auto& launch) {
  for (auto& size : launch.grid) INGOT_RETURN_UNLESS_PASSED(codec.Dim(size));
  for (auto& size : launch.block) INGOT_RETURN_UNLESS_PASSED(codec.Dim(size));
  return codec.Dim(launch.shared_bytes);
}

Verdict VariantFields(auto& codec, auto& variant) {
  INGOT_RETURN_UNLESS_PASSED(codec.Index(variant.image));
  INGOT_RETURN_UNLESS_PASSED(codec.Number(variant.offset, UINT64_MAX));
  INGOT_RETURN_UNLESS_PASSED(codec.Text(variant.entry));
  return codec.Long(variant.required_features);
}

Verdict KernelFields(auto& codec, auto& kernel) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(kernel.name));
  INGOT_RETURN_UNLESS_PASSED(codec.Byte(kernel.device));
  INGOT_RETURN_UNLESS_PASSED(codec.List(kernel.ints, [&](auto& scalar) -> Verdict {
    INGOT_RETURN_UNLESS_PASSED(codec.Text(scalar.name));
    return codec.Element(scalar.dtype);
  }));
  INGOT_RETURN_UNLESS_PASSED(codec.List(kernel.params, [&](auto& param) { return KernelParamFields(codec, param); }));
  for (auto* formula : {&kernel.workspace, &kernel.flops, &kernel.bytes}) {
    INGOT_RETURN_UNLESS_PASSED(codec.Dim(*formula));
  }
  INGOT_RETURN_UNLESS_PASSED(codec.Number(kernel.effects, UINT32_MAX));
  INGOT_RETURN_UNLESS_PASSED(codec.Flagged(kernel.launch, [&](auto& launch) { return LaunchFields(codec, launch); }));
  INGOT_RETURN_UNLESS_PASSED(codec.List(kernel.variants, [&](auto& variant) { return VariantFields(codec, variant); }));
  INGOT_RETURN_UNLESS_PASSED(codec.List(kernel.externals, [&](auto& id) { return codec.Index(id.value); }));
  return codec.List(kernel.messages, [&](auto& message) { return codec.Text(message); });
}

// ---- memory plans and the debug map: one per function

Verdict PlanFields(auto& codec, auto& plan) {
  INGOT_RETURN_UNLESS_PASSED(codec.List(plan.arenas, [&](auto& arena) -> Verdict {
    INGOT_RETURN_UNLESS_PASSED(codec.Byte(arena.device));
    return codec.Dim(arena.size);
  }));
  return codec.List(plan.entries, [&](auto& entry) -> Verdict {
    INGOT_RETURN_UNLESS_PASSED(codec.Index(entry.arena));
    INGOT_RETURN_UNLESS_PASSED(codec.Dim(entry.offset));
    INGOT_RETURN_UNLESS_PASSED(codec.Dim(entry.size));
    INGOT_RETURN_UNLESS_PASSED(codec.Index(entry.first));
    INGOT_RETURN_UNLESS_PASSED(codec.Index(entry.last));
    return codec.Optional(entry.alias_of);
  });
}

Verdict NotesFields(auto& codec, auto& notes) {
  return codec.List(notes, [&](auto& note) -> Verdict {
    INGOT_RETURN_UNLESS_PASSED(codec.Index(note.instruction));
    return codec.Text(note.text);
  });
}

// ---- constants and states

Verdict ConstantFields(auto& codec, auto& constant) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(constant.name));
  INGOT_RETURN_UNLESS_PASSED(codec.Element(constant.dtype));
  INGOT_RETURN_UNLESS_PASSED(codec.Extents(constant.dims));
  return codec.Payload(constant);
}

Verdict StateFields(auto& codec, auto& state) {
  INGOT_RETURN_UNLESS_PASSED(codec.Text(state.name));
  INGOT_RETURN_UNLESS_PASSED(codec.Element(state.dtype));
  INGOT_RETURN_UNLESS_PASSED(codec.Extents(state.dims));
  INGOT_RETURN_UNLESS_PASSED(codec.Byte(state.device));
  INGOT_RETURN_UNLESS_PASSED(codec.Optional(state.initial));
  return codec.Flagged(state.growth, [&](auto& growth) -> Verdict {
    INGOT_RETURN_UNLESS_PASSED(codec.Byte(growth.axis));
    return codec.Index(growth.length.value);
  });
}

}  // namespace ingot::vm
