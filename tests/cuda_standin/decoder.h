// From a parsed function to a Program: rows of the instruction table, places of operands, addresses of variables.
#pragma once

#include <map>
#include <string>

#include "runtime/status.h"
#include "tests/cuda_standin/program.h"

namespace ingot::ptx {

// Where variables of the module, and shared ones of its functions, are.
struct Symbols {
  std::map<std::string, uint64_t, std::less<>> module_variables;  // address in its own space
  std::map<std::string, int32_t, std::less<>> functions;          // index
  std::map<const Variable*, uint64_t> function_variables;         // shared ones of functions
};

Result<Program> Decode(const Module& module, const Function& function, const Symbols& symbols);

}  // namespace ingot::ptx
