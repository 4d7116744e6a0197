// Checks whether this machine has what a file needs, without running it: vm-inspect --doctor. In: an opened container,
// its verified program (which may lack the elements of its constants) and shapes; out: one finding per need. Nothing is
// loaded, mapped executable or run, and no weight is read.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "formats/container.h"
#include "runtime/status.h"
#include "vm/program/program.h"
#include "vm/verify/memory_peak.h"

namespace ingot::vm {

struct Finding {
  std::string what;                      // "cpu", "memory of \"main\"", ...
  std::string needs;                     // what the file says
  std::string has;                       // what is here
  StatusCode verdict = StatusCode::kOk;  // what opening or calling it would fail with
};

struct DoctorOptions {
  std::span<const std::byte> file;     // all of it, of which the container is a part
  GivenShapes shapes;                  // of the calls whose memory is asked for
  std::string directory;               // where files of weights are looked for
  std::string machine_policy_path;     // where the machine's trust policy would be
  int64_t available_memory_bytes = 0;  // as AvailableMemoryBytes says
};

std::vector<Finding> Diagnose(const formats::Container& container, const Program& program,
                              const DoctorOptions& options);

// The memory that Linux could give to a new process without swapping (/proc/meminfo); 0: not known.
int64_t AvailableMemoryBytes();

}  // namespace ingot::vm
