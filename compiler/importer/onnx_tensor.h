// Tensors of an ONNX file as constants: dense ones, wherever their bytes are (a typed field, raw bytes, another file),
// and sparse ones made dense. Takes protobuf messages, so only onnx_model.cc includes this. Bytes in the right form are
// not copied: they stay in the message, in the model's mapped file or in the mapped file of external data.
#pragma once

#include <onnx/onnx_pb.h>

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/importer/onnx_model.h"
#include "formats/file.h"
#include "runtime/shared_bytes.h"
#include "runtime/status.h"

namespace ingot::importer {

// Numbers strings in the order in which they first occur.
class StringTable {
 public:
  // Returns a constant of kStringElement; kUnsupportedModel for bytes that are no UTF-8. what: as in TensorSource.
  template <typename Strings>
  Result<ConstantDataPtr> Constant(const Strings& texts, std::vector<int64_t> dims, const std::string& what) {
    std::vector<std::string> copies(texts.begin(), texts.end());
    return ConstantOf(std::move(copies), std::move(dims), what);
  }
  std::vector<std::string> TakeStrings() { return std::move(strings_); }

 private:
  Result<ConstantDataPtr> ConstantOf(std::vector<std::string> texts, std::vector<int64_t> dims,
                                     const std::string& what);

  std::vector<std::string> strings_;
  std::unordered_map<std::string, int64_t> places_;
};

// Reads the tensors of one model; knows the files that hold external data.
class TensorSource {
 public:
  // directory: the folder of the model's file; empty: external data is refused.
  TensorSource(std::string directory, std::shared_ptr<StringTable> strings)
      : directory_(std::move(directory)), strings_(std::move(strings)) {}

  // owner keeps the message alive. raw: the tensor's raw bytes, if they were left out of the message. what: the
  // tensor's name in errors, such as `"weight"`.
  Result<ConstantDataPtr> Read(const onnx::TensorProto& tensor, const std::shared_ptr<const void>& owner,
                               const std::string& what, const SharedBytes* raw);
  Result<ConstantDataPtr> ReadSparse(const onnx::SparseTensorProto& sparse, const std::shared_ptr<const void>& owner,
                                     const std::string& what);

 private:
  Result<SharedBytes> External(const onnx::TensorProto& tensor, int64_t size_bytes, const std::string& what);

  std::string directory_;
  std::shared_ptr<StringTable> strings_;
  std::map<std::string, SharedBytes> files_;  // by location
  int64_t dense_left_ = int64_t{64} << 20;    // bytes that sparse tensors may still take beyond what they are worth
};

}  // namespace ingot::importer
