// call_saved: loads an executable that another program saved and calls a function c = f(a, b) of vectors in it, through
// the C API alone, with DLPack tensors over memory of its own, for the result too. The first call has float64 vectors,
// which the function has to refuse. Inputs and result go to a file.
//
//   call_saved MODULE.ingot FUNCTION LENGTH RESULTS.npz
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "formats/tensor_files.h"
#include "ingot/ingot.h"

namespace {

[[noreturn]] void Die(const std::string& message) {
  std::fprintf(stderr, "call_saved: error: %s\n", message.c_str());
  std::exit(1);
}

void Check(ingot_status* status) {
  if (status == nullptr) return;
  const std::string message = ingot_status_message(status);
  ingot_status_release(status);
  Die(message);
}

ingot_dl_tensor View(void* data, int64_t* length, uint8_t bits) {
  return {data, {INGOT_DL_CPU, 0}, 1, {2, bits, 1}, length, nullptr, 0};
}

ingot::formats::NamedTensor Named(const char* name, const std::vector<float>& values) {
  const std::vector<int64_t> dims{static_cast<int64_t>(values.size())};
  const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
  auto tensor = ingot::Tensor::FromBytes(ingot::DataType::Float(32), dims, {bytes, values.size() * sizeof(float)});
  if (!tensor.ok()) Die(tensor.status().message());
  return {name, *tensor};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) Die("usage: call_saved MODULE.ingot FUNCTION LENGTH RESULTS.npz");
  int64_t length = std::atoll(argv[3]);
  if (length < 1) Die("LENGTH must be at least 1");
  ingot_instance* instance = nullptr;
  ingot_executable* executable = nullptr;
  ingot_context* context = nullptr;
  const ingot_function* function = nullptr;
  ingot_open_options options = INGOT_OPEN_OPTIONS_INIT;
  options.trust = INGOT_TRUST_FILE;
  Check(ingot_instance_create(nullptr, &instance));
  Check(ingot_executable_open(instance, argv[1], &options, &executable));
  Check(ingot_executable_find_function(executable, argv[2], &function));
  Check(ingot_context_create(executable, nullptr, &context));
  std::printf("%s%s\n", argv[2], ingot_function_signature(function));

  const auto count = static_cast<size_t>(length);
  std::vector<double> wide(count, 1.0);
  ingot_dl_tensor wrong = View(wide.data(), &length, 64);
  const ingot_dl_tensor* wrong_arguments[] = {&wrong, &wrong, &wrong};
  ingot_status* refused = ingot_invoke_into(context, function, wrong_arguments, 3, nullptr, 0);
  if (refused == nullptr) Die("float64 vectors were taken");
  std::printf("refused: %s\n", ingot_status_message(refused));
  ingot_status_release(refused);

  std::vector<float> a(count), b(count), c(count);
  uint32_t state = 1;
  for (size_t i = 0; i < count; ++i) {
    for (float* value : {&a[i], &b[i]}) {
      state = state * 1664525U + 1013904223U;
      *value = static_cast<float>(state >> 8) / static_cast<float>(1 << 24);
    }
  }
  ingot_dl_tensor x = View(a.data(), &length, 32), y = View(b.data(), &length, 32), z = View(c.data(), &length, 32);
  const ingot_dl_tensor* arguments[] = {&x, &y, &z};  // the last one is written
  Check(ingot_invoke_into(context, function, arguments, 3, nullptr, 0));
  const std::vector<ingot::formats::NamedTensor> results{Named("a", a), Named("b", b), Named("c", c)};
  const ingot::Status saved = ingot::formats::WriteTensorFile(argv[4], results);
  if (!saved.ok()) Die(saved.message());

  ingot_context_release(context);
  ingot_executable_release(executable);
  ingot_instance_release(instance);
  return 0;
}
