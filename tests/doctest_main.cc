// The main function of compiler_tests and of validation_tests; their command line is doctest's. Written out, since
// doctest defines one only where its header is not precompiled.
#define DOCTEST_CONFIG_IMPLEMENT
#include <doctest/doctest.h>

int main(int argc, char** argv) { return doctest::Context(argc, argv).run(); }
