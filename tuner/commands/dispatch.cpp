// rowtune dispatch: writes the tables and the header, looks a shape up in them, tells how good they are, makes them
// better.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>

#include "db/database.hpp"
#include "kernels/device.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/commands/dispatch_measure.hpp"
#include "tuner/dispatch_evaluate.hpp"
#include "tuner/dispatch_measured.hpp"
#include "tuner/dispatch_table.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using reports::Cell;
using reports::Style;

CommandLine describe() {
  CommandLine line(
      "dispatch", "dispatch --out DIR | --lookup RxC | --evaluate | --refine [options]",
      "With --out: writes DIR/dispatch.json and, for GPUs, DIR/rowtune_dispatch.cuh: the fewest kernels that serve "
      "every tuned\nshape, with the evidence, and which of them to launch for shapes in between. With --lookup: which "
      "config to launch for\na shape, tuned or not, and how well the table matched: exact, near, or outside what was "
      "tuned. With --evaluate: what\nthe table's answers for shapes that it does not know cost, by leaving out each "
      "tuned shape in turn, by the times in\nanother database (--against), or by tuning shapes off the grid on a "
      "device (--device). With --refine --device: measures on\nthat device what the answers for shapes that were not "
      "tuned hang on, into the same database, so that the next table\nknows it.");
  line.add("Options")("out", po::value<std::string>()->value_name("DIR"), "the folder to write to, made if missing")(
      "lookup", po::value<std::string>()->value_name("RxC"), "the shape to look up; goes with --op and --dtype")(
      "op", po::value<std::string>()->value_name("OP"), "only this operation")(
      "dtype", po::value<std::string>()->value_name("DTYPE"), "only this dtype")(
      "regime", po::value<std::string>()->default_value("cold")->value_name("REGIME"), "cold, warm or overlapped")(
      "device-model", po::value<std::string>()->value_name("MODEL"),
      "only this model; a look-up for it. Without: the only model in the table, else the one of the best device here")(
      "table", po::value<std::string>()->value_name("FILE"), "look up in this dispatch.json instead of the database");
  line.add("Size of the table")("max-regret", po::value<double>()->default_value(2)->value_name("PERCENT"),
                                "a stand-in for a shape's winner may be this much slower, so that kernels are few")(
      "max-kernels", po::value<int>()->default_value(48)->value_name("N"),
      "kernels for one operation and dtype; where they are too few, the shapes that gain least go to the base");
  line.add("Shapes that were not tuned")("evaluate", po::bool_switch(), "the regret on them")(
      "refine", po::bool_switch(), "measure some of them, and what the answers for them are chosen from")(
      "against", po::value<std::string>()->value_name("FILE"),
      "judge the table by the shapes that were tuned in this database")(
      "device", po::value<std::string>()->value_name("DEVICE"),
      "--evaluate: tune shapes off the grid on this device first, into the file of --against; --refine: measure on it")(
      "budget", po::value<std::string>()->default_value("5m")->value_name("TIME"),
      "for that, shared fairly by the tables")("places", po::value<int>()->default_value(48)->value_name("N"),
                                               "--refine: shapes for each table, those that matter most first");
  line.add_database();
  line.add_format();
  line.add_quiet();
  line.add_example("rowtune dispatch --out table", "write table/dispatch.json and table/rowtune_dispatch.cuh");
  line.add_example("rowtune dispatch --evaluate", "how good the table is for shapes that it does not know");
  line.add_example("rowtune dispatch --refine --device cuda:0 --budget 10m",
                   "make the answers for other shapes facts before a table is shipped");
  line.add_example("rowtune dispatch --op softmax --dtype bf16 --lookup 5000x1000", "what to launch for a shape");
  return line;
}

