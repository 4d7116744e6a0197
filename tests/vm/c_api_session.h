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

struct SessionOptions {
  int32_t num_threads = 0;  // 0: the instance's default
  ingot_trust trust = INGOT_TRUST_NOTHING;
  const ingot_external* external = nullptr;  // the one that the context registers
};

// An executable opened from bytes, its instance and a context of it.
struct Session {
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  std::vector<std::byte> bytes;

  explicit Session(std::vector<std::byte> file, const SessionOptions& options = {}) : bytes(std::move(file)) {
    ingot_instance_options instance_options = INGOT_INSTANCE_OPTIONS_INIT;
    instance_options.num_threads = options.num_threads;
    REQUIRE(Take(ingot_instance_create(&instance_options, &instance)) == "ok");
    ingot_open_options open = INGOT_OPEN_OPTIONS_INIT;
    open.trust = options.trust;
    REQUIRE(Take(ingot_executable_open_memory(instance, bytes.data(), bytes.size(), "m", &open, &executable)) == "ok");
    ingot_context_options context_options = INGOT_CONTEXT_OPTIONS_INIT;
    context_options.externals = options.external;
    context_options.num_externals = options.external == nullptr ? 0 : 1;
    REQUIRE(Take(ingot_context_create(executable, &context_options, &context)) == "ok");
  }
  // A program as text.
  explicit Session(const std::string& text, const SessionOptions& options = {})
      : Session(vm::EncodeProgram(Assembled(text)).value(), options) {}
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
