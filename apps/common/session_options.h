// The options that vm-run and vm-bench share: what a session is opened with. In: the tool's command line; out:
// SessionOptions.
#pragma once

#include <CLI/CLI.hpp>

#include "apps/common/session.h"

namespace ingot::apps {

inline void AddSessionOptions(CLI::App& app, SessionOptions& options) {
  app.add_option("EXE", options.path, "The executable")->required();
  app.add_option("--entry", options.entry, "Function to call")->capture_default_str();
  app.add_option("--device", options.device, "Where it runs: cpu")->capture_default_str();
  app.add_option("--weights", options.weights,
                 "Weights in the place of the executable's, by name (.safetensors, .npz); it must keep its own")
      ->type_name("FILE");
  app.add_option("--require-signature", options.require_signature,
                 "Refuse a file that this public key has not signed (a file of the key, or its 64 hex digits)")
      ->type_name("KEY");
  app.add_option("--allow-sha256", options.allow_sha256, "Refuse a file whose SHA-256 is none of these")
      ->type_name("HEX")
      ->allow_extra_args(false);
}

}  // namespace ingot::apps
