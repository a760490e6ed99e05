// A test fixture: a stand-in as a driver opens it. Functions are looked up by name.
#ifndef KILN_TESTS_STAND_INS_TESTING_LIBRARY_TEST_H_
#define KILN_TESTS_STAND_INS_TESTING_LIBRARY_TEST_H_

#include <memory>
#include <string>
#include <utility>

#include "drivers/common/dynamic_library.h"
#include "gtest/gtest.h"

namespace kiln::stand_ins {

template <typename Control>
class LibraryTest : public ::testing::Test {
 protected:
  // Opens the library; `control` and `message` are its symbols.
  void OpenLibrary(const char* file, const char* control, const char* message) {
    auto library = drivers::DynamicLibrary::Open(file);
    ASSERT_TRUE(library.ok()) << library.status();
    library_ = *std::move(library);
    control_ = Find<Control*()>(control)();
    message_ = message;
  }
  template <typename Function>
  Function* Find(const char* name) {
    Function* function = nullptr;
    EXPECT_TRUE(library_->Find(name, &function).ok()) << name;
    return function;
  }
  std::string Message() { return Find<const char*()>(message_)(); }

  std::unique_ptr<drivers::DynamicLibrary> library_;
  Control* control_ = nullptr;

 private:
  const char* message_ = nullptr;
};

}  // namespace kiln::stand_ins

#endif  // KILN_TESTS_STAND_INS_TESTING_LIBRARY_TEST_H_
