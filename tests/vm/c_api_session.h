// What tests of the C API share: a program from text with an instance and a context, tensors as the API takes them, and
// statuses as text.
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "ingot/ingot.h"
#include "tests/vm/round_trip.h"

namespace ingot::test {

// "ok", or "CODE: MESSAGE".
inline std::string Take(ingot_status* status) {
  std::string out =
      status == nullptr ? "ok" : std::to_string(ingot_status_get_code(status)) + ": " + ingot_status_message(status);
  ingot_status_release(status);
  return out;
}

// A compact tensor of the host.
template <typename T>
struct Array {
  std::vector<T> values;
  std::vector<int64_t> shape;
  ingot_dl_tensor tensor{};
  Array(std::vector<T> v, std::vector<int64_t> s) : values(std::move(v)), shape(std::move(s)) {
    const ingot_dl_data_type dtype = {static_cast<uint8_t>(std::is_floating_point_v<T> ? 2 : 0), sizeof(T) * 8, 1};
    tensor = {values.data(), {INGOT_DL_CPU, 0}, static_cast<int32_t>(shape.size()), dtype, shape.data(), nullptr, 0};
  }
  Array(const Array&) = delete;
};

// A program without kernels.
struct Session {
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  std::vector<std::byte> bytes;

  explicit Session(const char* text) : bytes(vm::EncodeProgram(Assembled(text)).value()) {
    REQUIRE(Take(ingot_instance_create(nullptr, &instance)) == "ok");
    REQUIRE(Take(ingot_executable_open_memory(instance, bytes.data(), bytes.size(), "m", nullptr, &executable)) ==
            "ok");
    REQUIRE(Take(ingot_context_create(executable, nullptr, &context)) == "ok");
  }
  Session(const Session&) = delete;
  ~Session() {
    ingot_context_release(context);
    ingot_executable_release(executable);
    ingot_instance_release(instance);
  }
  const ingot_function* Find(const char* name) {
    const ingot_function* function = nullptr;
    REQUIRE(Take(ingot_executable_find_function(executable, name, &function)) == "ok");
    return function;
  }
};

}  // namespace ingot::test
