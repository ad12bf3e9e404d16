// rowtune compare: the winners of two databases side by side.

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "db/database.hpp"
#include "reports/findings.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/statistics.hpp"
#include "tuner/verdict.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using reports::Style;

std::string verdict(const db::BestRow& before, const db::BestRow& after, double margin) {
  const auto estimate = [](const db::BestRow& row) {
    Estimate e;
    e.median = *row.time_us, e.low = *row.time_lo_us, e.high = *row.time_hi_us;
    return e;
  };
  return verdict_by_intervals(estimate(before), estimate(after), margin);
}

reports::Cell cell(const std::optional<double>& value) { return value ? reports::Cell(*value) : reports::Cell(); }

/// How the winner of one file does in the other.
struct Standing {
  std::optional<double> regret;  ///< its time there / the time of the winner there - 1; absent: not measured there
  bool tie = false;              ///< it is the winner there, or among its ties
};

/// All configs of a file by workload and config.
using Board = std::map<std::string, std::map<std::string, db::BestRow>>;

Board board_of(const db::Database& database, const std::string& model) {
  db::BestQuery query;
  if (!model.empty()) query.device_model = model;
  Board board;
  for (db::BestRow& row : database.leaderboard(query)) board[to_string(row.workload())][row.config] = std::move(row);
  return board;
}

Standing standing_of(const std::string& key, const db::BestRow& winner, const db::BestRow& winner_there,
                     const Board& there) {
  const auto workload = there.find(key);
  if (workload == there.end()) return {};
  const auto row = workload->second.find(winner.config);
  if (row == workload->second.end() || !row->second.time_us) return {};
  return {*row->second.time_us / *winner_there.time_us - 1, row->second.is_tie};
}

/// `29 of 30 winners of A are among the ties of B; median regret there 0.12 %, worst 1.4 %`.
std::string summary(const std::string& from, const std::string& to, const std::vector<Standing>& standings) {
  std::vector<double> regrets;
  std::size_t ties = 0;
  for (const Standing& standing : standings) {
    ties += standing.tie ? 1 : 0;
    if (standing.regret) regrets.push_back(*standing.regret);
  }
  std::string text = fmt::format("{} of {} winners of {} ({:.1f} %) are among the ties of {}", ties, standings.size(),
                                 from, 100.0 * static_cast<double>(ties) / static_cast<double>(standings.size()), to);
  if (!regrets.empty())
    text += fmt::format("; their median regret there {:.2f} %, the worst {:.2f} %", 100 * median(regrets),
                        100 * *std::max_element(regrets.begin(), regrets.end()));
  if (regrets.size() < standings.size())
    text += fmt::format("; {} were not measured there", standings.size() - regrets.size());
  return text + "\n";
}

std::map<std::string, db::BestRow> winners(const db::Database& database, const std::string& file,
                                           const std::string& model) {
  db::BestQuery query;
  if (!model.empty()) query.device_model = model;
  std::map<std::string, db::BestRow> out;
  for (db::BestRow& row : database.best(query)) {
    if (!row.time_us || !row.time_lo_us || !row.time_hi_us) continue;
    const std::string key = to_string(row.workload());
    const auto there = out.find(key);
    if (there != out.end() && there->second.device_model != row.device_model)
      throw UsageError(
          fmt::format("{} holds results of several devices, {} and {}; say which with --model-a and --model-b", file,
                      there->second.device_model, row.device_model));
    out.insert_or_assign(key, std::move(row));
  }
  return out;
}

/// Other libraries' times that either file holds.
reports::FastestOthers fastest_others_of(const db::Database& a, const db::Database& b) {
  std::vector<db::BaselineRow> rows = a.baselines();
  for (db::BaselineRow& row : b.baselines()) rows.push_back(std::move(row));
  return reports::fastest_others(rows);
}

/// Beside two winners of a workload, the fastest other library on either device, and how many times longer it takes.
void add_others(reports::Sheet& sheet, const std::vector<std::pair<db::BestRow, db::BestRow>>& pairs,
                const reports::FastestOthers& others) {
  if (others.empty()) return;
  sheet.heads.push_back(column("best_other", "fastest other"));
  sheet.heads.push_back(column("best_other_us", "its time", Style::time));
  sheet.heads.push_back(column("a_speedup_over_other", "speedup of A", Style::ratio));
  sheet.heads.push_back(column("b_speedup_over_other", "of B", Style::ratio));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const auto& [a, b] = pairs[i];
    const db::Baseline* fastest = nullptr;
    for (const std::string& model : {a.device_model, b.device_model})
      if (const auto found = others.find({model, a.workload()}); found != others.end())
        if (fastest == nullptr || found->second.baseline.time_us < fastest->time_us) fastest = &found->second.baseline;
    const std::size_t known = sheet.rows[i].size();
    sheet.rows[i].resize(sheet.heads.size());
    if (fastest == nullptr) continue;
    sheet.rows[i][known] = fastest->impl;
    sheet.rows[i][known + 1] = fastest->time_us;
    sheet.rows[i][known + 2] = fastest->time_us / *a.time_us;
    sheet.rows[i][known + 3] = fastest->time_us / *b.time_us;
  }
}

}  // namespace

