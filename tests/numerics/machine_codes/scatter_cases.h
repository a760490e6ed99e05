// Scatters with too many positions for one thread to process serially, on any device that runs
// graphs.
#ifndef KILN_TESTS_NUMERICS_MACHINE_CODES_SCATTER_CASES_H_
#define KILN_TESTS_NUMERICS_MACHINE_CODES_SCATTER_CASES_H_

#include <string>
#include <vector>

#include "tests/numerics/cases/cases.h"
#include "tests/numerics/machine_codes/graph_checks.h"

namespace kiln::numerics {

struct ScatterCase {
  std::string name;
  ir::Shape x, index, values;
  int64_t axis = 0;
  double low = 0, high = 0;  // of the index: [low, high)
  bool large = false;        // the interpreters need seconds for it
};
// Few and many destinations; with one and with several positions each; indices out of range.
const std::vector<ScatterCase>& ScatterCases();
const ScatterCase& FindScatterCase(const std::string& name);
inline constexpr const char* kScatterModes[] = {"set", "add", "mul", "max", "min"};

// Checks that the device's result is the interpreter's, within the effect of another order of sums,
// and has the same bits when it runs again; with `gradients`, the same for the gradients of all
// floats.
void ExpectScatterRight(const ScatterCase& scatter, const std::string& mode, ir::DType dtype,
                        bool gradients, const RunGraph& run);

}  // namespace kiln::numerics

#endif  // KILN_TESTS_NUMERICS_MACHINE_CODES_SCATTER_CASES_H_
