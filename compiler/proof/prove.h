// The proof that a schedule changed how a kernel is computed and nothing else.
//
// The loop program and the kernel are both evaluated, over numbers in which different expressions
// give different values (value.h), on samples of the iteration space: the axes' first and last
// places, the ends of ragged tiles, and random places, in combinations that change from round to
// round. The two must write the same values to the same elements equally often. The samples are
// finite, so what is proved is proved with a probability; what a mistake in a schedule's
// application looks like, a wrong term of an index, a bound, a condition, the range of a copy, is
// wrong nearly everywhere or at an end. (Translation validation: Pnueli, Siegel and Singerman,
// TACAS 1998; on random numbers: Schwartz, 1980.)
#ifndef KILN_COMPILER_PROOF_PROVE_H_
#define KILN_COMPILER_PROOF_PROVE_H_

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"

namespace kiln::proof {

// Takes about a millisecond for most kernels. `program` is what schedule::Apply made of `kernel`.
// INTERNAL says where they differ; IsDisproof tells it from other errors. Thread-safe.
absl::Status Prove(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                   const schedule::LoopProgram& program);

bool IsDisproof(const absl::Status& status);

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_PROVE_H_
