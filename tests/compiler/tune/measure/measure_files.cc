// Measures files on runners, for acceptance/tune_runners.py: a pool as a tool has it. The function "main" gets random
// inputs of the dims that its signature has; its results are compared with the reference's.
// usage: measure_files WORKER EXECUTABLE REFERENCE DIMS COUNT FAULT COMMAND...    (DIMS: 1,3,8,8 of the only input;
// FAULT: a number of TestFault). A line per measurement, as it comes: id, runner, outcome, signal, repeats, error.
#include <cstdio>
#include <cstdlib>
#include <string>

#include "compiler/tune/measure/runner_pool.h"
#include "formats/file.h"

namespace {

using namespace ingot;  // NOLINT: a program of its own

SharedBytes FileBytes(const char* path) {
  Result<SharedBytes> bytes = formats::MapFile(path);
  if (!bytes.ok()) std::fprintf(stderr, "%s\n", bytes.status().message().c_str()), std::exit(3);
  return *bytes;
}

int Fail(const Status& status) {
  std::fprintf(stderr, "%s\n", status.message().c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 8) return 2;
  tune::RunnerPoolOptions options;
  options.worker = argv[1];
  tune::Candidate candidate;
  candidate.program = {FileBytes(argv[2]), "main"};
  candidate.reference = {FileBytes(argv[3]), "main"};
  tune::MeasuredInput input;
  for (const char* text = argv[4]; *text != '\0';) {
    char* end = nullptr;
    input.dims.push_back(std::strtoll(text, &end, 10));
    text = *end == ',' ? end + 1 : end;
  }
  candidate.inputs = {input};
  candidate.options.fault = static_cast<tune::TestFault>(std::atoi(argv[6]));
  candidate.options.max_memory_bytes = 512 << 20;
  candidate.options.timeout_seconds = candidate.options.fault == tune::TestFault::kHang ? 1 : 30;
  candidate.options.flush_bytes = 4 << 20;
  const Result<std::unique_ptr<tune::RunnerPool>> pool =
      tune::RunnerPool::Create({argv + 7, argv + argc}, std::move(options));
  if (!pool.ok()) return Fail(pool.status());
  const int count = std::atoi(argv[5]);
  for (int i = 0; i < count; ++i) {
    candidate.id = static_cast<uint64_t>(i);
    (*pool)->Submit(candidate);
  }
  for (int i = 0; i < count; ++i) {
    const Result<tune::Measurement> measured = (*pool)->Next();
    if (!measured.ok()) return Fail(measured.status());
    std::printf("%llu\t%d\t%s\t%d\t%zu\t%s\n", static_cast<unsigned long long>(measured->id), measured->runner,
                std::string(tune::OutcomeName(measured->outcome)).c_str(), measured->signal, measured->seconds.size(),
                measured->error.c_str());
    std::fflush(stdout);
  }
  for (int i = 0; i < argc - 7; ++i) {
    std::printf("runner\t%d\t%s\t%s\n", i, (*pool)->machine(i).architecture.c_str(), (*pool)->loss(i).c_str());
  }
  return 0;
}
