#include <bit>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/decode.h"

namespace kiln::stand_ins::ptx {
namespace {

using Family = void (*)(StatementDecoder& decoder);

const absl::flat_hash_map<absl::string_view, Family>& Families() {
  static const auto* const families = [] {
    auto* rows = new absl::flat_hash_map<absl::string_view, Family>;
    const auto add = [&](Family family, std::initializer_list<absl::string_view> heads) {
      for (absl::string_view head : heads) rows->emplace(head, family);
    };
    add(DecodeArithmetic, {"add", "sub", "mul", "mad", "fma", "div", "rem", "min", "max", "abs",
                           "neg", "sqrt", "rcp", "mul24", "mad24"});
    add(DecodeCarry, {"addc", "subc", "madc"});
    add(DecodeBits, {"and", "or", "xor", "not", "shl", "shr", "bfe", "bfi", "brev", "popc", "clz",
                     "prmt", "shf", "bfind", "lop3", "cnot", "bmsk", "szext"});
    add(DecodeComparison, {"setp", "set"});
    add(DecodeSelection, {"selp", "slct", "testp", "copysign"});
    add(DecodeConversion, {"cvt"});
    add(DecodeAddressSpace, {"cvta", "isspacep"});
    add(DecodeMove, {"mov"});
    add(DecodeAccess, {"ld", "st", "ldu"});
    add(DecodeHint,
        {"prefetch", "prefetchu", "discard", "applypriority", "membar", "fence", "nanosleep"});
    add(DecodeAtomic, {"atom", "red"});
    add(DecodeControl, {"bra", "brx", "call", "ret", "exit", "trap", "brkpt"});
    add(DecodeBarrier, {"bar", "barrier"});
    add(DecodeWarp, {"shfl", "vote", "redux", "match"});
    add(DecodeMatrix, {"mma", "ldmatrix"});
    add(DecodeAsynchronousCopy, {"cp"});
    return rows;
  }();
  return *families;
}

bool FitsWidth(Type declared, Type type, bool wider) {
  if ((declared == Type::kPred) != (type == Type::kPred)) return false;
  const int bytes = BytesOf(declared);
  const int needed = std::max(BytesOf(type), type == Type::kPred ? 1 : 2);
  return bytes == needed || (wider && bytes > needed) || (BytesOf(type) == 1 && bytes == 1);
}

}  // namespace

bool Names::FindRegister(const std::string& name, Register* found) const {
  if (const auto single = registers.find(name); single != registers.end()) {
    *found = {single->second.first, single->second.second.type};
    return single->second.second.count < 0;
  }
  // `%r12` of `.reg .b32 %r<20>`; names of an inner scope end in @ and a number.
  const size_t digits = name.find_last_not_of("0123456789") + 1;
  const auto range = registers.find(absl::string_view(name).substr(0, digits));
  int64_t number;
  if (range == registers.end() ||
      !absl::SimpleAtoi(absl::string_view(name).substr(digits), &number))
    return false;
  *found = {range->second.first + static_cast<uint32_t>(number), range->second.second.type};
  return number < range->second.second.count;
}

StatementDecoder::StatementDecoder(const Statement& statement, const Names& names,
                                   DecodedFunction& function, Program& program)
    : statement_(statement),
      names_(names),
      function_(function),
      program_(program),
      modifiers_(absl::StrSplit(statement.opcode, '.')) {}

absl::Status StatementDecoder::Decode() {
  const auto family = Families().find(head());
  if (family == Families().end()) {
    Refuse("the instruction is not known");
    return status_;
  }
  if (!statement_.guard.empty()) {
    instruction.guard =
        Read(Operand{.kind = Operand::Kind::kName, .name = statement_.guard}, Type::kPred);
    instruction.guard_negated = statement_.guard_negated;
  }
  family->second(*this);
  for (size_t i = 1; i < modifiers_.size(); ++i)
    if (!modifiers_[i].empty()) Refuse(absl::StrCat("the modifier .", modifiers_[i]));
  return status_;
}

bool StatementDecoder::Take(absl::string_view modifier) {
  for (size_t i = 1; i < modifiers_.size(); ++i) {
    if (modifiers_[i] != modifier) continue;
    modifiers_[i].clear();
    return true;
  }
  return false;
}

int StatementDecoder::TakeOneOf(std::initializer_list<absl::string_view> modifiers, int otherwise) {
  int index = 0;
  for (absl::string_view modifier : modifiers) {
    if (Take(modifier)) return index;
    ++index;
  }
  return otherwise;
}

Type StatementDecoder::TakeType() {
  for (size_t i = 1; i < modifiers_.size(); ++i) {
    const auto type = TypeNamed(modifiers_[i]);
    if (!type) continue;
    modifiers_[i].clear();
    return *type;
  }
  Refuse("its type is not known");
  return Type::kB32;
}

Space StatementDecoder::TakeSpace() {
  for (size_t i = 1; i < modifiers_.size(); ++i) {
    const auto space = SpaceNamed(modifiers_[i]);
    if (!space) continue;
    modifiers_[i].clear();
    return *space;
  }
  return Space::kGeneric;
}

Rounding StatementDecoder::TakeRounding() {
  constexpr Rounding kRoundings[] = {Rounding::kNearestEven, Rounding::kZero, Rounding::kDown,
                                     Rounding::kUp, Rounding::kNearestAway};
  return kRoundings[TakeOneOf({"rn", "rz", "rm", "rp", "rna"}, 0)];
}

void StatementDecoder::TakeMemoryModifiers() {
  for (size_t i = 1; i < modifiers_.size(); ++i) {
    for (absl::string_view known :
         {"weak", "relaxed", "acquire", "release", "acq_rel", "sc", "volatile",
          "mmio", "cta",     "gpu",     "sys",     "cluster", "ca", "cg",
          "cs",   "cv",      "lu",      "wb",      "wt",      "nc", "unified"}) {
      if (modifiers_[i] == known) modifiers_[i].clear();
    }
    if (absl::StartsWith(modifiers_[i], "L1::") || absl::StartsWith(modifiers_[i], "L2::")) {
      if (modifiers_[i] != "L2::cache_hint") modifiers_[i].clear();
    }
  }
}

const Operand& StatementDecoder::operand(size_t index) {
  static const Operand* const none = new Operand;
  if (index < operands()) return statement_.operands[index];
  Invalid("an operand is missing");
  return *none;
}

bool StatementDecoder::Expect(size_t operands_min, size_t operands_max) {
  if (operands() >= operands_min && operands() <= operands_max) return true;
  Invalid(absl::StrCat(operands(), " operands"));
  return false;
}

bool StatementDecoder::IsRegister(const Operand& operand) const {
  Names::Register found;
  return operand.kind == Operand::Kind::kName && names_.FindRegister(operand.name, &found);
}

uint32_t StatementDecoder::Read(const Operand& operand, Type type, bool wider) {
  const uint64_t mask =
      BytesOf(type) == 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * BytesOf(type))) - 1;
  switch (operand.kind) {
    case Operand::Kind::kName: {
      Names::Register found;
      if (!names_.FindRegister(operand.name, &found)) {
        Invalid(absl::StrCat(operand.name, " is no register"));
      } else if (!FitsWidth(found.type, type, wider)) {
        Invalid(absl::StrCat(operand.name, " has another width than the type"));
      } else if (operand.negated || operand.offset != 0) {
        Invalid(absl::StrCat(operand.name, " cannot be negated or have an offset here"));
      }
      return ok() ? found.slot : 0;
    }
    case Operand::Kind::kInteger:
      return Constant(operand.bits & mask);
    case Operand::Kind::kFloat32:
      if (BytesOf(type) != 4) Invalid("a number of 32 bits for another type");
      return Constant(operand.bits);
    case Operand::Kind::kFloat64:
      if (type == Type::kF32) {
        const auto value = static_cast<float>(std::bit_cast<double>(operand.bits));
        return Constant(std::bit_cast<uint32_t>(value));
      }
      if (BytesOf(type) != 8) Invalid("a number of 64 bits for another type");
      return Constant(operand.bits);
    default:
      Invalid("a register or a number is expected");
      return 0;
  }
}

