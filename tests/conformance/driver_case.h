// The drivers under test, and the properties of each that the suite needs.
#ifndef KILN_TESTS_CONFORMANCE_DRIVER_CASE_H_
#define KILN_TESTS_CONFORMANCE_DRIVER_CASE_H_

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include "drivers/interface/driver.h"
#include "tests/conformance/test_kernels.h"

namespace kiln::conformance {

enum class Feature {
  kKernels,      // runs kernels: test_kernels are given
  kBlocks,       // runs kernels whose grid points are blocks of threads
  kTwoDevices,   // has at least two devices
  kPeers,        // and they can access each other's memory
  kMemoryLimit,  // the suite may allocate until memory is exhausted
};
const char* Name(Feature feature);

struct Unsupported {
  Feature feature;
  std::string reason;
};

struct DriverCase {
  std::string name;
  std::function<std::unique_ptr<drivers::Driver>()> make;
  // Null if kernels are unsupported.
  std::function<TestKernels(const drivers::Target&)> kernels;
  std::vector<Unsupported> unsupported;
  bool finishes = false;  // images are finished before they are loaded (drivers::Driver::Finish)

  // Returns the reason if a feature is unsupported; empty if it is supported.
  std::string WhyNot(Feature feature) const;
};

std::vector<DriverCase> AllDriverCases();

inline void PrintTo(const DriverCase& driver_case, std::ostream* out) { *out << driver_case.name; }

}  // namespace kiln::conformance

#endif  // KILN_TESTS_CONFORMANCE_DRIVER_CASE_H_