int compare_command(const Arguments& arguments) {
  CommandLine line("compare", "compare A.db B.db [options]",
                   "Puts the winners of two files side by side (the same file twice, with --model-a and --model-b, "
                   "compares two\ndevices) and says of each workload in both whether B is FASTER, SLOWER, the SAME, or "
                   "UNSURE.");
  line.add("Options")("files", po::value<std::vector<std::string>>()->value_name("FILE"),
                      "the two files (the option's name may be left out)")(
      "model-a", po::value<std::string>()->default_value("")->value_name("MODEL"), "the device model in the first")(
      "model-b", po::value<std::string>()->default_value("")->value_name("MODEL"), "the device model in the second")(
      "margin", po::value<double>()->default_value(0.02, "0.02")->value_name("SHARE"),
      "differences up to this count as the same")("fail-on-regression", po::bool_switch(),
                                                  "exit 1 if any workload is SLOWER");
  line.take_words("files");
  line.add_format();
  line.add_quiet();
  line.add_example("rowtune compare before.db after.db --fail-on-regression",
                   "did a change of the kernels cost anything");
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const double margin = line.get<double>("margin");
  if (!(margin >= 0 && margin < 1)) throw UsageError("rowtune compare: --margin must be a share from 0 to 1");
  if (!line.has("files") || line.get<std::vector<std::string>>("files").size() != 2)
    throw UsageError("rowtune compare: name two files; see: rowtune help compare");
  const auto files = line.get<std::vector<std::string>>("files");
  const auto database_a = db::Database::open(files[0], db::Database::Mode::read_only),
             database_b = db::Database::open(files[1], db::Database::Mode::read_only);
  const auto before = winners(database_a, files[0], line.text("model-a")),
             after = winners(database_b, files[1], line.text("model-b"));

  reports::Sheet sheet;
  sheet.heads = {column("op"),
                 column("dtype"),
                 column("shape"),
                 column("regime"),
                 column("config_a", "config of A"),
                 column("time_us_a", "A", Style::time),
                 column("config_b", "config of B"),
                 column("time_us_b", "B", Style::time),
                 column("ratio", "B / A", Style::ratio),
                 column("verdict", "B is"),
                 column("a_ties_in_b", "A ties in B", Style::flag),
                 column("a_regret_in_b", "regret in B", Style::fraction),
                 column("b_ties_in_a", "B ties in A", Style::flag),
                 column("b_regret_in_a", "regret in A", Style::fraction)};
  const Board board_a = board_of(database_a, line.text("model-a")),
              board_b = board_of(database_b, line.text("model-b"));
  std::vector<Standing> of_a, of_b;
  std::vector<std::pair<db::BestRow, db::BestRow>> pairs;
  int slower = 0;
  for (const auto& [key, a] : before) {
    const auto found = after.find(key);
    if (found == after.end()) continue;
    const db::BestRow& b = found->second;
    const std::string word = verdict(a, b, margin);
    slower += word == "SLOWER";
    of_a.push_back(standing_of(key, a, b, board_b));
    of_b.push_back(standing_of(key, b, a, board_a));
    sheet.rows.push_back({a.op, a.dtype, to_string(a.workload().shape), a.regime, a.config, *a.time_us, b.config,
                          *b.time_us, *b.time_us / *a.time_us, word, of_a.back().tie, cell(of_a.back().regret),
                          of_b.back().tie, cell(of_b.back().regret)});
    pairs.emplace_back(a, b);
  }
  if (sheet.rows.empty())
    throw NotFoundError(
        fmt::format("{} and {} have no workload in common: there is nothing to compare", files[0], files[1]));
  add_others(sheet, pairs, fastest_others_of(database_a, database_b));
  print(sheet, format);
  if (!line.get<bool>("quiet")) tell(summary("A", "B", of_a) + summary("B", "A", of_b));
  return line.get<bool>("fail-on-regression") && slower > 0 ? exit_failed : exit_done;
}

}  // namespace rowtune