uint32_t StatementDecoder::Write(const Operand& operand, Type type, bool wider) {
  if (operand.kind == Operand::Kind::kSink) return 0;
  if (operand.kind != Operand::Kind::kName) {
    Invalid("the result needs a register");
    return 0;
  }
  return Read(operand, type, wider);
}

uint32_t StatementDecoder::ReadPredicate(size_t index, bool* negated) {
  Operand plain = operand(index);
  *negated = std::exchange(plain.negated, false);
  return Read(plain, Type::kPred);
}

uint32_t StatementDecoder::Constant(uint64_t bits) {
  std::vector<uint64_t>& constants = function_.constants;
  size_t index = std::find(constants.begin(), constants.end(), bits) - constants.begin();
  if (index == constants.size()) constants.push_back(bits);
  return function_.registers + static_cast<uint32_t>(index);
}

const Names::Place* StatementDecoder::FindVariable(const Operand& operand) const {
  const auto found = names_.variables.find(operand.name);
  return found == names_.variables.end() ? nullptr : &found->second;
}

int StatementDecoder::FindFunction(const std::string& name) const {
  const auto found = names_.functions.find(name);
  return found == names_.functions.end() ? -1 : static_cast<int>(found->second);
}

int64_t StatementDecoder::FindLabel(const std::string& name) {
  const auto found = names_.function->labels.find(name);
  if (found != names_.function->labels.end()) return found->second;
  Invalid(absl::StrCat("there is no label ", name));
  return 0;
}

