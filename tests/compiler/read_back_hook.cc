#include "tests/compiler/read_back_hook.h"

#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <unordered_set>
#include <utility>

#include "compiler/codegen/kernel_descriptor.h"
#include "compiler/interp/interpreter.h"
#include "compiler/ir/verify_prim_func.h"
#include "compiler/op/verifier.h"
#include "compiler/te/tensor.h"
#include "compiler/transform/pass.h"
#include "compiler/transform/tensor/lowered.h"
#include "tests/compiler/round_trip.h"

// INGOT_WRAP_* are the mangled names, which tests/CMakeLists.txt gives to the linker and to this file. A function whose
// signature changes is no longer found under its name, and the test at the end of this file fails.

namespace ingot {
namespace {

using script::testing::GetReadBackCounts;
using script::testing::ReadBackDifference;

thread_local bool in_pipeline = false;  // where each pass is looked at already

// The functions and the module that were read back last: nodes never change, so that the same ones need not be again.
// They are kept alive, so that no other one takes their place.
class ReadBackBefore {
 public:
  bool operator()(const ir::PrimFunc& function) {
    const std::lock_guard lock(mutex_);
    if (functions_.size() >= kMost) functions_.clear();
    return !functions_.insert(function).second;
  }
  bool operator()(const ir::IRModule& module) {
    const std::lock_guard lock(mutex_);
    const bool is_same = module.attrs().empty() && module_.attrs().empty() &&
                         std::ranges::equal(module, module_, [](const auto& a, const auto& b) {
                           return a.var.same_as(b.var) && a.function.same_as(b.function);
                         });
    if (!is_same) module_ = module;
    return is_same;
  }

