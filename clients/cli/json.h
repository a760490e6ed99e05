// Answers of the daemon as JSON, and what that JSON looks like.
//
// A field has its name in the .proto file. All numbers are JSON numbers, also those of 64 bits;
// NaN and infinities, which JSON lacks, are null. Enumerations are names, bytes are base64, times
// are texts of RFC 3339. Fields that are not messages are always there, also if they are zero;
// messages only if they are set.
#ifndef KILN_CLIENTS_CLI_JSON_H_
#define KILN_CLIENTS_CLI_JSON_H_

#include <google/protobuf/message.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kiln::cli {

// `on_many_lines`: indented, and ends with a line feed; else one line without one. The text is
// ASCII: other characters are escaped, so that none reaches a terminal.
std::string ToJson(const google::protobuf::Message& message, bool on_many_lines);

// A JSON object of messages, or of lists of them, under names of their own.
class JsonObject {
 public:
  void Add(std::string_view name, const google::protobuf::Message& message);
  void Add(std::string_view name, std::vector<const google::protobuf::Message*> list);
  void Add(std::string_view name, std::string_view text);
  // Adds a list of objects that have texts.
  using Texts = std::vector<std::pair<std::string, std::string>>;
  void Add(std::string_view name, const std::vector<Texts>& list);
  std::string Text() const;  // on many lines

 private:
  std::vector<std::pair<std::string, std::string>> members_;  // names and values
};

// Returns the text of a string in JSON, with its quotation marks.
std::string JsonString(std::string_view text);

// Returns the JSON Schema (https://json-schema.org/draft/2020-12) of what ToJson returns for
// messages of this type, for WholeSchema or as a part of another schema.
std::string InnerSchemaOf(const google::protobuf::Descriptor& type);
// Adds the words that only a whole schema has. Requires: `inner` is an object.
std::string WholeSchema(std::string_view title, std::string_view inner);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_JSON_H_
