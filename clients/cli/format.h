// Formats quantities for people.
#ifndef KILN_CLIENTS_CLI_FORMAT_H_
#define KILN_CLIENTS_CLI_FORMAT_H_

#include <cstdint>
#include <string>

#include "clients/cli/table.h"

namespace kiln::v1 {
class Device;
class Program;
}  // namespace kiln::v1

namespace kiln::cli {

// Returns "0 B", "1.5 KiB", "12 MiB": binary units, two or three digits.
std::string Bytes(uint64_t bytes);
// Returns "830 ns", "1.25 µs", "12.3 ms", "4.10 s", "2 min", "3 h"; "-" for zero, which means not
// measured.
std::string Duration(double seconds);
// Returns `amount` of `unit` in `seconds` as "12.3 GFLOP/s"; "-" if nothing was measured.
std::string Rate(double amount, double seconds, const std::string& unit);
// Formats 0 to 1 as "42%".
std::string Percent(double share);
// Returns "healthy", "draining", or "failed: " and the reason.
std::string Health(const v1::Device& device);
// The same texts as cells, with the numbers by which rows are sorted, and colours.
Cell BytesCell(uint64_t bytes);
Cell DurationCell(double seconds);
Cell PercentCell(double share);
Cell CountCell(uint64_t count);
Cell RateCell(double amount, double seconds, const std::string& unit);
Cell HealthCell(const v1::Device& device);
// Returns "cpu:0", or "cpu:0, cpu:1" for a program on several devices.
std::string DevicesText(const v1::Program& program);
// Returns the first twelve characters of a digest, enough to identify it.
std::string ShortDigest(const std::string& digest);

}  // namespace kiln::cli

#endif  // KILN_CLIENTS_CLI_FORMAT_H_
