#include "drivers/interface/kernel_image.h"

#include <cstring>
#include <string_view>
#include <vector>

namespace kiln::drivers {
namespace {

// "KILNIMG" and the version of the layout, which is incremented with every change to the fields
// below.
constexpr uint64_t kMagic = 0x05474d494e4c494bULL;

// FNV-1a over 64 bits, eight bytes per step: detects damaged files, not forgeries.
uint64_t Checksum(std::string_view data) {
  uint64_t hash = 0xcbf29ce484222325ULL ^ data.size();
  while (!data.empty()) {
    uint64_t word = 0;
    const size_t size = data.size() < 8 ? data.size() : 8;
    std::memcpy(&word, data.data(), size);
    hash = (hash ^ word) * 0x100000001b3ULL;
    hash ^= hash >> 29;
    data.remove_prefix(size);
  }
  return hash;
}

class Writer {
 public:
  void Integer(int64_t value) { out_.append(reinterpret_cast<const char*>(&value), sizeof(value)); }
  void String(std::string_view value) {
    Integer(value.size());
    out_.append(value);
  }
  void Accesses(const std::vector<Access>& values) {
    std::string bytes;
    for (Access access : values) bytes.push_back(static_cast<char>(access));
    String(bytes);
  }
  std::string out_;
};

class Reader {
 public:
  explicit Reader(std::string_view data) : data_(data) {}
  template <typename Number>
  void Integer(Number& field) {
    int64_t value = 0;
    if (data_.size() < sizeof(value)) return Fail();
    std::memcpy(&value, data_.data(), sizeof(value));
    data_.remove_prefix(sizeof(value));
    field = value;
  }
  void String(std::string& value) {
    int64_t size = -1;
    Integer(size);
    if (size < 0 || static_cast<uint64_t>(size) > data_.size()) return Fail();
    value.assign(data_.substr(0, size));
    data_.remove_prefix(size);
  }
  void Accesses(std::vector<Access>& values) {
    std::string bytes;
    String(bytes);
    for (char byte : bytes) {
      if (byte < 0 || byte > static_cast<char>(Access::kReadWrite)) return Fail();
      values.push_back(static_cast<Access>(byte));
    }
  }
  bool Finished() const { return ok_ && data_.empty(); }

 private:
  void Fail() {
    // Drops the rest, so that every further read fails as well.
    ok_ = false;
    data_ = {};
  }
  std::string_view data_;
  bool ok_ = true;
};

// The fields in their order on disk, for both directions.
template <typename Archive, typename Image>
void Visit(Archive& archive, Image& image) {
  archive.String(image.name);
  archive.String(image.architecture);
  archive.String(image.code);
  archive.Integer(image.entry);
  archive.Integer(image.grid_size);
  archive.Integer(image.block_size);
  archive.Integer(image.shared_bytes);
  archive.Integer(image.scratch_bytes);
  archive.Integer(image.num_arguments);
  archive.Integer(image.takes_slot_table);
  archive.Integer(image.runs_parts);
  archive.String(image.finished);
  archive.Accesses(image.access);
  archive.Integer(image.flops);
  archive.Integer(image.bytes);
}

}  // namespace

std::string KernelImage::Serialize() const {
  Writer body;
  Visit(body, *this);
  Writer whole;
  whole.Integer(kMagic);
  whole.Integer(Checksum(body.out_));
  return whole.out_ + body.out_;
}

bool KernelImage::Deserialize(const std::string& data, KernelImage* image) {
  constexpr size_t kHeader = 2 * sizeof(uint64_t);
  if (data.size() < kHeader) return false;
  uint64_t magic = 0;
  uint64_t checksum = 0;
  std::memcpy(&magic, data.data(), sizeof(magic));
  std::memcpy(&checksum, data.data() + sizeof(magic), sizeof(checksum));
  const std::string_view body = std::string_view(data).substr(kHeader);
  if (magic != kMagic || checksum != Checksum(body)) return false;
  // Read into a new image, so that a failure does not leave the caller's half changed.
  Reader reader(body);
  KernelImage read;
  Visit(reader, read);
  if (!reader.Finished()) return false;
  *image = std::move(read);
  return true;
}

}  // namespace kiln::drivers
