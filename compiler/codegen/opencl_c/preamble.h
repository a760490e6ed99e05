// The text before a printed kernel: pragmas, type names and the functions that it calls. Internal
// to codegen/opencl_c.
#ifndef KILN_COMPILER_CODEGEN_OPENCL_C_PREAMBLE_H_
#define KILN_COMPILER_CODEGEN_OPENCL_C_PREAMBLE_H_

#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include "compiler/ir/dtype.h"

namespace kiln::codegen {

// Collects the types and functions that a kernel needs while it is printed.
class Preamble {
 public:
  // Returns the type of an expression: "float", "long". Short floats are represented by their bits
  // ("float16_bits"), since only casts use their values.
  std::string_view Type(ir::DType dtype);
  // Returns the type of an element of a global buffer; like Type, but a bool is a byte.
  std::string_view MemoryType(ir::DType dtype);

  // Returns the function that does `stem` for the dtype, for example "floor_div_int32"; the table
  // in preamble.cc has the stems.
  std::string Function(std::string_view stem, ir::DType dtype);

  // Returns all types and functions that were requested, each once, callees before callers.
  std::string Text() const;

 private:
  std::set<ir::DType> types_;
  std::set<std::pair<size_t, ir::DType>> functions_;  // rows of the table and their dtypes
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_OPENCL_C_PREAMBLE_H_
