// Compares table by table. Rows are paired by name, constants without a name by position; functions are compared as
// disassembled text.
#include "vm/tools/program_diff.h"

#include <algorithm>
#include <functional>
#include <map>
#include <optional>

#include "runtime/tensor.h"
#include "vm/text/disassembler.h"

namespace ingot::vm {
namespace {

bool SameBytes(const SharedBytes& a, const SharedBytes& b) { return std::ranges::equal(a.bytes, b.bytes); }

std::vector<std::string> LinesOf(const std::string& text) {
  std::vector<std::string> lines;
  for (size_t begin = 0; begin < text.size();) {
    const size_t end = std::min(text.find('\n', begin), text.size());
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

class Diff {
 public:
  Diff(const Program& a, const Program& b)
      : a_(a), b_(b), text_of_a_(FunctionDisassembler(a)), text_of_b_(FunctionDisassembler(b)) {}

  std::vector<std::string> Run() {
    Metadata();
    if (a_.devices != b_.devices) Say("devices: " + DevicesText(a_) + " -> " + DevicesText(b_));
    Named("external", a_.externals, b_.externals, [&](const External& a, const External& b) {
      if (!(a == b)) Say("external \"" + a.name + "\": " + a.signature.ToString() + " -> " + b.signature.ToString());
    });
    Named("function", a_.functions, b_.functions, [&](const Function& a, const Function& b) { Functions(a, b); });
    Named("kernel", a_.kernels, b_.kernels, [&](const Kernel& a, const Kernel& b) { Kernels(a, b); });
    Named("image", a_.images, b_.images, [&](const KernelImage& a, const KernelImage& b) { Images(a, b); });
    Constants();
    Named("state", a_.states, b_.states, [&](const State& a, const State& b) {
      if (!(a == b)) {
        Say("state \"" + a.name + "\": " + ShapeToString(a.dtype, a.dims) + " -> " + ShapeToString(b.dtype, b.dims) +
            ", or another device, initial value or growth");
      }
    });
    Weights();
    return std::move(lines_);
  }

 private:
  void Say(std::string line) { lines_.push_back(std::move(line)); }

  static std::string DevicesText(const Program& program) {
    std::string text;
    for (const VirtualDevice& device : program.devices) {
      text += (text.empty() ? "" : ", ") + device.kind + " " + std::to_string(device.index);
    }
    return text;
  }

  void Metadata() {
    for (const auto& [key, value] : a_.metadata) {
      const auto other = b_.metadata.find(key);
      if (other == b_.metadata.end()) {
        Say("metadata \"" + key + "\": only in the first");
      } else if (other->second != value) {
        Say("metadata \"" + key + "\": " + Quote(value) + " -> " + Quote(other->second));
      }
    }
    for (const auto& [key, value] : b_.metadata) {
      if (!a_.metadata.contains(key)) Say("metadata \"" + key + "\": only in the second");
    }
  }

  // Pairs rows by their names. Of equal names, which no verified program has, the last row counts.
  template <typename Row, typename Compare>
  void Named(const std::string& what, const std::vector<Row>& a, const std::vector<Row>& b, Compare compare) {
    std::map<std::string, const Row*> others;
    for (const Row& row : b) others[row.name] = &row;
    for (const Row& row : a) {
      const auto other = others.find(row.name);
      if (other == others.end()) {
        Say(what + " \"" + row.name + "\": only in the first");
        continue;
      }
      compare(row, *other->second);
      others.erase(other);
    }
    for (const Row& row : b) {
      if (others.contains(row.name)) Say(what + " \"" + row.name + "\": only in the second");
    }
  }

  void Functions(const Function& a, const Function& b) {
    const std::string what = "function \"" + a.name + "\": ";
    if (!(a.signature == b.signature) || a.exported != b.exported) {
      Say(what + a.signature.ToString() + (a.exported ? " exported" : "") + " -> " + b.signature.ToString() +
          (b.exported ? " exported" : ""));
    }
    if (!(a.plan == b.plan)) {
      Say(what + "another memory plan (" + std::to_string(a.plan.entries.size()) + " entries -> " +
          std::to_string(b.plan.entries.size()) + ")");
    }
    if (!(a.notes == b.notes)) Say(what + "another debug map");
    // The text has names instead of numbers, so that rows which moved in a table make no difference.
    const std::vector<std::string> left = LinesOf(text_of_a_(a)), right = LinesOf(text_of_b_(b));
    const auto [one, two] = std::ranges::mismatch(left, right);
    if (one == left.end() && two == right.end()) return;
    const auto text = [](const auto& lines, auto at) {
      return at == lines.end() ? std::string("nothing") : "\"" + *at + "\"";
    };
    Say(what + std::to_string(a.code.size()) + " instructions -> " + std::to_string(b.code.size()) +
        "; the first line that differs: " + text(left, one) + " -> " + text(right, two));
  }

  void Kernels(const Kernel& a, const Kernel& b) {
    const std::string what = "kernel \"" + a.name + "\": ";
    if (a.params != b.params || a.ints != b.ints) Say(what + "other parameters");
    if (a.device != b.device || a.effects != b.effects || a.launches != b.launches || a.externals != b.externals ||
        a.messages != b.messages) {
      Say(what + "another device, launches, effects or messages");
    }
    for (const auto& [name, member] : {std::pair("workspace", &Kernel::workspace), std::pair("flops", &Kernel::flops),
                                       std::pair("bytes", &Kernel::bytes)}) {
      std::vector<std::string> names;
      for (const KernelInt& scalar : a.ints) names.push_back(scalar.name);
      if (!(a.*member == b.*member)) {
        Say(what + name + " " + (a.*member).ToString(names) + " -> " + (b.*member).ToString({}));
      }
    }
    if (a.variants != b.variants) {
      Say(what + std::to_string(a.variants.size()) + " variants -> " + std::to_string(b.variants.size()) +
          ", or other places in their images");
    }
  }

  void Images(const KernelImage& a, const KernelImage& b) {
    const bool same_head = a.format == b.format && a.arch == b.arch && a.features == b.features;
    if (same_head && SameBytes(a.bytes, b.bytes)) return;
    Say("image \"" + a.name + "\": " + std::to_string(a.bytes.size()) + " bytes for " + a.arch + " -> " +
        std::to_string(b.bytes.size()) + " bytes for " + b.arch + ", other code");
  }

  // Pairs constants by name, those without one by position. Several of one name are compared in order.
  void Constants() {
    std::map<std::string, std::vector<const Constant*>> others;
    const auto key = [](const Constant& constant, size_t i) {
      return constant.name.empty() ? "#" + std::to_string(i) : "\"" + constant.name + "\"";
    };
    for (size_t i = b_.constants.size(); i-- > 0;) others[key(b_.constants[i], i)].push_back(&b_.constants[i]);
    for (size_t i = 0; i < a_.constants.size(); ++i) {
      const Constant& a = a_.constants[i];
      const std::string what = "constant " + key(a, i) + ": ";
      std::vector<const Constant*>& found = others[key(a, i)];
      if (found.empty()) {
        Say(what + "only in the first");
        continue;
      }
      const Constant& b = *found.back();
      found.pop_back();
      const std::string left = ShapeToString(a.dtype, a.dims), right = ShapeToString(b.dtype, b.dims);
      if (left != right) {
        Say(what + left + " -> " + right);
      } else if (!(a.prepared_by == b.prepared_by)) {
        Say(what + "prepared in another way");
      } else if (!SameBytes(a.bytes, b.bytes)) {
        Say(what + "other elements");
      }
    }
    for (const auto& [name, left] : others) {
      for (size_t i = 0; i < left.size(); ++i) Say("constant " + name + ": only in the second");
    }
  }

  void Weights() {
    if (a_.weight_files != b_.weight_files) {
      Say("files of weights: " + std::to_string(a_.weight_files.size()) + " -> " +
          std::to_string(b_.weight_files.size()) + ", or other names, sizes or contents");
    }
    if (a_.weights != b_.weights) {
      Say("replaceable weights: " + std::to_string(a_.weights.size()) + " -> " + std::to_string(b_.weights.size()) +
          ", or other places");
    }
  }

  const Program& a_;
  const Program& b_;
  const std::function<std::string(const Function&)> text_of_a_, text_of_b_;
  std::vector<std::string> lines_;
};

}  // namespace

std::vector<std::string> DiffPrograms(const Program& a, const Program& b) { return Diff(a, b).Run(); }

}  // namespace ingot::vm
