// Results of a program that are equal in every run, such as the initial zeros of an optimizer's
// moments, become one value under several handles. This is safe because a value with several
// handles never changes.
#ifndef KILN_SERVER_RUNTIME_PROGRAM_SHARE_RESULTS_H_
#define KILN_SERVER_RUNTIME_PROGRAM_SHARE_RESULTS_H_

#include <vector>

#include "compiler/compiler.h"
#include "server/runtime/program/signature.h"

namespace kiln::runtime {

// Returns, by result (outputs, then updates), the first result with the same value; for most,
// itself. Removes the copies that make the other results from `program`. Requires: a program on one
// device, and not a program for all values of a graph's variables, in which equal results may have
// different shapes.
std::vector<int> ShareResults(const Signature& signature, compiler::CompiledProgram* program);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_PROGRAM_SHARE_RESULTS_H_
