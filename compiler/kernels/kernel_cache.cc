// What a key contains, and how an object is written.
#include "compiler/kernels/kernel_cache.h"

#include <utility>
#include <vector>

#include "compiler/script/printer.h"
#include "formats/byte_reader.h"
#include "formats/byte_writer.h"

namespace ingot::kernels {

// The names do not match its fields any more when it gets another one.
std::string TargetText(const Target& target) {
  const auto& [kind, name, triple, llvm_features, required_features, vector_bits, num_vector_registers, fma_ports,
               l1_bytes, l2_bytes, l3_bytes, max_stack_bytes] = target;
  std::string text = std::to_string(static_cast<int>(kind)) + " " + name + " " + triple;
  for (const std::string& feature : llvm_features) text += " " + feature;
  text += " " + std::to_string(required_features);
  for (const int64_t number : {int64_t{vector_bits}, int64_t{num_vector_registers}, int64_t{fma_ports}, l1_bytes,
                               l2_bytes, l3_bytes, max_stack_bytes}) {
    text += " " + std::to_string(number);
  }
  return text;
}

namespace {

std::vector<std::byte> EncodeObject(const codegen::KernelObject& object) {
  formats::ByteWriter writer;
  writer.String(object.elf);
  writer.U8(object.needs_memory_routines ? 1 : 0);
  writer.SignedVarint(object.stack_bytes);
  writer.Varint(object.workspace.steps().size());
  for (const DimStep& step : object.workspace.steps()) {
    writer.U8(static_cast<uint8_t>(step.op));
    writer.SignedVarint(step.value);
  }
  return writer.Take();
}

Result<codegen::KernelObject> DecodeObject(std::span<const std::byte> bytes) {
  formats::ByteReader reader(bytes, "cached kernel");
  codegen::KernelObject object;
  INGOT_ASSIGN_OR_RETURN(object.elf, reader.String());
  INGOT_ASSIGN_OR_RETURN(const uint8_t needs_memory_routines, reader.U8());
  object.needs_memory_routines = needs_memory_routines != 0;
  INGOT_ASSIGN_OR_RETURN(object.stack_bytes, reader.SignedVarint());
  INGOT_ASSIGN_OR_RETURN(const uint64_t num_steps, reader.Count(2));
  std::vector<DimStep> steps;
  int64_t num_slots = 0;
  for (uint64_t i = 0; i < num_steps; ++i) {
    DimStep step;
    INGOT_ASSIGN_OR_RETURN(const uint8_t op, reader.U8());
    step.op = static_cast<DimOp>(op);
    INGOT_ASSIGN_OR_RETURN(step.value, reader.SignedVarint());
    if (step.op == DimOp::kSlot) num_slots = std::max(num_slots, step.value + 1);
    steps.push_back(step);
  }
  INGOT_ASSIGN_OR_RETURN(object.workspace, DimCode::FromSteps(std::move(steps), num_slots));
  INGOT_RETURN_IF_ERROR(reader.ExpectEnd());
  return object;
}

}  // namespace

Result<std::unique_ptr<KernelCache>> KernelCache::Open(const KernelCacheOptions& options) {
  INGOT_ASSIGN_OR_RETURN(std::string identity, codegen::CodegenIdentity());
  std::string path = options.directory;
  if (path.empty()) {
    INGOT_ASSIGN_OR_RETURN(path, DefaultCacheDirectory());
  }
  INGOT_ASSIGN_OR_RETURN(std::unique_ptr<CacheDirectory> directory, CacheDirectory::Open(path, options.max_bytes));
  return std::make_unique<KernelCache>(std::move(directory), std::move(identity));
}

std::string KernelCache::KernelKey(const ir::PrimFunc& function, const Target& target, int opt_level,
                                   const schedule::Chosen& chosen) const {
  std::string choices;
  for (const auto& [name, value] : chosen) choices += " " + name + "=" + std::to_string(value);
  return "kernel\n" + identity_ + "\n" + TargetText(target) + "\n-O" + std::to_string(opt_level) + choices + "\n" +
         script::PrintFunction("kernel", function);
}

std::string KernelCache::MemoryRoutinesKey(const Target& target) const {
  return "memory routines\n" + identity_ + "\n" + TargetText(target);
}

std::optional<codegen::KernelObject> KernelCache::Find(std::string_view key) {
  const std::optional<std::vector<std::byte>> bytes = directory_->Find(key);
  if (!bytes) return std::nullopt;
  Result<codegen::KernelObject> object = DecodeObject(*bytes);
  if (!object.ok()) return std::nullopt;
  return *std::move(object);
}

void KernelCache::Store(std::string_view key, const codegen::KernelObject& object) {
  directory_->Store(key, EncodeObject(object));
}

}  // namespace ingot::kernels
