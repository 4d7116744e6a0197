// The fields of every row of a program's tables, in the order of the file: one description that the encoder's Writer
// and the decoder's Reader both follow (vm/program/program_encoder.cc, vm/program/program_reader.h), so that what is
// written is what is read. formats/README.md says the same in prose.
//
// A codec has a function per kind of field, which returns whether to go on (the Reader keeps the reason why not). The
// Writer takes rows as they are (const); the Reader fills them and checks what it reads. Kinds of fields that the two
// treat differently are functions of the codec, too: interned texts, types and signatures, payloads of constants, code.
#pragma once

#include "vm/program/program.h"

namespace ingot::vm {

bool DeviceFields(auto& codec, auto& device) { return codec.Text(device.kind) && codec.Word(device.index); }

// ---- types and signatures

bool TypeFields(auto& codec, auto& type) {
  if (!codec.Named(type.kind, kNumValueKinds)) return false;
  switch (type.kind) {
    case ValueKind::kInt:
    case ValueKind::kFloat:
    case ValueKind::kBool:
    case ValueKind::kString:
    case ValueKind::kDataType:
      return true;
    case ValueKind::kShape:
      return codec.TypeDims(type.dims);
    case ValueKind::kTensor:
      return codec.Element(type.dtype) && codec.Named(type.storage, kNumStorages) && codec.Byte(type.device) &&
             codec.TypeDims(type.dims);
    case ValueKind::kTuple:
    case ValueKind::kOptional:
      return codec.EarlierTypes(type.elements);
    case ValueKind::kClosure:
      return codec.EarlierTypes(type.elements) && codec.EarlierTypes(type.results);
    case ValueKind::kObject:
      return codec.Text(type.class_name);
  }
  INGOT_UNREACHABLE();
}

bool SignatureFields(auto& codec, auto& signature) {
  if (!codec.List(signature.symbols, [&](auto& symbol) -> bool {
        return codec.Text(symbol.name) && codec.Signed(symbol.min) && codec.Signed(symbol.max) &&
               codec.Optional(symbol.state);
      }))
    return false;
  const auto named_type = [&](auto& named) -> bool { return codec.Text(named.name) && codec.TypeOf(named.type); };
  return codec.List(signature.params, named_type) && codec.List(signature.results, named_type);
}

bool ExternalFields(auto& codec, auto& external) {
  return codec.Text(external.name) && codec.SignatureOf(external.signature) &&
         codec.Number(external.effects, UINT32_MAX);
}

// ---- functions

bool OperandFields(auto& codec, OperandKind kind, auto& operand) {
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

bool InstructionFields(auto& codec, auto& instruction) {
  if (!codec.Opcode(instruction)) return false;
  for (const auto& [spec, value] : instruction.operands()) {
    if (!OperandFields(codec, spec.kind, value)) return false;
  }
  return true;
}

bool FunctionFields(auto& codec, auto& function) {
  return codec.Text(function.name) && codec.Named(function.exported, 2) && codec.SignatureOf(function.signature) &&
         codec.FrameTypes(function) && codec.Code(function.code);
}

// ---- kernels

bool ImageFields(auto& codec, auto& image) {
  return codec.Text(image.name) && codec.Named(image.format, 3) && codec.Text(image.arch) && codec.Long(image.features);
}

bool KernelParamFields(auto& codec, auto& param) {
  return codec.Text(param.name) && codec.Named(param.role, 3) && codec.Element(param.dtype) &&
         codec.Dims(param.extents) && codec.Number(param.alignment, UINT32_MAX) && codec.Optional(param.in_place);
}

bool LaunchFields(auto& codec, auto& launch) {
  return codec.Index(launch.variant) && codec.Text(launch.entry) &&
         codec.List(launch.sizes, [&](auto& size) -> bool { return codec.Dim(size); });
}

bool VariantFields(auto& codec, auto& variant) {
  return codec.Index(variant.image) && codec.Number(variant.offset, UINT64_MAX) && codec.Text(variant.entry) &&
         codec.Long(variant.required_features);
}

bool KernelFields(auto& codec, auto& kernel) {
  if (!(codec.Text(kernel.name) && codec.Byte(kernel.device))) return false;
  if (!codec.List(kernel.ints,
                  [&](auto& scalar) -> bool { return codec.Text(scalar.name) && codec.Element(scalar.dtype); }))
    return false;
  if (!codec.List(kernel.params, [&](auto& param) { return KernelParamFields(codec, param); })) return false;
  for (auto* formula : {&kernel.workspace, &kernel.flops, &kernel.bytes}) {
    if (!codec.Dim(*formula)) return false;
  }
  if (!(codec.Number(kernel.effects, UINT32_MAX) &&
        codec.List(kernel.launches, [&](auto& launch) { return LaunchFields(codec, launch); }) &&
        codec.List(kernel.variants, [&](auto& variant) { return VariantFields(codec, variant); }) &&
        codec.List(kernel.externals, [&](auto& id) { return codec.Index(id.value); })))
    return false;
  return codec.List(kernel.messages, [&](auto& message) { return codec.Text(message); });
}

// ---- memory plans and the debug map: one per function

bool PlanFields(auto& codec, auto& plan) {
  if (!codec.List(plan.arenas, [&](auto& arena) -> bool { return codec.Byte(arena.device) && codec.Dim(arena.size); }))
    return false;
  return codec.List(plan.entries, [&](auto& entry) -> bool {
    return codec.Index(entry.arena) && codec.Dim(entry.offset) && codec.Dim(entry.size) && codec.Index(entry.first) &&
           codec.Index(entry.last) && codec.Optional(entry.alias_of);
  });
}

bool NotesFields(auto& codec, auto& notes) {
  return codec.List(notes, [&](auto& note) -> bool { return codec.Index(note.instruction) && codec.Text(note.text); });
}

// ---- constants and states

bool ConstantFields(auto& codec, auto& constant) {
  return codec.Text(constant.name) && codec.Element(constant.dtype) && codec.Extents(constant.dims) &&
         codec.Payload(constant);
}

bool WeightFileFields(auto& codec, auto& file) {
  if (!(codec.Text(file.path) && codec.Long(file.size) && codec.Long(file.hash))) return false;
  for (auto& byte : file.sha256)
    if (!codec.Byte(byte)) return false;
  return true;
}

bool WeightFields(auto& codec, auto& weight) {
  return codec.Index(weight.constant.value) && codec.Optional(weight.file) &&
         (!weight.file || codec.Number(weight.offset, UINT64_MAX));
}

bool StateFields(auto& codec, auto& state) {
  if (!(codec.Text(state.name) && codec.Element(state.dtype) && codec.Extents(state.dims) && codec.Byte(state.device) &&
        codec.Optional(state.initial)))
    return false;
  return codec.Flagged(
      state.growth, [&](auto& growth) -> bool { return codec.Byte(growth.axis) && codec.Index(growth.length.value); });
}

}  // namespace ingot::vm
