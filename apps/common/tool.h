// Tool: what every command-line tool has in common: parsing with --help, --version, --completion, --color, --progress
// and --json; exit codes; error messages with "did you mean"; progress. A tool's main registers its options, and its
// body calls the library and prints.
#pragma once

#include <chrono>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include "apps/common/command_line.h"
#include "apps/common/exit_code.h"
#include "apps/common/file_transaction.h"
#include "apps/common/json.h"
#include "apps/common/terminal_text.h"
#include "runtime/status.h"

namespace ingot::apps {

class Tool {
 public:
  // examples: lines shown under --help. Options are added to command_line() before Run.
  Tool(std::string name, std::string description, std::string examples);
  CommandLine& command_line() { return command_line_; }
  const std::string& name() const { return name_; }

  // Parses the command line, runs the body, prints its failure, gives the exit code. The body returns an exit code of
  // its own or a failure.
  int Run(int argc, char** argv, const std::function<Result<int>()>& body);

  // --json was given: results go there and stdout holds nothing else.
  bool wants_json() const { return !json_path_.empty(); }
  bool json_to_stdout() const { return json_path_ == "-"; }
  // What the body writes files by: they appear together when it has succeeded.
  FileTransaction& files() { return files_; }
  // Writes the document with its "schema" and "tool" in front, to stdout or the named file.
  Status WriteJson(int schema, const Json& document);

  bool colors_stdout() const;
  // Prints a note on stderr: "NAME: text".
  void Note(std::string_view text) const;
  // Shows the progress of the work: a bar on a terminal (at most ten times a second), a plain line per step elsewhere.
  void Progress(std::string_view step, int64_t done, int64_t total);

 private:
  std::string CompletionScript(const std::string& shell) const;
  // A page in the man macros of troff, with the texts of --help.
  std::string ManPage() const;
  int RunBody(const std::function<Result<int>()>& body);
  // Where text was all there was to print.
  int ExitCodeOfText() const;
  bool ColorsFor(int descriptor) const;

  // Everything that is printed goes through these, so that text from files cannot control the terminal.
  TerminalText stdout_{std::cout}, stderr_{std::cerr};
  std::string name_;
  std::string description_;
  std::string examples_;
  CommandLine command_line_;
  FileTransaction files_;
  std::string color_ = "auto";
  std::string progress_ = "auto";
  std::string json_path_;
  std::string completion_;
  bool man_page_ = false;
  std::chrono::steady_clock::time_point stage_started_ = std::chrono::steady_clock::now();  // of the progress
  int64_t last_done_ = 0;
  std::chrono::steady_clock::time_point last_drawn_{};
  bool bar_is_open_ = false;
};

}  // namespace ingot::apps
