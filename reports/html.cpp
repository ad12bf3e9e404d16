// The report as one self-contained page: the parts of page/ with the data in between. Nothing is loaded from anywhere.

#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <ostream>
#include <set>
#include <tuple>

#include "kernels/space.hpp"
#include "reports/findings.hpp"
#include "reports/page/page.hpp"
#include "reports/printers.hpp"
#include "reports/report.hpp"

namespace rowtune::reports {
namespace {

using Json = nlohmann::ordered_json;

const char* name_of(Style style) {
  switch (style) {
    case Style::text:
      return "text";
    case Style::count:
      return "count";
    case Style::time:
      return "time";
    case Style::rate:
      return "rate";
    case Style::fraction:
      return "fraction";
    case Style::ratio:
      return "ratio";
    case Style::error:
      return "error";
    case Style::flag:
      return "flag";
  }
  return "text";
}

Json number(const std::optional<double>& value) {
  return value && std::isfinite(*value) ? Json(*value) : Json(nullptr);
}
Json unless_zero(double value) { return value > 0 ? Json(value) : Json(nullptr); }

Json heads_of(const Sheet& sheet) {
  Json heads = Json::array();
  for (const auto& h : sheet.heads)
    heads.push_back({{"name", h.name},
                     {"title", h.title.empty() ? h.name : h.title},
                     {"unit", h.unit},
                     {"description", h.description},
                     {"style", name_of(h.style)},
                     {"hidden", h.hidden}});
  return heads;
}

/// Texts said once; rows refer to them by index.
class Names {
 public:
  std::size_t index(const std::string& name) {
    const auto [at, added] = known_.try_emplace(name, list_.size());
    if (added) list_.push_back(name);
    return at->second;
  }
  const Json& list() const { return list_; }

