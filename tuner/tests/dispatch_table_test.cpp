// Which entry answers which shape, how well it is said to match, and that the JSON comes back as it went out.

#include "tuner/dispatch_table.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>

namespace rowtune {
namespace {

db::BestRow row(std::int64_t rows, std::int64_t cols, const std::string& config, double time_us = 5) {
  db::BestRow r;
  r.device = "cuda:0", r.device_model = "Test GPU", r.device_limits = "units=1";
  r.op = "softmax", r.dtype = "bf16", r.regime = "cold", r.options = "-";
  r.rows = rows, r.cols = cols, r.ld = cols;
  r.config = config, r.status = "ok";
  r.time_us = time_us, r.time_lo_us = 0.99 * time_us, r.time_hi_us = 1.01 * time_us;
  r.ceiling_fraction = 0.9, r.base_config = "block.b256", r.base_time_us = 10, r.gain_over_base = 10 / time_us;
  r.ties = 2, r.max_error_ulp = 0.5;
  r.toolchain = "NVRTC 13.0", r.source_fingerprint = "abc", r.protocol = 1;
  return r;
}

/// Rows 4..4096 at 1024 columns, and 64 rows at 8192 columns.
DispatchTables example() {
  return dispatch_tables({row(4, 1024, "warp.b32"), row(4096, 1024, "warp.b128"), row(64, 8192, "block.b512")});
}

struct Case {
  std::string shape;
  MatchKind kind;
  std::string config;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.shape; }

class LookupTest : public ::testing::TestWithParam<Case> {};

TEST_P(LookupTest, AnswersWithKindAndConfig) {
  const auto& c = GetParam();
  const auto match = lookup(example(), "Test GPU", Operation::softmax, Dtype::bf16, parse_shape(c.shape));
  EXPECT_EQ(to_string(match.kind), to_string(c.kind)) << match.sentence;
  EXPECT_EQ(match.config, c.config) << match.sentence;
  EXPECT_EQ(match.entry.has_value(), c.kind == MatchKind::exact || c.kind == MatchKind::near);
  EXPECT_FALSE(match.sentence.empty());
}

INSTANTIATE_TEST_SUITE_P(
    TruthTable, LookupTest,
    ::testing::Values(Case{"4x1024", MatchKind::exact, "warp.b32"}, Case{"4096x1024", MatchKind::exact, "warp.b128"},
                      Case{"64x8192", MatchKind::exact, "block.b512"},
                      // Contiguous or not does not matter where rows start aligned.
                      Case{"4x1024:ld=2048", MatchKind::exact, "warp.b32"},
                      // Columns decide first, then rows, both by factors: 127 is nearer to 4, 129 to 4096.
                      Case{"127x1024", MatchKind::near, "warp.b32"}, Case{"129x1024", MatchKind::near, "warp.b128"},
                      Case{"64x1024", MatchKind::near, "warp.b32"}, Case{"64x2048", MatchKind::near, "warp.b32"},
                      Case{"4096x8000", MatchKind::near, "block.b512"},
                      // The edges of the range: a factor of two, inclusive.
                      Case{"4x2048", MatchKind::near, "warp.b32"}, Case{"4x2049", MatchKind::out_of_range, "base"},
                      Case{"4x512", MatchKind::near, "warp.b32"}, Case{"4x511", MatchKind::out_of_range, "base"},
                      Case{"4x4096", MatchKind::near, "block.b512"}, Case{"4x4095", MatchKind::out_of_range, "base"},
                      Case{"2x1024", MatchKind::near, "warp.b32"}, Case{"1x1024", MatchKind::out_of_range, "base"},
                      Case{"8192x1024", MatchKind::near, "warp.b128"},
                      Case{"8193x1024", MatchKind::out_of_range, "base"},
                      // Another alignment class is near at best.
                      Case{"4x1024:off=1", MatchKind::near, "warp.b32"},
                      Case{"4x1024:ld=1025", MatchKind::near, "warp.b32"},
                      // Nothing to do is outside every range.
                      Case{"0x1024", MatchKind::out_of_range, "base"}, Case{"4x0", MatchKind::out_of_range, "base"},
                      Case{"2147483647x2147483647", MatchKind::out_of_range, "base"}),
    [](const auto& one) {
      std::string name = one.param.shape;
      for (char& c : name)
        if (c == ':' || c == '=') c = '_';
      return name;
    });

TEST(LookupRefusalTest, OtherDevicesAreRefused) {
  auto match = lookup(example(), "Other GPU", Operation::softmax, Dtype::bf16, Shape::of(4, 1024));
  EXPECT_EQ(match.kind, MatchKind::wrong_device);
  EXPECT_EQ(match.config, "");
  EXPECT_NE(match.sentence.find("Test GPU"), std::string::npos) << "says which devices there are";
  match =
      lookup(example(), "Test GPU", Operation::softmax, Dtype::bf16, Shape::of(4, 1024), Regime::cold, {}, "units=2");
  EXPECT_EQ(match.kind, MatchKind::wrong_device) << "a part of the device is another device";
  match = lookup({}, "Test GPU", Operation::softmax, Dtype::bf16, Shape::of(4, 1024));
  EXPECT_EQ(match.kind, MatchKind::wrong_device);
}

TEST(LookupRefusalTest, OtherOperationsDtypesRegimesAndOptionsAreNotTuned) {
  const auto t = example();
  const auto shape = Shape::of(4, 1024);
  Options in_place;
  in_place.in_place = true;
  for (const auto& match : {lookup(t, "Test GPU", Operation::rmsnorm, Dtype::bf16, shape),
                            lookup(t, "Test GPU", Operation::softmax, Dtype::f32, shape),
                            lookup(t, "Test GPU", Operation::softmax, Dtype::bf16, shape, Regime::warm),
                            lookup(t, "Test GPU", Operation::softmax, Dtype::bf16, shape, Regime::cold, in_place)}) {
    EXPECT_EQ(match.kind, MatchKind::not_tuned);
    EXPECT_EQ(match.config, "base");
  }
}

TEST(LookupAlignmentTest, TheSameClassGoesFirstWhileItIsInRange) {
  auto odd = row(64, 1001, "odd.b64");  // 2,002-byte rows: 2-byte alignment
  const auto t = dispatch_tables({row(64, 1024, "even.b64"), odd});
  const auto ask = [&](const std::string& shape) {
    return lookup(t, "Test GPU", Operation::softmax, Dtype::bf16, parse_shape(shape));
  };
  EXPECT_EQ(ask("64x1001").kind, MatchKind::exact);
  EXPECT_EQ(ask("64x1003").config, "odd.b64");
  EXPECT_EQ(ask("64x1008").config, "even.b64") << "16-byte rows, although 1001 columns are nearer";
  EXPECT_EQ(ask("64x1024:off=1").config, "odd.b64");
  EXPECT_EQ(ask("64x1024:off=1").kind, MatchKind::near);
  EXPECT_EQ(ask("64x2047").config, "even.b64") << "1001 columns are out of range for 2047";
}

TEST(LookupFactorTest, SaysHowFarTheTunedShapeIs) {
  const auto match = lookup(example(), "Test GPU", Operation::softmax, Dtype::bf16, Shape::of(16, 1536));
  EXPECT_EQ(match.kind, MatchKind::near);
  EXPECT_DOUBLE_EQ(match.cols_factor, 1.5);
  EXPECT_DOUBLE_EQ(match.rows_factor, 4);
}

TEST(AlignmentTest, IsWhatOffsetAndStrideAllow) {
  EXPECT_EQ(alignment_of(parse_shape("4x1024"), Dtype::bf16), 16);
  EXPECT_EQ(alignment_of(parse_shape("4x1001"), Dtype::bf16), 2);
  EXPECT_EQ(alignment_of(parse_shape("4x1001"), Dtype::f32), 4);
  EXPECT_EQ(alignment_of(parse_shape("4x1002"), Dtype::f32), 8);
  EXPECT_EQ(alignment_of(parse_shape("4x1002"), Dtype::bf16), 4);
  EXPECT_EQ(alignment_of(parse_shape("4x1024:off=4"), Dtype::bf16), 8);
  EXPECT_EQ(alignment_of(parse_shape("4x1001:ld=1024"), Dtype::bf16), 16);
  EXPECT_EQ(alignment_of(parse_shape("1x1001"), Dtype::bf16), 16) << "one row has no stride";
}

TEST(DispatchTablesTest, ASlowerConfigThanTheBaseIsNeverExported) {
  auto slow = row(4, 1024, "warp.b32", 20);
  const auto entry = dispatch_tables({slow}).tables.at(0).entries.at(0);
  EXPECT_EQ(entry.config, "block.b256");
  EXPECT_DOUBLE_EQ(entry.evidence.time_us, 10);
  EXPECT_DOUBLE_EQ(entry.evidence.gain_over_base.value(), 1);
  EXPECT_DOUBLE_EQ(entry.evidence.ceiling_fraction.value(), 1.8);
  EXPECT_FALSE(entry.evidence.time_lo_us.has_value()) << "the interval was the other config's";
}

TEST(DispatchTablesTest, TheCopyIsNoTableAndTablesAreSorted) {
  auto copy = row(4, 1024, "warp.b32");
  copy.op = "copy";
  auto rms = row(4, 1024, "warp.b32");
  rms.op = "rmsnorm", rms.options = "weight,eps=1e-06";
  auto f32 = row(4, 1024, "warp.b64");
  f32.dtype = "f32";
  const auto t = dispatch_tables({rms, row(8, 2048, "b"), copy, row(9, 1024, "c"), f32, row(8, 1024, "d")});
  ASSERT_EQ(t.tables.size(), 3u);
  EXPECT_EQ(t.tables[0].dtype, Dtype::f32);
  EXPECT_EQ(t.tables[1].dtype, Dtype::bf16);
  EXPECT_EQ(t.tables[2].op, Operation::rmsnorm);
  ASSERT_EQ(t.tables[1].entries.size(), 3u);
  EXPECT_EQ(t.tables[1].entries[0].config, "d");
  EXPECT_EQ(t.tables[1].entries[1].config, "c");
  EXPECT_EQ(t.tables[1].entries[2].config, "b");
}

TEST(DispatchTablesTest, OfShapesThatFallTogetherTheContiguousStays) {
  auto strided = row(4, 1024, "strided");
  strided.ld = 2048;
  for (const auto& rows : {std::vector{strided, row(4, 1024, "plain")}, std::vector{row(4, 1024, "plain"), strided}}) {
    const auto t = dispatch_tables(rows);
    ASSERT_EQ(t.tables.at(0).entries.size(), 1u);
    EXPECT_EQ(t.tables[0].entries[0].config, "plain");
  }
}

TEST(DispatchJsonTest, ComesBackAsItWentOut) {
  auto bare = row(8, 4096, "block.b512", 1.0 / 3);
  bare.time_lo_us = bare.time_hi_us = bare.ceiling_fraction = bare.base_time_us = bare.gain_over_base = std::nullopt;
  bare.max_error_ulp = std::nullopt;
  auto hostile = row(4, 512, "warp.b32");
  hostile.device_model = "</script>\"\\ \xc3\xbc";
  const auto tables = dispatch_tables({row(4, 1024, "warp.b32"), bare, hostile});
  const auto json = to_json(tables);
  EXPECT_EQ(parse_dispatch(json, "memory"), tables);
  EXPECT_EQ(to_json(parse_dispatch(json, "memory")), json);
  EXPECT_EQ(json.find(R"({
  "schema": "rowtune-dispatch",
  "version": 1,)"),
            0u)
      << json.substr(0, 100);
}

TEST(DispatchJsonTest, EveryTruncationIsRefused) {
  const auto json = to_json(example());
  for (std::size_t size = 0; size + 2 < json.size(); size += 7)
    EXPECT_THROW(parse_dispatch(json.substr(0, size), "cut"), EnvironmentError) << size;
}

struct Damage {
  std::string name, from, to, word;  ///< `word` is in the error
};
void PrintTo(const Damage& d, std::ostream* out) { *out << d.name; }
class DamagedJsonTest : public ::testing::TestWithParam<Damage> {};

TEST_P(DamagedJsonTest, IsRefusedWithThePlaceAndWhatIsExpected) {
  const auto& d = GetParam();
  auto json = to_json(example());
  const auto at = json.find(d.from);
  ASSERT_NE(at, std::string::npos);
  json.replace(at, d.from.size(), d.to);
  try {
    parse_dispatch(json, "some/dispatch.json");
    FAIL() << "was not refused";
  } catch (const EnvironmentError& error) {
    const std::string what = error.what();
    EXPECT_NE(what.find(d.word), std::string::npos) << what;
    EXPECT_NE(what.find("some/dispatch.json"), std::string::npos) << what;
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, DamagedJsonTest,
    ::testing::Values(
        Damage{"otherSchema", "rowtune-dispatch", "something", "schema is 'something'"},
        Damage{"newerVersion", "\"version\": 1", "\"version\": 2", "version 2"},
        Damage{"versionAsText", "\"version\": 1", "\"version\": \"1\"", "'version' should be a whole number"},
        Damage{"rowsAsText", "\"rows\": 4", "\"rows\": \"4\"", "tables[0].entries[0].rows"},
        Damage{"negativeRows", "\"rows\": 4", "\"rows\": -4", "tables[0].entries[0].rows"},
        Damage{"fractionalRows", "\"rows\": 4", "\"rows\": 4.5", "tables[0].entries[0].rows"},
        Damage{"hugeRows", "\"rows\": 4", "\"rows\": 18446744073709551615", "tables[0].entries[0].rows"},
        Damage{"configMissing", "\"config\"", "\"konfig\"", "'tables[0].entries[0].config' is missing"},
        Damage{"configAsNumber", "\"warp.b32\"", "7", "should be a text, and is 7"},
        Damage{"timeAsNull", "\"time_us\": 5.0", "\"time_us\": null", "should be a number, and is null"},
        Damage{"unknownOperation", "\"softmax\"", "\"hardmax\"", "unknown operation 'hardmax'"},
        Damage{"entriesAsNumber", "\"tables\": [", "\"tables\": 7, \"x\": [", "'tables' should be a list"}),
    [](const auto& one) { return one.param.name; });

TEST(DispatchJsonTest, OtherJsonIsRefused) {
  for (const char* json : {"[]", "7", "null", "{}", "\"text\"", "{\"schema\": 7}"})
    EXPECT_THROW(parse_dispatch(json, "other"), EnvironmentError) << json;
}

TEST(DispatchJsonTest, NestingDoesNotEatTheStack) {
  const std::string deep = std::string(1'000'000, '[') + std::string(1'000'000, ']');
  EXPECT_THROW(parse_dispatch(deep, "deep"), EnvironmentError);
}

class WriteTest : public ::testing::Test {
 protected:
  WriteTest() {
    std::string name = (std::filesystem::temp_directory_path() / "rowtune-dispatch-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    folder = name;
  }
  ~WriteTest() override { std::filesystem::remove_all(folder); }
  std::filesystem::path folder;
};

TEST_F(WriteTest, WritesAFileThatReadsBackAndNothingElse) {
  const auto out = folder / "made" / "on the way";
  const auto path = write_dispatch(example(), out.string());
  EXPECT_EQ(read_dispatch(path), example());
  write_dispatch({}, out.string());
  EXPECT_TRUE(read_dispatch(path).tables.empty()) << "replaced";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out), {}), 1) << "no temporary file stays";
}

TEST_F(WriteTest, AFailureLeavesTheOldFile) {
  const auto path = write_dispatch(example(), folder.string());
  std::ofstream(folder / "file") << "x";
  EXPECT_THROW(write_dispatch({}, (folder / "file").string()), EnvironmentError);
  std::filesystem::remove(path);
  std::filesystem::create_directories(std::filesystem::path(path) / "in the way");
  EXPECT_THROW(write_dispatch({}, folder.string()), EnvironmentError);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder), {}), 2) << "no temporary file stays";
  EXPECT_THROW(read_dispatch((folder / "missing.json").string()), EnvironmentError);
}

