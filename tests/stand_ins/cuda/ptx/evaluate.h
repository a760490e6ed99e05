// Turns a function of three operands' bits into an instruction's implementation.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_EVALUATE_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_EVALUATE_H_

#include <cstdint>
#include <type_traits>

#include "tests/stand_ins/cuda/ptx/machine.h"

namespace kiln::stand_ins::ptx {

// F(a, b, c, instruction) -> bits; if the type is narrower than its register, sign-extended.
template <auto F>
void Evaluate(Thread& thread, const Instruction& i) {
  uint64_t* const slots = thread.slots;
  slots[i.to] = F(slots[i.a], slots[i.b], slots[i.c], i);
}

// The same for both halves of registers, each of kBits bits.
template <auto F, int kBits>
void EvaluatePair(Thread& thread, const Instruction& i) {
  constexpr uint64_t kMask = (uint64_t{1} << kBits) - 1;
  uint64_t* const slots = thread.slots;
  const uint64_t a = slots[i.a];
  const uint64_t b = slots[i.b];
  const uint64_t c = slots[i.c];
  const uint64_t low = F(a & kMask, b & kMask, c & kMask, i) & kMask;
  const uint64_t high = F(a >> kBits & kMask, b >> kBits & kMask, c >> kBits & kMask, i) & kMask;
  slots[i.to] = high << kBits | low;
}

// Extends to a 64-bit register.
template <typename T>
uint64_t Extend(T value) {
  if constexpr (std::is_signed_v<T>) return static_cast<uint64_t>(static_cast<int64_t>(value));
  return value;
}

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_EVALUATE_H_
