// The list of temporaries is read by signal handlers: its nodes are only ever added, and are used again. A node says by
// its state whether its name is there, so that a handler never reads a name that is being written.
#include "apps/common/process.h"

#include <unistd.h>

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>

#include "apps/common/exit_code.h"

namespace ingot::apps {
namespace {

enum class NodeState : int { kFree, kChanging, kListed };

struct TemporaryNode {
  std::atomic<NodeState> state{NodeState::kChanging};
  TemporaryNode* next = nullptr;
  char path[PATH_MAX];
};

// Handlers have no other way to what they need.
std::atomic<TemporaryNode*> first_temporary{nullptr};
const char* process_name = "";

static_assert(std::atomic<TemporaryNode*>::is_always_lock_free && std::atomic<NodeState>::is_always_lock_free);

// Safe in a signal handler.
void RemoveTemporaries() {
  for (TemporaryNode* node = first_temporary.load(); node != nullptr; node = node->next) {
    if (node->state.load() == NodeState::kListed) unlink(node->path);
  }
}

void RemoveTemporariesAndDie(int signal) {
  RemoveTemporaries();
  std::signal(signal, SIG_DFL);
  raise(signal);  // delivered when the handler returns
}

void Say(const char* text) {
  const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
  static_cast<void>(written);  // there is nothing left to do about it
}

[[noreturn]] void OnTerminate() {
  if (const std::exception_ptr exception = std::current_exception()) {
    try {
      std::rethrow_exception(exception);
    } catch (const std::bad_alloc&) {
      ExitOutOfMemory();
    } catch (const std::length_error&) {
      ExitOutOfMemory();
    } catch (...) {
    }
  }
  RemoveTemporaries();
  std::abort();
}

}  // namespace

void PrepareProcess(const char* name) {
  process_name = name;
  std::set_terminate(OnTerminate);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    if (std::signal(signal, RemoveTemporariesAndDie) == SIG_IGN) std::signal(signal, SIG_IGN);
  }
}

void ExitOutOfMemory() {
  RemoveTemporaries();
  Say(process_name);
  Say(": error: out of memory\n");
  _exit(kExitOutOfMemory);
}

void ListTemporary(const char* path) {
  const size_t bytes = std::strlen(path) + 1;
  if (bytes > PATH_MAX) return;  // no file can have this name
  TemporaryNode* node = first_temporary.load();
  for (; node != nullptr; node = node->next) {
    NodeState expected = NodeState::kFree;
    if (node->state.compare_exchange_strong(expected, NodeState::kChanging)) break;
  }
  const bool is_new = node == nullptr;
  if (is_new) node = new TemporaryNode();
  std::memcpy(node->path, path, bytes);
  node->state = NodeState::kListed;
  if (!is_new) return;
  node->next = first_temporary.load();
  while (!first_temporary.compare_exchange_weak(node->next, node)) {
  }
}

void UnlistTemporary(const char* path) {
  for (TemporaryNode* node = first_temporary.load(); node != nullptr; node = node->next) {
    if (node->state.load() != NodeState::kListed || std::strcmp(node->path, path) != 0) continue;
    node->state = NodeState::kFree;
    return;
  }
}

}  // namespace ingot::apps