 private:
  std::map<std::string, std::size_t> known_;
  Json list_ = Json::array();
};

/// A record as one array in the order of `heads`, texts by index into `names`: page/data.js takes it apart again.
template <class Row>
Json records(const std::vector<Field<Row>>& fields, const std::vector<Row>& rows, Names& names) {
  const auto sheet = sheet_of(fields, rows);
  Json packed = Json::array();
  for (const auto& cells : sheet.rows) {
    Json row = Json::array();
    for (const auto& cell : cells) {
      if (const auto* text = std::get_if<std::string>(&cell))
        row.push_back(names.index(*text));
      else if (const auto* count = std::get_if<std::int64_t>(&cell))
        row.push_back(*count);
      else if (const auto* real = std::get_if<double>(&cell))
        row.push_back(number(*real));
      else if (const auto* flag = std::get_if<bool>(&cell))
        row.push_back(*flag);
      else
        row.push_back(nullptr);
    }
    packed.push_back(std::move(row));
  }
  return {{"heads", heads_of(sheet)}, {"rows", std::move(packed)}};
}

/// For each kind of device, the axes that configs' names have, by letter: name and meaning.
Json axes_of(const std::vector<db::BestRow>& rows) {
  std::map<std::string, std::map<std::string, std::vector<std::string>>> kinds;
  for (const auto kind : {DeviceKind::cpu, DeviceKind::cuda}) {
    DeviceInfo device;
    device.kind = kind;
    auto& letters = kinds[to_string(kind)];
    std::set<std::pair<std::string, std::string>> seen;  // algorithm and operation
    for (const auto& row : rows) {
      if (row.device.starts_with("cpu") != (kind == DeviceKind::cpu)) continue;
      for (const auto& algorithm : algorithms_of(kind))
        if (algorithm.name == row.algorithm && seen.emplace(row.algorithm, row.op).second)
          for (const auto& axis : algorithm.axes(row.workload(), device))
            letters.try_emplace(std::string(1, axis.letter), std::vector{axis.name, axis.meaning});
    }
  }
  return kinds;
}

/// Workloads, names and one short array for each config: page/data.js takes them apart again.
void add_configs(const db::Database& database, const Findings& f, Names& names, Json& data) {
  std::map<std::tuple<std::string, std::string, Workload>, std::optional<std::int64_t>> spaces;
  for (const auto& c : f.coverage)
    spaces[{c.device_model, c.device_limits,
            Workload{parse_operation(c.op),
                     parse_dtype(c.dtype),
                     {c.rows, c.cols, c.ld, c.off},
                     parse_regime(c.regime),
                     parse_options(c.options)}}] = c.space_size;
  std::map<std::tuple<std::string, std::string, Workload>, std::size_t> known;
  Json workloads = Json::array(), rows = Json::array();
  const auto leaderboard = database.leaderboard({});
  for (const auto& r : leaderboard) {
    const auto workload = r.workload();
    const auto [at, added] = known.try_emplace({r.device_model, r.device_limits, workload}, known.size());
    if (added) {
      const auto space = spaces[at->first];
      workloads.push_back({{"kind", r.device.starts_with("cpu") ? "cpu" : "cuda"},
                           {"device_model", r.device_model},
                           {"device_limits", r.device_limits},
                           {"op", r.op},
                           {"dtype", r.dtype},
                           {"rows", r.rows},
                           {"cols", r.cols},
                           {"ld", r.ld},
                           {"off", r.off},
                           {"regime", r.regime},
                           {"options", r.options},
                           {"usual", to_string(default_options(workload.op))},
                           {"bytes", r.bytes},
                           {"base_config", r.base_config},
                           {"base_us", number(r.base_time_us)},
                           {"ceiling_us", number(r.ceiling_time_us)},
                           {"toolchain", r.toolchain},
                           {"space", space ? Json(*space) : Json(nullptr)}});
    }
    const auto message = r.message.substr(0, r.message.find('\n')).substr(0, 300);
    rows.push_back({at->second,
                    names.index(r.config),
                    names.index(r.algorithm),
                    number(r.time_us),
                    number(r.time_lo_us),
                    number(r.time_hi_us),
                    number(r.max_error_ulp),
                    r.rank,
                    int(r.eligible),
                    int(r.is_base),
                    int(r.is_tie),
                    int(r.decided),
                    names.index(r.status),
                    names.index(message),
                    r.ties,
                    r.registers,
                    r.spill_bytes,
                    r.sample_count,
                    int(r.settled),
                    names.index(r.status == "ok" ? "" : reason_of(r.message))});
  }
  data["workloads"] = workloads;
  data["rows"] = std::move(rows);
  data["axes"] = axes_of(leaderboard);
}

Json data_of(const db::Database& database) {
  const auto f = findings_of(database);
  Json data = {{"empty", f.empty()},       {"measured", f.measured},   {"first", f.first},
               {"last", f.last},           {"sureness", f.sureness},   {"caveats", f.caveats},
               {"next", f.next_steps},     {"devices", Json::array()}, {"operations", Json::array()},
               {"verdicts", Json::array()}};
  for (const auto& d : f.devices)
    data["devices"].push_back({{"model", d.model},
                               {"limits", d.limits},
                               {"toolchain", d.toolchain},
                               {"units", d.units},
                               {"workloads", d.workloads},
                               {"measured", d.measured},
                               {"first", d.first},
                               {"last", d.last}});
  for (const auto& s : f.operations)
    data["operations"].push_back({{"device_model", s.device_model},
                                  {"op", s.op},
                                  {"dtype", s.dtype},
                                  {"regime", s.regime},
                                  {"workloads", s.workloads},
                                  {"mean_gain", unless_zero(s.mean_gain)},
                                  {"best_gain", unless_zero(s.best_gain)},
                                  {"best_gain_shape", s.best_gain_shape},
                                  {"ceiling", unless_zero(s.median_ceiling_fraction)},
                                  {"base_wins", s.base_wins},
                                  {"configs", s.configs},
                                  {"compared", s.compared},
                                  {"ahead", s.ahead},
                                  {"over_others", unless_zero(s.mean_over_others)}});
  for (const auto& v : f.verdicts)
    data["verdicts"].push_back({{"op", v.op},
                                {"method", v.method},
                                {"order", v.order},
                                {"dtype", v.dtype},
                                {"sums", v.sums},
                                {"results", v.results},
                                {"bounded", v.bounded},
                                {"exceeded", v.exceeded},
                                {"worst_share", number(v.worst_share)},
                                {"nonfinite", v.nonfinite},
                                {"negative", v.negative},
                                {"lost_at", number(v.lost_at)},
                                {"words", v.words}});
  Names names;
  data["coverage"] = records(coverage_fields(), f.coverage, names);
  data["baselines"] = records(baseline_fields(), f.baselines, names);
  data["accuracy"] = records(accuracy_fields(), f.accuracy, names);
  data["stability"] = records(stability_fields(), f.stability, names);
  data["fields"] = heads_of(sheet_of(best_fields(), {}));
  add_configs(database, f, names, data);
  data["names"] = names.list();
  return data;
}

/// JSON that may stand inside a script element: nothing in it can end the element or begin a comment.
std::string script_safe(const Json& data) {
  std::string out;
  for (const char c : data.dump(-1, ' ', true, Json::error_handler_t::replace)) {
    if (c == '<')
      out += "\\u003c";
    else if (c == '>')
      out += "\\u003e";
    else if (c == '&')
      out += "\\u0026";
    else
      out += c;
  }
  return out;
}

}  // namespace

void write_html(const db::Database& database, std::ostream& out) {
  const auto data = script_safe(data_of(database));
  const std::map<std::string_view, std::string_view> parts{
      {"STYLE", page::style}, {"DATA", data}, {"D3", page::d3}, {"SCRIPT", page::script}};
  auto rest = page::html;
  while (!rest.empty()) {
    const auto begin = rest.find('@');
    out << rest.substr(0, begin);
    if (begin == std::string_view::npos) return;
    rest.remove_prefix(begin + 1);
    const auto end = rest.find('@');
    const auto part = parts.find(rest.substr(0, end));
    if (part == parts.end()) throw std::logic_error("page.html names an unknown part");
    out << part->second;
    rest.remove_prefix(end + 1);
  }
}

}  // namespace rowtune::reports
