// Decisions that are not the compiler's own, stored choices and settings and those that a search
// tries, are made in a worker first (workers::Rehearsal). They lead where the compiler's own never
// do, and come from texts that may be untrusted: an invariant that they violate must end the
// worker, and not the daemon with the sessions of all users.
#ifndef KILN_COMPILER_REHEARSE_H_
#define KILN_COMPILER_REHEARSE_H_

#include <string>

#include "absl/status/status.h"
#include "compiler/compiler.h"
#include "compiler/graph/graph.h"
#include "compiler/workers/kernel_compiler.h"
#include "drivers/interface/target.h"

namespace kiln::compiler {

// Jobs for a worker: does this part of a program, before the pass "normalize", get kernels with
// these choices? `key` is its GraphKey.
workers::KernelJob RehearsalOfChoices(const graph::Graph& part, const std::string& key,
                                      const std::string& choices, const drivers::Target& target,
                                      const Options& options);
// Has this kernel (kernel::Print) a schedule with this setting? Empty: has it a space, in which a
// search can begin?
workers::KernelJob RehearsalOfSetting(const std::string& name, const std::string& kernel,
                                      const std::string& setting, const drivers::Target& target);

// Executes such a job. The passes of a part run up to its kernels' schedules, nothing is emitted;
// of a setting, all that a search asks its space. Thread-safe.
absl::Status Rehearse(const workers::KernelJob& job);

// Whether the error of a rehearsal or of a compilation is about the decisions. Workers that have
// ended or cannot be started say nothing about them.
bool IsOfDecision(const absl::Status& error);

}  // namespace kiln::compiler

#endif  // KILN_COMPILER_REHEARSE_H_
