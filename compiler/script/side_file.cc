// Reading and writing through formats/tensor_files.h; every tensor's hash is checked when it is read.
#include "compiler/script/side_file.h"

#include <filesystem>
#include <vector>

#include "formats/tensor_files.h"

namespace ingot::script {

std::string SideFilePath(const std::string& text_path) {
  return std::filesystem::path(text_path).replace_extension(".constants.safetensors");
}

Status WriteSideFile(const std::string& path, const ConstantStore& constants, formats::FileCalls& calls) {
  std::vector<formats::NamedTensor> tensors;
  for (const auto& [hash, data] : constants.constants()) {
    // The tensor borrows the bytes during this call.
    auto* bytes = const_cast<std::byte*>(data->bytes().data());
    INGOT_ASSIGN_OR_RETURN(const TensorView view,
                           TensorView::Make(bytes, data->dtype(), data->dims(), nullptr, DeviceId{}));
    INGOT_ASSIGN_OR_RETURN(Tensor tensor, Tensor::FromView(view, {}));
    tensors.push_back({hash, std::move(tensor)});
  }
  return formats::WriteTensorFile(path, tensors, calls);
}

Result<ConstantStore> ReadSideFile(const std::string& path) {
  INGOT_ASSIGN_OR_RETURN(const std::vector<formats::NamedTensor> tensors, formats::ReadTensorFile(path));
  ConstantStore constants;
  for (const formats::NamedTensor& named : tensors) {
    auto owner = std::make_shared<const Tensor>(named.tensor);
    const std::vector<int64_t> dims(owner->dims().begin(), owner->dims().end());
    const std::string hash = constants.Add(
        std::make_shared<const ir::ConstantData>(owner->dtype(), dims, std::as_bytes(owner->bytes()), owner));
    if (hash != named.name) {
      return Status(StatusCode::kBadInput,
                    path + ": tensor \"" + named.name + "\" has the contents of \"" + hash + "\"");
    }
  }
  return constants;
}

}  // namespace ingot::script
