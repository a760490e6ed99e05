// Images of handwritten digits and their labels: generated, or from MNIST.
#ifndef KILN_CLIENTS_CPP_EXAMPLES_DIGITS_H_
#define KILN_CLIENTS_CPP_EXAMPLES_DIGITS_H_

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"

namespace digits {

struct Digits {
  int64_t side = 0;             // images are side x side
  std::vector<uint8_t> images;  // one after another, row-major; 0 is black
  std::vector<int64_t> labels;  // 0 to 9

  int64_t count() const { return static_cast<int64_t>(labels.size()); }
};

// Generates `count` digits of 16 x 16, each randomly rotated, sheared, scaled and moved, with
// noise.
Digits Draw(int64_t count, uint32_t seed);

// Reads FOLDER/PREFIX-images-idx3-ubyte and FOLDER/PREFIX-labels-idx1-ubyte, MNIST's files,
// uncompressed; the prefixes are "train" and "t10k".
absl::StatusOr<Digits> Read(const std::string& folder, const std::string& prefix);

}  // namespace digits

#endif  // KILN_CLIENTS_CPP_EXAMPLES_DIGITS_H_
