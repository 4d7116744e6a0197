// Every function of ingot.h is called with NULL, and with values that hold NULL, for each of its pointers in turn: it
// refuses them or finds nothing, and does not crash; and what is given by its address is after a failure what the
// header says. What a function takes follows from its type, so that a new one
// only has to be listed; the test reads the header and fails where one is not.
#include <doctest/doctest.h>

#include <cstring>
#include <fstream>
#include <regex>
#include <set>
#include <sstream>

#include "ingot/ingot.h"
#include "tests/golden.h"
#include "tests/vm/c_api_session.h"

namespace ingot {
namespace {

using test::Array;
using test::Take;

constexpr const char* kProgram = R"(ingot 1
metadata "key" = "value"
state @s float32[4] device 0
function @main export [n](x: float32[n]) -> (y: float32[n]) {
  register r2: float32[n]
  alloc_output r2, 0, [n]
  copy_into r2, r1
  return [r2]
}
)";

// Objects for arguments that are fine, and room for what functions give.
struct Given {
  test::Session session{kProgram, {.num_threads = 1}};
  const ingot_function* function = session.Find("main");
  Array<float> array{{1, 2, 3, 4}, {4}};
  ingot_value argument{};
  ingot_dl_managed_tensor_versioned no_tensor{};
  ingot_dl_managed_tensor no_legacy_tensor{};
  ingot_tensor* tensor = nullptr;
  ingot_status* status = ingot_status_create(INGOT_FAILED, "failed");
  // Made anew for each call.
  ingot_value results[2] = {};
  ingot_task* task = nullptr;
  union {
    void* any = nullptr;
    ingot_instance* instance;
    ingot_executable* executable;
    ingot_context* context;
    ingot_tensor* tensor;
    ingot_task* task;
    ingot_dl_managed_tensor_versioned* managed;
    ingot_dl_managed_tensor* legacy;
  } out;

  Given() {
    argument.kind = INGOT_KIND_TENSOR;
    argument.as.tensor = &array.tensor;
    ingot_value result{};
    REQUIRE(Take(ingot_invoke(session.context, function, &argument, 1, &result, 1)) == "ok");
    REQUIRE(Take(ingot_tensor_from_dlpack(result.as.owned_tensor, &tensor)) == "ok");
  }
  ~Given() {
    ingot_tensor_release(tensor);
    ingot_status_release(status);
  }

