// A compiler for tests: one kernel of the fake device for each output and update, without fusion
// and without LLVM.
#ifndef KILN_SERVER_TESTING_FAKE_COMPILER_H_
#define KILN_SERVER_TESTING_FAKE_COMPILER_H_

#include "absl/status/statusor.h"
#include "compiler/compiler.h"

namespace kiln::testing {

// Supports results that are an input ("copy"), the sum of two inputs ("add") or the negation of an
// input, which stands for a kernel that fails ("fail"). UNIMPLEMENTED for anything else. With a
// cache, looks up and stores each kernel there. The text of a kernel, for which it looks up a
// setting, is its name and a line feed.
absl::StatusOr<compiler::CompiledProgram> FakeCompile(const graph::Graph& graph,
                                                      const drivers::Target& target,
                                                      const compiler::Options& options);

}  // namespace kiln::testing

#endif  // KILN_SERVER_TESTING_FAKE_COMPILER_H_
