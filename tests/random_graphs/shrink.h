// Makes a graph that fails a check small.
#ifndef KILN_TESTS_RANDOM_GRAPHS_SHRINK_H_
#define KILN_TESTS_RANDOM_GRAPHS_SHRINK_H_

#include <functional>
#include <string>
#include <vector>

#include "compiler/graph/graph.h"
#include "compiler/ops/host_tensor.h"

namespace kiln::random_graphs {

// A graph without gradient requests and updates, its inputs' values and its outputs' tolerances.
struct Subject {
  graph::Graph graph;
  std::vector<ops::HostTensor> inputs;
  std::vector<double> tolerances;
};

// What is wrong with the subject; empty: nothing.
using Check = std::function<std::string(const Subject&)>;

// A subject that the check still finds fault with, and of which no part can go: fewer outputs,
// nodes replaced by inputs that hold the interpreter's values, by an operand or by zeros, an output
// replaced by its operands, inputs of simpler numbers (Zeller and Hildebrandt, "Simplifying and
// isolating failure-inducing input", 2002). At most `most_checks` are made.
//
// The subject may be broken: an illegal graph, inputs without a value or with fewer bytes than
// their shape wants. The check gets such subjects too.
Subject Shrink(Subject subject, const Check& check, int most_checks = 500);

// The text form of the graph, with the inputs' values as comments after it.
std::string Print(const Subject& subject);

}  // namespace kiln::random_graphs

#endif  // KILN_TESTS_RANDOM_GRAPHS_SHRINK_H_
