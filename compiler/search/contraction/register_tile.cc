#include "compiler/search/contraction/register_tile.h"

#include <algorithm>

namespace kiln::search {
namespace {

// Code for a ragged end costs compile time.
constexpr double kRaggedPenalty = 1.03;
// Registers for vectors of addresses and for loads that the scheduler moves forward.
constexpr int kSpareRegisters = 3;

// Every step adds to each sum once, so a step takes at least one multiply-add's latency.
double StepCycles(int64_t vectors, int64_t rows, const drivers::ContractionCosts& costs) {
  const auto loads = static_cast<double>(vectors + rows);
  const double multiply = static_cast<double>(vectors * rows) / costs.multiplies_per_cycle;
  return std::max({multiply, loads / costs.loads_per_cycle, costs.multiply_latency}) + costs.step +
         costs.load * loads + costs.far_vector * static_cast<double>(vectors);
}

// Returns the cycles of all tiles of two row axes, including ragged ends.
double RowsCycles(int64_t vectors, int64_t extent, int64_t tile, int64_t more_extent,
                  int64_t more_tile, const drivers::ContractionCosts& costs) {
  double cycles = 0;
  const int64_t sizes[2] = {tile, extent % tile};
  const int64_t counts[2] = {extent / tile, sizes[1] > 0 ? 1 : 0};
  const int64_t more_sizes[2] = {more_tile, more_extent % more_tile};
  const int64_t more_counts[2] = {more_extent / more_tile, more_sizes[1] > 0 ? 1 : 0};
  for (int i = 0; i < 2; ++i) {
    for (int j = 0; j < 2; ++j) {
      if (counts[i] * more_counts[j] == 0) continue;
      cycles += static_cast<double>(counts[i] * more_counts[j]) *
                StepCycles(vectors, sizes[i] * more_sizes[j], costs);
    }
  }
  if (sizes[1] > 0) cycles *= kRaggedPenalty;
  if (more_sizes[1] > 0) cycles *= kRaggedPenalty;
  return cycles;
}

}  // namespace

double TileCycles(const RegisterTile& tile, int64_t lane_vectors, int64_t rows, int64_t more_rows,
                  const drivers::Target& target) {
  const drivers::ContractionCosts& costs = target.costs.contraction;
  const int64_t rest = lane_vectors % tile.vectors;
  double cycles = static_cast<double>(lane_vectors / tile.vectors) *
                  RowsCycles(tile.vectors, rows, tile.rows, more_rows, tile.more_rows, costs);
  if (rest > 0) {
    cycles += kRaggedPenalty * RowsCycles(rest, rows, tile.rows, more_rows, tile.more_rows, costs);
  }
  return cycles;
}

bool FitsRegisters(const RegisterTile& tile, const drivers::Target& target) {
  const int64_t sums = tile.vectors * tile.rows * tile.more_rows;
  return sums + tile.vectors + kSpareRegisters <= target.limits.vector_registers;
}

RegisterTile ChooseTile(int64_t lane_vectors, int vectors_max, int64_t rows, int64_t more_rows,
                        const drivers::Target& target) {
  RegisterTile best;
  best.cycles = -1;
  for (int vectors = 1; vectors <= vectors_max && vectors <= lane_vectors; ++vectors) {
    const int64_t rows_max = (target.limits.vector_registers - vectors - kSpareRegisters) / vectors;
    // Among equal tiles, chooses the one with fewer rows along the second axis.
    for (int64_t more = 1; more <= std::min(rows_max, more_rows); ++more) {
      for (int64_t tile_rows = 1; tile_rows <= std::min(rows_max / more, rows); ++tile_rows) {
        RegisterTile tile = {vectors, tile_rows, more};
        tile.cycles = TileCycles(tile, lane_vectors, rows, more_rows, target);
        if (best.cycles < 0 || tile.cycles < best.cycles) best = tile;
      }
    }
  }
  return best;
}

}  // namespace kiln::search
