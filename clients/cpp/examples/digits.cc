#include "digits.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include "absl/status/status.h"

namespace digits {
namespace {

constexpr int kGlyphRows = 7;
constexpr int kGlyphColumns = 5;
// The ten glyphs side by side, with a column between them.
constexpr const char* kGlyphs[kGlyphRows] = {
    " ###    #    ###  #####    #  #####   ##  #####  ###   ### ",
    "#   #  ##   #   #    #    ##  #      #        # #   # #   #",
    "#  ##   #       #   #    # #  ####  #        #  #   # #   #",
    "# # #   #      #     #  #  #      # ####    #    ###   ####",
    "##  #   #     #       # #####     # #   #  #    #   #     #",
    "#   #   #    #    #   #    #  #   # #   #  #    #   #    # ",
    " ###   ###  #####  ###     #   ###   ###   #     ###   ##  ",
};

// The ink at a cell of a glyph; 0 outside it.
double Ink(int digit, int row, int column) {
  if (row < 0 || row >= kGlyphRows || column < 0 || column >= kGlyphColumns) return 0;
  return kGlyphs[row][digit * (kGlyphColumns + 1) + column] == '#' ? 1 : 0;
}

// Interpolates linearly between the centers of the cells.
double InkBetween(int digit, double row, double column) {
  const int top = static_cast<int>(std::floor(row));
  const int left = static_cast<int>(std::floor(column));
  const double down = row - top;
  const double right = column - left;
  return (1 - down) * ((1 - right) * Ink(digit, top, left) + right * Ink(digit, top, left + 1)) +
         down * ((1 - right) * Ink(digit, top + 1, left) + right * Ink(digit, top + 1, left + 1));
}

class Artist {
 public:
  Artist(int side, uint32_t seed) : side_(side), random_(seed) {}

  int NextDigit() { return std::uniform_int_distribution<int>(0, 9)(random_); }

  void Draw(int digit, std::vector<uint8_t>& image) {
    const double angle = Between(-0.25, 0.25);
    const double shear = Between(-0.3, 0.3);
    const double cells = kGlyphRows / (side_ * Between(0.65, 0.9));  // a pixel's size in the glyph
    const double middle = 0.5 * (side_ - 1);
    const double x0 = middle + Between(-2, 2);
    const double y0 = middle + Between(-1.5, 1.5);
    const double brightness = Between(150, 255);
    for (int y = 0; y < side_; ++y) {
      for (int x = 0; x < side_; ++x) {
        const double across = std::cos(angle) * (x - x0) + std::sin(angle) * (y - y0);
        const double down = std::cos(angle) * (y - y0) - std::sin(angle) * (x - x0);
        const double ink = InkBetween(digit, cells * down + 0.5 * (kGlyphRows - 1),
                                      cells * (across + shear * down) + 0.5 * (kGlyphColumns - 1));
        const double value = brightness * ink + noise_(random_);
        image.push_back(static_cast<uint8_t>(std::clamp(value, 0.0, 255.0)));
      }
    }
  }

 private:
  double Between(double low, double high) {
    return std::uniform_real_distribution<double>(low, high)(random_);
  }

  int side_;
  std::mt19937 random_;
  std::normal_distribution<double> noise_{0, 25};
};

absl::StatusOr<std::vector<uint8_t>> ReadFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::vector<uint8_t> bytes{std::istreambuf_iterator<char>(file), {}};
  if (file.bad() || bytes.empty()) {
    return absl::NotFoundError("cannot read " + path + " (MNIST's files, without .gz)");
  }
  return bytes;
}

// Number `position` of an IDX file's header, big-endian.
int64_t Header(const std::vector<uint8_t>& bytes, int position) {
  int64_t number = 0;
  for (int i = 4 * position; i < 4 * position + 4; ++i) number = number * 256 + bytes[i];
  return number;
}

}  // namespace

Digits Draw(int64_t count, uint32_t seed) {
  Digits digits;
  digits.side = 16;
  Artist artist(static_cast<int>(digits.side), seed);
  for (int64_t i = 0; i < count; ++i) {
    const int digit = artist.NextDigit();
    digits.labels.push_back(digit);
    artist.Draw(digit, digits.images);
  }
  return digits;
}

absl::StatusOr<Digits> Read(const std::string& folder, const std::string& prefix) {
  const std::string path = folder + "/" + prefix;
  const auto images = ReadFile(path + "-images-idx3-ubyte");
  if (!images.ok()) return images.status();
  const auto labels = ReadFile(path + "-labels-idx1-ubyte");
  if (!labels.ok()) return labels.status();
  constexpr int64_t kImages = 0x803;  // unsigned bytes in three dimensions
  constexpr int64_t kLabels = 0x801;
  const bool has_headers = images->size() >= 16 && Header(*images, 0) == kImages &&
                           labels->size() >= 8 && Header(*labels, 0) == kLabels;
  if (!has_headers) return absl::InvalidArgumentError(path + ": not IDX files");
  Digits digits;
  const int64_t count = Header(*images, 1);
  digits.side = Header(*images, 2);
  const auto pixels = static_cast<size_t>(count * digits.side * Header(*images, 3));
  if (Header(*images, 3) != digits.side || Header(*labels, 1) != count ||
      images->size() != 16 + pixels || labels->size() != 8 + static_cast<size_t>(count)) {
    return absl::InvalidArgumentError(path +
                                      ": the number of images or labels is not the announced one");
  }
  digits.images.assign(images->begin() + 16, images->end());
  digits.labels.assign(labels->begin() + 8, labels->end());
  return digits;
}

}  // namespace digits
