// How the process of a tool ends before its time: out of memory where nothing else reports it (before the body runs,
// in a thread, in a library) is exit code 6 with a message, and SIGINT, SIGTERM and SIGHUP end the process. Either way
// no temporary file is left behind. The libraries do none of this: it is the tools' alone.
#pragma once

namespace ingot::apps {

// Call it first in main. `name` must live as long as the process. A signal that is ignored stays so.
void PrepareProcess(const char* name);

// What ends the process out of memory; allocates nothing. Libraries that abort on a failed allocation call it.
[[noreturn]] void ExitOutOfMemory();

// A file that is removed when the process ends by a signal or out of memory. The name is listed before the file is
// made and until it is renamed or removed; throws std::bad_alloc. Thread-safe.
void ListTemporary(const char* path);
void UnlistTemporary(const char* path);

}  // namespace ingot::apps
