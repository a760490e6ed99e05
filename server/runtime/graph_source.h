// What a client defined, before the compiler has seen it. Keeps the wire's messages out of the
// runtime: rpc/ implements it.
#ifndef KILN_SERVER_RUNTIME_GRAPH_SOURCE_H_
#define KILN_SERVER_RUNTIME_GRAPH_SOURCE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "compiler/graph/graph.h"
#include "compiler/graph/variable.h"

namespace kiln::runtime {

// Values of a graph's variables, by name.
using Bindings = std::map<std::string, int64_t>;

using graph::Variable;

// Told how many primitives a graph has while it grows; an error ends that.
using Grow = std::function<absl::Status(int64_t primitives)>;

// Immutable and thread-safe.
class GraphSource {
 public:
  virtual ~GraphSource() = default;
  // Equal keys mean equal graphs, whatever they are called. Hexadecimal.
  virtual const std::string& key() const = 0;
  virtual const std::vector<Variable>& variables() const = 0;
  // What it can be made of again, by another daemon too; empty if it cannot.
  virtual std::string Wire() const { return {}; }
  // Host memory that it takes.
  virtual int64_t bytes() const { return 0; }
  // As it was sent.
  virtual int64_t nodes() const { return 0; }
  // Checks the graph and expands it with these bindings. INVALID_ARGUMENT names the node; else the
  // error of `grow`, which may be empty.
  virtual absl::StatusOr<graph::Graph> Build(const Bindings& bindings, const Grow& grow) const = 0;
};

// OK if `bindings` name exactly the variables, each within its bounds.
absl::Status CheckBindings(const std::vector<Variable>& variables, const Bindings& bindings);
// The part of the variables' bounds that one program serves with these bindings. Such a program
// does the work of the largest sizes, but for sums, which end early; so bounds of more than 1,024
// values are taken in parts, each eight times as wide as the one before.
std::vector<Variable> WorkingBounds(const std::vector<Variable>& variables,
                                    const Bindings& bindings);
// Every variable at its smallest value: enough to check a graph before its first run.
Bindings SmallestBindings(const std::vector<Variable>& variables);

}  // namespace kiln::runtime

#endif  // KILN_SERVER_RUNTIME_GRAPH_SOURCE_H_
