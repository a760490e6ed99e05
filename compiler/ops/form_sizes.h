// The sizes that select the form of an expansion, such as the number of rounds of a sort.
//
// A graph that is one program for many sizes (compiler/variables) needs expansions of one form at
// all of them. So an expansion asks for the range of such a size, and makes a form that is right
// for the whole range: a sort of 37 elements that may be 128 pads them to 128.
#ifndef KILN_COMPILER_OPS_FORM_SIZES_H_
#define KILN_COMPILER_OPS_FORM_SIZES_H_

#include <cstdint>
#include <map>
#include <utility>

namespace kiln::ops {

// Inclusive.
struct SizeRange {
  int64_t least = 0;
  int64_t most = 0;

  bool is_fixed() const { return least == most; }
};

// The ranges of one graph's sizes, in the order in which expansions ask for them. A copy serves one
// build of the graph. Not thread-safe.
class FormSizes {
 public:
  // Begins a node of the graph as it is sent. The sizes of each are counted on their own, so that
  // one that asks for other sizes does not confuse the others.
  void BeginNode(int index) {
    node_ = index;
    next_ = 0;
  }

  // Returns the range of the node's next size, which contains `size`. While the ranges grow, so
  // does this one; later a size outside its range has a range of its own. The order in which sizes
  // are asked for must not depend on them: otherwise the forms still are right, but may differ.
  SizeRange Next(int64_t size);

  // From now on all ranges stay as they are.
  void Freeze() { grows_ = false; }
  bool empty() const { return ranges_.empty(); }

 private:
  bool grows_ = true;
  int node_ = 0;
  int next_ = 0;
  std::map<std::pair<int, int>, SizeRange> ranges_;  // by node and number
};

}  // namespace kiln::ops

#endif  // KILN_COMPILER_OPS_FORM_SIZES_H_
