// What both generators of random modules draw from: choices, awkward names, dtypes and attributes.
#pragma once

#include <cstdint>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "compiler/ir/attrs.h"

namespace ingot::script::testing {

class RandomSource {
 public:
  explicit RandomSource(uint64_t seed) : engine_(seed) {}

  int64_t Below(int64_t n) { return static_cast<int64_t>(engine_() % static_cast<uint64_t>(n)); }
  bool Chance(int percent) { return Below(100) < percent; }
  template <typename T>
  const T& Pick(const std::vector<T>& items) {
    return items[static_cast<size_t>(Below(std::ssize(items)))];
  }

  // A name: plain ones, repeated ones, keywords and prefixes of the text form, and names that are no identifiers.
  std::string Name() {
    static const std::vector<std::string> kNames = {"x",     "lv",  "gv",  "i",  "v_i0",   "0_weight",  "input.1", "T",
                                                    "class", "cls", "R",   "n",  "a b",    "onnx::Add", "_",       "é",
                                                    "None",  "I",   "lv1", "in", "Module", "metadata"};
    return Pick(kNames);
  }
  std::string Text() {
    static const std::vector<std::string> kTexts = {"",  "a",   "two words", "quote\" and \\", "line\nbreak\t",
                                                    "µ", "# no"};
    return Pick(kTexts);
  }
  double Float() {
    static const std::vector<double> kFloats = {0.0,
                                                -0.0,
                                                1.0,
                                                -2.5,
                                                0.1,
                                                1e-30,
                                                3e38,
                                                std::numeric_limits<double>::infinity(),
                                                -std::numeric_limits<double>::infinity(),
                                                std::numeric_limits<double>::quiet_NaN()};
    return Pick(kFloats);
  }
  int64_t Int(DataType dtype) {
    if (dtype.is_bool()) return Below(2);
    if (dtype.is_uint()) return Below(dtype.bits < 8 ? 2 : 200);
    return dtype.bits < 8 ? Below(3) - 1 : Below(200) - 100;
  }
  ir::AttrValue Attr(int depth = 0) {
    switch (Below(depth < 2 ? 8 : 6)) {
      case 0:
        return {};
      case 1:
        return Chance(50);
      case 2:
        return Below(1000) - 500;
      case 3:
        return Float();
      case 4:
        return Text();
      case 5:
        return DataType::Float(16);
      case 6: {
        ir::AttrList list;
        for (int64_t i = Below(3); i > 0; --i) list.push_back(Attr(depth + 1));
        return list;
      }
      default: {
        ir::AttrDict dict;
        for (int64_t i = Below(3); i > 0; --i) dict.emplace_back("key" + std::to_string(i), Attr(depth + 1));
        return dict;
      }
    }
  }
  ir::Attrs Attributes() {
    ir::AttrDict items;
    for (int64_t i = Chance(30) ? 1 + Below(3) : 0; i > 0; --i) items.emplace_back("a" + std::to_string(i), Attr());
    return ir::Attrs(std::move(items));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace ingot::script::testing
