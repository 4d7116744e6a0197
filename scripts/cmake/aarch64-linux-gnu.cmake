# Cross-compiles for aarch64 Linux with Debian's g++-aarch64-linux-gnu; zstd, xxhash and zlib are Debian's for arm64
# (dpkg --add-architecture arm64; scripts/setup installs them). Where qemu-user is installed, tests run under it.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
# Programs are the host's, and Debian keeps no other machine's libraries where the default search looks.
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
find_program(INGOT_QEMU_AARCH64 qemu-aarch64)
if(INGOT_QEMU_AARCH64)
  set(CMAKE_CROSSCOMPILING_EMULATOR ${INGOT_QEMU_AARCH64};-L;/usr/aarch64-linux-gnu)
endif()
