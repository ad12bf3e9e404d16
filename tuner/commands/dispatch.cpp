// rowtune dispatch: writes the table of winners, or looks a shape up in it.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "db/database.hpp"
#include "kernels/device.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"
#include "tuner/dispatch_table.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using reports::Cell;
using reports::Style;

CommandLine describe() {
  CommandLine line(
      "dispatch", "dispatch --out DIR | --lookup RxC [options]",
      "With --out: writes DIR/dispatch.json, the winner of every tuned shape with its evidence. With --lookup: "
      "which config\nto launch for a shape, tuned or not, and how well the table matched: exact, near, or "
      "outside what was tuned.");
  line.add("Options")("out", po::value<std::string>()->value_name("DIR"), "the folder to write to, made if missing")(
      "lookup", po::value<std::string>()->value_name("RxC"), "the shape to look up; goes with --op and --dtype")(
      "op", po::value<std::string>()->value_name("OP"), "only this operation")(
      "dtype", po::value<std::string>()->value_name("DTYPE"), "only this dtype")(
      "regime", po::value<std::string>()->default_value("cold")->value_name("REGIME"), "cold, warm or overlapped")(
      "device-model", po::value<std::string>()->value_name("MODEL"),
      "only this model; a look-up for it. Without: the only model in the table, else the one of the best device here")(
      "table", po::value<std::string>()->value_name("FILE"), "look up in this dispatch.json instead of the database");
  line.add_database();
  line.add_format();
  line.add_quiet();
  line.add_example("rowtune dispatch --out table", "write table/dispatch.json");
  line.add_example("rowtune dispatch --op softmax --dtype bf16 --lookup 5000x1000", "what to launch for a shape");
  return line;
}

DispatchTables tables_from(const CommandLine& line) {
  if (line.has("table")) return read_dispatch(line.text("table"));
  db::BestQuery only;
  if (line.has("op")) only.op = parse_operation(line.text("op"));
  if (line.has("dtype")) only.dtype = parse_dtype(line.text("dtype"));
  if (line.has("device-model")) only.device_model = line.text("device-model");
  const db::Database database = db::Database::open(line.database(), db::Database::Mode::read_only);
  return dispatch_tables(database, parse_regime(line.text("regime")), only);
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
  if (line.has("out") == line.has("lookup"))
    throw UsageError("rowtune dispatch: say either --out DIR or --lookup RxC; see: rowtune help dispatch");
  if (line.has("lookup")) return look_up(line, format);
  if (line.has("table"))
    throw UsageError("rowtune dispatch: --table goes with --lookup; a table is written from a database");

  const DispatchTables tables = tables_from(line);
  std::size_t entries = 0;
  for (const DispatchTable& table : tables.tables) entries += table.entries.size();
  if (entries == 0)
    throw NotFoundError(fmt::format("{} holds no winners for this: there is nothing to write; tune first: rowtune tune",
                                    line.database()));
  const std::string path = write_dispatch(tables, line.text("out"));
  if (!line.get<bool>("quiet"))
    print(fmt::format("{}: {} shapes in {} tables (one for each device, operation, dtype)\n", path, entries,
                      tables.tables.size()));
  return exit_done;
}

}  // namespace rowtune
