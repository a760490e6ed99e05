// Assertions of invariants: of what no input can cause. A violated one ends the process with a
// message that names the place, the condition and the values, since a daemon that goes on with a
// wrong table gives users wrong numbers. What a user, a file, a peer or a device can cause is an
// absl::Status instead.
//
// - always on; the condition is evaluated once:
//   KILN_CHECK(flow != nullptr) << "user " << user;
// - likewise, and the message has both values; also _NE, _LT, _LE, _GT, _GE:
//   KILN_CHECK_EQ(held, 0) << "charge not returned";
// - only in debug and sanitizer builds, else not evaluated; also _EQ, …:
//   KILN_DCHECK(IsSorted(rows));
// - calls table.Validate(), if this process validates its tables (see below):
//   KILN_VALIDATE(table, size);
//
// All are statements that are safe for threads. Conditions have no side effects.
#ifndef KILN_PROTO_CHECK_CHECK_H_
#define KILN_PROTO_CHECK_CHECK_H_

#include <cstdint>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>

namespace kiln {

// Collects the message of a violated check; the destructor writes it to stderr and calls abort().
class CheckFailure {
 public:
  CheckFailure(const char* file, int line, std::string condition);
  [[noreturn]] ~CheckFailure();
  CheckFailure(const CheckFailure&) = delete;
  CheckFailure& operator=(const CheckFailure&) = delete;

  // For what the caller adds to the message.
  std::ostream& stream();

 private:
  std::ostringstream text_;
};

// Whether this process validates its tables after their operations: sanitizer builds, and any other
// process that was started with KILN_VALIDATE=1 in its environment.
bool ValidatesTables();

namespace check_internal {

// Makes both branches of a check's conditional expression void; & binds more loosely than <<.
struct Void {
  void operator&(std::ostream&) const {}
};

template <typename T>
concept Streamable = requires(std::ostream& out, const T& value) {
  out << value;
};

template <typename T>
void PrintValue(std::ostream& out, const T& value) {
  if constexpr (std::is_enum_v<T>) {
    out << +static_cast<std::underlying_type_t<T>>(value);
  } else if constexpr (sizeof(T) == 1 && std::is_integral_v<T>) {
    out << +value;  // a number, not a character
  } else if constexpr (Streamable<T>) {
    out << value;
  } else {
    out << "?";
  }
}

template <typename A, typename B>
[[gnu::noinline, gnu::cold]] std::string* NewComparison(const char* condition, const A& a,
                                                        const B& b) {
  std::ostringstream text;
  text << condition << " (";
  PrintValue(text, a);
  text << " and ";
  PrintValue(text, b);
  text << ")";
  return new std::string(text.str());
}

// Integers of different signedness, which std::cmp_less and its like compare by value.
template <typename A, typename B>
concept MixedIntegers = std::is_integral_v<A> && std::is_integral_v<B> && std::is_signed_v<A>
!= std::is_signed_v<B> && !std::is_same_v<A, bool> && !std::is_same_v<B, bool> &&
    !std::is_same_v<A, char> && !std::is_same_v<B, char>;

// Null if the comparison holds; else the message, which the caller owns. The message is made only
// on failure.
#define KILN_DEFINE_COMPARISON(name, op, mixed)                                   \
  template <typename A, typename B>                                               \
  std::string* Compare##name(const A& a, const B& b, const char* condition) {     \
    bool holds;                                                                   \
    if constexpr (MixedIntegers<A, B>) {                                          \
      holds = mixed(a, b);                                                        \
    } else {                                                                      \
      holds = static_cast<bool>(a op b);                                          \
    }                                                                             \
    return __builtin_expect(holds, 1) ? nullptr : NewComparison(condition, a, b); \
  }
KILN_DEFINE_COMPARISON(EQ, ==, std::cmp_equal)
KILN_DEFINE_COMPARISON(NE, !=, std::cmp_not_equal)
KILN_DEFINE_COMPARISON(LT, <, std::cmp_less)
KILN_DEFINE_COMPARISON(LE, <=, std::cmp_less_equal)
KILN_DEFINE_COMPARISON(GT, >, std::cmp_greater)
KILN_DEFINE_COMPARISON(GE, >=, std::cmp_greater_equal)
#undef KILN_DEFINE_COMPARISON

// The message is taken over from a pointer of NewComparison.
std::string Take(std::string* condition);

// Whether tables validate themselves after this operation; `size` is the number of entries that
// Validate() visits.
bool ValidatesNow(int64_t size);

}  // namespace check_internal
}  // namespace kiln

