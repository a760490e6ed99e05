#include "drivers/interface/kernel_image.h"

#include <cstring>
#include <string_view>
#include <utility>
#include <vector>

#include "proto/coding/coding.h"

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
  void Integer(int64_t value) { out_.Fixed64(static_cast<uint64_t>(value)); }
  void String(std::string_view value) { out_.Field(value); }
  void Accesses(const std::vector<Access>& values) {
    std::string bytes;
    for (Access access : values) bytes.push_back(static_cast<char>(access));
    String(bytes);
  }
  ByteWriter out_;
};

class Reader {
 public:
  explicit Reader(std::string_view data) : in_(data) {}
  template <typename Number>
  void Integer(Number& field) {
    field = static_cast<Number>(static_cast<int64_t>(in_.Fixed64()));
  }
  void String(std::string& value) { value = std::string(in_.Field()); }
  void Accesses(std::vector<Access>& values) {
    for (char byte : in_.Field()) {
      if (byte < 0 || byte > static_cast<char>(Access::kReadWrite)) return in_.Fail();
      values.push_back(static_cast<Access>(byte));
    }
  }
  bool AtEnd() const { return in_.AtEnd(); }

 private:
  ByteReader in_;
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
  Writer fields;
  Visit(fields, *this);
  const std::string body = fields.out_.Take();
  ByteWriter whole;
  whole.Fixed64(kMagic);
  whole.Fixed64(Checksum(body));
  whole.Bytes(body);
  return whole.Take();
}

bool KernelImage::Deserialize(const std::string& data, KernelImage* image) {
  ByteReader head(data);
  const uint64_t magic = head.Fixed64();
  const uint64_t checksum = head.Fixed64();
  if (!head.ok() || magic != kMagic) return false;
  const std::string_view body = head.Rest();
  if (checksum != Checksum(body)) return false;
  // Read into a new image, so that a failure does not leave the caller's half changed.
  Reader reader(body);
  KernelImage read;
  Visit(reader, read);
  if (!reader.AtEnd()) return false;
  *image = std::move(read);
  return true;
}

}  // namespace kiln::drivers
