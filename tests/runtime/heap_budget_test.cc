// A budget of the heap: every container of these programs is charged, whatever it is, and none grows beyond it.
#include "runtime/heap_budget.h"

#include <doctest/doctest.h>

#include <array>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <new>
#include <set>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

namespace ingot {
namespace {

TEST_CASE("HeapBudget: no container grows beyond it") {
  constexpr int64_t kBytes = 100'000;
  std::vector<int> ints;
  std::vector<bool> bools;
  std::string text;
  std::map<int, int> map;
  std::set<std::string> set;
  std::unordered_map<int, int> table;
  std::deque<int> deque;
  std::vector<std::unique_ptr<int>> pointers;
  std::vector<std::unique_ptr<std::array<char, 1000>>> arrays;
  std::vector<std::shared_ptr<std::string>> shared;
  std::vector<std::function<int()>> functions;
  const std::pair<const char*, std::function<void(int)>> growing[] = {
      {"vector", [&](int i) { ints.push_back(i); }},
      {"vector of bits", [&](int i) { bools.push_back(i % 2 == 0); }},
      {"string", [&](int) { text += 'x'; }},
      {"map", [&](int i) { map[i] = i; }},
      {"set", [&](int i) { set.insert(std::to_string(i)); }},
      {"hash table", [&](int i) { table[i] = i; }},
      {"deque", [&](int i) { deque.push_back(i); }},
      {"pointers", [&](int i) { pointers.push_back(std::make_unique<int>(i)); }},
      {"shared pointers", [&](int) { shared.push_back(std::make_shared<std::string>(100, 'x')); }},
      {"functions",
       [&](int i) {
         const std::array<int, 10> numbers{i};
         functions.emplace_back([numbers] { return numbers[0]; });
       }},
      {"without exceptions",
       [&](int) {
         arrays.emplace_back(new (std::nothrow) std::array<char, 1000>);
         if (arrays.back() == nullptr) throw std::bad_alloc();
       }},
  };
  for (const auto& [name, grow] : growing) {
    CAPTURE(name);
    const HeapBudget budget(kBytes);
    int count = 0;
    bool is_refused = false;
    try {
      for (; count < 10'000'000; ++count) grow(count);
    } catch (const std::bad_alloc&) {
      is_refused = true;
    }
    CHECK(is_refused);
    CHECK(budget.is_exhausted());
    CHECK(count > 50);
  }
}

TEST_CASE("HeapBudget: what is freed may be taken again, and other threads have none") {
  const HeapBudget budget(100'000);
  for (int i = 0; i < 1000; ++i) CHECK(std::vector<char>(60'000).size() == 60'000);
  CHECK_THROWS_AS(std::vector<char>(100'000), std::bad_alloc);
  std::thread([] { CHECK(std::vector<char>(1'000'000).size() == 1'000'000); }).join();
}

TEST_CASE("HeapBudget: an inner one has no more than the outer one, for which it counts") {
  const HeapBudget outer(100'000);
  std::vector<char> kept;
  {
    const HeapBudget inner(1'000'000);
    CHECK_THROWS_AS(std::vector<char>(200'000), std::bad_alloc);
    CHECK(inner.is_exhausted());
    CHECK_FALSE(outer.is_exhausted());
    kept.resize(60'000);
  }
  CHECK_THROWS_AS(std::vector<char>(60'000), std::bad_alloc);
  kept = std::vector<char>();
  CHECK(std::vector<char>(60'000).size() == 60'000);
}

TEST_CASE("HeapCharge: other memory counts while it is there") {
  const HeapBudget budget(100'000);
  {
    const HeapCharge charge(60'000);
    CHECK_THROWS_AS(std::vector<char>(60'000), std::bad_alloc);
    CHECK_THROWS_AS(HeapCharge(60'000), std::bad_alloc);
    CHECK_THROWS_AS(HeapCharge(UINT64_MAX), std::bad_alloc);
  }
  CHECK(std::vector<char>(60'000).size() == 60'000);
}

}  // namespace
}  // namespace ingot
