#include "reports/fields.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace rowtune::reports {
namespace {

Cell cell(const std::string& value) { return value; }
Cell cell(std::int64_t value) { return value; }
Cell cell(int value) { return std::int64_t(value); }
Cell cell(bool value) { return value; }
Cell cell(double value) { return value; }
template <class T>
Cell cell(const std::optional<T>& value) {
  return value ? cell(*value) : Cell();
}

/// A field that is a member of the record.
template <class Row, class T>
Field<Row> of(Head head, T Row::*member) {
  return {std::move(head), [member](const Row& row) { return cell(row.*member); }};
}

constexpr bool hidden = true;

std::string shape_text(std::int64_t rows, std::int64_t cols, std::int64_t ld, std::int64_t off) {
  return to_string(Shape{rows, cols, ld, off});
}

/// The fields that say which workload a baseline or an accuracy is of.
template <class Row, class Get>
std::vector<Field<Row>> workload_fields(Get workload) {
  const auto from = [workload](auto part) {
    return [workload, part](const Row& row) { return cell(part(workload(row))); };
  };
  return {
      {{"op", "", "", "operation"}, from([](const Workload& w) { return to_string(w.op); })},
      {{"dtype", "", "", "type of the tensors"}, from([](const Workload& w) { return to_string(w.dtype); })},
      {{"rows", "", "", "rows", Style::count}, from([](const Workload& w) { return w.shape.rows; })},
      {{"cols", "", "", "columns", Style::count}, from([](const Workload& w) { return w.shape.cols; })},
      {{"ld", "", "elements", "row stride", Style::count, hidden}, from([](const Workload& w) { return w.shape.ld; })},
      {{"off", "", "elements", "offset of the first element", Style::count, hidden},
       from([](const Workload& w) { return w.shape.off; })},
      {{"regime", "", "", "where the inputs are"}, from([](const Workload& w) { return to_string(w.regime); })},
      {{"options", "", "", "options of the operation", Style::text, hidden},
       from([](const Workload& w) { return to_string(w.options); })}};
}

template <class Row>
std::vector<Field<Row>> joined(std::vector<Field<Row>> first, const std::vector<Field<Row>>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

}  // namespace

Sheet select(const Sheet& sheet, const std::vector<std::string>& names) {
  std::vector<std::size_t> picked;
  for (const auto& name : names) {
    const auto found =
        std::find_if(sheet.heads.begin(), sheet.heads.end(), [&](const Head& head) { return head.name == name; });
    if (found == sheet.heads.end()) {
      std::vector<std::string> choices;
      for (const auto& head : sheet.heads) choices.push_back(head.name);
      throw UsageError(fmt::format("unknown column '{}'; choose from {}", name, fmt::join(choices, ", ")));
    }
    picked.push_back(static_cast<std::size_t>(found - sheet.heads.begin()));
  }
  Sheet out;
  for (const auto i : picked) {
    out.heads.push_back(sheet.heads[i]);
    out.heads.back().hidden = false;
  }
  for (const auto& row : sheet.rows) {
    auto& cells = out.rows.emplace_back();
    for (const auto i : picked) cells.push_back(row[i]);
  }
  return out;
}

const std::vector<Field<db::BestRow>>& best_fields() {
  using R = db::BestRow;
  static const std::vector<Field<R>> fields{
      of({"device", "", "", "where it was measured: cpu, cuda:N"}, &R::device),
      of({"op", "", "", "operation"}, &R::op),
      of({"dtype", "", "", "type of the tensors; arithmetic is fp32"}, &R::dtype),
      of({"rows", "", "", "rows", Style::count}, &R::rows),
      of({"cols", "", "", "columns", Style::count}, &R::cols),
      of({"regime", "", "", "cold: inputs from DRAM; warm: inputs may be in cache; overlapped: launches overlap"},
         &R::regime),
      of({"config", "", "", "algorithm and axes, reversible"}, &R::config),
      of({"block_size", "block", "", "threads of a block; cpu: threads", Style::count, hidden}, &R::block_size),
      of({"rows_per_warp", "", "", "rows a warp works on at once", Style::count, hidden}, &R::rows_per_warp),
      of({"vector_width", "", "", "elements per access", Style::count, hidden}, &R::vector_width),
      of({"split_count", "", "", "blocks that share a row", Style::count, hidden}, &R::split_count),
      of({"time_us", "time", "us", "median time of a launch", Style::time}, &R::time_us),
      of({"time_lo_us", "low", "us", "lower end of the median's 95 % interval", Style::time}, &R::time_lo_us),
      of({"time_hi_us", "high", "us", "upper end of the median's 95 % interval", Style::time}, &R::time_hi_us),
      of({"gbps", "GB/s", "GB/s", "each input once and each output once, over the time", Style::rate}, &R::gbps),
      of({"ceiling_fraction", "of ceiling", "", "time of the tuned copy of the same bytes, over the time",
          Style::fraction},
         &R::ceiling_fraction),
      of({"base_config", "", "", "the config a sensible engineer writes by hand", Style::text, hidden},
         &R::base_config),
      of({"base_time_us", "base", "us", "median time of the base", Style::time}, &R::base_time_us),
      of({"ties", "", "", "other configs that cannot be told from this one", Style::count}, &R::ties),
      of({"max_error_ulp", "max error", "ulp", "largest error of the check, in ulps of the dtype", Style::error},
         &R::max_error_ulp),
      of({"status", "", "", "ok, or how it failed"}, &R::status),
      of({"gain_over_base", "gain", "", "time of the base over the time", Style::ratio}, &R::gain_over_base),
      of({"ld", "", "elements", "row stride", Style::count, hidden}, &R::ld),
      of({"off", "", "elements", "offset of the first element", Style::count, hidden}, &R::off),
      of({"options", "", "", "weights, bias, in place, eps", Style::text, hidden}, &R::options),
      of({"algorithm", "", "", "algorithm of the config", Style::text, hidden}, &R::algorithm),
      of({"device_model", "", "", "model of the device", Style::text, hidden}, &R::device_model),
      of({"device_limits", "", "", "limits that make it a device of its own", Style::text, hidden}, &R::device_limits),
      of({"rank", "", "", "1 is the winner; 0: not ranked", Style::count, hidden}, &R::rank),
      of({"eligible", "", "", "whether it may win: unsafe forms may not", Style::flag, hidden}, &R::eligible),
      of({"is_base", "", "", "whether it is the base", Style::flag, hidden}, &R::is_base),
      of({"is_tie", "", "", "whether it cannot be told from the winner", Style::flag, hidden}, &R::is_tie),
      of({"decided", "", "", "by paired finals; else by medians and intervals", Style::flag, hidden}, &R::decided),
      of({"settled", "", "", "whether the estimate settled before a limit", Style::flag, hidden}, &R::settled),
      of({"sample_count", "samples", "", "timing samples", Style::count, hidden}, &R::sample_count),
      of({"registers", "", "", "registers of a thread", Style::count, hidden}, &R::registers),
      of({"spill_bytes", "", "bytes", "spilled registers of a thread", Style::count, hidden}, &R::spill_bytes),
      of({"shared_bytes", "", "bytes", "shared memory of a block", Style::count, hidden}, &R::shared_bytes),
      of({"blocks_per_unit", "", "", "blocks that fit a multiprocessor", Style::count, hidden}, &R::blocks_per_unit),
      of({"extra_axes", "", "", "further axes, JSON", Style::text, hidden}, &R::extra_axes),
      of({"bytes", "", "bytes", "bytes a perfect kernel moves", Style::count, hidden}, &R::bytes),
      of({"ceiling_time_us", "ceiling", "us", "time the tuned copy takes for these bytes", Style::time, hidden},
         &R::ceiling_time_us),
      of({"toolchain", "", "", "compiler", Style::text, hidden}, &R::toolchain),
      of({"source_fingerprint", "", "", "of the kernel's sources", Style::text, hidden}, &R::source_fingerprint),
      of({"protocol", "", "", "version of the measuring protocol", Style::count, hidden}, &R::protocol),
      of({"message", "", "", "why it failed", Style::text, hidden}, &R::message),
      of({"measured_at", "", "", "when, UTC", Style::text, hidden}, &R::measured_at)};
  return fields;
}

const std::vector<Field<db::Failure>>& failure_fields() {
  using R = db::Failure;
  static const std::vector<Field<R>> fields{
      of({"device", "", "", "where"}, &R::device),
      of({"op", "", "", "operation"}, &R::op),
      of({"dtype", "", "", "type of the tensors"}, &R::dtype),
      {{"shape", "", "", "rows x columns, stride, offset"},
       [](const R& r) { return cell(shape_text(r.rows, r.cols, r.ld, r.off)); }},
      of({"regime", "", "", "where the inputs are"}, &R::regime),
      of({"config", "", "", "algorithm and axes"}, &R::config),
      of({"status", "", "", "how it failed"}, &R::status),
      of({"message", "", "", "the first error's text"}, &R::message),
      of({"is_base", "", "", "whether it is the base", Style::flag, hidden}, &R::is_base),
      of({"options", "", "", "options of the operation", Style::text, hidden}, &R::options),
      of({"device_model", "", "", "model of the device", Style::text, hidden}, &R::device_model)};
  return fields;
}

const std::vector<Field<db::Coverage>>& coverage_fields() {
  using R = db::Coverage;
  static const std::vector<Field<R>> fields{
      of({"device", "", "", "where"}, &R::device),
      of({"op", "", "", "operation"}, &R::op),
      of({"dtype", "", "", "type of the tensors"}, &R::dtype),
      {{"shape", "", "", "rows x columns, stride, offset"},
       [](const R& r) { return cell(shape_text(r.rows, r.cols, r.ld, r.off)); }},
      of({"regime", "", "", "where the inputs are"}, &R::regime),
      of({"measured", "", "", "configs with a result, failures included", Style::count}, &R::measured),
      of({"space_size", "space", "", "configs of the space", Style::count}, &R::space_size),
      of({"fraction", "covered", "", "measured / space", Style::fraction}, &R::fraction),
      of({"ok", "", "", "ran right", Style::count}, &R::ok),
      of({"failed", "", "", "did not", Style::count}, &R::failed),
      of({"unsettled", "", "", "stopped by a limit before settling", Style::count}, &R::unsettled),
      of({"decided", "", "", "by paired finals", Style::flag}, &R::decided),
      of({"has_ceiling", "ceiling", "", "whether the copy was tuned", Style::flag}, &R::has_ceiling),
      of({"older_results", "older", "", "results of older kernels, set aside", Style::count}, &R::older_results),
      of({"first_measured_at", "", "", "UTC", Style::text, hidden}, &R::first_measured_at),
      of({"last_measured_at", "", "", "UTC", Style::text, hidden}, &R::last_measured_at),
      of({"toolchain", "", "", "compiler", Style::text, hidden}, &R::toolchain),
      of({"source_fingerprint", "", "", "of the kernel's sources", Style::text, hidden}, &R::source_fingerprint),
      of({"device_model", "device model", "", "model of the device"}, &R::device_model)};
  return fields;
}

const std::vector<Field<db::BaselineRow>>& baseline_fields() {
  using R = db::BaselineRow;
  static const std::vector<Field<R>> fields =
      joined(workload_fields<R>([](const R& r) { return r.baseline.workload; }),
             {{{"impl", "", "", "implementation"}, [](const R& r) { return cell(r.baseline.impl); }},
              {{"version", "", "", "its version"}, [](const R& r) { return cell(r.baseline.version); }},
              {{"time_us", "time", "us", "its time", Style::time}, [](const R& r) { return cell(r.baseline.time_us); }},
              of({"gbps", "GB/s", "GB/s", "bytes over its time", Style::rate}, &R::gbps),
              of({"rowtune_config", "rowtune config", "", "rowtune's winner"}, &R::rowtune_config),
              of({"rowtune_time_us", "rowtune", "us", "rowtune's time", Style::time}, &R::rowtune_time_us),
              of({"speedup", "", "", "its time over rowtune's", Style::ratio}, &R::speedup),
              {{"method", "", "", "how it was measured", Style::text, hidden},
               [](const R& r) { return cell(r.baseline.method); }},
              {{"source", "", "", "file it came from", Style::text, hidden},
               [](const R& r) { return cell(r.baseline.source); }},
              {{"device_model", "device model", "", "model of the device"},
               [](const R& r) { return cell(r.baseline.device_model); }}});
  return fields;
}

const std::vector<Field<db::AccuracyRow>>& accuracy_fields() {
  using R = db::AccuracyRow;
  static const std::vector<Field<R>> fields =
      joined(workload_fields<R>([](const R& r) { return r.accuracy.key.workload; }),
             {{{"config", "", "", "algorithm and axes"}, [](const R& r) { return cell(r.accuracy.key.config); }},
              {{"input", "", "", "input of the study"}, [](const R& r) { return cell(r.accuracy.input); }},
              {{"max_error_ulp", "max error", "ulp", "largest error", Style::error},
               [](const R& r) { return cell(r.accuracy.max_error_ulp); }},
              {{"mean_error_ulp", "mean error", "ulp", "mean error", Style::error},
               [](const R& r) { return cell(r.accuracy.mean_error_ulp); }},
              {{"nan_count", "NaN", "", "outputs that are NaN", Style::count},
               [](const R& r) { return cell(r.accuracy.nan_count); }},
              of({"time_us", "time", "us", "time of this config", Style::time}, &R::time_us),
              of({"eligible", "", "", "whether it may win", Style::flag}, &R::eligible),
              {{"device_model", "device model", "", "model of the device"},
               [](const R& r) { return cell(r.accuracy.key.device_model); }}});
  return fields;
}

const std::vector<Field<db::StabilityRow>>& stability_fields() {
  using R = db::StabilityRow;
  static const std::vector<Field<R>> fields{
      of({"experiment", "", "", "what is varied"}, &R::experiment),
      of({"case", "", "", "where it stands"}, &R::case_name),
      of({"op", "", "", "quantity"}, &R::op),
      of({"method", "", "", "formula"}, &R::method),
      of({"order", "", "", "order of the summation"}, &R::order),
      of({"dtype", "", "", "type of the data"}, &R::dtype),
      of({"n", "", "", "elements", Style::count}, &R::n),
      of({"kappa", "", "", "condition number", Style::error}, &R::kappa),
      of({"rel_error", "", "", "relative error", Style::error}, &R::rel_error),
      of({"ulp_error", "", "ulp", "error in ulps", Style::error}, &R::ulp_error),
      of({"lre", "", "digits", "log relative error against the exact statistic of the rounded data", Style::error},
         &R::lre),
      of({"lre_ceiling", "", "digits", "what that exact statistic scores against the certified value", Style::error},
         &R::lre_ceiling),
      of({"bound", "", "", "theoretical bound of the relative error", Style::error}, &R::bound),
      of({"bound_kind", "", "", "proven or heuristic"}, &R::bound_kind),
      of({"nan_count", "", "", "NaN results", Style::count}, &R::nan_count),
      of({"inf_count", "", "", "infinite results", Style::count}, &R::inf_count),
      of({"negative_count", "", "", "negative variances", Style::count}, &R::negative_count),
      of({"false_zero_count", "", "", "zeros that should not be", Style::count}, &R::false_zero_count),
      of({"device_model", "", "", "of a kernel's output", Style::text, hidden}, &R::device_model),
      of({"config", "", "", "of a kernel's output", Style::text, hidden}, &R::config),
      of({"note", "", "", "type of the sums, and what else there is to say"}, &R::note)};
  return fields;
}

}  // namespace rowtune::reports
