// Replaces weights by the caller's tensors, then opens and checks each file of weights that is still needed.
#include "vm/program/weights.h"

#include <cstring>
#include <memory>

#include "formats/container.h"
#include "formats/file.h"
#include "formats/hash.h"
#include "formats/sha256.h"
#include "runtime/suggest.h"

namespace ingot::vm {
namespace {

Status Replace(Program& program, const std::string& name, const Tensor& tensor) {
  std::vector<std::string_view> names;
  for (const Weight& weight : program.weights) {
    Constant& constant = program.constants[weight.constant.value];
    names.push_back(constant.name);
    if (constant.name != name) continue;
    const std::string expected = ShapeToString(constant.dtype, constant.dims);
    if (tensor.TypeToString() != expected) {
      return Status(StatusCode::kBadInput,
                    {"weight \"", name, "\": expected ", expected, ", got ", tensor.TypeToString()});
    }
    INGOT_ASSIGN_OR_RETURN(Tensor compact, tensor.Compact());
    const auto bytes = std::as_bytes(compact.bytes());
    constant.bytes = SharedBytes(std::make_shared<const Tensor>(std::move(compact)), bytes);
    return Status();
  }
  if (names.empty()) {
    return Status(StatusCode::kBadInput, {"weight \"", name,
                                          "\" cannot be replaced: the weights were packed when the file was compiled; "
                                          "vm-compile --keep-prepare or --external-weights keeps them"});
  }
  const bool is_fixed = tensor.num_elements() == 1 || (tensor.dtype().is_integral() && tensor.dtype().bits > 8);
  return Status(StatusCode::kBadInput,
                {"there is no weight \"", name, "\" that can be replaced", DidYouMean(name, names),
                 is_fixed ? "; scalars and tables of integers stay as they were compiled" : ""});
}

Result<SharedBytes> OpenFile(const WeightFile& file, const WeightSources& sources) {
  if (sources.directory.empty()) {
    return Status(StatusCode::kInvalidArgument,
                  {"its weights are in \"", file.path, "\", and the options name no folder for it"});
  }
  const auto mode = sources.is_policy ? formats::ReadMode::kCopy : formats::ReadMode::kMap;
  INGOT_ASSIGN_OR_RETURN(std::shared_ptr<const formats::InputFile> opened,
                         formats::InputFile::OpenBeneath(sources.directory, file.path, mode));
  SharedBytes bytes = formats::InputFile::Share(std::move(opened));
  const auto differs = [&](const char* what) {
    return Status(StatusCode::kCorrupt,
                  {"weights \"", file.path, "\": not the file that this was compiled with: another ", what});
  };
  if (bytes.size() != file.size) return differs("size");
  if ((sources.verify_files || file.size <= formats::kUnhashedConstantBytes) &&
      formats::Hash(bytes.bytes) != file.hash) {
    return differs("hash");
  }
  // XXH3 finds accidents only. The SHA-256 is what a policy trusts, and is compared too when all hashes are asked for.
  if ((sources.is_policy || sources.verify_files) && formats::Sha256Of(bytes.bytes) != file.sha256)
    return differs("SHA-256");
  return bytes;
}

}  // namespace

Status BindWeights(Program& program, const WeightSources& sources) {
  for (const auto& [name, tensor] : sources.replacements) INGOT_RETURN_IF_ERROR(Replace(program, name, tensor));
  std::vector<SharedBytes> files(program.weight_files.size());
  for (const Weight& weight : program.weights) {
    Constant& constant = program.constants[weight.constant.value];
    if (!weight.file || constant.bytes.size() > 0) continue;  // replaced
    SharedBytes& file = files[*weight.file];
    if (file.owner == nullptr) {
      INGOT_ASSIGN_OR_RETURN(file, OpenFile(program.weight_files[*weight.file], sources));
    }
    const auto size = static_cast<uint64_t>(constant.size_bytes());
    constant.bytes = SharedBytes(file.owner, file.bytes.subspan(weight.offset, size));
  }
  return Status();
}

}  // namespace ingot::vm
