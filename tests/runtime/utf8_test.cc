#include "runtime/utf8.h"

#include <doctest/doctest.h>

namespace ingot {
namespace {

TEST_CASE("well-formed UTF-8 is told from the rest") {
  CHECK(IsUtf8(""));
  CHECK(IsUtf8("a\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"));
  CHECK_FALSE(IsUtf8("\xc0\xaf"));          // overlong
  CHECK_FALSE(IsUtf8("\xed\xa0\x80"));      // a surrogate
  CHECK_FALSE(IsUtf8("\xf4\x90\x80\x80"));  // above U+10FFFF
  CHECK_FALSE(IsUtf8("\xe2\x82"));          // cut off
  CHECK_FALSE(IsUtf8("\x80"));
}

}  // namespace
}  // namespace ingot
