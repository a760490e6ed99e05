// Proves that a schedule changed only how a kernel is computed.
//
// Evaluates the loop program and the kernel at samples of the iteration space, over numbers in
// which different expressions give different values (value.h). Samples are the axes' first and last
// iterations, the ends of ragged tiles, and random iterations, in combinations that change from
// round to round; and the edges of conditions by which terms are skipped. Both must write the same
// values to the same elements equally often. The samples are finite, so the proof is probabilistic.
// But typical mistakes in applying a schedule (a wrong index term, bound, condition, or range of a
// copy) are wrong nearly everywhere or at an end. (Translation validation: Pnueli, Siegel and
// Singerman, TACAS 1998; on random numbers: Schwartz, 1980.)
#ifndef KILN_COMPILER_PROOF_PROVE_H_
#define KILN_COMPILER_PROOF_PROVE_H_

#include "absl/status/status.h"
#include "compiler/kernel/kernel.h"
#include "compiler/schedule/loop_program.h"
#include "compiler/schedule/schedule.h"

namespace kiln::proof {

// Takes about a millisecond for most kernels. Requires: `program` is schedule::Apply's result for
// `kernel`. An INTERNAL error says where they differ; IsDisproof distinguishes it from other
// errors. Thread-safe.
absl::Status Prove(const kernel::Kernel& kernel, const schedule::Schedule& schedule,
                   const schedule::LoopProgram& program);

bool IsDisproof(const absl::Status& status);

}  // namespace kiln::proof

#endif  // KILN_COMPILER_PROOF_PROVE_H_