  void BeginCall(bool needs_task) {
    if (needs_task) REQUIRE(Take(ingot_invoke_async(session.context, function, &argument, 1, &task)) == "ok");
  }
  void EndCall() {
    ingot_task_release(std::exchange(task, nullptr));
    for (ingot_value& result : results) ingot_value_clear(&result);
  }
};

// The values to be tried for a parameter of type T; the first is a good one.
template <typename T>
std::vector<T> Values(Given& given) {
  using Bare = std::remove_cv_t<std::remove_pointer_t<T>>;
  if constexpr (!std::is_pointer_v<T>) {
    return {static_cast<T>(1)};
  } else if constexpr (std::is_function_v<Bare>) {
    return {nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_status>) {
    return {given.status, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_instance>) {
    return {given.session.instance, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_executable>) {
    return {given.session.executable, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_context>) {
    return {given.session.context, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_function>) {
    return {given.function, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_type>) {
    return {ingot_function_input_type(given.function, 0), nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_tensor>) {
    return {given.tensor, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_task>) {
    return {given.task, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_dl_tensor>) {
    static ingot_dl_tensor empty{}, without_shape{nullptr, {INGOT_DL_CPU, 0}, 1, {2, 32, 1}, nullptr, nullptr, 0};
    return {&given.array.tensor, nullptr, &empty, &without_shape};
  } else if constexpr (std::is_same_v<Bare, ingot_dl_managed_tensor_versioned>) {
    return {&given.no_tensor, nullptr};
  } else if constexpr (std::is_same_v<Bare, ingot_dl_managed_tensor>) {
    return {&given.no_legacy_tensor, nullptr};
  } else if constexpr (std::is_same_v<T, const ingot_value*>) {
    static std::vector<ingot_value> bad;
    bad.clear();
    // 15 is no kind, but a value of the enumeration (10 is its greatest), so that reading it is defined.
    for (const ingot_kind kind : {INGOT_KIND_STRING, INGOT_KIND_SHAPE, INGOT_KIND_TENSOR, INGOT_KIND_TUPLE,
                                  INGOT_KIND_OBJECT, static_cast<ingot_kind>(15)}) {
      ingot_value value{};
      value.kind = kind;
      if (kind == INGOT_KIND_SHAPE) value.as.shape.rank = 1;
      if (kind == INGOT_KIND_TUPLE) value.as.tuple.count = 1;
      bad.push_back(value);
    }
    std::vector<T> values = {&given.argument, nullptr};
    for (const ingot_value& value : bad) values.push_back(&value);
    return values;
  } else if constexpr (std::is_same_v<T, ingot_value*>) {
    return {given.results, nullptr};
  } else if constexpr (std::is_same_v<T, const char*>) {
    return {"main", nullptr, "", "x", "s", "/nonexistent/file"};
  } else if constexpr (std::is_same_v<T, const ingot_instance_options*>) {
    static ingot_instance_options good = INGOT_INSTANCE_OPTIONS_INIT, zero{};
    return {&good, nullptr, &zero};
  } else if constexpr (std::is_same_v<T, const ingot_open_options*>) {
    static ingot_open_options good = INGOT_OPEN_OPTIONS_INIT, zero{}, bad[4] = {good, good, good, good};
    bad[0].num_weights = 1;
    bad[1].trust = INGOT_TRUST_SIGNED;
    bad[1].num_trusted_keys = 1;
    bad[2].trust = INGOT_TRUST_LISTED;
    bad[2].num_allowed_sha256 = 1;
    static const char* const nothing[1] = {nullptr};
    bad[3] = bad[1];
    bad[3].trusted_keys = nothing;
    return {&good, nullptr, &zero, &bad[0], &bad[1], &bad[2], &bad[3]};
  } else if constexpr (std::is_same_v<T, const ingot_context_options*>) {
    static ingot_context_options good = INGOT_CONTEXT_OPTIONS_INIT, zero{}, bad[2] = {good, good};
    static const ingot_external nothing{};
    bad[0].num_externals = bad[1].num_externals = 1;
    bad[1].externals = &nothing;
    return {&good, nullptr, &zero, &bad[0], &bad[1]};
  } else if constexpr (std::is_same_v<T, ingot_golden_case*>) {
    static ingot_golden_case good = INGOT_GOLDEN_CASE_INIT, zero{};
    return {&good, nullptr, &zero};
  } else if constexpr (std::is_same_v<T, const ingot_dl_tensor* const*> || std::is_same_v<T, ingot_dl_tensor* const*>) {
    static ingot_dl_tensor* good[1];
    static ingot_dl_tensor* const nothing[1] = {nullptr};
    static ingot_dl_tensor other;
    static float values[4];
    other = given.array.tensor;
    other.data = values;
    good[0] = std::is_same_v<T, ingot_dl_tensor* const*> ? &other : &given.array.tensor;
    return {good, nullptr, nothing};
  } else if constexpr (std::is_same_v<T, const char* const*>) {
    static const char* const good[1] = {"s"};
    static const char* const nothing[1] = {nullptr};
    return {good, nullptr, nothing};
  } else if constexpr (std::is_same_v<Bare, void>) {
    return {given.session.bytes.data(), nullptr};
  } else if constexpr (std::is_pointer_v<Bare>) {  // where a handle is given
    return {reinterpret_cast<T>(&given.out), nullptr};
  } else {  // where a number is given
    static Bare number;
    return {&number, nullptr};
  }
}

// Gives back what a function gave.
template <typename T>
void GiveBack(Given& given, T) {
  if (given.out.any == nullptr) return;
  if constexpr (std::is_same_v<T, ingot_instance**>) ingot_instance_release(given.out.instance);
  if constexpr (std::is_same_v<T, ingot_executable**>) ingot_executable_release(given.out.executable);
  if constexpr (std::is_same_v<T, ingot_context**>) ingot_context_release(given.out.context);
  if constexpr (std::is_same_v<T, ingot_tensor**>) ingot_tensor_release(given.out.tensor);
  if constexpr (std::is_same_v<T, ingot_task**>) ingot_task_release(given.out.task);
  if constexpr (std::is_same_v<T, ingot_dl_managed_tensor_versioned**>) given.out.managed->deleter(given.out.managed);
  if constexpr (std::is_same_v<T, ingot_dl_managed_tensor**>) given.out.legacy->deleter(given.out.legacy);
}

// What an argument gives by its address, before a call: handles are no handle, of other things the bytes are kept.
template <typename T>
class Outcome {
 public:
  Outcome(Given& given, T argument) : given_(given), argument_(argument) {
    if constexpr (kIsHandle) given.out.any = &given;
    if constexpr (kIsPlain) {
      if (argument != nullptr) std::memcpy(before_, argument, sizeof(Bare));
    }
  }
  void CheckAfterFailure() const {
    if constexpr (kIsHandle) CHECK((argument_ == nullptr || given_.out.any == nullptr));
    if constexpr (kIsPlain) CHECK((argument_ == nullptr || std::memcmp(before_, argument_, sizeof(Bare)) == 0));
    num_checked += kIsHandle || kIsPlain ? 1 : 0;
  }
  static inline int num_checked = 0;

 private:
  using Bare = std::remove_pointer_t<T>;
  static constexpr bool kIsHandle = std::is_pointer_v<T> && std::is_pointer_v<Bare> && !std::is_const_v<Bare>;
  static constexpr bool kIsPlain =
      std::is_pointer_v<T> &&
      (std::is_same_v<Bare, size_t> || std::is_same_v<Bare, ingot_value> || std::is_same_v<Bare, ingot_golden_case>);
  Given& given_;
  T argument_;
  std::byte before_[kIsPlain ? sizeof(std::conditional_t<kIsPlain, Bare, int>) : 1] = {};
};

int num_calls = 0;

template <typename Return, typename... Parameters>
void TryEach(Given& given, const std::string& name, Return (*function)(Parameters...)) {
  CAPTURE(name);
  constexpr bool needs_task = (std::is_same_v<std::remove_cv_t<std::remove_pointer_t<Parameters>>, ingot_task> || ...);
  const bool only_null = name.ends_with("_release");  // of the others the objects are given, which go on being used
  // For each parameter each of its values, with good ones for the others; then none at all.
  const size_t most = only_null ? 0 : sizeof...(Parameters);
  for (size_t changed = 0; changed <= most; ++changed) {
    for (size_t choice = 0;; ++choice) {
      given.BeginCall(needs_task && !only_null);
      size_t at = 0, num_choices = 1;
      [[maybe_unused]] const auto choose = [&]<typename T>(std::type_identity<T>) -> T {
        const std::vector<T> values = Values<T>(given);
        const size_t mine = at++;
        if (changed == most) return values[std::min<size_t>(1, values.size() - 1)];
        if (mine != changed) return values[0];
        num_choices = values.size();
        return values[std::min(choice, values.size() - 1)];
      };
      const std::tuple<Parameters...> arguments{choose(std::type_identity<Parameters>())...};
      if constexpr (std::is_same_v<Return, ingot_status*>) {
        std::tuple<Outcome<Parameters>...> outcomes =
            std::apply([&](auto... argument) { return std::tuple(Outcome(given, argument)...); }, arguments);
        ingot_status* const status = std::apply(function, arguments);
        if (status != nullptr) {
          std::apply([](const auto&... outcome) { (outcome.CheckAfterFailure(), ...); }, outcomes);
          given.out.any = nullptr;
        }
        ingot_status_release(status);
      } else {
        (void)std::apply(function, arguments);
      }
      ++num_calls;
      given.EndCall();
      std::apply([&](auto... argument) { (GiveBack(given, argument), ...); }, arguments);
      given.out.any = nullptr;
      if (choice + 1 >= num_choices) break;
    }
  }
}

TEST_CASE("C API: no function crashes for a NULL, wherever it stands") {
  Given given;
  std::set<std::string> listed;
#define INGOT_TRY(name) \
  listed.insert(#name); \
  TryEach(given, #name, &name)
  INGOT_TRY(ingot_status_get_code);
  INGOT_TRY(ingot_status_message);
  INGOT_TRY(ingot_status_function);
  INGOT_TRY(ingot_status_location);
  INGOT_TRY(ingot_status_release);
  INGOT_TRY(ingot_version);
  INGOT_TRY(ingot_instance_create);
  INGOT_TRY(ingot_instance_release);
  INGOT_TRY(ingot_executable_open);
  INGOT_TRY(ingot_executable_open_memory);
  INGOT_TRY(ingot_executable_release);
  INGOT_TRY(ingot_executable_weight_count);
  INGOT_TRY(ingot_executable_weight_name);
  INGOT_TRY(ingot_executable_golden_case_count);
  INGOT_TRY(ingot_executable_golden_case);
  INGOT_TRY(ingot_executable_metadata_count);
  INGOT_TRY(ingot_executable_metadata_key);
  INGOT_TRY(ingot_executable_metadata_value);
  INGOT_TRY(ingot_executable_function_count);
  INGOT_TRY(ingot_executable_function);
  INGOT_TRY(ingot_executable_find_function);
  INGOT_TRY(ingot_function_name);
  INGOT_TRY(ingot_function_signature);
  INGOT_TRY(ingot_function_symbol_count);
  INGOT_TRY(ingot_function_symbol);
  INGOT_TRY(ingot_function_input_count);
  INGOT_TRY(ingot_function_input_name);
  INGOT_TRY(ingot_function_input_type);
  INGOT_TRY(ingot_function_input_is_written);
  INGOT_TRY(ingot_function_output_count);
  INGOT_TRY(ingot_function_output_name);
  INGOT_TRY(ingot_function_output_type);
  INGOT_TRY(ingot_type_kind);
  INGOT_TRY(ingot_type_text);
  INGOT_TRY(ingot_type_dtype);
  INGOT_TRY(ingot_type_rank);
  INGOT_TRY(ingot_type_dim);
  INGOT_TRY(ingot_type_dim_text);
  INGOT_TRY(ingot_type_element_count);
  INGOT_TRY(ingot_type_element);
  INGOT_TRY(ingot_value_clear);
  INGOT_TRY(ingot_tensor_from_dlpack);
  INGOT_TRY(ingot_tensor_from_legacy_dlpack);
  INGOT_TRY(ingot_tensor_to_dlpack);
  INGOT_TRY(ingot_tensor_to_legacy_dlpack);
  INGOT_TRY(ingot_tensor_view);
  INGOT_TRY(ingot_tensor_release);
  INGOT_TRY(ingot_status_create);
  INGOT_TRY(ingot_context_create);
  INGOT_TRY(ingot_context_release);
  INGOT_TRY(ingot_invoke);
  INGOT_TRY(ingot_invoke_into);
  INGOT_TRY(ingot_context_set_input);
  INGOT_TRY(ingot_context_set_input_value);
  INGOT_TRY(ingot_context_run);
  INGOT_TRY(ingot_context_get_output);
  INGOT_TRY(ingot_context_set_deadline);
  INGOT_TRY(ingot_context_cancel);
  INGOT_TRY(ingot_executable_state_count);
  INGOT_TRY(ingot_executable_state_name);
  INGOT_TRY(ingot_context_get_state);
  INGOT_TRY(ingot_context_set_state);
  INGOT_TRY(ingot_context_set_states);
  INGOT_TRY(ingot_context_reset_states);
  INGOT_TRY(ingot_context_memory_in_use);
  INGOT_TRY(ingot_context_memory_peak);
  INGOT_TRY(ingot_invoke_async);
  INGOT_TRY(ingot_invoke_into_async);
  INGOT_TRY(ingot_task_is_done);
  INGOT_TRY(ingot_task_wait_for);
  INGOT_TRY(ingot_task_cancel);
  INGOT_TRY(ingot_task_wait);
  INGOT_TRY(ingot_task_release);
  INGOT_TRY(ingot_context_set_profiler);
  INGOT_TRY(ingot_context_set_instrument);
  INGOT_TRY(ingot_context_set_check_finite);
#undef INGOT_TRY
  CHECK(num_calls > 300);
  CHECK(Outcome<ingot_context**>::num_checked > 5);
  CHECK(Outcome<ingot_dl_managed_tensor_versioned**>::num_checked > 5);
  CHECK(Outcome<const ingot_function**>::num_checked > 5);
  CHECK(Outcome<ingot_task**>::num_checked > 5);
  CHECK(Outcome<ingot_value*>::num_checked > 5);
  CHECK(Outcome<ingot_golden_case*>::num_checked > 1);
  CHECK(Outcome<size_t*>::num_checked > 1);

  // Those that the header declares.
  std::ifstream file(golden::TestDirectory() + "/../vm/include/ingot/ingot.h");
  std::stringstream text;
  text << file.rdbuf();
  const std::string header = text.str();
  const std::regex declaration(R"(INGOT_API [^;(]*?(ingot_\w+)\()");
  std::set<std::string> declared;
  for (std::sregex_iterator i(header.begin(), header.end(), declaration); i != std::sregex_iterator(); ++i) {
    declared.insert((*i)[1]);
  }
  CHECK(declared.size() > 60);
  CHECK(declared == listed);
}

}  // namespace
}  // namespace ingot
