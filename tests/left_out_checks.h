// Proof that every check of a loader is needed. `vm_tests --without-check=NAME` runs with that check left out (the
// tests hand the mask to the loader), so some test of the suite "checks" must fail; `--without-check=all` leaves each
// one out in turn and prints for how many a test failed. Exit code 0: for all of them. Names are "container.magic" and
// "vm.LabelTarget".
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "formats/container.h"
#include "vm/program/checks.h"

namespace ingot::test {

// Every check of every table, in the order of the tables.
std::vector<std::string> AllChecks();
// False for a name that no table has.
bool LeaveOutCheck(std::string_view name);
bool IsCheckLeftOut(std::string_view name);
// False when another check is left out. Cases that test only this check are skipped then.
bool IsWorthTesting(std::string_view name);
// The left-out checks of the container, for ContainerOptions::left_out.
formats::ContainerCheckMask LeftOutContainerChecks();
// The checks that the program's decoder and verifier are to make.
vm::CheckSet VmChecks();

// Runs this program once per check with that check left out.
int RunWithoutEachCheck(const char* program);

}  // namespace ingot::test
