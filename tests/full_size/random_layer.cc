#include "tests/full_size/random_layer.h"

#include <algorithm>
#include <vector>

#include "compiler/ir/str_cat.h"

namespace kiln::full_size {
namespace {

using Sizes = std::vector<int64_t>;

class Drawing {
 public:
  explicit Drawing(std::mt19937_64& random) : random_(random) {}

  std::string Layer() {
    switch (Below(12)) {
      case 0:
      case 1:
      case 2:
        return Convolution();
      case 3:
        return Deconvolution();
      case 4:
      case 5:
        return Product();
      case 6:
        return Pool();
      case 7:
        return StrCat("of ", Rows(),
                      Word({" ln", " rms", " softmax", " log_softmax", " residual ln"}));
      case 8:
        return StrCat("of ", Image(),
                      Word({" bn relu", " in", " gn n1", " scale", " lrn", " relu6"}));
      case 9:
        return Reduction();
      case 10:
        return Permutation();
      default:
        return Indexed();
    }
  }

 private:
  int64_t Below(int64_t n) { return static_cast<int64_t>(random_() % static_cast<uint64_t>(n)); }
  int64_t One(const Sizes& sizes) { return sizes[Below(static_cast<int64_t>(sizes.size()))]; }
  std::string Word(const std::vector<std::string>& words) {
    return words[Below(static_cast<int64_t>(words.size()))];
  }
  bool OneIn(int64_t n) { return Below(n) == 0; }

  int64_t Channels() {
    if (OneIn(4)) return 1 + Below(200);
    return One({1, 3, 8, 10, 16, 24, 32, 48, 64, 96, 128, 192, 256, 320, 512});
  }
  int64_t Length() {
    if (OneIn(3)) return 1 + Below(70);
    return One({4, 7, 8, 13, 14, 16, 17, 28, 32, 33, 35, 56, 64});
  }
  int64_t Features() {
    if (OneIn(3)) return 1 + Below(900);
    return One({10, 64, 100, 128, 256, 300, 512, 650, 768, 1000, 1024, 2048});
  }
  std::string Rows() { return StrCat(One({1, 16, 35, 64, 100, 128, 197}), "x", Features()); }
  std::string Image() { return StrCat(Channels(), "x", Length(), "x", Length()); }

  // Options of a sliding window that fits `length_min` elements in each dimension.
  struct Window {
    std::string text;
    int64_t length_min = 1;
  };
  Window Sliding(int rank, bool dilates) {
    const int64_t size = One({1, 2, 3, 3, 3, 4, 5, 7});
    const int64_t other = OneIn(5) ? 1 + Below(5) : size;
    const int64_t stride = OneIn(2) ? 1 : 1 + Below(4);
    const int64_t dilation = dilates && OneIn(4) ? 1 + Below(4) : 1;
    const int64_t padding = std::min(OneIn(2) ? dilation * (size - 1) / 2 : Below(4), size - 1);
    Window window;
    window.text = StrCat(" k", size);
    if (rank == 2 && other != size) StrAppend(&window.text, "x", other);
    StrAppend(&window.text, " s", stride, " p", std::min(padding, other - 1));
    if (dilates) StrAppend(&window.text, " d", dilation);
    window.length_min = dilation * (std::max(size, other) - 1) + 1;
    return window;
  }
  std::string Spatial(int rank, int64_t length_min) {
    std::string text;
    for (int i = 0; i < rank; ++i) {
      const int64_t length = rank == 1 ? 4 * Length() : rank == 3 ? 1 + Length() / 4 : Length();
      StrAppend(&text, "x", std::max(length, length_min));
    }
    return text;
  }
  std::string Activation() {
    return Word({"", "", " bias relu", " bias", " bn relu", " relu", " bias gelu", " residual"});
  }

  std::string Convolution() {
    const int rank = static_cast<int>(One({1, 2, 2, 2, 2, 3}));
    const Window window = Sliding(rank, true);
    int64_t in = Channels();
    int64_t out = Channels();
    int64_t groups = 1;
    if (OneIn(5)) {
      groups = OneIn(2) ? in : One({2, 3, 4});
      in = (in + groups - 1) / groups * groups;
      out = OneIn(2) ? in : (out + groups - 1) / groups * groups;
    }
    return StrCat("conv ", in, Spatial(rank, window.length_min), " ", out, window.text, " g",
                  groups, Activation());
  }
  std::string Deconvolution() {
    const int rank = static_cast<int>(One({1, 2, 2}));
    const Window window = Sliding(rank, false);
    return StrCat("deconv ", Channels(), Spatial(rank, 2), " ", Channels(), window.text,
                  Activation());
  }
  std::string Product() {
    if (OneIn(2)) return StrCat("linear ", Rows(), " ", Features(), Activation());
    return StrCat("matmul ", One({1, 3, 12}), "x", Features() / 4 + 1, "x", Features(), " ",
                  Features() / 2 + 1, " t", Below(4));
  }
  std::string Pool() {
    const Window window = Sliding(2, false);
    // Padding of at most half a window.
    const std::string text = window.text.substr(0, window.text.find(" p"));
    return StrCat(Word({"maxpool ", "avgpool "}), Channels(), Spatial(2, window.length_min), text);
  }
  std::string Reduction() {
    const std::string shape =
        StrCat(1 + Below(40), "x", Length(), "x", Features() / 4 + 1, "x", 1 + Below(9));
    std::string text = StrCat(Word({"sum ", "max "}), shape);
    for (int64_t axis = 0; axis < 5; ++axis) {
      if (OneIn(2)) StrAppend(&text, " ", axis);
    }
    return text;
  }
  std::string Permutation() {
    Sizes axes = {0, 1, 2, 3};
    std::shuffle(axes.begin(), axes.end(), random_);
    std::string text = StrCat("permute ", Length(), "x", Features() / 4 + 1, "x", Length());
    for (int64_t axis : axes) StrAppend(&text, " ", axis);
    return text + Activation();
  }
  std::string Indexed() {
    switch (Below(4)) {
      case 0:
        return StrCat("cross_entropy ", Features() + 1);
      case 1:
        return StrCat("lstm ", 1 + Features() / 4, " ", 1 + Features() / 4);
      case 2:
        return StrCat("attention ", One({1, 3, 8}), "x", Length(), "x", One({16, 32, 64, 100}),
                      OneIn(2) ? " causal" : StrCat(" k", Length()));
      default:
        return StrCat("embedding ", One({1, 10, 64}), "x", Features(), " ", Features() * 4);
    }
  }

  std::mt19937_64& random_;
};

}  // namespace

std::string RandomLayer(std::mt19937_64& random) { return Drawing(random).Layer(); }

}  // namespace kiln::full_size
