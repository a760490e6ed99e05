// kiln completion SHELL: a script with which a shell completes the commands. It is made from the
// table of commands.
#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/str_split.h"
#include "clients/cli/command.h"

namespace kiln::cli {
namespace {

// With these, every command is completed.
constexpr std::string_view kOptionsOfAll[] = {"--json",        "--json_schema", "--color",
                                              "--address",     "--token",       "--ca",
                                              "--certificate", "--key",         "--help"};
constexpr std::string_view kOptionsOfTables[] = {"--sort", "--limit", "--watch"};

bool IsOfWord(char c) { return absl::ascii_islower(c) || c == '-'; }

void AddOnce(std::string_view word, std::vector<std::string>* words) {
  if (std::find(words->begin(), words->end(), word) == words->end()) words->emplace_back(word);
}

// The words in small letters of the usage line, such as "add" and "list" of "add|list".
void AddUsageWords(std::string_view usage, std::vector<std::string>* words) {
  const std::vector<std::string> parts =
      absl::StrSplit(std::string(usage), absl::ByAnyChar("[]| ."));
  for (const std::string& word : parts) {
    if (!word.empty() && std::all_of(word.begin(), word.end(), IsOfWord)) AddOnce(word, words);
  }
}

// The first word of a help text's line, if it names a word or an option: two spaces stand before
// words and options, four before options of the word above.
void AddHelpWord(std::string_view line, std::vector<std::string>* words) {
  const size_t begin = line.find_first_not_of(' ');
  if (begin != 2 && begin != 4) return;
  const std::string_view word = line.substr(begin, line.find(' ', begin) - begin);
  const bool is_option = word.substr(0, 2) == "--";
  if (word.empty() || !std::all_of(word.begin(), word.end(), IsOfWord)) return;
  if (is_option || begin == 2) AddOnce(word, words);
}

// In single quotes, of which the text inside has none.
std::string Quoted(std::string text) {
  return absl::StrCat("'", absl::StrReplaceAll(text, {{"'", "’"}}), "'");
}

void PrintForBash(std::ostream& out) {
  out << "_kiln() {\n"
         "  local words\n"
         "  case ${COMP_WORDS[1]} in\n";
  for (const Command& command : AllCommands())
    out << "    " << command.name << ") words=\"" << absl::StrJoin(WordsOf(command), " ")
        << "\" ;;\n";
  out << "  esac\n"
         "  if ((COMP_CWORD == 1)); then words=\"";
  for (const Command& command : AllCommands()) out << command.name << ' ';
  out << "\"; fi\n"
         "  mapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$2\")\n"
         "}\n"
         "complete -o default -F _kiln kiln\n";
}

void PrintForZsh(std::ostream& out) {
  out << "#compdef kiln\n"
         "local -a found\n"
         "if ((CURRENT == 2)); then\n"
         "  found=(\n";
  for (const Command& command : AllCommands()) {
    out << "    " << Quoted(std::string(command.name) + ":" + std::string(command.summary)) << '\n';
  }
  out << "  )\n"
         "  _describe command found\n"
         "  return\n"
         "fi\n"
         "case $words[2] in\n";
  for (const Command& command : AllCommands())
    out << "  " << command.name << ") found=(" << absl::StrJoin(WordsOf(command), " ") << ") ;;\n";
  out << "esac\n"
         "compadd -a found\n"
         "_files\n";
}

void PrintForFish(std::ostream& out) {
  out << "complete -c kiln -n __fish_use_subcommand -f\n";
  for (const Command& command : AllCommands()) {
    out << "complete -c kiln -n __fish_use_subcommand -a " << command.name << " -d "
        << Quoted(std::string(command.summary)) << '\n'
        << "complete -c kiln -n '__fish_seen_subcommand_from " << command.name << "' -a '"
        << absl::StrJoin(WordsOf(command), " ") << "'\n";
  }
}

}  // namespace

std::vector<std::string> WordsOf(const Command& command) {
  std::vector<std::string> words;
  AddUsageWords(command.arguments, &words);
  const std::vector<std::string> lines = absl::StrSplit(std::string(command.help), '\n');
  for (const std::string& line : lines) AddHelpWord(line, &words);
  if (command.has_table != nullptr)
    for (const std::string_view option : kOptionsOfTables) AddOnce(option, &words);
  for (const std::string_view option : kOptionsOfAll) AddOnce(option, &words);
  return words;
}

absl::Status RunCompletion(Invocation& invocation) {
  const std::string shell = absl::StrJoin(invocation.arguments, " ");
  if (shell == "bash") {
    PrintForBash(invocation.out);
  } else if (shell == "zsh") {
    PrintForZsh(invocation.out);
  } else if (shell == "fish") {
    PrintForFish(invocation.out);
  } else {
    return absl::InvalidArgumentError("expected bash, zsh or fish");
  }
  return absl::OkStatus();
}

}  // namespace kiln::cli
