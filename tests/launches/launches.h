// How a program's kernels would be launched: whether those with much work have blocks for all of a
// device's units.
#ifndef KILN_TESTS_LAUNCHES_LAUNCHES_H_
#define KILN_TESTS_LAUNCHES_LAUNCHES_H_

#include <cstdint>
#include <vector>

#include "compiler/compiler.h"
#include "drivers/interface/target.h"

namespace kiln::launches {

// Work that keeps the whole device busy for this long, by its rates, is large. In half the time a
// kernel starts and ends.
inline constexpr double kLargeSeconds = 5e-6;

struct Launch {
  int kernel = 0;               // of the program's
  int calls = 0;                // in one run
  double seconds = 0;           // of one call, if the whole device were busy
  double launched_seconds = 0;  // of one call with its start, on the units that have a block
  int64_t blocks = 0;
  int64_t threads = 0;  // of all blocks
  bool large = false;
  // It writes over a part of what is there, in an order; how far that may be shared out is a
  // question of its own.
  bool scatters = false;
  // Whether blocks share out a large kernel's work among all units, at least two for each, or it
  // need not be so.
  bool wide = true;
};

// Of every kernel; those that take the longest in a run first.
std::vector<Launch> FindLaunches(const compiler::CompiledProgram& program,
                                 const drivers::Target& target);

}  // namespace kiln::launches

#endif  // KILN_TESTS_LAUNCHES_LAUNCHES_H_
