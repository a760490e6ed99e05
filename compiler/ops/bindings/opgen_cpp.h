// The names and values of the table of ops in the C++ client's bindings; also for tests that
// generate calls of them.
#ifndef KILN_COMPILER_OPS_BINDINGS_OPGEN_CPP_H_
#define KILN_COMPILER_OPS_BINDINGS_OPGEN_CPP_H_

#include <string>
#include <string_view>

#include "compiler/ops/op_def.h"

namespace kiln::ops {

// Converts "log_softmax" to LogSoftmax.
std::string CppName(std::string_view name);

// Returns whether clients call the op as a function. GraphBuilder makes inputs itself, since it
// counts them.
bool HasCppBinding(const OpDef& op);

// Returns an operand's name without "?" and "*", which mark an optional operand and a variable
// number of them.
std::string_view PlainName(std::string_view operand);
inline bool IsOptional(std::string_view operand) { return operand.back() == '?'; }
inline bool IsMany(std::string_view operand) { return operand.back() == '*'; }

// Returns a value in C++: an initializer of an attribute of its type.
std::string CppValue(const AttributeValue& value);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BINDINGS_OPGEN_CPP_H_