 private:
  static constexpr size_t kMost = 4096;
  std::mutex mutex_;
  std::unordered_set<ir::PrimFunc, ir::RefHash, ir::RefSame> functions_;
  ir::IRModule module_;
};
ReadBackBefore read_back_before;

void Check(std::string_view where, const auto& subject, std::atomic<int64_t>& count) {
  ++count;
  if (read_back_before(subject)) return;
  const std::string difference = ReadBackDifference(subject);
  if (!difference.empty()) FAIL_CHECK(where << " reads back differently: " << difference);
}

// A module that is built to be refused need not print.
void CheckFunction(std::string_view where, const ir::PrimFunc& function, std::atomic<int64_t>& count) {
  if (ir::VerifyPrimFunc(function).ok()) Check(where, function, count);
}

class CheckPasses : public transform::PassInstrument {
 public:
  Status AfterPass(const transform::Pass& pass, const ir::IRModule& module, double) override {
    Check("after " + pass.name, module, GetReadBackCounts().passes);
    return Status();
  }
};

}  // namespace

namespace script::testing {
ReadBackCounts& GetReadBackCounts() {
  static ReadBackCounts counts;
  return counts;
}
}  // namespace script::testing

namespace transform {

Result<ir::IRModule> RealRunPasses(ir::IRModule module, std::span<const Pass> passes,
                                   PassContext& context) asm("__real_" INGOT_WRAP_RUN_PASSES);
Result<ir::IRModule> WrapRunPasses(ir::IRModule module, std::span<const Pass> passes,
                                   PassContext& context) asm("__wrap_" INGOT_WRAP_RUN_PASSES);
Result<ir::IRModule> WrapRunPasses(ir::IRModule module, std::span<const Pass> passes, PassContext& context) {
  CheckPasses check;
  context.instruments.push_back(&check);
  const bool was_in_pipeline = std::exchange(in_pipeline, true);
  Result<ir::IRModule> result = RealRunPasses(std::move(module), passes, context);
  in_pipeline = was_in_pipeline;
  std::erase(context.instruments, &check);
  return result;
}

Result<ir::PrimFunc> RealLowerPrimFunc(const ir::PrimFunc& function, const Target& target, AfterTensorPass after,
                                       void* data) asm("__real_" INGOT_WRAP_LOWER_PRIM_FUNC);
Result<ir::PrimFunc> WrapLowerPrimFunc(const ir::PrimFunc& function, const Target& target, AfterTensorPass after,
                                       void* data) asm("__wrap_" INGOT_WRAP_LOWER_PRIM_FUNC);
Result<ir::PrimFunc> WrapLowerPrimFunc(const ir::PrimFunc& function, const Target& target, AfterTensorPass after,
                                       void* data) {
  CheckFunction("a function to lower", function, GetReadBackCounts().lowered);
  Result<ir::PrimFunc> result = RealLowerPrimFunc(function, target, after, data);
  if (result.ok()) CheckFunction("a lowered function", *result, GetReadBackCounts().lowered);
  return result;
}

}  // namespace transform

namespace op {

Status RealVerifyModule(const ir::IRModule& module, bool require_types) asm("__real_" INGOT_WRAP_VERIFY_MODULE);
Status WrapVerifyModule(const ir::IRModule& module, bool require_types) asm("__wrap_" INGOT_WRAP_VERIFY_MODULE);
Status WrapVerifyModule(const ir::IRModule& module, bool require_types) {
  Status status = RealVerifyModule(module, require_types);
  if (status.ok() && require_types && !in_pipeline) Check("a module", module, GetReadBackCounts().modules);
  return status;
}

}  // namespace op

namespace te {

ir::PrimFunc RealCreatePrimFunc(std::span<const Tensor> args,
                                std::vector<ir::PrimVar> scalars) asm("__real_" INGOT_WRAP_CREATE_PRIM_FUNC);
ir::PrimFunc WrapCreatePrimFunc(std::span<const Tensor> args,
                                std::vector<ir::PrimVar> scalars) asm("__wrap_" INGOT_WRAP_CREATE_PRIM_FUNC);
ir::PrimFunc WrapCreatePrimFunc(std::span<const Tensor> args, std::vector<ir::PrimVar> scalars) {
  ir::PrimFunc function = RealCreatePrimFunc(args, std::move(scalars));
  CheckFunction("a tensor expression's function", function, GetReadBackCounts().created);
  return function;
}

}  // namespace te

namespace codegen {

Result<KernelDescription> RealDescribeKernel(std::string name,
                                             const ir::PrimFunc& function) asm("__real_" INGOT_WRAP_DESCRIBE_KERNEL);
Result<KernelDescription> WrapDescribeKernel(std::string name,
                                             const ir::PrimFunc& function) asm("__wrap_" INGOT_WRAP_DESCRIBE_KERNEL);
Result<KernelDescription> WrapDescribeKernel(std::string name, const ir::PrimFunc& function) {
  CheckFunction("kernel " + name, function, GetReadBackCounts().described);
  return RealDescribeKernel(std::move(name), function);
}

}  // namespace codegen

namespace interp {

Status RealInterpret(const ir::PrimFunc& function, std::span<const HostBuffer> buffers,
                     std::span<const int64_t> scalars,
                     const InterpretOptions& options) asm("__real_" INGOT_WRAP_INTERPRET);
Status WrapInterpret(const ir::PrimFunc& function, std::span<const HostBuffer> buffers,
                     std::span<const int64_t> scalars,
                     const InterpretOptions& options) asm("__wrap_" INGOT_WRAP_INTERPRET);
Status WrapInterpret(const ir::PrimFunc& function, std::span<const HostBuffer> buffers,
                     std::span<const int64_t> scalars, const InterpretOptions& options) {
  CheckFunction("an interpreted function", function, GetReadBackCounts().interpreted);
  return RealInterpret(function, buffers, scalars, options);
}

}  // namespace interp

namespace {

TEST_CASE("what tests and passes make is read back, whoever calls") {
  const script::testing::ReadBackCounts& counts = GetReadBackCounts();
  const auto grows = [](const std::atomic<int64_t>& count, int64_t by, const auto& call) {
    const int64_t before = count;
    call();
    CHECK(count.load() >= before + by);
  };
  const te::Tensor x = te::Placeholder({ir::Int64(4)}, DataType::Float(32), "x");
  const te::Tensor y = te::Compute(
      x.shape(), [&](const te::Indices& i) { return x(i) + ir::FloatImm(DataType::Float(32), 1); }, "y");
  ir::PrimFunc function;
  grows(counts.created, 1, [&] { function = te::CreatePrimFunc({x, y}); });
  ir::IRModule module;
  module.Add("main", function);
  grows(counts.modules, 1, [&] { CHECK(op::VerifyModule(module).ok()); });
  transform::PassContext context;
  const std::vector<std::string> names{"normalize", "annotate_fusion_class"};
  const std::vector<transform::Pass> passes = transform::FindPasses(names).value();
  grows(counts.passes, 2, [&] { CHECK(transform::RunPasses(module, passes, context).ok()); });
  CHECK(context.instruments.empty());
  const Target target = ParseTarget("cpu:x86-64-v3").value().variants[0];
  grows(counts.lowered, 2, [&] { CHECK(transform::LowerPrimFunc(function, target).ok()); });
  grows(counts.described, 1, [&] { CHECK(codegen::DescribeKernel("main", function).ok()); });
  std::vector<float> in{1, 2, 3, 4}, out(4);
  const std::vector<interp::HostBuffer> buffers{
      {DataType::Float(32), {4}, std::as_writable_bytes(std::span(in)), true},
      {DataType::Float(32), {4}, std::as_writable_bytes(std::span(out)), false}};
  grows(counts.interpreted, 1, [&] { CHECK(interp::Interpret(function, buffers, {}, {}).ok()); });
}

}  // namespace
}  // namespace ingot
