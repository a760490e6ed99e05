// Branches, calls, exits and barriers.
#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

// Every loop calls this, so a kernel that hangs is detected here.
bool MayBranch(Thread& thread, const Instruction& i) {
  Block& block = *thread.block;
  if (--block.branches_left < 0) {
    thread.Fail(i, FaultKind::kTimeout,
                absl::StrCat("launch timed out: it took more than ", block.options.branches_max,
                             " branches"));
    return false;
  }
  if ((block.branches_left & 0xfff) == 0 && block.options.stop != nullptr && *block.options.stop) {
    thread.Fail(i, FaultKind::kTimeout, "it was stopped");
    return false;
  }
  return true;
}

void JumpTo(Thread& thread, int64_t statement) {
  const Program& program = *thread.block->program;
  thread.next = &program.instructions[thread.frame().function->first + statement];
}

void Branch(Thread& thread, const Instruction& i) {
  if (MayBranch(thread, i)) JumpTo(thread, i.offset);
}
void BranchByIndex(Thread& thread, const Instruction& i) {
  const auto index = static_cast<uint32_t>(thread.slots[i.a]);
  if (index >= i.list_size)
    return thread.Fail(i, FaultKind::kUndefined, "the index is beyond the list of targets");
  if (MayBranch(thread, i)) JumpTo(thread, thread.block->program->lists[i.list + index]);
}

void Exit(Thread& thread, const Instruction& i) {
  ++thread.copy_group;
  EndCopies(thread, 0);
  if (thread.state != ThreadState::kFailed) thread.Stop(i, ThreadState::kExited);
}
void Return(Thread& thread, const Instruction& i) {
  if (thread.frames.size() == 1) return Exit(thread, i);
  thread.Leave();
}
void Trap(Thread& thread, const Instruction& i) {
  thread.Fail(i, FaultKind::kTrap, "the kernel ended itself");
}

// The list: places of the results in the caller's parameters, then those of the arguments.
void Call(Thread& thread, const Instruction& i) {
  if (!MayBranch(thread, i)) return;
  const DecodedFunction& callee = thread.block->program->functions[i.offset];
  const int64_t caller_parameters = thread.frame().parameters;
  thread.Enter(callee, &i);
  if (thread.state == ThreadState::kFailed) return;
  const uint32_t* arguments = thread.block->program->lists.data() + i.list + callee.results.size();
  for (size_t p = 0; p < callee.parameters.size(); ++p) {
    std::memmove(&thread.parameters[thread.frame().parameters + callee.parameters[p]],
                 &thread.parameters[caller_parameters + arguments[p]], callee.parameter_sizes[p]);
  }
}

void DecodeBranch(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  decoder.Take("uni");
  if (decoder.head() == "bra") {
    i.execute = Branch;
    if (decoder.Expect(1, 1)) i.offset = decoder.FindLabel(decoder.operand(0).name);
    return;
  }
  if (!decoder.Take("idx")) return decoder.Invalid("no .idx");
  if (!decoder.Expect(2, 2)) return;
  i.execute = BranchByIndex;
  i.a = decoder.Read(0, Type::kU32);
  const auto* targets = decoder.FindBranchTargets(decoder.operand(1).name);
  if (targets == nullptr) return decoder.Invalid("there is no such list of targets");
  decoder.StartList();
  for (const std::string& target : *targets)
    decoder.AddToList(static_cast<uint32_t>(decoder.FindLabel(target)));
}

void AddParameters(StatementDecoder& decoder, const Operand& list) {
  for (const Operand& item : list.elements) {
    const Names::Place* place = decoder.FindVariable(item);
    if (place == nullptr || place->space != Space::kParam)
      return decoder.Refuse("an argument that is no .param variable");
    decoder.AddToList(static_cast<uint32_t>(place->address));
  }
}

void DecodeCall(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  decoder.Take("uni");
  size_t at = 0;
  decoder.StartList();
  if (decoder.operand(0).kind == Operand::Kind::kList)
    AddParameters(decoder, decoder.operand(at++));
  const int callee = decoder.FindFunction(decoder.operand(at++).name);
  if (callee < 0) return decoder.Refuse("a call of what is no function of the module");
  if (at < decoder.operands()) AddParameters(decoder, decoder.operand(at++));
  if (at < decoder.operands()) decoder.Refuse("a call through a register");
  i.offset = callee;
  i.execute = Call;
}

void WaitAtBarrier(Thread& thread, const Instruction& i) {
  thread.Stop(i, ThreadState::kAtBarrier);
}
void WaitInWarp(Thread& thread, const Instruction& i) { thread.Stop(i, ThreadState::kInWarp); }
void PassWarpBarrier(Warp& warp, const Instruction&, uint32_t members) {
  uint32_t live = 0;
  for (int lane = 0; lane < warp.lanes; ++lane)
    if (warp.lane(lane).state != ThreadState::kExited) live |= uint32_t{1} << lane;
  // Synchronization by a part of a warp is not tracked, so ordered accesses may be reported as a
  // race.
  if ((members & live) == live) warp.block->shared.WarpBarrier(warp.first / 32);
}

}  // namespace

void DecodeControl(StatementDecoder& decoder) {
  const std::string& head = decoder.head();
  if (head == "bra" || head == "brx") return DecodeBranch(decoder);
  if (head == "call") return DecodeCall(decoder);
  decoder.Take("uni");
  decoder.Expect(0, 0);
  decoder.instruction.execute = head == "ret" ? Return : head == "exit" ? Exit : Trap;
}

void DecodeBarrier(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  if (decoder.Take("warp")) {
    if (!decoder.Take("sync")) return decoder.Refuse("the barrier");
    i.execute = WaitInWarp;
    i.collective = PassWarpBarrier;
    i.members = decoder.Read(0, Type::kB32);
    return;
  }
  const bool aligned = decoder.Take("aligned");
  i.aligned = decoder.head() == "bar" || aligned;
  decoder.Take("cta");
  i.execute = WaitAtBarrier;
  size_t at = 0;
  if (decoder.Take("red")) {
    i.operation = 1 + decoder.TakeOneOf({"popc", "and", "or"}, 3);
    if (i.operation > 3) return decoder.Refuse("the reduction");
    i.to = decoder.Write(at++, decoder.TakeType() == Type::kPred ? Type::kPred : Type::kU32);
  } else if (!decoder.Take("sync")) {
    return decoder.Refuse("a barrier that does not wait");
  }
  i.a = decoder.Read(at++, Type::kU32);
  const size_t predicate = i.operation != 0 ? 1 : 0;
  if (decoder.operands() > at + predicate) i.b = decoder.Read(at++, Type::kU32);
  if (predicate != 0) i.c = decoder.ReadPredicate(at++, &i.negated);
  decoder.Expect(at, at);
}

}  // namespace kiln::stand_ins::ptx
