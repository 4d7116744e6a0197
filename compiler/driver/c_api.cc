// The C API to compile (ingot/compiler.h): converts C options to the driver's, and keeps results behind an opaque
// handle. The library links libingot, whose ingot_status_create makes every status.
#include "compiler/driver/c_api.h"

#include <algorithm>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "compiler/driver/compile.h"
#include "compiler/driver/external_weights.h"
#include "compiler/driver/golden.h"
#include "compiler/driver/read_model.h"
#include "compiler/driver/write.h"
#include "compiler/transform/pass_options.h"
#include "runtime/utf8.h"

struct ingot_compiled {
  ingot::vm::Program program;
  std::vector<std::byte> bytes;
  std::string architecture;
  std::string model_path;  // with `options`: how it was compiled; golden cases are evaluated from them
  ingot::driver::CompileOptions options;
};

namespace ingot::driver {

Result<CompileOptions> Convert(const ingot_compile_options& given) {
  CompileOptions options;
  if (given.target != nullptr) options.target_text = given.target;
  INGOT_ASSIGN_OR_RETURN(options.target, ParseTarget(options.target_text));
  if (given.opt_level < 0 || given.opt_level > 3) {
    return Status(StatusCode::kInvalidArgument, "opt_level: expected 0 to 3, got " + std::to_string(given.opt_level));
  }
  options.opt_level = given.opt_level;
  options.threads =
      given.num_threads > 0 ? given.num_threads : static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  options.keep_prepare = given.keep_prepare != 0;
  if (given.params_path != nullptr) options.params_path = given.params_path;
  INGOT_RETURN_IF_ERROR(CheckTexts(given.input_shapes, given.num_input_shapes, "input_shapes"));
  INGOT_RETURN_IF_ERROR(CheckTexts(given.dims, given.num_dims, "dims"));
  INGOT_RETURN_IF_ERROR(CheckTexts(given.states, given.num_states, "states"));
  for (size_t i = 0; i < given.num_input_shapes; ++i) {
    INGOT_ASSIGN_OR_RETURN(importer::InputShape shape, importer::ParseInputShape(given.input_shapes[i]));
    options.import.input_shapes.push_back(std::move(shape));
  }
  for (size_t i = 0; i < given.num_dims; ++i) {
    INGOT_ASSIGN_OR_RETURN(importer::DimRange range, importer::ParseDimRange(given.dims[i]));
    options.import.dims.push_back(std::move(range));
  }
  if (given.softmax_output != nullptr) options.softmax_output = given.softmax_output;
  for (size_t i = 0; i < given.num_states; ++i) {
    INGOT_ASSIGN_OR_RETURN(auto state, ParseState(given.states[i]));
    options.states.push_back(std::move(state));
  }
  options.pass_options.rewrites.strict_math = given.strict_math != 0;
  if (given.fast_math != nullptr) {
    options.pass_options.rewrites.fast_math = transform::SplitList(given.fast_math);
  }
  INGOT_RETURN_IF_ERROR(transform::CheckPermissions(options.pass_options.rewrites));
  if (given.cache_max_bytes < 0) return Status(StatusCode::kInvalidArgument, "cache_max_bytes is negative");
  if (given.cache != nullptr) {
    options.cache.emplace();
    options.cache->directory = given.cache;
    if (given.cache_max_bytes > 0) options.cache->max_bytes = given.cache_max_bytes;
  }
  if (given.tuning_db != nullptr) options.tuning_db_path = given.tuning_db;
  return options;
}

CompileObserver Observe(const ingot_compile_options& given) {
  CompileObserver observer;
  if (given.log != nullptr) {
    observer.log = [given](std::string_view note) { given.log(given.user, std::string(note).c_str()); };
  }
  if (given.progress != nullptr) {
    observer.progress = [given](std::string_view step, int64_t done, int64_t total) {
      given.progress(given.user, std::string(step).c_str(), done, total);
    };
  }
  return observer;
}

namespace {

Status Compile(const char* model_path, const ingot_compile_options* given, ingot_compiled** out) {
  if (out == nullptr) return NullArgument("compiled");
  *out = nullptr;
  if (model_path == nullptr) return NullArgument("model_path");
  INGOT_ASSIGN_OR_RETURN(const ingot_compile_options copied, CopyOptions(given, INGOT_COMPILE_OPTIONS_INIT));
  INGOT_ASSIGN_OR_RETURN(CompileOptions options, Convert(copied));
  const CompileObserver observer = Observe(copied);
  INGOT_ASSIGN_OR_RETURN(const ir::IRModule module, LoadModel(model_path, options, observer));
  auto compiled = std::make_unique<ingot_compiled>();
  INGOT_ASSIGN_OR_RETURN(compiled->program, CompileModule(module, options, observer));
  if (copied.labels != nullptr) {
    if (!IsUtf8(copied.labels)) return Status(StatusCode::kBadInput, "the labels are no UTF-8 text");
    compiled->program.metadata["labels"] = copied.labels;
  }
  INGOT_ASSIGN_OR_RETURN(compiled->bytes, vm::EncodeProgram(compiled->program));
  const std::string& triple = options.target.variants.front().triple;
  compiled->architecture = triple.substr(0, triple.find('-'));
  compiled->model_path = model_path;
  compiled->options = std::move(options);
  *out = compiled.release();
  return Status();
}

Result<FileKind> KindOf(ingot_form form) {
  switch (form) {
    case INGOT_FORM_EXECUTABLE:
      return FileKind::kExecutable;
    case INGOT_FORM_PROGRAM:
      return FileKind::kProgram;
    case INGOT_FORM_OBJECT:
      return FileKind::kObject;
    case INGOT_FORM_SHARED:
      return FileKind::kShared;
  }
  return Status(StatusCode::kInvalidArgument,
                "an unknown form " + std::to_string(form));  // C callers may pass any number
}

Status Write(const ingot_compiled* compiled, ingot_form form, const char* path, const ingot_write_options* given) {
  if (compiled == nullptr) return NullArgument("compiled");
  if (path == nullptr) return NullArgument("path");
  INGOT_ASSIGN_OR_RETURN(const ingot_write_options options, CopyOptions(given, INGOT_WRITE_OPTIONS_INIT));
  WriteOptions write;
  write.architecture = compiled->architecture;
  INGOT_ASSIGN_OR_RETURN(write.kind, KindOf(form));
  if (options.compress != nullptr) {
    INGOT_ASSIGN_OR_RETURN(write.encoding, ParseCompression(options.compress));
  }
  if (options.secret_key != nullptr) write.secret_key = options.secret_key;
  if (options.launcher != nullptr) write.launcher = options.launcher;
  const formats::Tolerance tolerance{options.golden_relative_tolerance, options.golden_absolute_tolerance};
  INGOT_RETURN_IF_ERROR(CheckTexts(options.golden_cases, options.num_golden_cases, "golden_cases"));
  for (size_t i = 0; i < options.num_golden_cases; ++i) {
    INGOT_ASSIGN_OR_RETURN(
        vm::GoldenCase golden,
        MakeGoldenCase(compiled->program, compiled->model_path, compiled->options, options.golden_cases[i], tolerance));
    write.golden_cases.push_back(std::move(golden));
  }
  if (options.external_weights == nullptr) return WriteProgramAs(compiled->program, path, write);
  if (!compiled->options.keep_prepare) {
    return Status(StatusCode::kInvalidArgument, "external_weights: the model was compiled without keep_prepare");
  }
  vm::Program program = compiled->program;
  INGOT_RETURN_IF_ERROR(MoveWeightsToFile(program, options.external_weights, path));
  return WriteProgramAs(program, path, write);
}

}  // namespace
}  // namespace ingot::driver

using namespace ingot;          // NOLINT: this file implements a C header
using namespace ingot::driver;  // NOLINT

extern "C" {

ingot_status* ingot_compile(const char* model_path, const ingot_compile_options* options, ingot_compiled** compiled) {
  return Guard([&] { return Compile(model_path, options, compiled); });
}
const void* ingot_compiled_data(const ingot_compiled* compiled) {
  return compiled == nullptr ? nullptr : compiled->bytes.data();
}
size_t ingot_compiled_size(const ingot_compiled* compiled) { return compiled == nullptr ? 0 : compiled->bytes.size(); }
ingot_status* ingot_compiled_write(const ingot_compiled* compiled, ingot_form form, const char* path) {
  return Guard([&] { return Write(compiled, form, path, nullptr); });
}
ingot_status* ingot_compiled_write_with(const ingot_compiled* compiled, ingot_form form, const char* path,
                                        const ingot_write_options* options) {
  return Guard([&] { return Write(compiled, form, path, options); });
}
void ingot_compiled_release(ingot_compiled* compiled) { delete compiled; }

}  // extern "C"
