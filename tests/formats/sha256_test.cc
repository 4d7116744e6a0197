#include "formats/sha256.h"

#include <doctest/doctest.h>

#include <string>

#include "formats/byte_reader.h"

namespace ingot::formats {
namespace {

std::string HexOf(const std::string& text) { return ToHex(Sha256Of(AsBytes(text))); }

TEST_CASE("SHA-256 gives the digests of FIPS 180-4's examples") {
  CHECK(HexOf("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(HexOf("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(HexOf("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(HexOf(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("pieces of any length give the digest of the whole") {
  std::string text;
  for (int i = 0; i < 300; ++i) text += static_cast<char>(i * 7);
  for (const size_t piece : {size_t{1}, size_t{55}, size_t{63}, size_t{64}, size_t{65}, size_t{299}}) {
    Sha256 hash;
    for (size_t at = 0; at < text.size(); at += piece) hash.Update(AsBytes(std::string_view(text).substr(at, piece)));
    CHECK(ToHex(hash.Finish()) == HexOf(text));
  }
}

TEST_CASE("hexadecimal digits of either case, and no others") {
  std::array<uint8_t, 2> bytes{};
  CHECK(FromHex("0aF9", bytes));
  CHECK(ToHex(bytes) == "0af9");
  for (const char* text : {"", "0af", "0af91", "0ag9", " 0af"}) CHECK_FALSE(FromHex(text, bytes));
}

}  // namespace
}  // namespace ingot::formats
