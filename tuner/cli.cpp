#include "tuner/cli.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <numeric>
#include <sstream>

namespace rowtune {

namespace po = boost::program_options;

CommandLine::CommandLine(std::string command, std::string synopsis, std::string description)
    : command_(std::move(command)), synopsis_(std::move(synopsis)), description_(std::move(description)) {}

po::options_description_easy_init CommandLine::add(const std::string& group) {
  const auto found = std::find_if(groups_.begin(), groups_.end(), [&](const auto& g) { return g.second == group; });
  if (found != groups_.end()) return found->first.add_options();
  groups_.emplace_back(po::options_description(group, 110, 55), group);
  return groups_.back().first.add_options();
}

void CommandLine::add_example(const std::string& line, const std::string& what) { examples_.emplace_back(line, what); }

void CommandLine::take_words(const std::string& option) { words_.add(option.c_str(), -1); }

void CommandLine::add_database() {
  add("Shared options")("db", po::value<std::string>()->default_value("rowtune.db")->value_name("FILE"),
                        "the database");
}

void CommandLine::add_format() {
  add("Shared options")("format", po::value<std::string>()->default_value("table")->value_name("FORMAT"),
                        "table, json or csv");
}

void CommandLine::add_quiet() {
  add("Shared options")("quiet", po::bool_switch(), "no progress and no notes, only results");
}

void CommandLine::add_device(const std::string& what) {
  add("Options")("device", po::value<std::string>()->default_value("auto")->value_name("DEVICE"), what.c_str());
}

bool CommandLine::parse(const std::vector<std::string>& arguments) {
  if (std::find(arguments.begin(), arguments.end(), "--help") != arguments.end() ||
      std::find(arguments.begin(), arguments.end(), "-h") != arguments.end()) {
    print(help());
    return false;
  }
  po::options_description all;
  std::vector<std::string> names;
  for (const auto& [group, title] : groups_) {
    all.add(group);
    for (const auto& option : group.options()) names.push_back(fmt::format("--{}", option->long_name()));
  }
  const auto refuse = [&](const std::string& what) {
    throw UsageError(fmt::format("rowtune {}: {}; see: rowtune help {}", command_, what, command_));
  };
  try {
    namespace style = po::command_line_style;
    po::basic_command_line_parser<char> parser(arguments);
    parser.options(all).positional(words_).style(style::unix_style & ~style::allow_guessing & ~style::allow_short);
    po::store(parser.run(), values_);
    po::notify(values_);
  } catch (const po::unknown_option& error) {
    const std::string name = error.get_option_name();
    const std::string meant = nearest(name, names);
    refuse(fmt::format("there is no option {}{}", name, meant.empty() ? "" : fmt::format("; did you mean {}?", meant)));
  } catch (const po::too_many_positional_options_error&) {
    const auto stray = std::find_if(arguments.begin(), arguments.end(),
                                    [](const std::string& word) { return !word.starts_with("--"); });
    refuse(fmt::format("a word without an option{}{}", stray == arguments.end() ? "" : ", perhaps ",
                       stray == arguments.end() ? "" : *stray));
  } catch (const po::error& error) {
    refuse(error.what());
  }
  return true;
}

std::string CommandLine::help() const {
  std::string out = fmt::format("usage: rowtune {}\n\n{}\n", synopsis_, description_);
  for (const auto& [group, title] : groups_) {
    std::ostringstream text;
    text << group;
    out += fmt::format("\n{}", text.str());
  }
  if (!examples_.empty()) out += "\nExamples:\n";
  for (const auto& [line, what] : examples_) out += fmt::format("  {}\n      {}\n", line, what);
  return out;
}

std::string CommandLine::required(const std::string& option) const {
  if (!has(option))
    throw UsageError(fmt::format("rowtune {}: --{} is missing; see: rowtune help {}", command_, option, command_));
  return text(option);
}

void add_workload_options(CommandLine& line) {
  std::vector<std::string> ops, dtypes;
  for (Operation op : all_operations()) ops.push_back(to_string(op));
  for (Dtype dtype : tensor_dtypes()) dtypes.push_back(to_string(dtype));
  line.add("Options")("op", po::value<std::string>()->value_name("OP"),
                      fmt::format("{}", fmt::join(ops, ", ")).c_str())(
      "dtype", po::value<std::string>()->value_name("DTYPE"), fmt::format("{}", fmt::join(dtypes, ", ")).c_str())(
      "shape", po::value<std::string>()->value_name("RxC"),
      "rows and columns, such as 4096x1000; :ld=N and :off=N for a row stride and an offset, in elements")(
      "regime", po::value<std::string>()->default_value("cold")->value_name("REGIME"),
      "cold (inputs from memory), warm (from cache) or overlapped");
}

Workload workload_from(const CommandLine& line) {
  return Workload::of(parse_operation(line.required("op")), parse_dtype(line.required("dtype")),
                      parse_shape(line.required("shape")), parse_regime(line.text("regime")));
}

void print(std::string_view text) {
  std::size_t at = 0;
  while (at < text.size()) {
    const ssize_t n = write(STDOUT_FILENO, text.data() + at, text.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0)
      throw EnvironmentError(fmt::format("cannot write the results to standard output: {}", std::strerror(errno)));
    at += static_cast<std::size_t>(n);
  }
}

Format parse_format(std::string_view text) {
  if (text == "table") return Format::table;
  if (text == "json") return Format::json;
  if (text == "csv") return Format::csv;
  throw UsageError(fmt::format("unknown format '{}'; choose from table, json, csv", text));
}

reports::Head column(std::string name, std::string title, reports::Style style, bool hidden) {
  reports::Head head;
  head.name = std::move(name);
  head.title = std::move(title);
  head.style = style;
  head.hidden = hidden;
  if (style == reports::Style::time) head.unit = "us";
  if (style == reports::Style::rate) head.unit = "GB/s";
  if (style == reports::Style::error) head.unit = "ulp";
  return head;
}

void print(const reports::Sheet& sheet, Format format) {
  std::ostringstream out;
  if (format == Format::table) {
    reports::TableStyle style;
    style.only_varying = true;
    style.bold_heads = may_be_styled(STDOUT_FILENO);
    reports::print_table(sheet, out, style);
  } else if (format == Format::json) {
    reports::print_json(sheet, out);
  } else {
    reports::print_csv(sheet, out);
  }
  print(out.str());
}

void tell(std::string_view text) {
  std::fwrite(text.data(), 1, text.size(), stderr);
  std::fflush(stderr);
}

namespace {
bool is_terminal(int descriptor) {
  const char* terminal = std::getenv("TERM");
  return isatty(descriptor) == 1 && !(terminal && std::string_view(terminal) == "dumb");
}
}  // namespace

bool stderr_is_terminal() { return is_terminal(STDERR_FILENO); }

bool may_be_styled(int descriptor) {
  const char* no_color = std::getenv("NO_COLOR");
  return is_terminal(descriptor) && !(no_color && *no_color);
}

int terminal_width() {
  winsize size{};
  return ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : 100;
}

double parse_duration(std::string_view text) {
  const auto refuse = [&] {
    throw UsageError(fmt::format("'{}' is no duration; write 90s, 10m, 1h30m or a number of seconds", text));
  };
  double seconds = 0;
  std::string_view rest = text;
  while (!rest.empty()) {
    double number = 0;
    const auto [at, error] = std::from_chars(rest.data(), rest.data() + rest.size(), number);
    if (error != std::errc() || !(number >= 0) || !std::isfinite(number)) refuse();
    rest.remove_prefix(static_cast<std::size_t>(at - rest.data()));
    const char unit = rest.empty() ? 's' : rest.front();
    if (!rest.empty()) rest.remove_prefix(1);
    if (unit != 's' && unit != 'm' && unit != 'h') refuse();
    seconds += number * (unit == 's' ? 1 : unit == 'm' ? 60 : 3600);
  }
  if (!(seconds > 0) || seconds > 1e7) refuse();
  return seconds;
}

std::string format_duration(double seconds) {
  if (seconds < 9.95) return fmt::format("{:.1f} s", seconds);
  const auto whole = static_cast<long long>(seconds + 0.5);
  if (whole < 100) return fmt::format("{} s", whole);
  if (whole < 6000)
    return whole % 60 == 0 ? fmt::format("{} min", whole / 60) : fmt::format("{} min {} s", whole / 60, whole % 60);
  return fmt::format("{} h {} min", whole / 3600, whole % 3600 / 60);
}

std::string format_bytes(double bytes) {
  constexpr const char* units[] = {"B", "KB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (bytes >= 1024 && unit + 1 < std::size(units)) {
    bytes /= 1024;
    ++unit;
  }
  const int decimals = bytes < 10 && bytes != std::floor(bytes) ? 1 : 0;
  return fmt::format("{:.{}f} {}", bytes, decimals, units[unit]);
}

std::string format_us(double us) {
  const int decimals = us < 10 ? 3 : us < 100 ? 2 : us < 1000 ? 1 : 0;
  return fmt::format("{:.{}f}", us, decimals);
}

std::string nearest(std::string_view word, const std::vector<std::string>& choices) {
  const auto edits = [](std::string_view a, std::string_view b) {
    std::vector<std::size_t> row(b.size() + 1);
    std::iota(row.begin(), row.end(), std::size_t{0});
    for (std::size_t i = 1; i <= a.size(); ++i) {
      std::size_t diagonal = row[0];
      row[0] = i;
      for (std::size_t j = 1; j <= b.size(); ++j) {
        const std::size_t replaced = diagonal + (a[i - 1] == b[j - 1] ? 0 : 1);
        diagonal = row[j];
        row[j] = std::min({replaced, row[j] + 1, row[j - 1] + 1});
      }
    }
    return row[b.size()];
  };
  std::string best;
  std::size_t least = 3;
  for (const std::string& choice : choices) {
    const std::size_t n = edits(word, choice);
    if (n < least) {
      least = n;
      best = choice;
    }
  }
  return best;
}

}  // namespace rowtune
