#include "clients/cpp/pieces.h"

#include <string>

#include "gtest/gtest.h"

namespace kiln::client {
namespace {

std::string NameOf(const std::string& data) { return SumName({data.data(), data.size()}); }

// The Python client's test has the same values (test_uploads.py).
TEST(Pieces, SumsAreThoseOfTheProtocol) {
  EXPECT_EQ(NameOf(""), "sum64:0000000000000000");
  EXPECT_EQ(NameOf("abc"), "sum64:0000000000636261");
  const std::string zeros(7, '\0');
  EXPECT_EQ(NameOf("\1" + zeros + "\2" + zeros), "sum64:0000000000000003");
  EXPECT_EQ(NameOf(std::string(17, '\xff')), "sum64:00000000000000fd");
}

}  // namespace
}  // namespace kiln::client
