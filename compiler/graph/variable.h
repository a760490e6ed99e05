// Named variables in dimensions: numbers that a graph leaves open and each run sets.
#ifndef KILN_COMPILER_GRAPH_VARIABLE_H_
#define KILN_COMPILER_GRAPH_VARIABLE_H_

#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"

namespace kiln::graph {

// Bounds are inclusive, 1 <= min <= max.
struct Variable {
  std::string name;
  int64_t min = 1;
  int64_t max = 1;
};

// Values of the variables, by name.
using Bindings = absl::flat_hash_map<std::string, int64_t>;

}  // namespace kiln::graph

#endif  // KILN_COMPILER_GRAPH_VARIABLE_H_