DispatchSettings settings_from(const CommandLine& line) {
  DispatchSettings settings;
  settings.max_regret = line.get<double>("max-regret") / 100;
  settings.max_kernels = line.get<int>("max-kernels");
  if (!(settings.max_regret >= 0)) throw UsageError("rowtune dispatch: --max-regret is a percentage of at least 0");
  if (settings.max_kernels < 1 || settings.max_kernels > 10'000)
    throw UsageError("rowtune dispatch: --max-kernels is from 1 to 10000");
  return settings;
}

db::BestQuery query_from(const CommandLine& line) {
  db::BestQuery only;
  if (line.has("op")) only.op = parse_operation(line.text("op"));
  if (line.has("dtype")) only.dtype = parse_dtype(line.text("dtype"));
  if (line.has("device-model")) only.device_model = line.text("device-model");
  only.regime = parse_regime(line.text("regime"));
  return only;
}

DispatchTables tables_from(const CommandLine& line) {
  if (line.has("table")) return read_dispatch(line.text("table"));
  const db::Database database = db::Database::open(line.database(), db::Database::Mode::read_only);
  return dispatch_tables(database, parse_regime(line.text("regime")), query_from(line), settings_from(line));
}

std::string model_to_ask_for(const CommandLine& line, const DispatchTables& tables) {
  if (line.has("device-model")) return line.text("device-model");
  std::set<std::string> models;
  for (const DispatchTable& table : tables.tables) models.insert(table.device_model);
  if (models.size() == 1) return *models.begin();
  const std::string here = open_device("auto")->info().model;
  if (models.contains(here) || models.empty()) return here;
  throw UsageError(
      fmt::format("the table is for several devices and none of them is here; say which with --device-model: {}",
                  fmt::join(models, "; ")));
}

/// The tables' answers to the shapes that another database has tuned, and its times.
std::vector<Trial> judge(const DispatchTables& tables, const std::vector<db::BestRow>& leaderboard) {
  std::vector<Trial> trials;
  for (const auto& measured : measured_tables(leaderboard)) {
    const auto& head = measured.head;
    for (const auto& w : measured.workloads) {
      const auto match = lookup(tables, head.device_model, head.op, head.dtype, w.shape, head.regime, head.options);
      if (match.kind == MatchKind::wrong_device || match.kind == MatchKind::exact) continue;
      Trial trial{head.device_model, head.op, head.dtype, w.shape, match.kind, match.config, w.best, {}, w.best_us()};
      if (trial.config == "base") trial.config = w.base;
      trial.is_base = trial.config == w.base;
      for (const auto& table : tables.tables)
        if (table.device_model == head.device_model && table.op == head.op && table.dtype == head.dtype &&
            table.options == head.options)
          trial.beyond = is_beyond(table, w.shape);
      trial.time_us = w.time_of(trial.config);
      trials.push_back(std::move(trial));
    }
  }
  return trials;
}

int evaluate(const CommandLine& line, Format format) {
  if (line.has("device") && !line.has("against"))
    throw UsageError("rowtune dispatch: --device tunes into a database of its own; name it with --against FILE");
  std::vector<Trial> trials;
  if (line.has("against")) {
    const auto tables = tables_from(line);
    if (line.has("device") && !tune_off_grid(line, tables)) return exit_interrupted;
    const auto other = db::Database::open(line.text("against"), db::Database::Mode::read_only);
    trials = judge(tables, other.leaderboard(query_from(line)));
  } else {
    if (line.has("table")) throw UsageError("rowtune dispatch: --evaluate asks a database; with --table say --against");
    const auto database = db::Database::open(line.database(), db::Database::Mode::read_only);
    const auto query = query_from(line);
    trials = leave_one_out(measured_tables(database.leaderboard(query), database.unswept(query)), settings_from(line));
  }
  if (trials.empty())
    throw NotFoundError(fmt::format("nothing to judge by: {} has no two shapes of one operation and dtype",
                                    line.has("against") ? line.text("against") : line.database()));
  reports::Sheet sheet;
  if (format != Format::table) {
    sheet.heads = {column("device"),       column("op"),     column("dtype"),   column("shape"),
                   column("match"),        column("config"), column("time_us"), column("best_config"),
                   column("best_time_us"), column("regret"), column("place")};
    for (const auto& t : trials)
      sheet.rows.push_back({t.device_model, to_string(t.op), to_string(t.dtype), to_string(t.shape), to_string(t.kind),
                            t.config, t.time_us ? Cell(*t.time_us) : Cell(), t.best_config, t.best_us,
                            t.regret() ? Cell(*t.regret()) : Cell(), t.beyond ? "beyond" : "between"});
    print(sheet, format);
    return exit_done;
  }
  sheet.heads = {column("op"),
                 column("dtype"),
                 column("shapes", "shapes", Style::count),
                 column("median"),
                 column("p95", "95 %"),
                 column("worst"),
                 column("base", "to the base", Style::count),
                 column("unmeasured", "not measured", Style::count),
                 column("worst_shape", "worst shape")};
  const auto percent = [](const std::optional<double>& value) {
    return value ? Cell(fmt::format("{:.1f} %", 100 * *value)) : Cell();
  };
  const auto add = [&](const std::string& op, const std::string& dtype, const std::vector<Trial>& some) {
    const auto s = summarise(some);
    const auto worst = std::max_element(some.begin(), some.end(), [](const auto& a, const auto& b) {
      return a.regret().value_or(-1) < b.regret().value_or(-1);
    });
    sheet.rows.push_back({op, dtype, s.trials, percent(s.median), percent(s.p95), percent(s.worst), s.base,
                          s.unmeasured,
                          fmt::format("{}: {}, best {}", to_string(worst->shape), worst->config, worst->best_config)});
  };
  std::map<std::tuple<std::string, Operation, Dtype>, std::vector<Trial>> groups;
  for (const auto& t : trials) groups[{t.device_model, t.op, t.dtype}].push_back(t);
  for (const auto& [key, some] : groups) add(to_string(std::get<1>(key)), to_string(std::get<2>(key)), some);
  add("all", "", trials);
  for (const bool beyond : {false, true}) {
    std::vector<Trial> some;
    std::copy_if(trials.begin(), trials.end(), std::back_inserter(some),
                 [&](const Trial& t) { return t.beyond == beyond; });
    if (!some.empty()) add(beyond ? "beyond" : "between", "", some);
  }
  print(sheet, format);
  return exit_done;
}

int look_up(const CommandLine& line, Format format) {
  const Operation op = parse_operation(line.required("op"));
  const Dtype dtype = parse_dtype(line.required("dtype"));
  const Shape shape = parse_shape(line.text("lookup"));
  const Regime regime = parse_regime(line.text("regime"));
  const DispatchTables tables = tables_from(line);
  const Match match = lookup(tables, model_to_ask_for(line, tables), op, dtype, shape, regime);
  if (format == Format::table) {
    print(fmt::format("{}\n{}\n", match.config.empty() ? "-" : match.config, match.sentence));
  } else {
    reports::Sheet sheet;
    sheet.heads = {column("match"),
                   column("config"),
                   column("rows"),
                   column("cols"),
                   column("alignment"),
                   column("time_us"),
                   column("ceiling_fraction"),
                   column("gain_over_base"),
                   column("ties"),
                   column("cols_factor"),
                   column("rows_factor"),
                   column("sentence")};
    const auto of_entry = [&](auto get) { return match.entry ? Cell(get(*match.entry)) : Cell(); };
    const auto of_evidence = [&](std::optional<double> DispatchEvidence::*member) {
      return match.entry && match.entry->evidence.*member ? Cell(*(match.entry->evidence.*member)) : Cell();
    };
    sheet.rows.push_back(
        {to_string(match.kind), match.config, of_entry([](auto& e) { return e.rows; }),
         of_entry([](auto& e) { return e.cols; }), of_entry([](auto& e) { return std::int64_t{e.alignment}; }),
         of_entry([](auto& e) { return e.evidence.time_us; }), of_evidence(&DispatchEvidence::ceiling_fraction),
         of_evidence(&DispatchEvidence::gain_over_base),
         of_entry([](auto& e) { return std::int64_t{e.evidence.ties}; }), match.cols_factor, match.rows_factor,
         match.sentence});
    print(sheet, format);
  }
  return match.kind == MatchKind::wrong_device || match.kind == MatchKind::not_tuned ? exit_failed : exit_done;
}

}  // namespace

