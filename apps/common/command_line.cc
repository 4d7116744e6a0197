// CommandLine over the library CLI11, and the texts of its errors.
#include "apps/common/command_line.h"

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdlib>
#include <iostream>

#include "runtime/suggest.h"

namespace ingot::apps {

Option& Option::Type(const std::string& name) {
  option_->type_name(name);
  return *this;
}
Option& Option::ShowDefault() {
  option_->capture_default_str();
  return *this;
}
Option& Option::Required() {
  option_->required();
  return *this;
}
Option& Option::Needs(Option other) {
  option_->needs(other.option_);
  return *this;
}
Option& Option::OneOf(std::initializer_list<const char*> values) {
  option_->check(CLI::IsMember(std::vector<std::string>(values.begin(), values.end())));
  return *this;
}
Option& Option::Between(int least, int most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::Between(double least, double most) {
  option_->check(CLI::Range(least, most));
  return *this;
}
Option& Option::Positive() {
  option_->check(CLI::PositiveNumber);
  return *this;
}
Option& Option::SplitAt(char separator) {
  option_->delimiter(separator);
  return *this;
}
Option& Option::OneEach() {
  option_->allow_extra_args(false);
  return *this;
}

CommandLine::CommandLine(const std::string& tool, const std::string& description, const std::string& version)
    : app_(std::make_unique<CLI::App>(description, tool)) {
  app_->set_version_flag("--version", version);
}
CommandLine::~CommandLine() = default;

namespace {

// What the library would cut to the number of 64 bits that is nearest.
template <typename T>
std::string NoteOverflow(const std::string& text) {
  errno = 0;
  if constexpr (std::is_unsigned_v<T>) {
    std::strtoull(text.c_str(), nullptr, 0);
  } else {
    std::strtoll(text.c_str(), nullptr, 0);
  }
  return errno == ERANGE ? "the number " + text + " does not fit 64 bits" : "";
}

}  // namespace

template <typename T>
Option CommandLine::Add(const char* names, T& target, const char* text) {
  CLI::Option* option = app_->add_option(names, target, text);
  if constexpr (std::is_same_v<T, std::optional<std::string>>) option->expected(0, 1);
  if constexpr (std::is_integral_v<T>) option->check(NoteOverflow<T>);
  return Option(option);
}
template Option CommandLine::Add(const char*, std::string&, const char*);
template Option CommandLine::Add(const char*, std::vector<std::string>&, const char*);
template Option CommandLine::Add(const char*, std::optional<std::string>&, const char*);
template Option CommandLine::Add(const char*, int&, const char*);
template Option CommandLine::Add(const char*, int64_t&, const char*);
template Option CommandLine::Add(const char*, uint64_t&, const char*);
template Option CommandLine::Add(const char*, double&, const char*);
template Option CommandLine::Add(const char*, std::vector<int>&, const char*);
template Option CommandLine::Add(const char*, std::vector<double>&, const char*);

Option CommandLine::AddFlag(const char* names, bool& target, const char* text) {
  return Option(app_->add_flag(names, target, text));
}
Option CommandLine::AddFlag(const char* names, std::string& target, const char* text) {
  return Option(app_->add_flag(names, target, text));
}

void CommandLine::SetFooter(const std::string& text) { app_->footer(text); }

Result<bool> CommandLine::Parse(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
    return true;
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {
      app_->exit(error, std::cout, std::cerr);
      return false;
    }
    const bool has_extras = error.get_exit_code() == static_cast<int>(CLI::ExitCodes::ExtrasError);
    return Status(StatusCode::kInvalidArgument, TextOfError(error.what(), has_extras));
  }
}

std::string CommandLine::TextOfError(const std::string& text, bool has_extras) const {
  const std::vector<std::string> extras = app_->remaining();
  if (!has_extras || extras.empty()) return text;
  std::vector<std::string> names;
  for (const Description& option : Describe()) {
    for (const std::string& name : option.long_names) names.push_back("--" + name);
  }
  const std::string extra = extras[0].substr(0, extras[0].find('='));
  return (extra.starts_with("-") ? "unknown option " + extra : "unexpected argument " + extras[0]) +
         DidYouMean(extra, std::vector<std::string_view>(names.begin(), names.end()));
}

std::vector<CommandLine::Description> CommandLine::Describe() const {
  std::vector<Description> all;
  for (const CLI::Option* option : app_->get_options()) {
    const bool is_positional = option->get_positional();
    all.push_back({option->get_name(is_positional, !is_positional), option->get_lnames(), option->get_type_name(),
                   option->get_description(), option->get_default_str(), is_positional});
  }
  return all;
}

}  // namespace ingot::apps
