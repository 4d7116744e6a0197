// What the files of the compiler's C API share: statuses, options structs, and how a compilation is told what to do.
#pragma once

#include <cstring>
#include <string>

#include "compiler/driver/options.h"
#include "ingot/compiler.h"
#include "runtime/caught_status.h"
#include "runtime/status.h"

namespace ingot::driver {

inline ingot_status* ToC(const Status& status) {
  if (status.ok()) return nullptr;
  return ingot_status_create(static_cast<ingot_status_code>(status.code()), status.message().c_str());
}

// Runs a function that returns a Status; exceptions of libraries become statuses here.
template <typename Function>
ingot_status* Guard(Function function) {
  try {
    return ToC(function());
  } catch (...) {
    return ToC(CaughtStatus());
  }
}

inline Status NullArgument(const char* name) {
  return Status(StatusCode::kInvalidArgument, std::string("the argument \"") + name + "\" is NULL");
}

// Fails where a list of texts, or one of them, is not there.
inline Status CheckTexts(const char* const* texts, size_t count, const char* name) {
  for (size_t i = 0; i < count; ++i) {
    if (texts == nullptr || texts[i] == nullptr) return NullArgument(name);
  }
  return Status();
}

// Copies an options struct of this version of the header or an older one; fields that an older one lacks keep their
// defaults.
template <typename Options>
Result<Options> CopyOptions(const Options* given, Options options) {
  if (given == nullptr) return options;
  if (given->struct_size < sizeof(size_t) || given->struct_size > sizeof options) {
    return Status(StatusCode::kInvalidArgument, "struct_size of the options is not one of this library's");
  }
  std::memcpy(&options, given, given->struct_size);
  return options;
}

Result<CompileOptions> Convert(const ingot_compile_options& given);
CompileObserver Observe(const ingot_compile_options& given);

}  // namespace ingot::driver
