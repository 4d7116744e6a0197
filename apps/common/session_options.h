// The options that vm-run and vm-bench share: what a session is opened with. In: the tool's command line; out:
// SessionOptions.
#pragma once

#include "apps/common/command_line.h"
#include "apps/common/session.h"

namespace ingot::apps {

inline void AddSessionOptions(CommandLine& line, SessionOptions& options) {
  line.Add("EXE", options.path, "The executable").Required();
  line.Add("--entry", options.entry, "Function to call").ShowDefault();
  line.Add("--device", options.device, "Where it runs: cpu, cuda:0 (default: what the file is for)").Type("DEVICE");
  line.Add("--weights", options.weights,
           "Weights in the place of the executable's, by name (.safetensors, .npz); it must keep its own")
      .Type("FILE");
  line.Add("--require-signature", options.require_signature,
           "Refuse a file that this public key has not signed (a file of the key, or its 64 hex digits)")
      .Type("KEY");
  line.Add("--allow-sha256", options.allow_sha256, "Refuse a file whose SHA-256 is none of these")
      .Type("HEX")
      .OneEach();
}

}  // namespace ingot::apps
