// Reduces a graph that fails a check.
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

// Returns the defect of a subject; empty if there is none.
using Check = std::function<std::string(const Subject&)>;

// Returns a subject that still fails the check and of which no part can be removed. Reductions:
// fewer outputs; nodes replaced by inputs that hold the interpreter's values, by an operand or by
// zeros; an output replaced by its operands; inputs of simpler numbers (Zeller and Hildebrandt,
// "Simplifying and isolating failure-inducing input", 2002). Makes at most `checks_max` checks.
//
// The subject may be broken: an illegal graph, inputs without a value or with fewer bytes than
// their shape needs. The check gets such subjects, too.
Subject Shrink(Subject subject, const Check& check, int checks_max = 500);

// Returns the text form of the graph, followed by the inputs' values as comments.
std::string Print(const Subject& subject);

}  // namespace kiln::random_graphs

#endif  // KILN_TESTS_RANDOM_GRAPHS_SHRINK_H_
