// Looking shapes up.

#include "tuner/dispatch_table.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>
#include <tuple>

#include "kernels/cuda/known_devices.hpp"
#include "kernels/cuda/plan.hpp"

namespace rowtune {
namespace {

/// Distance of two extents as |log2(a / b)|; no distance spans to or from nothing.
double distance(std::int64_t a, std::int64_t b) {
  if (a == b) return 0;
  if (a == 0 || b == 0) return std::numeric_limits<double>::infinity();
  return std::abs(std::log2(static_cast<double>(a) / static_cast<double>(b)));
}

/// For people: the tuned shape to compare a near answer with. Columns first, then rows.
const DispatchEntry& nearest_entry(const DispatchTable& table, const Shape& shape) {
  return *std::min_element(table.entries.begin(), table.entries.end(), [&](const auto& a, const auto& b) {
    const auto rank = [&](const DispatchEntry& e) {
      return std::tuple(distance(e.cols, shape.cols), distance(e.rows, shape.rows), e.cols, e.rows);
    };
    return rank(a) < rank(b);
  });
}

}  // namespace

std::string to_string(MatchKind kind) {
  switch (kind) {
    case MatchKind::exact:
      return "exact";
    case MatchKind::near:
      return "near";
    case MatchKind::out_of_range:
      return "out_of_range";
    case MatchKind::wrong_device:
      return "wrong_device";
    case MatchKind::not_tuned:
      return "not_tuned";
  }
  return "not_tuned";
}

int alignment_of(const Shape& shape, Dtype dtype) {
  const std::int64_t offset = shape.off * size_of(dtype);
  const std::int64_t stride = shape.rows > 1 ? shape.ld * size_of(dtype) : 0;
  for (const int bytes : {16, 8, 4, 2})
    if (offset % bytes == 0 && stride % bytes == 0) return bytes;
  return size_of(dtype);
}

bool is_cuda(const std::string& device_limits) { return cuda::device_of_limits(device_limits).has_value(); }

dispatch::Kernel constants_of(const DispatchTable& table, const DispatchKernel& kernel) {
  if (!is_cuda(table.device_limits)) {
    dispatch::Kernel any{};
    any.family = dispatch::Family::reread;
    any.block = any.rows_per_warp = any.vector = any.split = 1;
    any.ragged = true;
    return any;
  }
  Workload w = Workload::of(table.op, table.dtype, Shape::of(1, 1));
  auto constants = cuda::kernel_for(w, split_config_name(kernel.config));
  constants.vectors = kernel.vectors;
  constants.ragged = kernel.ragged;
  return constants;
}

LookupTable::LookupTable(const DispatchTable& table) : element_(size_of(table.dtype)), table_{} {
  for (const auto& k : table.kernels) kernels_.push_back(constants_of(table, k));
  for (const auto& e : table.entries)
    entries_.push_back({static_cast<int>(e.cols), static_cast<int>(e.rows), static_cast<short>(e.alignment),
                        static_cast<short>(e.kernel), static_cast<float>(e.evidence.time_us)});
  const auto fill = [](const std::vector<DispatchRegion>& from, std::vector<dispatch::Region>& to) {
    for (const auto& r : from)
      to.push_back({static_cast<int>(r.cols), static_cast<int>(r.rows), static_cast<short>(r.kernel)});
  };
  fill(table.aligned, aligned_);
  fill(table.ragged, ragged_);
  table_ = {kernels_.data(),
            0,
            static_cast<int>(kernels_.size()),
            entries_.data(),
            static_cast<int>(entries_.size()),
            aligned_.data(),
            static_cast<int>(aligned_.size()),
            ragged_.data(),
            static_cast<int>(ragged_.size()),
            static_cast<int>(table.least_cols),
            static_cast<int>(table.least_rows)};
}

dispatch::Answer LookupTable::look_up(const Shape& shape) const {
  const int alignment = alignment_of(shape, element_ == 4 ? Dtype::f32 : Dtype::f16);
  return dispatch::look_up(table_, {shape.rows, shape.cols, element_, alignment, 16});
}

Match lookup(const DispatchTables& tables, const std::string& device_model, Operation op, Dtype dtype,
             const Shape& shape, Regime regime, const std::optional<Options>& options,
             const std::optional<std::string>& device_limits) {
  const auto is_device = [&](const DispatchTable& t) {
    return t.device_model == device_model && (!device_limits || t.device_limits == *device_limits);
  };
  const Workload asked{op, dtype, shape, regime, options.value_or(default_options(op))};
  Match match;
  if (std::none_of(tables.tables.begin(), tables.tables.end(), is_device)) {
    std::set<std::string> models;
    for (const auto& t : tables.tables) models.insert(t.device_model);
    match.kind = MatchKind::wrong_device;
    match.sentence =
        fmt::format("refused: nothing here is for '{}'; the tables are for {}. Tune on this device.", device_model,
                    models.empty() ? "no device" : fmt::format("{}", fmt::join(models, ", ")));
    return match;
  }
  const auto table = std::find_if(tables.tables.begin(), tables.tables.end(), [&](const DispatchTable& t) {
    return is_device(t) && t.op == op && t.dtype == dtype && t.regime == regime && t.options == asked.options;
  });
  match.config = "base";
  if (table == tables.tables.end() || table->entries.empty()) {
    match.sentence = fmt::format("not tuned: no table for {}; launch the base.", to_string(asked));
    return match;
  }
  const LookupTable view(*table);
  const auto answer = view.look_up(shape);
  if (answer.kind == dispatch::MatchKind::exact) {
    match.kind = MatchKind::exact;
    match.entry = table->entries.at(static_cast<std::size_t>(answer.entry - view.table().entries));
    match.sentence = fmt::format("exact: {} was tuned.", to_string(asked));
  } else if (answer.kind == dispatch::MatchKind::near) {
    match.kind = MatchKind::near;
    match.entry = nearest_entry(*table, shape);
    match.cols_factor = std::exp2(distance(match.entry->cols, shape.cols));
    match.rows_factor = std::exp2(distance(match.entry->rows, shape.rows));
    match.sentence = fmt::format("near, not exact: {} was not tuned; the closest that was is {}x{}.", to_string(asked),
                                 match.entry->rows, match.entry->cols);
  } else {
    match.kind = MatchKind::out_of_range;
    match.sentence = fmt::format("out of range: {} is outside what was tuned; launch the base.", to_string(asked));
    return match;
  }
  if (answer.kernel < 0) {
    match.config = match.kind == MatchKind::exact ? match.entry->config : "base";
  } else {
    match.kernel = table->kernels.at(static_cast<std::size_t>(answer.kernel));
    match.config = match.kernel->config;
  }
  return match;
}

}  // namespace rowtune
