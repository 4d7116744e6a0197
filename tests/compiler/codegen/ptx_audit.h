// Every PTX that a test of ptx_tests makes is held to what code for CUDA has to be. No test asks for this, so none can
// forget it: the linker sends the calls of codegen::CompilePtx, the tests' and the compiler's own, through ptx_audit.cc
// (--wrap in tests/CMakeLists.txt), which checks what comes out and fails the test that runs. ptxas, where one is found,
// is asked about all of it when the tests have ended (ptx_tests_main.cc), since many kernels at once take less time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "compiler/codegen/ptx.h"
#include "tests/cuda_standin/machine.h"

namespace ingot::codegen::testing {

// What is wrong with the code, a line each. `image` has its LLVM text.
std::vector<std::string> FaultsOf(std::span<const KernelSource> sources, const Target& target, const PtxImage& image);

// The launches that the interpreter made of an entry of the text left these basic blocks out (ptx::KernelFacts).
void NoteBlocks(const std::string& ptx, const ptx::KernelFacts& facts);

// The text of those that none has run so far, of all entries, but for divisions whose numbers need more than 32 bits and
// the ways to them.
std::vector<std::string> BlocksNotRun(const std::string& ptx);

// Everything that waits for ptxas, and what is known of all kernels together. Returns the number of faults, which it
// prints.
int FinishAudit();

}  // namespace ingot::codegen::testing
