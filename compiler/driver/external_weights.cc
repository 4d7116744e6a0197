// Writes the weights with the ordinary safetensors writer and reads the file back to find where each one lies in it.
#include "compiler/driver/external_weights.h"

#include <algorithm>
#include <filesystem>
#include <unordered_map>
#include <vector>

#include "formats/file.h"
#include "formats/hash.h"
#include "formats/safetensors.h"
#include "formats/tensor_files.h"
#include "vm/program/limits.h"

namespace ingot::driver {

namespace fs = std::filesystem;

Status MoveWeightsToFile(vm::Program& program, const std::string& path, const std::string& executable,
                         formats::FileCalls& calls) {
  const auto refuse = [&](const std::string& reason) {
    return Status(StatusCode::kInvalidArgument, "--external-weights " + path + ": " + reason);
  };
  if (!path.ends_with(".safetensors")) return refuse("expected a .safetensors file");
  const fs::path folder = fs::absolute(executable).parent_path();
  const fs::path relative = fs::absolute(path).lexically_normal().lexically_relative(folder.lexically_normal());
  if (relative.empty() || *relative.begin() == "..") {
    return refuse("the file must be in or beneath the executable's folder, " + folder.string());
  }
  std::vector<formats::NamedTensor> tensors;
  for (const vm::Weight& weight : program.weights) {
    const vm::Constant& constant = program.constants[weight.constant.value];
    if (!formats::SafetensorsHolds(constant.dtype)) continue;
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromShared(constant.dtype, constant.dims, constant.bytes));
    tensors.push_back({constant.name, std::move(tensor)});
  }
  if (tensors.empty()) return refuse("the module has no weights");
  INGOT_RETURN_IF_ERROR(formats::WriteTensorFile(path, tensors, calls));

  INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const formats::InputFile> file,
                         formats::InputFile::Open(path, formats::ReadMode::kMap, calls));
  const SharedBytes written = formats::InputFile::Share(std::move(file));
  INGOT_ASSIGN_OR_RETURN(const std::vector<formats::NamedTensor> placed, formats::ReadSafetensors(written, nullptr));
  std::unordered_map<std::string, uint64_t> offsets;
  for (const formats::NamedTensor& named : placed) {
    offsets.emplace(named.name, static_cast<const std::byte*>(named.tensor.data()) - written.data());
  }
  program.weight_files = {
      {relative.generic_string(), written.size(), formats::Hash(written.bytes), formats::Sha256Of(written.bytes)}};
  for (vm::Weight& weight : program.weights) {
    vm::Constant& constant = program.constants[weight.constant.value];
    const auto found = offsets.find(constant.name);
    if (found == offsets.end()) continue;
    weight.file = 0;
    weight.offset = found->second;
    constant.bytes = SharedBytes();
  }
  return Status();
}

}  // namespace ingot::driver
