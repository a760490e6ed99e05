// Damage: what happens to bytes and to lines of text.
#ifndef KILN_TESTS_FUZZ_MUTATE_H_
#define KILN_TESTS_FUZZ_MUTATE_H_

#include <string>

#include "tests/fuzz/run.h"

namespace kiln::fuzz {

// One to eight of: a bit flipped, a byte set, bytes removed, repeated or inserted, a piece of
// `other` put in, the end cut.
std::string MutateBytes(Random& random, std::string bytes, const std::string& other);

// One to four of: a word replaced by another word of the text, by a piece of `other` or by a number
// that hurts; a line removed, repeated or moved; or MutateBytes.
std::string MutateText(Random& random, std::string text, const std::string& other);

}  // namespace kiln::fuzz

#endif  // KILN_TESTS_FUZZ_MUTATE_H_
