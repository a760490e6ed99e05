// Operations of a warp's threads together: shuffles, votes, reductions.
#include "absl/strings/str_cat.h"
#include "tests/stand_ins/cuda/ptx/decode.h"
#include "tests/stand_ins/cuda/ptx/evaluate.h"

namespace kiln::stand_ins::ptx {
namespace {

enum class Shuffle : uint8_t { kUp, kDown, kButterfly, kIndex };
enum class Vote : uint8_t { kAll, kAny, kUniform, kBallot };
enum class Reduction : uint8_t { kAdd, kMin, kMax, kAnd, kOr, kXor };

void WaitForWarp(Thread& thread, const Instruction& i) { thread.Stop(i, ThreadState::kInWarp); }

template <typename Function>
void ForMembers(const Warp& warp, uint32_t members, Function function) {
  for (int lane = 0; lane < warp.lanes; ++lane)
    if ((members >> lane & 1) != 0) function(lane);
}

// The lane that a lane reads from, by PTX's own pseudocode.
int SourceLane(Shuffle mode, int lane, uint32_t b, uint32_t c, bool* in_range) {
  const int offset = static_cast<int>(b & 0x1f);
  const int clamp = static_cast<int>(c & 0x1f);
  const int segment = static_cast<int>(c >> 8 & 0x1f);
  const int highest = (lane & segment) | (clamp & ~segment);
  const int lowest = lane & segment;
  int source = lane;
  switch (mode) {
    case Shuffle::kUp:
      source = lane - offset;
      *in_range = source >= highest;
      break;
    case Shuffle::kDown:
      source = lane + offset;
      *in_range = source <= highest;
      break;
    case Shuffle::kButterfly:
      source = lane ^ offset;
      *in_range = source <= highest;
      break;
    case Shuffle::kIndex:
      source = lowest | (offset & ~segment);
      *in_range = source <= highest;
      break;
  }
  return *in_range ? source : lane;
}

void PassShuffle(Warp& warp, const Instruction& i, uint32_t members) {
  uint64_t values[32];
  ForMembers(warp, members, [&](int lane) { values[lane] = warp.slot(lane, i.a); });
  ForMembers(warp, members, [&](int lane) {
    bool in_range = false;
    const int source = SourceLane(static_cast<Shuffle>(i.operation), lane,
                                  static_cast<uint32_t>(warp.slot(lane, i.b)),
                                  static_cast<uint32_t>(warp.slot(lane, i.c)), &in_range);
    if ((members >> source & 1) == 0)
      return warp.Fail(lane, i,
                       absl::StrCat("it reads from lane ", source, ", which takes no part"));
    warp.slot(lane, i.to) = values[source];
    warp.slot(lane, i.d) = in_range;
  });
}

void PassVote(Warp& warp, const Instruction& i, uint32_t members) {
  uint32_t ballot = 0;
  ForMembers(warp, members, [&](int lane) {
    if (((warp.slot(lane, i.a) & 1) != 0) != i.negated) ballot |= uint32_t{1} << lane;
  });
  uint64_t result = ballot;
  switch (static_cast<Vote>(i.operation)) {
    case Vote::kAll:
      result = ballot == members;
      break;
    case Vote::kAny:
      result = ballot != 0;
      break;
    case Vote::kUniform:
      result = ballot == 0 || ballot == members;
      break;
    case Vote::kBallot:
      break;
  }
  ForMembers(warp, members, [&](int lane) { warp.slot(lane, i.to) = result; });
}

uint32_t Reduce(Reduction op, bool is_signed, uint32_t x, uint32_t y) {
  const bool less = is_signed ? static_cast<int32_t>(x) < static_cast<int32_t>(y) : x < y;
  switch (op) {
    case Reduction::kAdd:
      return x + y;
    case Reduction::kMin:
      return less ? x : y;
    case Reduction::kMax:
      return less ? y : x;
    case Reduction::kAnd:
      return x & y;
    case Reduction::kOr:
      return x | y;
    case Reduction::kXor:
      return x ^ y;
  }
  return x;
}

void PassReduction(Warp& warp, const Instruction& i, uint32_t members) {
  bool first = true;
  uint32_t result = 0;
  ForMembers(warp, members, [&](int lane) {
    const auto value = static_cast<uint32_t>(warp.slot(lane, i.a));
    result = first ? value
                   : Reduce(static_cast<Reduction>(i.operation), IsSigned(i.type), result, value);
    first = false;
  });
  ForMembers(warp, members, [&](int lane) { warp.slot(lane, i.to) = result; });
}

// match.any: the lanes with the same value. match.all: all lanes, or none.
void PassMatch(Warp& warp, const Instruction& i, uint32_t members) {
  const uint64_t mask = BytesOf(i.type) == 8 ? ~uint64_t{0} : 0xffffffff;
  uint64_t values[32];
  ForMembers(warp, members, [&](int lane) { values[lane] = warp.slot(lane, i.a) & mask; });
  ForMembers(warp, members, [&](int lane) {
    uint32_t same = 0;
    ForMembers(warp, members, [&](int other) {
      if (values[other] == values[lane]) same |= uint32_t{1} << other;
    });
    const bool all = same == members;
    warp.slot(lane, i.to) = i.operation == 0 || all ? same : 0;
    warp.slot(lane, i.d) = all;
  });
}

void DecodeShuffle(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  i.operation = decoder.TakeOneOf({"up", "down", "bfly", "idx"}, 4);
  if (i.operation == 4 || !decoder.Expect(5, 5)) return decoder.Refuse("the mode");
  i.collective = PassShuffle;
  const Operand& to = decoder.operand(0);
  if (to.kind == Operand::Kind::kPair) {
    i.to = decoder.Write(to.elements[0], Type::kB32);
    i.d = decoder.Write(to.elements[1], Type::kPred);
  } else {
    i.to = decoder.Write(0, Type::kB32);
  }
  i.a = decoder.Read(1, Type::kB32);
  i.b = decoder.Read(2, Type::kB32);
  i.c = decoder.Read(3, Type::kB32);
  i.members = decoder.Read(4, Type::kB32);
}

void DecodeVote(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  i.operation = decoder.TakeOneOf({"all", "any", "uni", "ballot"}, 4);
  if (i.operation == 4 || !decoder.Expect(3, 3)) return decoder.Refuse("the mode");
  i.collective = PassVote;
  const bool ballot = static_cast<Vote>(i.operation) == Vote::kBallot;
  i.to = decoder.Write(0, ballot ? Type::kB32 : Type::kPred);
  i.a = decoder.ReadPredicate(1, &i.negated);
  i.members = decoder.Read(2, Type::kB32);
}

void DecodeReduction(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  i.operation = decoder.TakeOneOf({"add", "min", "max", "and", "or", "xor"}, 6);
  if (i.operation == 6 || BytesOf(i.type) != 4 || IsFloat(i.type) || !decoder.Expect(3, 3))
    return decoder.Refuse("the operation");
  i.collective = PassReduction;
  i.to = decoder.Write(0, i.type);
  i.a = decoder.Read(1, i.type);
  i.members = decoder.Read(2, Type::kB32);
}

void DecodeMatch(StatementDecoder& decoder) {
  Instruction& i = decoder.instruction;
  i.operation = decoder.TakeOneOf({"any", "all"}, 2);
  if (i.operation == 2 || !decoder.Expect(3, 3)) return decoder.Refuse("the mode");
  i.collective = PassMatch;
  const Operand& to = decoder.operand(0);
  if (to.kind == Operand::Kind::kPair) {
    i.to = decoder.Write(to.elements[0], Type::kB32);
    i.d = decoder.Write(to.elements[1], Type::kPred);
  } else {
    i.to = decoder.Write(0, Type::kB32);
  }
  i.a = decoder.Read(1, i.type);
  i.members = decoder.Read(2, Type::kB32);
}

}  // namespace

void DecodeWarp(StatementDecoder& decoder) {
  if (!decoder.Take("sync")) return decoder.Refuse("without .sync");
  Instruction& i = decoder.instruction;
  i.execute = WaitForWarp;
  i.type = decoder.TakeType();
  const std::string& head = decoder.head();
  if (head == "shfl") return DecodeShuffle(decoder);
  if (head == "vote") return DecodeVote(decoder);
  if (head == "redux") return DecodeReduction(decoder);
  DecodeMatch(decoder);
}

}  // namespace kiln::stand_ins::ptx
