// Every builtin that writes a tensor, and every copy, stops soon after it is told to, however long one row is.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <deque>

#include "runtime/device_list.h"
#include "tests/vm/round_trip.h"
#include "vm/run/builtin_call.h"
#include "vm/run/context.h"
#include "vm/run/frame_words.h"

namespace ingot::vm {
namespace {

constexpr int64_t kRowLength = 12 << 20;  // elements: several of the largest pieces between two looks at the flag

// The arguments of one call by the roles of the builtin's row: a row of ones for each input (threes for "a", so that no
// result is zero), axis 0, no offsets.
class LongArguments {
 public:
  explicit LongArguments(Builtin builtin) : builtin_(builtin) {
    switch (builtin) {
      case Builtin::kStoreInt:
        out_dtype_ = DataType::Int(64);
        break;
      case Builtin::kQuantize:
        out_dtype_ = DataType::Int(8);
        break;
      case Builtin::kMatMul:
        dims_ = {1, kRowLength};
        break;
      default:
        break;
    }
    out_ = Filled(out_dtype_, dims_, 0);
  }

  std::span<uint8_t> written() const { return out_.mutable_bytes(); }

  // Every number is `number`.
  void AddTo(BuiltinCall& call, const BuiltinArgument& argument, double number) {
    const std::string_view name = argument.name;
    if (argument.accepts == Accepts::kTensor) {
      Tensor tensor = out_;
      if (name == "zero_point") {
        tensor = Filled(out_dtype_, {}, 0);
      } else if (name == "scale") {
        tensor = Filled(DataType::Float(32), {}, 1);
      } else if (!IsWritten(argument.role)) {
        const bool is_factor = builtin_ == Builtin::kMatMul && name == "a";
        tensor = Filled(DataType::Float(32), is_factor ? std::vector<int64_t>{1, 1} : dims_, name == "a" ? 3 : 1);
      }
      types_.push_back(Type::Tensor(tensor.dtype(), {tensor.dims().begin(), tensor.dims().end()}));
      call.AddTensor(types_.back(), nullptr, tensor.view());
      return;
    }
    int64_t word = name == "steps" || (builtin_ == Builtin::kStoreInt && name == "value") ? 1 : 0;
    if (argument.accepts == Accepts::kFloat) word = std::bit_cast<int64_t>(number);
    if (argument.accepts == Accepts::kObject) {
      sequence_ = std::get<Ref<Object>>(MakeTuple({Filled(DataType::Float(32), dims_, 1)}));
      word = WordOf(sequence_.get());
    }
    types_.push_back(argument.accepts == Accepts::kShape ? Type::Shape({DimCode(word)}) : Type::Int());
    call.Add(types_.back(), &words_.emplace_back(word));
  }

 private:
  Tensor Filled(DataType dtype, std::vector<int64_t> dims, int value) {
    const Tensor tensor = *Tensor::Allocate(dtype, dims);
    if (dtype == DataType::Float(32)) {
      std::ranges::fill(tensor.MutableElements<float>(), static_cast<float>(value));
    } else {
      REQUIRE(value == 0);
      std::ranges::fill(tensor.mutable_bytes(), uint8_t{0});
    }
    return tensors_.emplace_back(tensor);
  }

  const Builtin builtin_;
  DataType out_dtype_ = DataType::Float(32);
  std::vector<int64_t> dims_ = {kRowLength};
  std::deque<Type> types_;
  std::deque<int64_t> words_;
  std::deque<Tensor> tensors_;
  Ref<Object> sequence_;
  Tensor out_;
};

TEST_CASE("every builtin that writes a tensor stops in the middle of one long row") {
  const auto instance = *Instance::Create({});
  const Ref<MemoryPool> pool = *MemoryPool::Create(*CreateDevice(DeviceId{}));
  int num_builtins = 0;
  for (const BuiltinInfo& row : AllBuiltins()) {
    if (!IsWritten(row.arguments[0].role)) continue;
    CAPTURE(std::string(row.name));
    ++num_builtins;
    // Padding writes everything, then its input: with zeros the second time alone sets the flag.
    for (const double number : {0.0, 1.0}) {
      LongArguments arguments(row.builtin);
      const std::span<uint8_t> written = arguments.written();
      // The flag lies in the first quarter of what is written, so that the routine sets it on its way.
      auto* const flag = reinterpret_cast<std::atomic<int32_t>*>(written.data() + written.size() / 4 / 64 * 64);
      BuiltinCall call(host::Poll{flag}, *pool);
      for (const BuiltinArgument& argument : row.arguments) arguments.AddTo(call, argument, number);
      const Status status = RunBuiltin(row.builtin, call, *instance);
      CHECK(status.code() == StatusCode::kCancelled);
      const std::span<uint8_t> rest = written.last(written.size() / 4);
      CHECK(std::ranges::all_of(rest, [](uint8_t byte) { return byte == 0; }));
      if (row.builtin != Builtin::kPad) break;
    }
  }
  CHECK(num_builtins > 15);
}

TEST_CASE("a long copy ends at the deadline") {
  for (const std::string copy : {"copy r1, r0", "alloc r1, [1073741824]\n  copy_into r1, r0"}) {
    CAPTURE(copy);
    const auto executable = *Executable::FromProgram(
        *Instance::Create({}),
        test::Assembled(
            "ingot 1\nfunction @main export () -> (y: int8[1073741824]) {\n  register r0: int8[1073741824]\n"
            "  register r1: int8[1073741824]\n  alloc r0, [1073741824]\n  " +
            copy + "\n  return [r1]\n}\n"),
        "m", {});
    ContextOptions options;
    options.deadline_seconds = 0.01;
    const auto context = *Context::Create(executable, options);
    const Status status = context->Invoke(executable->program().functions[0], {}).status();
    CHECK(status.code() == StatusCode::kDeadlineExceeded);
  }
}

}  // namespace
}  // namespace ingot::vm