#define KILN_CHECK(condition)                       \
  __builtin_expect(static_cast<bool>(condition), 1) \
      ? (void)0                                     \
      : ::kiln::check_internal::Void() &            \
            ::kiln::CheckFailure(__FILE__, __LINE__, #condition).stream()

// `while` allows a stream after the macro and leaves no dangling else; its body never returns.
#define KILN_CHECK_COMPARE(name, op, a, b)                                       \
  while (std::string* kiln_condition =                                           \
             ::kiln::check_internal::Compare##name((a), (b), #a " " #op " " #b)) \
  ::kiln::CheckFailure(__FILE__, __LINE__, ::kiln::check_internal::Take(kiln_condition)).stream()
#define KILN_CHECK_EQ(a, b) KILN_CHECK_COMPARE(EQ, ==, a, b)
#define KILN_CHECK_NE(a, b) KILN_CHECK_COMPARE(NE, !=, a, b)
#define KILN_CHECK_LT(a, b) KILN_CHECK_COMPARE(LT, <, a, b)
#define KILN_CHECK_LE(a, b) KILN_CHECK_COMPARE(LE, <=, a, b)
#define KILN_CHECK_GT(a, b) KILN_CHECK_COMPARE(GT, >, a, b)
#define KILN_CHECK_GE(a, b) KILN_CHECK_COMPARE(GE, >=, a, b)

// KILN_DEBUG_CHECKS is defined by the debug and the sanitizer builds (cmake/KilnOptions.cmake).
#ifdef KILN_DEBUG_CHECKS
#define KILN_DCHECK(condition) KILN_CHECK(condition)
#define KILN_DCHECK_COMPARE(name, op, a, b) KILN_CHECK_COMPARE(name, op, a, b)
#else
#define KILN_DCHECK(condition) KILN_CHECK(true || (condition))
#define KILN_DCHECK_COMPARE(name, op, a, b) \
  while (false) KILN_CHECK_COMPARE(name, op, a, b)
#endif
#define KILN_DCHECK_EQ(a, b) KILN_DCHECK_COMPARE(EQ, ==, a, b)
#define KILN_DCHECK_NE(a, b) KILN_DCHECK_COMPARE(NE, !=, a, b)
#define KILN_DCHECK_LT(a, b) KILN_DCHECK_COMPARE(LT, <, a, b)
#define KILN_DCHECK_LE(a, b) KILN_DCHECK_COMPARE(LE, <=, a, b)
#define KILN_DCHECK_GT(a, b) KILN_DCHECK_COMPARE(GT, >, a, b)
#define KILN_DCHECK_GE(a, b) KILN_DCHECK_COMPARE(GE, >=, a, b)

// At the end of each operation that changes a table: `table` has a method `void Validate() const`
// that checks all its invariants (and is called with the table's lock held), `size` is how many
// entries that visits. Tests and sanitizer builds validate after each operation of a small table,
// and after every size/64-th of a large one, so that an operation's cost stays bounded. Other
// processes do so if their environment has KILN_VALIDATE=1.
#define KILN_VALIDATE(table, size) \
  (::kiln::check_internal::ValidatesNow(static_cast<int64_t>(size)) ? (table).Validate() : (void)0)

#endif  // KILN_PROTO_CHECK_CHECK_H_
