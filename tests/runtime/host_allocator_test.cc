// Host memory: the advice about huge pages that the system gets.
#include "runtime/host_allocator.h"

#include <doctest/doctest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace ingot {
namespace {

// The flags of the mapping that holds the address, as proc(5) writes them in smaps ("VmFlags: rd wr ... hg").
std::string FlagsOfMapping(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool is_here = false;
  for (std::string line; std::getline(maps, line);) {
    uintptr_t begin = 0, end = 0;
    char dash = 0;
    std::istringstream range(line);
    if (range >> std::hex >> begin >> dash >> end && dash == '-') {
      is_here = begin <= reinterpret_cast<uintptr_t>(address) && reinterpret_cast<uintptr_t>(address) < end;
    } else if (is_here && line.starts_with("VmFlags:")) {
      return line + ' ';
    }
  }
  return "";
}

TEST_CASE("AllocateAligned: large blocks are advised to be of huge pages, small ones are left alone") {
  constexpr size_t kLarge = size_t{32} << 20;
  auto* large = static_cast<char*>(AllocateAligned(kLarge, 64));
  REQUIRE(large != nullptr);
  CHECK(reinterpret_cast<uintptr_t>(large) % 64 == 0);
  const std::string flags = FlagsOfMapping(large + kLarge / 2);
  if (flags.empty() || !std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) {
    MESSAGE("SKIP: this system does not tell of huge pages");
  } else {
    CHECK_MESSAGE(flags.find(" hg ") != std::string::npos, flags);
  }
  FreeAligned(large, kLarge, 64);

  void* small = AllocateAligned(100, 256);
  REQUIRE(small != nullptr);
  CHECK(reinterpret_cast<uintptr_t>(small) % 256 == 0);
  CHECK(FlagsOfMapping(small).find(" hg ") == std::string::npos);
  FreeAligned(small, 100, 256);
}

}  // namespace
}  // namespace ingot
