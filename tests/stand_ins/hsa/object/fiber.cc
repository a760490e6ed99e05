#include "tests/stand_ins/hsa/object/fiber.h"

namespace kiln::stand_ins::hsa {

static_assert(offsetof(Fiber, own_stack) == 40);
static_assert(offsetof(Fiber, host_stack) == 48);
static_assert(offsetof(Fiber, state) == 56);
static_assert(offsetof(Fiber, site) == 64);
static_assert(offsetof(Fiber, thread) == 72);
static_assert(offsetof(Fiber, value) == 80);

extern "C" {
void KilnFiberResume(Fiber* fiber);
void KilnFiberBegin();
void KilnFiberBarrier(codegen::HostTwinCall* call);
uint32_t KilnFiberShuffle(codegen::HostTwinCall* call, uint32_t thread, uint32_t value);
}

// Callee-saved registers are pushed to the stack that is left. A fiber begins as if it had been
// left just before KilnFiberBegin, with itself in r12 and its function in r13.
asm(R"(
.text
.p2align 4
.local KilnFiberResume
KilnFiberResume:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, 48(%rdi)
  mov 40(%rdi), %rsp
  jmp KilnFiberReturn
.p2align 4
.local KilnFiberLeave
KilnFiberLeave:
  push %rbp
  push %rbx
  push %r12
  push %r13
  push %r14
  push %r15
  mov %rsp, 40(%rdi)
  mov 48(%rdi), %rsp
KilnFiberReturn:
  pop %r15
  pop %r14
  pop %r13
  pop %r12
  pop %rbx
  pop %rbp
  ret
.p2align 4
.local KilnFiberBegin
KilnFiberBegin:
  mov %r12, %rdi
  call *%r13
  movq $3, 56(%r12)
  mov %r12, %rdi
  call KilnFiberLeave
  ud2
.p2align 4
.local KilnFiberBarrier
KilnFiberBarrier:
  movq $1, 56(%rdi)
  mov (%rsp), %rax
  mov %rax, 64(%rdi)
  jmp KilnFiberLeave
.p2align 4
.local KilnFiberShuffle
KilnFiberShuffle:
  movq $2, 56(%rdi)
  mov (%rsp), %rax
  mov %rax, 64(%rdi)
  mov %esi, %esi
  mov %rsi, 72(%rdi)
  mov %edx, %edx
  mov %rdx, 80(%rdi)
  push %rdi
  call KilnFiberLeave
  pop %rdi
  mov 80(%rdi), %eax
  ret
)");

void StartFiber(Fiber* fiber, codegen::HostTwin twin, void* stack_end) {
  fiber->call.barrier = KilnFiberBarrier;
  fiber->call.shuffle = KilnFiberShuffle;
  fiber->state = FiberState::kRuns;
  // r15, r14, r13, r12, rbx, rbp, and the return address; above them the stack is aligned as after
  // a call.
  auto* top = static_cast<void**>(stack_end) - 7;
  top[0] = top[1] = top[4] = top[5] = nullptr;
  top[2] = reinterpret_cast<void*>(twin);
  top[3] = fiber;
  top[6] = reinterpret_cast<void*>(&KilnFiberBegin);
  fiber->own_stack = top;
}

void ResumeFiber(Fiber* fiber) {
  fiber->state = FiberState::kRuns;
  KilnFiberResume(fiber);
}

}  // namespace kiln::stand_ins::hsa
