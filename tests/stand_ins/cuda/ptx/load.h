// A PTX text prepared for launches, with its variables in device memory.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_LOAD_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_LOAD_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/memory.h"
#include "tests/stand_ins/cuda/ptx/program.h"
#include "tests/stand_ins/cuda/ptx/syntax.h"

namespace kiln::stand_ins::ptx {

struct LoadedVariable {
  std::string name;
  Region region;
};

struct LoadedModule {
  int version;  // 87 for 8.7
  std::string target;
  Program program;
  std::vector<LoadedVariable> variables;  // .global and .const

  const LoadedVariable* FindVariable(absl::string_view name) const;
};

// Returns zeroed device memory.
using AllocateVariable = absl::FunctionRef<Region(int64_t bytes, int64_t alignment)>;

// The errors of Parse and Decode.
absl::StatusOr<std::unique_ptr<LoadedModule>> Load(absl::string_view text,
                                                   AllocateVariable allocate);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_LOAD_H_
