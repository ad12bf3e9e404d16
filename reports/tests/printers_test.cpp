#include "reports/printers.hpp"

#include <gtest/gtest.h>

#include <limits>
#include <sstream>

namespace rowtune::reports {
namespace {

Sheet example() {
  Sheet sheet;
  sheet.heads = {{"name", "", "", ""},
                 {"time_us", "time", "us", "", Style::time},
                 {"share", "", "", "", Style::fraction},
                 {"secret", "", "", "", Style::count, true},
                 {"dtype", "", "", ""}};
  sheet.rows = {{std::string("a, \"b\""), 12.345, 0.5, std::int64_t(7), std::string("bf16")},
                {std::string("\xc3\xbc|\n<x>"),
                 {},
                 std::numeric_limits<double>::infinity(),
                 std::int64_t(8),
                 std::string("bf16")}};
  return sheet;
}

template <class Print>
std::string printed(Print print) {
  std::ostringstream out;
  print(out);
  return out.str();
}

TEST(PrintersTest, TableIsAlignedAndHidesHiddenColumns) {
  EXPECT_EQ(printed([](auto& out) { print_table(example(), out); }),
            "name    time (us)   share  dtype\n"
            "a, \"b\"      12.35  50.0 %  bf16\n"
            "\xc3\xbc| <x>          -     inf  bf16\n");
}

TEST(PrintersTest, TableSaysOnceWhatDoesNotVary) {
  const auto text = printed([](auto& out) { print_table(example(), out, {TimeUnit::us, true}); });
  EXPECT_EQ(text.find("dtype: bf16\n"), 0u) << text;
  EXPECT_EQ(text.find("bf16", 12), std::string::npos) << text;
  Sheet one = example();
  one.rows.resize(1);
  EXPECT_EQ(printed([&](auto& out) {
              print_table(one, out, {TimeUnit::us, true});
            }).find("dtype: "),
            std::string::npos)
      << "one row varies in nothing";
}

TEST(PrintersTest, MillisecondsOnlyWhenEveryTimeIsLong) {
  Sheet sheet;
  sheet.heads = {{"time_us", "time", "us", "", Style::time}};
  sheet.rows = {{12345.0}, {10000.0}, {Cell()}};
  EXPECT_EQ(printed([&](auto& out) { print_table(sheet, out); }), "time (ms)\n    12.35\n    10.00\n        -\n");
  EXPECT_EQ(printed([&](auto& out) { print_table(sheet, out, {TimeUnit::us}); }),
            "time (us)\n    12345\n    10000\n        -\n");
  sheet.rows.push_back({9999.0});
  EXPECT_EQ(choose_unit(sheet, TimeUnit::automatic), TimeUnit::us);
  EXPECT_EQ(printed([&](auto& out) { print_csv(sheet, out); }), "time_us\r\n12345\r\n10000\r\n\r\n9999\r\n")
      << "files keep the unit of the field";
}

TEST(PrintersTest, CsvQuotesAsRfc4180SaysAndHidesNothing) {
  EXPECT_EQ(printed([](auto& out) { print_csv(example(), out); }),
            "name,time_us,share,secret,dtype\r\n"
            "\"a, \"\"b\"\"\",12.345,0.5,7,bf16\r\n"
            "\"\xc3\xbc|\n<x>\",,inf,8,bf16\r\n");
}

TEST(PrintersTest, JsonHasNullForWhatIsNoNumber) {
  Sheet sheet = example();
  sheet.rows.push_back({std::string("\xff"), std::numeric_limits<double>::quiet_NaN(), 1.0 / 3, {}, true});
  EXPECT_EQ(json_of(sheet), R"([
  {
    "name": "a, \"b\"",
    "time_us": 12.345,
    "share": 0.5,
    "secret": 7,
    "dtype": "bf16"
  },
  {
    "name": "ü|\n<x>",
    "time_us": null,
    "share": null,
    "secret": 8,
    "dtype": "bf16"
  },
  {
    "name": "�",
    "time_us": null,
    "share": 0.3333333333333333,
    "secret": null,
    "dtype": true
  }
])");
  EXPECT_EQ(json_of({}), "[]");
}

TEST(PrintersTest, MarkdownEscapesWhatMeansSomething) {
  EXPECT_EQ(printed([](auto& out) { print_markdown(example(), out); }),
            "| name | time (us) | share | dtype |\n"
            "| --- | ---: | ---: | --- |\n"
            "| a, \"b\" | 12.35 | 50.0 % | bf16 |\n"
            "| \xc3\xbc\\| &lt;x&gt; | - | inf | bf16 |\n");
  EXPECT_EQ(escape_markdown("fused_add_rmsnorm"), "fused_add_rmsnorm");
  EXPECT_EQ(escape_markdown("_a_ *b* `c` [d](e)"), "\\_a\\_ \\*b\\* \\`c\\` \\[d\\](e)");
}

TEST(PrintersTest, SelectTakesColumnsInTheOrderAsked) {
  const auto sheet = select(example(), {"secret", "name"});
  EXPECT_EQ(printed([&](auto& out) { print_csv(sheet, out); }),
            "secret,name\r\n7,\"a, \"\"b\"\"\"\r\n8,\"\xc3\xbc|\n<x>\"\r\n");
  EXPECT_FALSE(sheet.heads[0].hidden) << "asked for by name";
  EXPECT_THROW(select(example(), {"nope"}), UsageError);
}

TEST(FieldsTest, BestStartsWithTheKeysOfTheView) {
  const std::vector<std::string> keys{"device",        "op",           "dtype",       "rows",
                                      "cols",          "regime",       "config",      "block_size",
                                      "rows_per_warp", "vector_width", "split_count", "time_us",
                                      "time_lo_us",    "time_hi_us",   "gbps",        "ceiling_fraction",
                                      "base_config",   "base_time_us", "ties",        "max_error_ulp",
                                      "status"};
  ASSERT_GE(best_fields().size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) EXPECT_EQ(best_fields()[i].head.name, keys[i]);
}

TEST(FieldsTest, NamesAreUniqueAndDescribed) {
  const auto check = [](const auto& fields) {
    std::vector<std::string> names;
    for (const auto& field : fields) {
      EXPECT_FALSE(field.head.description.empty()) << field.head.name;
      EXPECT_EQ(std::count(names.begin(), names.end(), field.head.name), 0) << field.head.name;
      names.push_back(field.head.name);
    }
  };
  check(best_fields());
  check(failure_fields());
  check(coverage_fields());
  check(baseline_fields());
  check(accuracy_fields());
  check(stability_fields());
}

}  // namespace
}  // namespace rowtune::reports
