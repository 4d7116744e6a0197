// The driver: a model's file in, an executable out. These are all stages, from file to file; compile.cc runs them in
// this order. Folders are those in compiler/, unless they begin with another.
//
//     stage               folder             what it does
//     1  import           importer/, script/ a model, or a module as text, becomes a module of typed graph functions
//     2  graph passes     transform/         calls of operators become calls of tensor functions, which are fused
//     3  memory plan      memory/            results get buffers, and buffers get places in one arena
//     and for each record of the target, by kernels/:
//     4  descriptors      codegen/           a tensor function gives the interface of its kernel
//     5  schedules        schedule/          the function gets the loops for that CPU
//     6  tensor passes    transform/tensor/  blocks become plain loops and vector expressions
//     7  code generation  codegen/           all functions become one image of machine code
//     and once again:
//     8  bytecode         lower/             graph functions become functions of the VM
//     9  container        vm/program/        program and images become a file (driver/write.h)
//
// LoadModel runs stage 1, OptimizeModule stage 2, CompileModule stages 2 to 8, and WriteProgramAs stage 9. vm-compile
// looks between them.
//
// The bytes of the executable depend only on the module's canonical text, the constants and the options: not on paths,
// threads, time or the machine (unless a target says "native").
#pragma once

#include <string>
#include <vector>

#include "compiler/driver/options.h"
#include "compiler/ir/module.h"
#include "compiler/transform/pass.h"
#include "runtime/status.h"
#include "vm/program/program.h"

namespace ingot::driver {

// Reads a model (driver/read_model.h) and verifies the module. Compiling the text of the module gives the same bytes.
Result<ir::IRModule> LoadModel(const std::string& path, const CompileOptions& options, const CompileObserver& observer);

// Does what LoadModel does with a module that it has read: infers types, brings it into A-normal form and the form of
// its own text, and verifies it. For modules that a builder made.
Result<ir::IRModule> PrepareModule(ir::IRModule module);

// Runs the graph passes. --emit=tir shows the result, scheduled.
Result<ir::IRModule> OptimizeModule(ir::IRModule module, const CompileOptions& options,
                                    const CompileObserver& observer);

// Every pass over the whole module: the graph passes, then those of the memory plan.
std::vector<transform::Pass> AllPasses();

// Compiles a loaded module to an executable in memory.
Result<vm::Program> CompileModule(const ir::IRModule& loaded, const CompileOptions& options,
                                  const CompileObserver& observer);

}  // namespace ingot::driver
