// Results of a program that are the same in every run, such as the zeros that an optimizer's
// moments begin with: one value under several handles, since values never change.
#ifndef KILN_SERVER_RUNTIME_SHARE_RESULTS_H_
#define KILN_SERVER_RUNTIME_SHARE_RESULTS_H_

#include <vector>

#include "compiler/compiler.h"
#include "server/runtime/signature.h"

namespace kiln::runtime {

// By result (outputs, then updates): the first one whose value it is, itself for most. Takes the
// copies that make such results out of `program`, a program on one device. Not for a program for
// all values of a graph's variables: what is one result there may be two of different shapes.
std::vector<int> ShareResults(const Signature& signature, compiler::CompiledProgram* program);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_SHARE_RESULTS_H_