int dispatch_command(const Arguments& arguments) {
  CommandLine line = describe();
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const bool evaluating = line.get<bool>("evaluate"), refining = line.get<bool>("refine");
  if (line.has("out") + line.has("lookup") + evaluating + refining != 1)
    throw UsageError(
        "rowtune dispatch: say one of --out DIR, --lookup RxC, --evaluate, --refine; see: rowtune help dispatch");
  if (evaluating) return evaluate(line, format);
  if (refining) {
    if (!line.has("device")) throw UsageError("rowtune dispatch: --refine measures; say on what with --device DEVICE");
    for (const char* other : {"table", "against"})
      if (line.has(other))
        throw UsageError(
            fmt::format("rowtune dispatch: --{} does not go with --refine, which fills a database", other));
    if (line.get<int>("places") < 1) throw UsageError("rowtune dispatch: --places must be at least 1");
    return refine_tables(line, query_from(line), settings_from(line), format);
  }
  if (line.has("lookup")) return look_up(line, format);
  if (line.has("table"))
    throw UsageError("rowtune dispatch: --table goes with --lookup; a table is written from a database");

  const DispatchTables tables = tables_from(line);
  std::size_t entries = 0;
  for (const DispatchTable& table : tables.tables) entries += table.entries.size();
  if (entries == 0)
    throw NotFoundError(fmt::format("{} holds no winners for this: there is nothing to write; tune first: rowtune tune",
                                    line.database()));
  const auto paths = write_dispatch(tables, line.text("out"));
  std::size_t kernels = 0;
  for (const DispatchTable& table : tables.tables) kernels += table.kernels.size();
  if (!line.get<bool>("quiet"))
    print(fmt::format("{}: {} shapes and {} kernels in {} tables (one for each device, operation, dtype)\n",
                      fmt::join(paths, ", "), entries, kernels, tables.tables.size()));
  return exit_done;
}

}  // namespace rowtune
