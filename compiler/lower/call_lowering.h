// Calls: kernels, builtins, functions of the module, closures, functions of the embedding program, and the few
// operators that are instructions. Owns the lowering of sequences; calls leave nothing else behind.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "compiler/ir/expr.h"
#include "compiler/lower/memory_lowering.h"
#include "compiler/lower/operands.h"
#include "compiler/lower/program_lowering.h"
#include "compiler/lower/register_scope.h"
#include "compiler/lower/sequence_lowering.h"
#include "compiler/lower/type_matching.h"
#include "compiler/lower/value.h"
#include "compiler/op/registry.h"
#include "runtime/status.h"
#include "vm/program/builtins.h"
#include "vm/program/program_builder.h"

namespace ingot::lower {

class CallLowering {
 public:
  CallLowering(ProgramLowering& program, vm::FunctionBuilder& builder, RegisterScope& scope, Operands& operands,
               TypeMatching& matching, MemoryLowering& memory)
      : program_(program),
        builder_(builder),
        scope_(scope),
        operands_(operands),
        matching_(matching),
        memory_(memory),
        sequences_(builder, scope, operands) {}

  Result<Value> Lower(const ir::CallNode& call);

 private:
  Result<Value> LowerOpCall(const ir::CallNode& call, const op::OpRow& row);
  Result<Value> LowerKernelCall(const ir::CallNode& call, vm::KernelId kernel_id, const std::string& name);
  Result<Value> LowerBuiltinCall(const ir::CallNode& call, std::string_view name);
  Result<Value> LowerReport(const ir::CallNode& call, vm::Builtin builtin, std::vector<vm::RegisterId> args,
                            size_t first_value);
  Result<Value> LowerPrint(const ir::CallNode& call);
  Result<Value> LowerAssert(const ir::CallNode& call);
  Result<Value> LowerTensorToShape(const ir::CallNode& call);
  Result<Value> LowerShapeOf(const ir::CallNode& call);
  Result<Value> LowerFunctionCall(const ir::CallNode& call, const std::string& name);
  Result<Value> LowerClosureCall(const ir::CallNode& call, const ir::Expr& callee,
                                 const std::vector<ir::Expr>& arguments);
  Result<Value> LowerInvokeClosure(const ir::CallNode& call);
  Result<Value> LowerMakeClosure(const ir::CallNode& call);
  Result<Value> LowerExternalCall(const ir::CallNode& call, const std::string& name);

  // The registers of a call's results, and the types that the graph gives these results.
  struct CallResults {
    std::vector<vm::RegisterId> registers;
    std::vector<vm::Type> wanted;
  };
  Result<CallResults> MakeResults(const ir::CallNode& call, const std::vector<vm::Type>& produced);
  Result<Value> ValueOf(const ir::CallNode& call, const CallResults& results);
  // Converts arguments to objects where the callee's parameter is an object; an error if number or types do not fit.
  Status FitArguments(const ir::CallNode& call, const std::string& callee, const std::vector<vm::Type>& params,
                      std::vector<vm::RegisterId>& args);

  ProgramLowering& program_;
  vm::FunctionBuilder& builder_;
  RegisterScope& scope_;
  Operands& operands_;
  TypeMatching& matching_;
  MemoryLowering& memory_;
  SequenceLowering sequences_;
};

}  // namespace ingot::lower
