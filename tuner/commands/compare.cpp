// rowtune compare: the winners of two databases side by side.

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "db/database.hpp"
#include "tuner/cli.hpp"
#include "tuner/commands.hpp"

namespace rowtune {
namespace {

namespace po = boost::program_options;
using reports::Style;

/// By the two intervals alone: the files share no moment, so there is nothing to pair.
std::string verdict(const db::BestRow& before, const db::BestRow& after, double margin) {
  const double ratio = *after.time_us / *before.time_us;
  const bool apart = *after.time_lo_us > *before.time_hi_us || *after.time_hi_us < *before.time_lo_us;
  if (apart && ratio > 1 + margin) return "SLOWER";
  if (apart && ratio < 1 - margin) return "FASTER";
  const bool narrow = *before.time_hi_us <= *before.time_lo_us * (1 + 2 * margin) &&
                      *after.time_hi_us <= *after.time_lo_us * (1 + 2 * margin);
  return narrow || std::abs(ratio - 1) <= margin ? "SAME" : "UNSURE";
}

std::map<std::string, db::BestRow> winners(const std::string& file, const std::string& model) {
  db::BestQuery query;
  if (!model.empty()) query.device_model = model;
  std::map<std::string, db::BestRow> out;
  for (db::BestRow& row : db::Database::open(file, db::Database::Mode::read_only).best(query)) {
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
  line.add_example("rowtune compare before.db after.db --fail-on-regression",
                   "did a change of the kernels cost anything");
  if (!line.parse(arguments)) return exit_done;
  const Format format = parse_format(line.text("format"));
  const double margin = line.get<double>("margin");
  if (!(margin >= 0 && margin < 1)) throw UsageError("rowtune compare: --margin must be a share from 0 to 1");
  if (!line.has("files") || line.get<std::vector<std::string>>("files").size() != 2)
    throw UsageError("rowtune compare: name two files; see: rowtune help compare");
  const auto files = line.get<std::vector<std::string>>("files");
  const auto before = winners(files[0], line.text("model-a")), after = winners(files[1], line.text("model-b"));

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
                 column("verdict", "B is")};
  int slower = 0;
  for (const auto& [key, a] : before) {
    const auto found = after.find(key);
    if (found == after.end()) continue;
    const db::BestRow& b = found->second;
    const std::string word = verdict(a, b, margin);
    slower += word == "SLOWER";
    sheet.rows.push_back({a.op, a.dtype, to_string(a.workload().shape), a.regime, a.config, *a.time_us, b.config,
                          *b.time_us, *b.time_us / *a.time_us, word});
  }
  if (sheet.rows.empty())
    throw NotFoundError(
        fmt::format("{} and {} have no workload in common: there is nothing to compare", files[0], files[1]));
  print(sheet, format);
  return line.get<bool>("fail-on-regression") && slower > 0 ? exit_failed : exit_done;
}

}  // namespace rowtune
