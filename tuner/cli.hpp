#pragma once
// What all commands share: options with their help, exit codes, and results that reach standard output or are an error.

#include <boost/program_options.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kernels/device.hpp"
#include "kernels/words.hpp"
#include "reports/printers.hpp"

namespace rowtune {

/// Exit codes of the program.
enum ExitCode { exit_done = 0, exit_failed = 1, exit_usage = 2, exit_environment = 3, exit_interrupted = 130 };

/// The options of one command. Names are never abbreviated; anything unknown is a UsageError that names the command.
class CommandLine {
 public:
  /// `synopsis`: what stands behind `rowtune` in the usage line.
  CommandLine(std::string command, std::string synopsis, std::string description);

  /// Opens a group of options; `add` describes those of the group opened last.
  boost::program_options::options_description_easy_init add(const std::string& group);
  void add_example(const std::string& line, const std::string& what);
  /// Takes words without an option, such as the files of `merge`.
  void take_words(const std::string& option);
  void add_database();                       ///< --db
  void add_format();                         ///< --format table|json|csv
  void add_quiet();                          ///< --quiet
  void add_device(const std::string& what);  ///< --device

  /// False when help was asked for and printed: the command is done.
  bool parse(const std::vector<std::string>& arguments);
  std::string help() const;

  bool has(const std::string& option) const { return values_.count(option) != 0; }
  template <class T>
  T get(const std::string& option) const {
    return values_[option].as<T>();
  }
  std::string text(const std::string& option) const { return get<std::string>(option); }
  /// The text of an option that must be given; UsageError when it is not.
  std::string required(const std::string& option) const;
  bool given(const std::string& option) const { return has(option) && !values_[option].defaulted(); }
  std::string database() const { return text("db"); }

 private:
  std::string command_, synopsis_, description_;
  std::vector<std::pair<boost::program_options::options_description, std::string>> groups_;  ///< and their titles
  std::vector<std::pair<std::string, std::string>> examples_;
  boost::program_options::positional_options_description words_;
  boost::program_options::variables_map values_;
};

/// --op, --dtype, --shape, --regime and --options of commands about one workload.
void add_workload_options(CommandLine& line);
Workload workload_from(const CommandLine& line);

enum class Format { table, json, csv };
Format parse_format(std::string_view text);  ///< throws UsageError naming the three
/// Prints records; a table says once, above, what is the same in every row.
void print(const reports::Sheet& sheet, Format format);

/// A column: its key in JSON and CSV, its title where that is not the key, how people see it.
reports::Head column(std::string name, std::string title = "", reports::Style style = reports::Style::text,
                     bool hidden = false);

/// Writes to standard output and sees to it that it arrived: EnvironmentError otherwise.
void print(std::string_view text);
/// Writes to standard error; if that is closed there is nobody to tell.
void tell(std::string_view text);

/// Whether standard error is a terminal that can rewrite a line.
bool stderr_is_terminal();
/// Whether words written to this descriptor may be bold or coloured: a terminal, and NO_COLOR is not set
/// (no-color.org). Style only repeats what words and order say.
bool may_be_styled(int descriptor);
int terminal_width();

/// `10m`, `90s`, `1h30m`, `45` (seconds). Throws UsageError.
double parse_duration(std::string_view text);
std::string format_duration(double seconds);  ///< `0.8 s`, `12 s`, `3 min 5 s`, `2 h 10 min`
std::string format_bytes(double bytes);       ///< `60 MB`, `4.2 KB`; powers of 1024 with the usual names
std::string format_us(double microseconds);   ///< four digits: `12.34`, `1234`

/// The choice that was probably meant: at most two edits away; empty when there is none.
std::string nearest(std::string_view word, const std::vector<std::string>& choices);

}  // namespace rowtune
