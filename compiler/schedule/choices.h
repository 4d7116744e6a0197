// Choices: numbers that default rules choose (heights of tiles, lengths of strips, unrolled steps) and that tuning may
// choose otherwise. A rule names what it chooses, what it would take, and what else is legal; what follows from the
// number is up to the rule, so that each set of choices gives a trace of its own. Names hold no names of blocks, so
// that choices mean the same in every function of one structure.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace ingot::schedule {

// Of what rules ask for, by name; what is not there is chosen by default.
using Chosen = std::map<std::string, int64_t>;

struct Choice {
  std::string name;  // "gemm.rows"; of the second product of a function "gemm.rows.2"
  int64_t value = 0;
  int64_t usual = 0;                // what the rule takes by default
  std::vector<int64_t> candidates;  // in ascending order, the usual one among them
};

}  // namespace ingot::schedule
