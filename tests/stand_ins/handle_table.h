// A stand-in's live objects of one kind, by handle.
#ifndef KILN_TESTS_STAND_INS_HANDLE_TABLE_H_
#define KILN_TESTS_STAND_INS_HANDLE_TABLE_H_

#include <memory>
#include <unordered_map>
#include <utility>

namespace kiln::stand_ins {

// Handles are numbers that no object had before. `control`() counts the objects, and `runtime`()
// has the next handle. Requires the runtime's lock.
template <typename Handle, typename T, auto* control, auto* runtime>
class HandleTable {
 public:
  Handle Add(std::shared_ptr<T> object) {
    ++control().objects;
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a handle that is no address.
    const auto handle = reinterpret_cast<Handle>(runtime().next_handle += 16);
    objects_.emplace(handle, std::move(object));
    return handle;
  }
  std::shared_ptr<T> Find(Handle handle) const {
    const auto found = objects_.find(handle);
    return found == objects_.end() ? nullptr : found->second;
  }
  bool Remove(Handle handle) {
    if (objects_.erase(handle) == 0) return false;
    --control().objects;
    return true;
  }
  template <typename Predicate>
  void RemoveIf(Predicate predicate) {
    control().objects -=
        std::erase_if(objects_, [&](const auto& row) { return predicate(*row.second); });
  }
  template <typename Use>
  void ForEach(Use use) const {
    for (const auto& [handle, object] : objects_) use(*object);
  }

 private:
  std::unordered_map<Handle, std::shared_ptr<T>> objects_;
};

}  // namespace kiln::stand_ins

#endif  // KILN_TESTS_STAND_INS_HANDLE_TABLE_H_