TEST_F(WriteTest, TablesOfADatabaseAreTheSameTwice) {
  auto database = db::Database::open((folder / "t.db").string(), db::Database::Mode::read_write);
  for (const auto regime : {Regime::cold, Regime::warm}) {
    for (const int cols : {512, 1024}) {
      for (const auto& [config, time] : {std::pair("block.b256", 10.0), std::pair("warp.b128", 5.0)}) {
        db::Measurement m;
        m.key = {"Test GPU", "units=1", "NVRTC 13.0",
                 "abc",      1,         Workload::of(Operation::softmax, Dtype::bf16, Shape::of(8, cols), regime),
                 config};
        m.is_base = std::string(config) == "block.b256";
        m.time_us = time;
        database.record(m);
      }
    }
  }
  const auto tables = dispatch_tables(database);
  ASSERT_EQ(tables.tables.size(), 1u) << "cold unless told";
  EXPECT_EQ(tables.tables[0].entries.size(), 2u);
  EXPECT_EQ(tables.tables[0].entries[0].config, "warp.b128");
  EXPECT_EQ(to_json(tables), to_json(dispatch_tables(database)));
  EXPECT_EQ(dispatch_tables(database, Regime::warm).tables.at(0).regime, Regime::warm);
}

}  // namespace
}  // namespace rowtune
