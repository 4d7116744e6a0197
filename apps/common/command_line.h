// CommandLine: the options and arguments of a tool. In: their names, the variables that get their values, the texts for
// --help. The parsing library is included by command_line.cc alone, because it takes longer to compile than a tool.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "runtime/status.h"

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace ingot::apps {

// An option; each call adds a property to it.
class Option {
 public:
  explicit Option(CLI::Option* option) : option_(option) {}
  Option& Type(const std::string& name);  // what --help calls the value, such as FILE
  Option& ShowDefault();                  // --help shows the value that the target has now
  Option& Required();
  Option& Needs(Option other);
  Option& OneOf(std::initializer_list<const char*> values);
  Option& Between(int least, int most);
  Option& Between(double least, double most);
  Option& Positive();
  Option& SplitAt(char separator);  // one argument holds several values
  Option& OneEach();                // for a list: each time that it is named, it takes one value

 private:
  CLI::Option* option_;
};

class CommandLine {
 public:
  CommandLine(const std::string& tool, const std::string& description, const std::string& version);
  ~CommandLine();
  // names: "-o,--output", or "EXE" for a positional argument. T: std::string, a number, a std::vector of these, or
  // std::optional<std::string>, whose value may be left out (then it is "").
  template <typename T>
  Option Add(const char* names, T& target, const char* text);
  Option AddFlag(const char* names, bool& target, const char* text);
  // names: "--name{value}", with the value that the target gets where --name is given without =VALUE.
  Option AddFlag(const char* names, std::string& target, const char* text);
  void SetFooter(const std::string& text);  // of --help

  // Fills the targets. Returns false when --help or --version was given, after printing it. Invalid argument for a
  // command line that does not fit.
  Result<bool> Parse(int argc, char** argv);
  // Every option in the order of the --help page; --help itself comes first.
  struct Description {
    std::string names;                    // "-o,--output"
    std::vector<std::string> long_names;  // "output"; none of a positional argument
    std::string type, text, default_value;
    bool is_positional;
  };
  std::vector<Description> Describe() const;

 private:
  std::string TextOfError(const std::string& text, bool has_extras) const;
  std::unique_ptr<CLI::App> app_;
};

}  // namespace ingot::apps
