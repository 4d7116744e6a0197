#include "apps/common/json.h"

#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

namespace ingot::apps {
namespace {

std::optional<Json> Parse(const std::string& text) {
  std::istringstream in(text);
  return Json::Parse(in);
}

TEST_CASE("members print in the order in which they came") {
  Json document{{"zebra", 1}, {"apple", {{"inner", true}, {"none", Json()}}}, {"zebra", "the first counts"}};
  document["middle"] = "text";
  document["zebra"] = 2;
  document["made"]["by access"] = 3;
  document["list"].push_back({{"a", "b"}});
  document["list"].push_back({"c", "d"});
  CHECK(document.Dump() == R"({"zebra":2,"apple":{"inner":true,"none":null},"middle":"text","made":{"by access":3},)"
                           R"("list":[{"a":"b"},["c","d"]]})");
}

TEST_CASE("lists that are no pairs of key and value are arrays") {
  CHECK(Json({1, 2}).Dump() == "[1,2]");
  CHECK(Json({{1, 2}, {3, 4}}).Dump() == "[[1,2],[3,4]]");
  CHECK(Json({{"a", 1}, {"b"}}).Dump() == R"([["a",1],["b"]])");
  CHECK(Json(std::vector<std::string>{"a", "b"}).Dump() == R"(["a","b"])");
  CHECK(Json::Array().Dump() == "[]");
  CHECK(Json::Object().Dump() == "{}");
  CHECK(Json().Dump() == "null");
}

TEST_CASE("whole numbers stay apart from the others") {
  const Json numbers{int8_t{-1}, INT64_MIN, UINT64_MAX, 1.0, 0.1, 0.1f, 1e300, -0.0, true, INFINITY, NAN};
  CHECK(numbers.Dump() ==
        "[-1,-9223372036854775808,18446744073709551615,1.0,0.1,0.10000000149011612,1e+300,-0.0,true,null,null]");
}

TEST_CASE("indented text") {
  const Json document{{"empty", Json::Array()}, {"list", {1, 2}}};
  CHECK(document.Dump(2) == "{\n  \"empty\": [],\n  \"list\": [\n    1,\n    2\n  ]\n}");
  std::ostringstream out;
  out << document;
  CHECK(out.str() == document.Dump());
}

TEST_CASE("characters that are escaped") {
  const Json text(std::string("\"\\/\b\n\x1b\x7f\xc3\xa9\xf0\x9f\x98\x80\0", 14));
  CHECK(text.Dump() == "\"\\\"\\\\/\\b\\n\\u001b\x7f\xc3\xa9\xf0\x9f\x98\x80\\u0000\"");
  CHECK(text.Dump(-1, /*is_ascii=*/true) == R"("\"\\/\b\n\u001b\u007f\u00e9\ud83d\ude00\u0000")");
  CHECK(Json("a\xff\xe2\x82z").Dump(-1, /*is_ascii=*/true) == R"("a\ufffd\ufffdz")");
  CHECK(Json("a\xffz").Dump() == "\"a\xef\xbf\xbdz\"");
}

TEST_CASE("what is printed is read back") {
  const std::string text = R"({"b":[1,-1,18446744073709551615,1.0,2.5e-07,"\u001b",null,true,{}],"a":{"nested":[[]]}})";
  const std::optional<Json> read = Parse(text);
  REQUIRE(read);
  CHECK(read->Dump() == text);
  REQUIRE(Parse(read->Dump(2)));
  CHECK(Parse(read->Dump(2))->Dump() == text);
  CHECK(Parse(R"({"a": 1, "b": 2, "a": 3})")->Dump() == R"({"a":3,"b":2})");
}

TEST_CASE("what is no JSON") {
  for (const char* text : {"", "{", "[1,]", "{\"a\" 1}", "nan", "1 2", "\"\xff\""}) {
    CAPTURE(text);
    CHECK_FALSE(Parse(text));
  }
  CHECK(Parse(std::string(1000, '[') + std::string(1000, ']')));
  CHECK_FALSE(Parse(std::string(1'000'000, '[') + std::string(1'000'000, ']')));
}

TEST_CASE("reading") {
  const Json document{{"text", "t"}, {"flag", true}, {"count", 7}, {"share", 0.5}, {"list", {1, 2, 3}}};
  CHECK(document.is_object());
  CHECK(document.size() == 5);
  CHECK(document["text"].get<std::string>() == "t");
  CHECK(document["flag"].get<bool>());
  CHECK(document["count"].get<int64_t>() == 7);
  CHECK(document["count"].get<double>() == 7);
  CHECK(document["share"].get<double>() == 0.5);
  CHECK(document["list"].is_array());
  CHECK(document["list"][1].get<int>() == 2);
  int sum = 0;
  for (const Json& element : document["list"]) sum += element.get<int>();
  CHECK(sum == 6);
  std::string keys;
  for (const auto& [key, value] : document.items()) keys += key + " ";
  CHECK(keys == "text flag count share list ");
  CHECK_FALSE(document.contains("absent"));
  CHECK_FALSE(document["list"].contains("text"));
  CHECK(document.ValueOr("text", "") == "t");
  CHECK(document.ValueOr("count", "none") == "none");
  CHECK(document.ValueOr("share", 0.0) == 0.5);
  CHECK(document.ValueOr("text", -1.0) == -1);
  CHECK(document["list"].ValueOr("text", -1.0) == -1);
}

}  // namespace
}  // namespace ingot::apps
