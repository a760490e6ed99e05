// Which clusters depend on which, kept while clusters grow and merge.
#ifndef KILN_COMPILER_PARTITION_DEPENDENCIES_H_
#define KILN_COMPILER_PARTITION_DEPENDENCIES_H_

#include <cstdint>
#include <vector>

namespace kiln::partition {

// The transitive closure of "reads from", as one bit set a cluster.
class Dependencies {
 public:
  // A new cluster, the next number.
  void AddCluster();
  bool Reaches(int from, int to) const;  // whether `from` depends on `to`
  // `from` reads from `to`; `to` must not depend on `from`.
  void AddEdge(int from, int to);
  // Everything of `from` belongs to `into` from now on. Nothing else may stand between them.
  void Merge(int from, int into);

 private:
  using Bits = std::vector<uint64_t>;
  bool Test(const Bits& bits, int i) const;
  static void Unite(Bits& into, const Bits& from);
  static void Set(Bits& bits, int i);
  static void Clear(Bits& bits, int i);

  std::vector<Bits> needs_;
};

}  // namespace kiln::partition

#endif  // KILN_COMPILER_PARTITION_DEPENDENCIES_H_
