// Computes how a program's kernels would be launched, whether those with much work have blocks for
// all units of a device, and whether large contractions have tiles and use matrix units.
#ifndef KILN_TESTS_LAUNCHES_LAUNCHES_H_
#define KILN_TESTS_LAUNCHES_LAUNCHES_H_

#include <cstdint>
#include <string>
#include <vector>

#include "compiler/compiler.h"
#include "drivers/interface/target.h"

namespace kiln::launches {

// Work is large if it keeps the whole device busy for at least this long, by the device's rates. A
// kernel's start and end take half of this time.
inline constexpr double kLargeSeconds = 5e-6;
// A contraction of so many operations is large.
inline constexpr int64_t kLargeContraction = int64_t{1} << 30;

struct Launch {
  int kernel = 0;               // the program's kernel number
  int calls = 0;                // in one run
  double seconds = 0;           // of one call, if the whole device were busy
  double launched_seconds = 0;  // of one call including its start, on the units that have a block
  int64_t blocks = 0;
  int64_t threads = 0;  // of all blocks
  bool large = false;
  // True if it updates an existing buffer, in order. `wide` does not require anything of such
  // kernels, since their work may not be distributable.
  bool scatters = false;
  // True if blocks distribute a large kernel's work among all units, at least two for each, or if
  // that is not required.
  bool wide = true;
  // Operations of the kernel's contractions: sums of products in which both factors are read many
  // times.
  int64_t contraction_flops = 0;
  bool tiled = false;  // factors are in shared memory
  bool on_matrix_units = false;
  bool fits_matrix_units = false;  // all factors are of a type that the units take

  // Returns why a large contraction is slow; empty if it is not.
  std::string Slow() const;
};

// Returns the launches of all kernels; those that take the longest in a run come first.
std::vector<Launch> FindLaunches(const compiler::CompiledProgram& program,
                                 const drivers::Target& target);

}  // namespace kiln::launches

#endif  // KILN_TESTS_LAUNCHES_LAUNCHES_H_
