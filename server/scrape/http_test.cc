#include "server/scrape/http.h"

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "gtest/gtest.h"

namespace kiln::scrape {
namespace {

TEST(ParseRequest, IsThereOnceItsHeaderHasEnded) {
  const std::string text = "GET /metrics?x=1 HTTP/1.1\r\nHost: box\r\n\r\n";
  for (size_t size = 0; size < text.size(); ++size) {
    const auto part = ParseRequest(text.substr(0, size));
    ASSERT_TRUE(part.ok());
    EXPECT_FALSE(*part) << size;
  }
  const auto request = ParseRequest(text);
  ASSERT_TRUE(request.ok() && *request);
  EXPECT_EQ((*request)->method, "GET");
  EXPECT_EQ((*request)->path, "/metrics");
  EXPECT_EQ((*request)->query, "x=1");
  EXPECT_EQ((*request)->host, "box");
  EXPECT_EQ((*request)->password, std::nullopt);
  EXPECT_EQ((*request)->authorization, std::nullopt);
}

TEST(ParseRequest, FindsThePassword) {
  const auto password = [](const std::string& value) {
    const auto request =
        ParseRequest(absl::StrCat("GET / HTTP/1.1\r\nauthorization: ", value, "\r\n\r\n"));
    return request.ok() && *request ? (*request)->password : std::nullopt;
  };
  EXPECT_EQ(password("Basic " + absl::Base64Escape("prometheus:kiln_1_2")), "kiln_1_2");
  EXPECT_EQ(password("basic  " + absl::Base64Escape(":a:b")), "a:b");
  EXPECT_EQ(password("Basic " + absl::Base64Escape("no colon")), std::nullopt);
  EXPECT_EQ(password("Basic !"), std::nullopt);
  EXPECT_EQ(password("Bearer kiln_1_2"), std::nullopt);
}

TEST(ParseRequest, FindsWhatABrowserSaysOfItself) {
  const auto request = ParseRequest(
      "GET /web/ HTTP/1.1\r\nauthorization:  Bearer kiln_1_2 \r\nSec-Fetch-Site: "
      "cross-site\r\n\r\n");
  ASSERT_TRUE(request.ok() && *request);
  EXPECT_EQ((*request)->authorization, "Bearer kiln_1_2");
  EXPECT_EQ((*request)->fetch_site, "cross-site");
}

TEST(ParseRequest, TwoAuthorizationsAreNone) {
  const std::string basic = "Authorization: Basic " + absl::Base64Escape("a:b") + "\r\n";
  const auto request = ParseRequest("GET / HTTP/1.1\r\n" + basic + basic + "\r\n");
  ASSERT_TRUE(request.ok() && *request);
  EXPECT_EQ((*request)->authorization, "");
  EXPECT_EQ((*request)->password, std::nullopt);
}

TEST(ParseRequest, RefusesWhatIsNone) {
  for (const std::string& text :
       {std::string("\r\n\r\n"), std::string("GET /metrics\r\n\r\n"),
        std::string("GET metrics HTTP/1.1\r\n\r\n"), std::string("GET / HTTP/2\r\n\r\n"),
        std::string(kHeaderBytesMax + 1, 'x'),
        "GET / HTTP/1.1\r\nx: " + std::string(kHeaderBytesMax, 'x') + "\r\n\r\n"})
    EXPECT_FALSE(ParseRequest(text).ok()) << text.substr(0, 40);
}

TEST(Text, SaysHowLongTheBodyIs) {
  const std::string text = Text({.body = "abc"}, true);
  EXPECT_EQ(text.substr(0, 17), "HTTP/1.1 200 OK\r\n");
  EXPECT_NE(text.find("Content-Length: 3\r\n"), std::string::npos);
  EXPECT_EQ(text.substr(text.size() - 7), "\r\n\r\nabc");
  EXPECT_EQ(Text({.body = "abc"}, false), text.substr(0, text.size() - 3));
}

TEST(Text, HasFurtherFields) {
  const std::string text = Text(
      {.status = 429, .content_type = "text/css", .fields = {{"X-A", "1"}, {"X-B", "2"}}}, true);
  EXPECT_EQ(text,
            "HTTP/1.1 429 Too Many Requests\r\nContent-Type: text/css\r\nContent-Length: 0\r\n"
            "Connection: close\r\nX-A: 1\r\nX-B: 2\r\n\r\n");
}

}  // namespace
}  // namespace kiln::scrape
