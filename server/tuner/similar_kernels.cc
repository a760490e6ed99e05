#include "server/tuner/similar_kernels.h"

#include <cctype>
#include <cmath>
#include <cstdlib>
#include <string_view>

#include "absl/strings/ascii.h"

namespace kiln::tuner {
namespace {

// More than the extents of any two kernels differ by.
constexpr double kOtherStructure = 1e6;

// Returns the text with "#" for each number that is not a part of a name: "b1[r0*# + r1]".
std::string WithoutNumbers(std::string_view text) {
  std::string rest;
  for (size_t i = 0; i < text.size(); ++i) {
    const bool is_of_name =
        i > 0 && (absl::ascii_isalnum(static_cast<unsigned char>(text[i - 1])) ||
                  text[i - 1] == '_' || text[i - 1] == '#');
    if (!absl::ascii_isdigit(static_cast<unsigned char>(text[i])) || is_of_name) {
      if (text[i] != '#') rest += text[i];
      continue;
    }
    rest += '#';
    while (i + 1 < text.size() && absl::ascii_isdigit(static_cast<unsigned char>(text[i + 1]))) ++i;
  }
  return rest;
}

// Reads the loops of a line such as "stage r0:64 r1:8 reduce r2:100".
void ReadLoops(std::string_view line, KernelShape* shape) {
  while (!line.empty()) {
    const size_t end = line.find(' ');
    const std::string word(line.substr(0, end));
    line.remove_prefix(end == std::string_view::npos ? line.size() : end + 1);
    const size_t colon = word.find(':');
    if (colon == std::string::npos) {
      shape->outline += word + " ";
      continue;
    }
    shape->outline += "r ";
    shape->extents.push_back(std::atof(word.c_str() + colon + 1));
  }
}

}  // namespace

KernelShape ShapeOf(const std::string& kernel) {
  KernelShape shape;
  shape.structure = WithoutNumbers(kernel);
  std::string_view rest = kernel;
  while (!rest.empty()) {
    const size_t end = rest.find('\n');
    const std::string_view line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.starts_with("buffer ")) {
      shape.outline += WithoutNumbers(line) + "\n";
    } else if (line.starts_with("grid ") || line.starts_with("stage")) {
      ReadLoops(line, &shape);
      shape.outline += "\n";
    }
  }
  return shape;
}

double DistanceOf(const std::vector<double>& one, const std::vector<double>& other,
                  bool has_same_structure) {
  if (one.size() != other.size()) return kNotSimilar;
  double distance = has_same_structure ? 0 : kOtherStructure;
  for (size_t i = 0; i < one.size(); ++i) {
    if (one[i] <= 0 || other[i] <= 0) return kNotSimilar;
    distance += std::abs(std::log2(one[i] / other[i]));
  }
  return distance;
}

double DistanceOf(const KernelShape& one, const KernelShape& other) {
  if (one.outline != other.outline) return kNotSimilar;
  return DistanceOf(one.extents, other.extents, one.structure == other.structure);
}

}  // namespace kiln::tuner