const std::vector<std::string>* StatementDecoder::FindBranchTargets(const std::string& name) const {
  const auto found = names_.function->branch_targets.find(name);
  return found == names_.function->branch_targets.end() ? nullptr : &found->second;
}

void StatementDecoder::ReadAddress(size_t index, Space space) {
  instruction.space = space;
  instruction.site = program_.sites++;
  const Operand& address = operand(index);
  if (address.kind != Operand::Kind::kAddress) return Invalid("an address is expected");
  const Operand& base = address.elements[0];
  instruction.offset = address.offset;
  if (base.kind == Operand::Kind::kInteger || IsRegister(base)) {
    Names::Register found;
    const bool narrow = names_.FindRegister(base.name, &found) && BytesOf(found.type) == 4;
    if (narrow && space != Space::kShared && space != Space::kLocal && space != Space::kParam)
      Invalid("an address of 32 bits");
    instruction.a = Read(base, narrow ? Type::kB32 : Type::kB64);
    if (narrow) instruction.from = Type::kU32;
    return;
  }
  const Names::Place* place = FindVariable(base);
  if (place == nullptr) return Invalid(absl::StrCat(base.name, " is no variable"));
  const bool global = place->space == Space::kConst || place->space == Space::kGlobal;
  if (place->space != space && !(space == Space::kGeneric && global))
    return Invalid(absl::StrCat(base.name, " is in another state space"));
  instruction.frame_relative = space == Space::kLocal || space == Space::kParam;
  instruction.a = Constant(place->address);
}

void StatementDecoder::Refuse(absl::string_view why) {
  if (!ok()) return;
  status_ = absl::UnimplementedError(
      absl::StrCat("line ", statement_.line, ": ", statement_.opcode, ": not interpreted: ", why));
}

void StatementDecoder::Invalid(absl::string_view why) {
  if (!ok()) return;
  status_ = absl::InvalidArgumentError(
      absl::StrCat("line ", statement_.line, ": ", statement_.opcode, ": ", why));
}

}  // namespace kiln::stand_ins::ptx
