#include "server/state/small_file.h"

#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>

#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace kiln::state {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class SmallFileTest : public ::testing::Test {
 protected:
  SmallFileTest() {
    std::string pattern = "/tmp/kiln_test_XXXXXX";
    folder_ = mkdtemp(pattern.data());
  }
  ~SmallFileTest() override { std::filesystem::remove_all(folder_); }

  std::string Make(const std::string& text) const {
    const std::string path = folder_ + "/file";
    std::ofstream(path) << text;
    return path;
  }
  static void ExpectNotRegular(const std::string& path, const std::string& kind) {
    const auto text = ReadSmallFile(path, "the table", 100);
    EXPECT_TRUE(absl::IsFailedPrecondition(text.status())) << text.status();
    EXPECT_EQ(text.status().message(),
              "cannot read the table " + path + ": it is " + kind + "; name a regular file");
  }

  std::string folder_;
};

TEST_F(SmallFileTest, ReadsWholeFiles) {
  EXPECT_EQ(*ReadSmallFile(Make(""), "the table", 0), "");
  EXPECT_EQ(*ReadSmallFile(Make("a\n\0b"), "the table", 100), std::string("a\n"));
  const std::string large(300000, 'x');
  EXPECT_EQ(*ReadSmallFile(Make(large), "the table", 300000), large);
  std::filesystem::create_symlink(folder_ + "/file", folder_ + "/link");
  EXPECT_EQ(*ReadSmallFile(folder_ + "/link", "the table", 300000), large);
}

TEST_F(SmallFileTest, AFileIsBoundedByWhatIsRead) {
  const auto text = ReadSmallFile(Make("12345"), "the table", 4);
  EXPECT_TRUE(absl::IsResourceExhausted(text.status()));
  EXPECT_THAT(std::string(text.status().message()),
              AllOf(HasSubstr("the table " + folder_ + "/file"), HasSubstr("more than 4 bytes"),
                    HasSubstr("name the right file")));
  // Its size is reported as zero.
  EXPECT_TRUE(absl::IsResourceExhausted(ReadSmallFile("/proc/self/status", "it", 4).status()));
  // A hole takes no time to make, and would take long to read.
  std::filesystem::resize_file(Make(""), uintmax_t{1} << 40);
  EXPECT_TRUE(absl::IsResourceExhausted(ReadSmallFile(folder_ + "/file", "it", 4).status()));
}

TEST_F(SmallFileTest, OtherKindsOfFilesAreNamedAndNotWaitedFor) {
  const std::string fifo = folder_ + "/fifo";
  ASSERT_EQ(mkfifo(fifo.c_str(), 0600), 0);
  ExpectNotRegular(fifo, "a FIFO");
  ExpectNotRegular("/dev/zero", "a device");
  ExpectNotRegular(folder_, "a folder");
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  const std::string path = folder_ + "/socket";
  ASSERT_LT(path.size(), sizeof(address.sun_path));
  std::memcpy(address.sun_path, path.c_str(), path.size());
  const int socket = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  ASSERT_EQ(bind(socket, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  ExpectNotRegular(path, "a socket");
  close(socket);
}

TEST_F(SmallFileTest, AFileThatIsMissingOrClosedToTheDaemonIsNamedWithTheRemedy) {
  const auto missing = ReadSmallFile(folder_ + "/none", "the table", 4);
  EXPECT_TRUE(absl::IsNotFound(missing.status()));
  EXPECT_EQ(missing.status().message(),
            "cannot read the table " + folder_ + "/none: it does not exist; name a file that does");
  if (geteuid() == 0) GTEST_SKIP() << "root may read everything";
  chmod(Make("a").c_str(), 0);
  const auto closed = ReadSmallFile(folder_ + "/file", "the table", 4);
  EXPECT_TRUE(absl::IsUnavailable(closed.status()));
  EXPECT_THAT(std::string(closed.status().message()), HasSubstr("let it read the file"));
}

}  // namespace
}  // namespace kiln::state
