// Where an expression is computed: the nesting of open loops and branches, and the values that each
// has already computed.
#ifndef KILN_COMPILER_CODEGEN_LLVM_SCOPES_H_
#define KILN_COMPILER_CODEGEN_LLVM_SCOPES_H_

#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "compiler/ir/node.h"
#include "llvm/IR/BasicBlock.h"
#include "llvm/IR/Value.h"

namespace kiln::codegen {

// One level: the body of a loop or of a branch; level 0 is the function.
struct Scope {
  // The block before the next inner scope begins, which ends with the jump to it: values are
  // inserted before that jump. Null while this is the innermost scope: values are inserted where
  // the builder is.
  llvm::BasicBlock* hoist = nullptr;
  // The scope may not run at all: loads, which could fault, stay inside.
  bool conditional = false;
  // A value and the time when it was computed: it is stale if a buffer that it read was stored to
  // later.
  struct Known {
    llvm::Value* value = nullptr;
    int64_t time = 0;
  };
  absl::flat_hash_map<const ir::Node*, Known> values;
  absl::flat_hash_map<const ir::Node*, Known> splats;
  // Partial sums of indices, by the previous sum, the next atom and its coefficient.
  absl::flat_hash_map<std::tuple<llvm::Value*, const ir::Node*, int64_t>, llvm::Value*> sums;
  // Pointers, by base and offset.
  absl::flat_hash_map<std::pair<llvm::Value*, llvm::Value*>, llvm::Value*> pointers;
};

// The things that a node's value depends on.
struct Dependence {
  int level = 0;          // the innermost scope whose range it uses
  bool loads = false;     // reads memory, so that it stays inside conditional scopes
  uint64_t changing = 0;  // reads these buffers, which the kernel writes: it is not moved out (one
                          // bit each; buffers from 63 on share the last)
  bool varying = false;   // has one value for each lane
};

}  // namespace kiln::codegen

#endif  // KILN_COMPILER_CODEGEN_LLVM_SCOPES_H_
