// Parses the options that all tools have, runs a tool's body, and prints its failure; makes completion scripts and man
// pages from the options' descriptions.
#include "apps/common/tool.h"

#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <new>
#include <span>
#include <stdexcept>
#include <vector>

#include "runtime/version.h"

namespace ingot::apps {
namespace {

constexpr const char* kNoStandardOutput = "standard output cannot be written";

}  // namespace

Tool::Tool(std::string name, std::string description, std::string examples)
    : name_(std::move(name)),
      description_(std::move(description)),
      examples_(std::move(examples)),
      command_line_(name_, description_, name_ + " " + kVersion) {
  command_line_.SetFooter("Examples:\n" + examples_);
  command_line_.Add("--color", color_, "Colours in messages").OneOf({"auto", "always", "never"}).ShowDefault();
  command_line_.Add("--progress", progress_, "Progress on stderr").OneOf({"auto", "never", "plain"}).ShowDefault();
  command_line_.Add("--json", json_path_, "Machine-readable results to this file (-: stdout)").Type("FILE");
  command_line_.Add("--completion", completion_, "Print the completion script of a shell")
      .OneOf({"bash", "zsh", "fish"});
  command_line_.AddFlag("--man-page", man_page_, "Print this page in the man macros of troff");
}

int Tool::Run(int argc, char** argv, const std::function<Result<int>()>& body) {
  // --completion and --man-page work without the arguments that a run needs.
  for (int i = 1; i < argc; ++i) {
    std::string_view argument = argv[i];
    std::string shell;
    if (argument == "--man-page") {
      std::cout << ManPage();
      return ExitCodeOfText();
    }
    if (argument == "--completion" && i + 1 < argc) shell = argv[i + 1];
    if (argument.starts_with("--completion=")) shell = argument.substr(13);
    if (shell == "bash" || shell == "zsh" || shell == "fish") {
      std::cout << CompletionScript(shell);
      return ExitCodeOfText();
    }
  }
  const Result<bool> parsed = command_line_.Parse(argc, argv);
  if (!parsed.ok()) {
    std::cerr << name_ << ": " << parsed.status().message() << "\nRun " << name_ << " --help for the options.\n";
    return kExitUsage;
  }
  if (!*parsed) return ExitCodeOfText();
  return RunBody(body);
}

int Tool::ExitCodeOfText() const {
  if (std::cout.flush()) return kExitOk;
  std::cerr << name_ << ": error: " << kNoStandardOutput << "\n";
  return ExitCodeOf(StatusCode::kIo);
}

// Exceptions for lack of memory become a status here. Files that were being written are removed by then, as after any
// failure.
int Tool::RunBody(const std::function<Result<int>()>& body) {
  const auto run = [&]() -> Result<int> {
    try {
      std::cout.exceptions(std::ios::badbit);  // lack of memory is thrown on, not taken for a failure to write
      Result<int> result = body();
      // A run whose results could not be written has failed.
      std::cout.flush();
      if (result.ok() && std::fflush(stdout) != 0) result = Status(StatusCode::kIo, kNoStandardOutput);
      if (result.ok()) INGOT_RETURN_IF_ERROR(files_.Commit());
      return result;
    } catch (const std::bad_alloc&) {
      return Status::OutOfMemory();
    } catch (const std::ios_base::failure&) {
      return Status(StatusCode::kIo, kNoStandardOutput);
    } catch (const std::length_error&) {
      return Status::OutOfMemory();
    }
  };
  Result<int> result = run();
  std::cout.exceptions(std::ios::goodbit);
  if (bar_is_open_) std::fputc('\n', stderr);
  if (result.ok()) return *result;
  std::cerr << name_ << ": ";
  if (ColorsFor(STDERR_FILENO)) {
    stderr_.WriteAsIs("\x1b[31merror:\x1b[0m ");
  } else {
    std::cerr << "error: ";
  }
  std::cerr << result.status().message() << "\n";
  return ExitCodeOf(result.status().code());
}

Status Tool::WriteJson(int schema, const Json& document) {
  Json whole{{"schema", schema}, {"tool", name_}, {"version", kVersion}};
  for (const auto& [key, value] : document.items()) whole[key] = value;
  // Standard output may be a terminal, and JSON may hold some control characters unescaped; so it gets ASCII.
  const bool is_ascii = json_path_ == "-";
  const std::string text = whole.Dump(2, is_ascii) + "\n";
  if (is_ascii) {
    std::cout << text;
    return Status();
  }
  return formats::WriteFileAtomically(json_path_, std::as_bytes(std::span(text)), files_);
}

bool Tool::ColorsFor(int descriptor) const {
  if (color_ != "auto") return color_ == "always";
  if (const char* force = std::getenv("CLICOLOR_FORCE"); force != nullptr && std::string_view(force) != "0")
    return true;
  if (const char* none = std::getenv("NO_COLOR"); none != nullptr && *none != '\0') return false;
  return isatty(descriptor) != 0;
}

bool Tool::colors_stdout() const { return ColorsFor(STDOUT_FILENO); }

void Tool::Note(std::string_view text) const { std::cerr << name_ << ": " << text << "\n"; }

void Tool::Progress(std::string_view step, int64_t done, int64_t total) {
  if (progress_ == "never") return;
  const bool draws_bar = progress_ == "auto" && isatty(STDERR_FILENO) != 0;
  if (!draws_bar) {
    if (progress_ == "plain" || done == total) {
      std::fprintf(stderr, "%s: %.*s %lld/%lld\n", name_.c_str(), static_cast<int>(step.size()), step.data(),
                   static_cast<long long>(done), static_cast<long long>(total));
    }
    return;
  }
  const auto now = std::chrono::steady_clock::now();
  if (done < last_done_) stage_started_ = now;  // of what begins anew
  last_done_ = done;
  if (done < total && now - last_drawn_ < std::chrono::milliseconds(100)) return;
  last_drawn_ = now;
  constexpr int kWidth = 30;
  const int filled = total > 0 ? static_cast<int>(done * kWidth / total) : kWidth;
  const double elapsed = std::chrono::duration<double>(now - stage_started_).count();
  const double left = done > 0 ? elapsed * static_cast<double>(total - done) / static_cast<double>(done) : 0;
  std::fprintf(stderr, "\r%-24.*s [%s%s] %3lld%% %.0fs left \033[K", static_cast<int>(step.size()), step.data(),
               std::string(static_cast<size_t>(filled), '#').c_str(),
               std::string(static_cast<size_t>(kWidth - filled), '.').c_str(),
               static_cast<long long>(total > 0 ? done * 100 / total : 100), left);
  bar_is_open_ = true;
  std::fflush(stderr);
}

std::string Tool::ManPage() const {
  // A line that begins with a dot or an apostrophe would be a troff request, and "-" would become a typographic hyphen.
  const auto escape = [](std::string_view text) {
    std::string out;
    for (const char c : text) {
      const bool starts_line = out.empty() || out.back() == '\n';
      if (starts_line && (c == '.' || c == '\'')) out += "\\&";
      out += c == '\\' ? std::string("\\e") : c == '-' ? std::string("\\-") : std::string(1, c);
    }
    return out;
  };
  std::string page = ".TH \"" + name_ + "\" 1 \"\" \"Ingot " + kVersion + "\"\n.SH NAME\n" + escape(name_) + " \\- " +
                     escape(description_) + "\n.SH SYNOPSIS\n.B " + escape(name_) + "\n[\\fIoptions\\fR]";
  std::string options;
  for (const CommandLine::Description& option : command_line_.Describe()) {
    if (option.is_positional) {
      page += " [\\fI" + escape(option.names) + "\\fR]";
      continue;
    }
    options += ".TP\n\\fB" + escape(option.names) + "\\fR" +
               (option.type.empty() ? "" : " \\fI" + escape(option.type) + "\\fR") + "\n" + escape(option.text) +
               (option.default_value.empty() ? "" : " (default: " + escape(option.default_value) + ")") + "\n";
  }
  return page + "\n.SH OPTIONS\n" + options + ".SH EXIT STATUS\n" +
         "0 fine, 1 a comparison, self\\-test or kernel failed, 2 usage, 3 bad input file or tensor, 4 corrupt or "
         "unsupported executable, 5 not trusted, 6 out of memory, 7 deadline or fuel, 8 the model uses something "
         "unsupported, 130 interrupted.\n.SH EXAMPLES\n.nf\n" +
         escape(examples_) + "\n.fi\n";
}

std::string Tool::CompletionScript(const std::string& shell) const {
  std::string text;
  for (const CommandLine::Description& option : command_line_.Describe()) {
    for (const std::string& name : option.long_names) {
      if (shell == "fish") {
        text += "complete -c " + name_ + " -l " + name + "\n";
      } else if (shell == "zsh") {
        text += "'--" + name + "' ";
      } else {
        text += (text.empty() ? "--" : " --") + name;
      }
    }
  }
  if (shell == "fish") return text;
  if (shell == "zsh") return "#compdef " + name_ + "\n_arguments '*:file:_files' " + text + "\n";
  return "complete -o default -W '" + text + "' " + name_ + "\n";
}

}  // namespace ingot::apps
