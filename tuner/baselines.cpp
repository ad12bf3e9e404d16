#include "tuner/baselines.hpp"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "kernels/errors.hpp"
#include "reports/findings.hpp"
#include "tuner/cli.hpp"

namespace rowtune {
namespace {

using nlohmann::json;
using reports::Style;

std::string text_at(const json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end()) throw UsageError(fmt::format("'{}' is missing", key));
  if (!found->is_string()) throw UsageError(fmt::format("'{}' must be a string", key));
  return found->get<std::string>();
}

std::optional<double> time_at(const json& line, const char* key) {
  const auto found = line.find(key);
  if (found == line.end() || found->is_null()) return std::nullopt;
  if (!found->is_number()) throw UsageError(fmt::format("'{}' must be a number", key));
  const auto time = found->get<double>();
  if (!(time > 0) || !std::isfinite(time)) throw UsageError(fmt::format("'{}' must be above 0", key));
  return time;
}

db::Baseline baseline_of(const json& line) {
  if (!line.is_object()) throw UsageError("it is not a JSON object");
  db::Baseline b;
  b.device_model = text_at(line, "device_model");
  b.workload = Workload::of(parse_operation(text_at(line, "op")), parse_dtype(text_at(line, "dtype")),
                            parse_shape(text_at(line, "shape")), parse_regime(text_at(line, "regime")));
  if (line.contains("options")) b.workload.options = parse_options(text_at(line, "options"));
  b.impl = text_at(line, "impl");
  b.version = text_at(line, "version");
  const std::optional<double> time = time_at(line, "time_us");
  if (!time) throw UsageError("'time_us' is missing");
  b.time_us = *time;
  b.time_lo_us = time_at(line, "time_lo_us");
  b.time_hi_us = time_at(line, "time_hi_us");
  if (line.contains("method")) b.method = text_at(line, "method");
  if (b.impl.empty() || b.device_model.empty()) throw UsageError("'impl' and 'device_model' must not be empty");
  return b;
}

}  // namespace

std::vector<db::Baseline> read_baselines(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw EnvironmentError(fmt::format("cannot read '{}'", path));
  std::vector<db::Baseline> all;
  std::string text;
  for (int number = 1; std::getline(file, text); ++number) {
    if (text.empty() || text[0] == '#' || text == "\r") continue;
    try {
      all.push_back(baseline_of(json::parse(text)));
      all.back().source = path;
    } catch (const json::exception&) {
      throw UsageError(fmt::format("{}, line {}: it is not a JSON object", path, number));
    } catch (const UsageError& e) {
      throw UsageError(fmt::format("{}, line {}: {}", path, number, e.what()));
    }
  }
  if (file.bad()) throw EnvironmentError(fmt::format("cannot read '{}' to its end", path));
  if (all.empty()) throw UsageError(fmt::format("{} holds no measurement", path));
  return all;
}

std::vector<Standing> standings(const std::vector<db::BaselineRow>& rows) {
  std::vector<Standing> out;
  for (const auto& [place, row] : reports::fastest_others(rows))
    if (row.rowtune_time_us && place.second.op != Operation::copy)
      out.push_back({row, row.baseline.time_us / *row.rowtune_time_us});
  return out;
}

reports::Sheet standings_sheet(const std::vector<Standing>& standings) {
  reports::Sheet sheet;
  sheet.heads = {column("op"),
                 column("dtype"),
                 column("shape"),
                 column("regime"),
                 column("config", "rowtune's winner"),
                 column("time_us", "rowtune", Style::time),
                 column("best_other", "fastest other"),
                 column("best_other_us", "its time", Style::time),
                 column("speedup", "", Style::ratio)};
  for (const Standing& s : standings) {
    const db::Baseline& b = s.best_other.baseline;
    sheet.rows.push_back({to_string(b.workload.op), to_string(b.workload.dtype), to_string(b.workload.shape),
                          to_string(b.workload.regime), s.best_other.rowtune_config.value_or(""),
                          *s.best_other.rowtune_time_us, b.impl, b.time_us, s.ratio});
  }
  return sheet;
}

std::string standings_words(const std::vector<Standing>& standings) {
  if (standings.empty()) return "no workload has both a winner and another library's time\n";
  double logs = 0;
  std::size_t not_slower = 0;
  const Standing* worst = &standings.front();
  for (const Standing& s : standings) {
    logs += std::log(s.ratio);
    not_slower += s.ratio >= 1;
    if (s.ratio < worst->ratio) worst = &s;
  }
  const auto n = static_cast<double>(standings.size());
  return fmt::format(
      "{} workloads: not slower than the fastest other library on {} of them ({:.0f} %), {:.2f} times as fast by the "
      "geometric mean; least good {}: {:.2f} us against {:.2f} us of {}\n",
      standings.size(), not_slower, 100 * static_cast<double>(not_slower) / n, std::exp(logs / n),
      to_string(worst->best_other.baseline.workload), *worst->best_other.rowtune_time_us,
      worst->best_other.baseline.time_us, worst->best_other.baseline.impl);
}

}  // namespace rowtune
