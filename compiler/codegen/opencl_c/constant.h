// Constants as OpenCL C. Internal to codegen/opencl_c.
#ifndef KILN_COMPILER_CODEGEN_OPENCL_C_CONSTANT_H_
#define KILN_COMPILER_CODEGEN_OPENCL_C_CONSTANT_H_

#include <string>

#include "compiler/ir/node.h"

namespace kiln::codegen {

// Returns the text of a kConst, exact and typed: "0.1f", "5L", "5u"; for a short float its bits.
std::string ConstantText(const ir::Node* node);
std::string FloatText(double value, ir::DType dtype);

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_OPENCL_C_CONSTANT_H_
