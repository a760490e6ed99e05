// How similar two kernels are, so that a search for one may start from the setting of the other.
#ifndef KILN_SERVER_TUNER_SIMILAR_KERNELS_H_
#define KILN_SERVER_TUNER_SIMILAR_KERNELS_H_

#include <limits>
#include <string>
#include <vector>

namespace kiln::tuner {

struct KernelShape {
  // The canonical text without its sizes.
  std::string structure;
  // The buffers' dtypes and the kinds of loops of each stage.
  std::string outline;
  std::vector<double> extents;  // of all loops, in their order
};

// Reads a canonical kernel (kernel::Print). Safe for untrusted text.
KernelShape ShapeOf(const std::string& kernel);

inline constexpr double kNotSimilar = std::numeric_limits<double>::infinity();

// Returns DistanceOf two kernels with the same outline, which have these extents.
double DistanceOf(const std::vector<double>& one, const std::vector<double>& other,
                  bool has_same_structure);

// Returns the sum of the binary logarithms of the ratios of the loops' extents, and more than for
// any two kernels of one structure if only their outlines are the same. kNotSimilar: their loops
// have nothing in common, so that a setting of one means nothing for the other.
double DistanceOf(const KernelShape& one, const KernelShape& other);

}  // namespace kiln::tuner

#endif  // KILN_SERVER_TUNER_SIMILAR_KERNELS_H_
