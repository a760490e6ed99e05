// How the C++ client's bindings spell the table of ops; also for tests that write calls of them.
#ifndef KILN_COMPILER_OPS_BINDINGS_OPGEN_CPP_H_
#define KILN_COMPILER_OPS_BINDINGS_OPGEN_CPP_H_

#include <string>
#include <string_view>

#include "compiler/ops/op_def.h"

namespace kiln::ops {

// "log_softmax" as LogSoftmax.
std::string CppName(std::string_view name);

// Whether clients call the op as a function. GraphBuilder itself makes inputs, since it counts
// them.
bool HasCppBinding(const OpDef& op);

// An operand's name without "?" and "*", which mark an optional one and any number of them.
std::string_view PlainName(std::string_view operand);
inline bool IsOptional(std::string_view operand) { return operand.back() == '?'; }
inline bool IsMany(std::string_view operand) { return operand.back() == '*'; }

// A value in C++: an initializer of an attribute of its type.
std::string CppValue(const AttributeValue& value);

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_BINDINGS_OPGEN_CPP_H_
