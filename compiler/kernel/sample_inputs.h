// Inputs on which different schedules of a kernel are compared and timed.
#ifndef KILN_COMPILER_KERNEL_SAMPLE_INPUTS_H_
#define KILN_COMPILER_KERNEL_SAMPLE_INPUTS_H_

#include <cstdint>
#include <string_view>

#include "absl/types/span.h"
#include "compiler/kernel/kernel.h"

namespace kiln::kernel {

// Returns the exclusive upper bound of random integers, so that most are in range if they are an
// index or a label: the number with which the kernel compares, or its longest loop.
int64_t IntegerBound(const Kernel& kernel);

struct InputKind {
  bool whole = true;
  bool positive = false;
  int64_t integer_bound = 2;
};
// Fills `elements` numbers: floats of a magnitude of 1 or 2, or between 1/2 and 2; integers in [0,
// integer_bound), within the range of the dtype.
void FillRandom(ir::DType dtype, int64_t elements, const InputKind& kind, uint64_t seed,
                void* data);

// Kinds of inputs that show different faults of a schedule.
enum class Sample : uint8_t {
  kRandom,      // of both signs
  kPositive,    // random: for kernels with roots and logarithms
  kOdd,         // zeros of both signs, subnormal numbers, NaN, between random numbers
  kInfinities,  // of both signs, between random numbers
  kEqual,       // all equal: ties
};
absl::Span<const Sample> Samples();
std::string_view NameOf(Sample sample);

// Fills an input of a kernel. Floats are whole numbers if `whole`, except odd ones.
void FillSample(Sample sample, ir::DType dtype, int64_t elements, int64_t integer_bound, bool whole,
                uint64_t seed, void* data);

// Multiplies floats by random factors between 1 - relative and 1 + relative.
void Perturb(ir::DType dtype, int64_t elements, double relative, uint64_t seed, void* data);

// Returns whether all sums of the kernel are exact, in any order, if floats are whole: they add
// products of inputs. Sums of other values should have random numbers as inputs that are not whole,
// since repeated roundings of a few values have the same direction.
bool HasExactSums(const Kernel& kernel);

// Returns element `i`, in any dtype.
double ElementAt(ir::DType dtype, const void* data, int64_t i);

}  // namespace kiln::kernel

#endif  // KILN_COMPILER_KERNEL_SAMPLE_INPUTS_H_
