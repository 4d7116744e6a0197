// Opens the section of the second program, and compares the functions of both.
#include "vm/program/device_program.h"

#include <algorithm>

#include "runtime/text.h"

namespace ingot::vm {
namespace {

void ForgetDevices(std::vector<Type>& types) {
  for (Type& type : types) {
    type.device = 0;
    ForgetDevices(type.elements);
    ForgetDevices(type.results);
  }
}

// The signature with everything on one device.
Signature OnOneDevice(Signature signature) {
  for (std::vector<NamedType>* list : {&signature.params, &signature.results}) {
    for (NamedType& named : *list) {
      named.type.device = 0;
      ForgetDevices(named.type.elements);
      ForgetDevices(named.type.results);
    }
  }
  return signature;
}

}  // namespace

Result<std::optional<formats::Container>> OpenDeviceProgram(const formats::Container& file, ThreadPool* pool) {
  const formats::Section* const section = file.Find(kDeviceProgramSection);
  if (section == nullptr) return std::optional<formats::Container>();
  if (section->codec != formats::Codec::kNone) {
    return Status(StatusCode::kCorrupt, {"section ", kDeviceProgramName, ": is not stored raw"});
  }
  formats::ContainerOptions options;
  options.pool = pool;
  INGOT_ASSIGN_OR_RETURN(SharedBytes bytes, file.Read(*section));
  Result<formats::Container> container = formats::Container::Open(std::move(bytes), options);
  if (!container.ok()) return std::move(container).status().WithContext(kDeviceProgramName);
  return std::optional<formats::Container>(std::move(*container));
}

Status CheckSameFunctions(const Program& program, const Program& for_gpu) {
  const auto fail = [](const Function& function, Text what) {
    return Status(StatusCode::kCorrupt, {kDeviceProgramName, ": function \"", function.name, "\"", what});
  };
  // A function is looked for behind the one that was found last, since a writer has both programs in one order. The
  // work for all others is bounded.
  int64_t steps_left = 1 << 24;
  size_t next = 0;
  const auto find = [&](const Program& in, const Function& like) -> const Function* {
    const size_t count = in.functions.size();
    for (size_t i = 0; i < count && --steps_left >= 0; ++i, ++next) {
      const Function& function = in.functions[next % count];
      if (function.exported && function.name == like.name) return &function;
    }
    return nullptr;
  };
  for (const Function& function : for_gpu.functions) {
    if (function.exported && find(program, function) == nullptr) return fail(function, " is not one of the file's");
  }
  next = 0;
  for (const Function& function : program.functions) {
    if (!function.exported) continue;
    const Function* const peer = find(for_gpu, function);
    if (peer == nullptr) return fail(function, " is missing");
    if (OnOneDevice(function.signature) != OnOneDevice(peer->signature)) {
      return fail(function, " has another signature than the file's");
    }
  }
  return Status();
}

}  // namespace ingot::vm
