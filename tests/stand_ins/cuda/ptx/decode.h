// Decoding of one statement. Each family of instructions has a file, decode_*.cc, with a function
// that consumes the modifiers and operands that it supports; a statement with anything left is
// refused.
#ifndef KILN_TESTS_STAND_INS_CUDA_PTX_DECODE_H_
#define KILN_TESTS_STAND_INS_CUDA_PTX_DECODE_H_

#include <string>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "tests/stand_ins/cuda/ptx/program.h"
#include "tests/stand_ins/cuda/ptx/syntax.h"

namespace kiln::stand_ins::ptx {

// The meaning of names in one function.
struct Names {
  struct Register {
    uint32_t slot;
    Type type;
  };
  struct Place {
    Space space;
    uint64_t address;  // for local memory and parameters: within the frame
  };

  bool FindRegister(const std::string& name, Register* found) const;

  const Function* function;
  absl::flat_hash_map<std::string, std::pair<uint32_t, Function::Registers>> registers;
  absl::flat_hash_map<std::string, Place> variables;
  absl::flat_hash_map<std::string, uint32_t> functions;  // indices in Program::functions
};

class StatementDecoder {
 public:
  StatementDecoder(const Statement& statement, const Names& names, DecodedFunction& function,
                   Program& program);

  // Fills `instruction`. Labels are still indices of statements, callees indices of functions.
  absl::Status Decode();

  const std::string& head() const { return modifiers_[0]; }
  bool Take(absl::string_view modifier);
  // The index of the first of these modifiers that is present, or `otherwise`.
  int TakeOneOf(std::initializer_list<absl::string_view> modifiers, int otherwise);
  Type TakeType();
  Space TakeSpace();  // kGeneric if none is given
  Rounding TakeRounding();
  // Consumes modifiers that only say how other threads or a cache see an access.
  void TakeMemoryModifiers();

  int architecture() const { return program_.architecture; }

  size_t operands() const { return statement_.operands.size(); }
  const Operand& operand(size_t index);
  bool Expect(size_t operands_min, size_t operands_max);

  // `wider`: the register may be wider than the type, as in ld, st and cvt.
  uint32_t Read(const Operand& operand, Type type, bool wider = false);
  uint32_t Read(size_t index, Type type) { return Read(operand(index), type); }
  uint32_t Write(const Operand& operand, Type type, bool wider = false);
  uint32_t Write(size_t index, Type type) { return Write(operand(index), type); }
  uint32_t ReadPredicate(size_t index, bool* negated);
  uint32_t Constant(uint64_t bits);
  // Sets instruction.a, .offset and .frame_relative; adds a site.
  void ReadAddress(size_t index, Space space);
  // The variable with this name, or null.
  const Names::Place* FindVariable(const Operand& operand) const;
  int FindFunction(const std::string& name) const;  // -1: none
  int64_t FindLabel(const std::string& name);       // index of a statement
  const std::vector<std::string>* FindBranchTargets(const std::string& name) const;
  bool IsRegister(const Operand& operand) const;
  void StartList() { instruction.list = static_cast<uint32_t>(program_.lists.size()); }
  void AddToList(uint32_t item) {
    program_.lists.push_back(item);
    ++instruction.list_size;
  }

  void Refuse(absl::string_view why);
  void Invalid(absl::string_view why);
  bool ok() const { return status_.ok(); }

  Instruction instruction;

 private:
  const Statement& statement_;
  const Names& names_;
  DecodedFunction& function_;
  Program& program_;
  std::vector<std::string> modifiers_;  // the opcode's parts; consumed ones are empty
  absl::Status status_;
};

void DecodeArithmetic(StatementDecoder& decoder);        // add, mul, fma, div, min, …
void DecodeCarry(StatementDecoder& decoder);             // addc, subc, madc
void DecodeBits(StatementDecoder& decoder);              // and, shl, bfe, prmt, …
void DecodeComparison(StatementDecoder& decoder);        // setp, set
void DecodeSelection(StatementDecoder& decoder);         // selp, slct, testp, copysign
void DecodeConversion(StatementDecoder& decoder);        // cvt
void DecodeAddressSpace(StatementDecoder& decoder);      // cvta, isspacep
void DecodeMove(StatementDecoder& decoder);              // mov
void DecodeAccess(StatementDecoder& decoder);            // ld, st
void DecodeHint(StatementDecoder& decoder);              // prefetch, discard, fence, nanosleep, …
void DecodeAtomic(StatementDecoder& decoder);            // atom, red
void DecodeControl(StatementDecoder& decoder);           // bra, brx, call, ret, exit, trap
void DecodeBarrier(StatementDecoder& decoder);           // bar, barrier
void DecodeWarp(StatementDecoder& decoder);              // shfl, vote, redux, match
void DecodeMatrix(StatementDecoder& decoder);            // mma, ldmatrix
void DecodeAsynchronousCopy(StatementDecoder& decoder);  // cp

// Parts of DecodeArithmetic.
void DecodeInteger(StatementDecoder& decoder, Type type);
void DecodeFloat(StatementDecoder& decoder, Type type);

}  // namespace kiln::stand_ins::ptx

#endif  // KILN_TESTS_STAND_INS_CUDA_PTX_DECODE_H_
