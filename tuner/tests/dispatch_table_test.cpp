// Which entry answers which shape, how well it is said to match, and that the JSON comes back as it went out.

#include "tuner/dispatch_table.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <set>

#include "tuner/tests/dispatch_support.hpp"

namespace rowtune {
namespace {

/// Rows 4..4096 at 1024 columns, and 64 rows at 8192 columns: each has its own winner, poor elsewhere.
DispatchTables example() {
  std::vector<db::BestRow> rows;
  const auto add = [&](std::int64_t r, std::int64_t c, double few, double many, double wide) {
    std::vector<std::pair<std::string, double>> times{{"warp.b32", few}, {"warp.b128", many}, {"block.b512", wide}};
    std::sort(times.begin(), times.end(), [](const auto& a, const auto& b) { return a.second < b.second; });
    times.emplace_back("block.b256", 20);
    for (const auto& one : sweep(r, c, times)) rows.push_back(one);
  };
  add(4, 1024, 5, 7, 10);
  add(4096, 1024, 8, 5, 10);
  add(64, 8192, 10, 10, 5);
  return dispatch_tables(rows);
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
                      // In between, the similar shapes decide.
                      Case{"8x1024", MatchKind::near, "warp.b32"}, Case{"4000x1000", MatchKind::near, "warp.b128"},
                      Case{"4x1000", MatchKind::near, "warp.b32"}, Case{"64x8000", MatchKind::near, "block.b512"},
                      Case{"64x16000", MatchKind::near, "block.b512"},
                      // The range reaches to a factor of eight beyond what was tuned, inclusive.
                      Case{"4x128", MatchKind::near, "warp.b32"}, Case{"4x127", MatchKind::out_of_range, "base"},
                      Case{"64x65536", MatchKind::near, "block.b512"},
                      Case{"64x65537", MatchKind::out_of_range, "base"}, Case{"1x1024", MatchKind::near, "warp.b32"},
                      Case{"32768x1024", MatchKind::near, "warp.b128"},
                      Case{"32769x1024", MatchKind::out_of_range, "base"},
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

TEST(LookupAlignmentTest, RaggedRowsAskRaggedRows) {
  // 1001 columns of bf16 have 2,002-byte rows: 2-byte alignment.
  auto rows = sweep(64, 1024, {{"even.b64", 5}, {"odd.b64", 6}, {"block.b256", 10}});
  for (const auto& one : sweep(64, 1001, {{"odd.b64", 5}, {"even.b64", 6}, {"block.b256", 10}})) rows.push_back(one);
  const auto t = dispatch_tables(rows);
  const auto ask = [&](const std::string& shape) {
    return lookup(t, "Test GPU", Operation::softmax, Dtype::bf16, parse_shape(shape));
  };
  EXPECT_EQ(ask("64x1001").kind, MatchKind::exact);
  EXPECT_EQ(ask("64x1003").config, "odd.b64");
  EXPECT_EQ(ask("64x1016").config, "even.b64");
  EXPECT_EQ(ask("64x1024:off=1").config, "odd.b64");
  EXPECT_EQ(ask("64x1024:off=1").kind, MatchKind::near);
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
  auto slow = row(4, 1024, "warp.b32", 20), base = row(4, 1024, "block.b256", 10);
  base.rank = 2;
  const auto entry = dispatch_tables({slow, base}).tables.at(0).entries.at(0);
  EXPECT_EQ(entry.config, "block.b256");
  EXPECT_DOUBLE_EQ(entry.evidence.time_us, 10);
  EXPECT_DOUBLE_EQ(entry.evidence.gain_over_base.value(), 1);
  EXPECT_DOUBLE_EQ(entry.evidence.time_lo_us.value(), 9.9) << "the interval is the base's own";
}

TEST(DispatchTablesTest, TheCopyIsNoTableAndTablesAreSorted) {
  auto copy = row(4, 1024, "warp.b32");
  copy.op = "copy";
  auto rms = row(4, 1024, "warp.b32");
  rms.op = "rmsnorm", rms.options = "weight,eps=1e-06";
  auto f32 = row(4, 1024, "warp.b64");
  f32.dtype = "f32";
  const auto t = dispatch_tables({rms, row(8, 2048, "b.b1"), copy, row(9, 1024, "c.b1"), f32, row(8, 1024, "d.b1")});
  ASSERT_EQ(t.tables.size(), 3u);
  EXPECT_EQ(t.tables[0].dtype, Dtype::f32);
  EXPECT_EQ(t.tables[1].dtype, Dtype::bf16);
  EXPECT_EQ(t.tables[2].op, Operation::rmsnorm);
  ASSERT_EQ(t.tables[1].entries.size(), 3u);
  EXPECT_EQ(t.tables[1].entries[0].config, "d.b1");
  EXPECT_EQ(t.tables[1].entries[1].config, "c.b1");
  EXPECT_EQ(t.tables[1].entries[2].config, "b.b1");
}

TEST(DispatchTablesTest, OfShapesThatFallTogetherTheContiguousStays) {
  auto strided = row(4, 1024, "strided.b1");
  strided.ld = 2048;
  for (const auto& rows :
       {std::vector{strided, row(4, 1024, "plain.b1")}, std::vector{row(4, 1024, "plain.b1"), strided}}) {
    const auto t = dispatch_tables(rows);
    ASSERT_EQ(t.tables.at(0).entries.size(), 1u);
    EXPECT_EQ(t.tables[0].entries[0].config, "plain.b1");
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
  "version": 2,)"),
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
        Damage{"newerVersion", "\"version\": 2", "\"version\": 3", "version 3"},
        Damage{"olderVersion", "\"version\": 2", "\"version\": 1", "version 1"},
        Damage{"versionAsText", "\"version\": 2", "\"version\": \"2\"", "'version' should be a whole number"},
        Damage{"rowsAsText", "\"rows\":4", "\"rows\":\"4\"", "tables[0].entries[0].rows"},
        Damage{"negativeRows", "\"rows\":4", "\"rows\":-4", "tables[0].entries[0].rows"},
        Damage{"fractionalRows", "\"rows\":4", "\"rows\":4.5", "tables[0].entries[0].rows"},
        Damage{"hugeRows", "\"rows\":4", "\"rows\":18446744073709551615", "tables[0].entries[0].rows"},
        Damage{"configMissing", "\"kernel\":", "\"colonel\":", "'tables[0].entries[0].kernel' is missing"},
        Damage{"kernelThatIsNotThere", "\"kernel\":", "\"kernel\":1", "tables[0].entries[0].kernel"},
        Damage{"entriesOutOfOrder", "\"cols\":1024", "\"cols\":2048", "beyond the one before it"},
        Damage{"regionsOutOfOrder", "\"aligned\": [", "\"aligned\": [{\"cols\":99999999,\"rows\":1,\"kernel\":-1},",
               "beyond the one before it"},
        Damage{"configAsNumber", "\"warp.b32\"", "7", "should be a text, and is 7"},
        Damage{"timeAsNull", "\"time_us\":5.0", "\"time_us\":null", "should be a number, and is null"},
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
  const auto path = write_dispatch(example(), out.string()).at(0);
  EXPECT_EQ(read_dispatch(path), example());
  write_dispatch({}, out.string());
  EXPECT_TRUE(read_dispatch(path).tables.empty()) << "replaced";
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(out), {}), 1) << "no temporary file stays";
}

TEST_F(WriteTest, AFailureLeavesTheOldFile) {
  const auto path = write_dispatch(example(), folder.string()).at(0);
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

// ------------------------------------------------------------------------------------------------- CUDA tables

/// Kernels that tuned shapes use.
std::set<std::string> used(const DispatchTable& table) {
  std::set<std::string> configs;
  for (const auto& e : table.entries) configs.insert(e.config);
  return configs;
}

TEST(CompactionTest, OneKernelWithinTheRegretServesAll) {
  const auto table = dispatch_tables(three_workloads()).tables.at(0);
  EXPECT_EQ(used(table), std::set<std::string>{block(512)});
  ASSERT_EQ(table.entries.size(), 3u);
  EXPECT_EQ(table.entries[0].evidence.best_config, block(256));
  EXPECT_NEAR(table.entries[0].evidence.regret.value(), 0.015, 1e-12);
  EXPECT_DOUBLE_EQ(table.entries[0].evidence.time_us, 10.15) << "the evidence is of what is launched";
  EXPECT_DOUBLE_EQ(table.entries[2].evidence.regret.value(), 0);
}

TEST(CompactionTest, WithoutRegretEachHasItsWinner) {
  const auto table = dispatch_tables(three_workloads(), {0.0, 48}).tables.at(0);
  EXPECT_EQ(used(table), (std::set<std::string>{block(256), block(512), block(1024)}));
}

TEST(CompactionTest, TooFewKernelsSendTheShapesThatGainLeastToTheBase) {
  auto rows = three_workloads();
  // A fourth that gains little, and shares no kernel.
  for (const auto& r : on_h200(64, 1024, {{block(64), 10}, {"lanes.b128.r1.v8.s1.p0.h0.x1", 10.5}})) rows.push_back(r);
  const auto table = dispatch_tables(rows, {0.02, 1}).tables.at(0);
  EXPECT_EQ(table.kernels.size(), 1u);
  ASSERT_EQ(table.entries.size(), 4u);
  EXPECT_EQ(table.entries[0].kernel, -1);
  EXPECT_EQ(table.entries[0].config, "lanes.b128.r1.v8.s1.p0.h0.x1");
  EXPECT_EQ(table.entries[1].config, block(512));
}

TEST(CompactionTest, NoEntryIsSlowerThanItsBaseAndNoTwoLaunchesAreTaken) {
  const auto rows = on_h200(
      2, 65536,
      {{"two_launches.b256.r1.v8.s32.u4.h0.x1", 5}, {base_of_long_rows, 8}, {"split.b256.r1.v8.s8.p1.h1.x1", 9}});
  auto base_second = rows;
  for (auto& r : base_second) r.base_config = base_of_long_rows, r.base_time_us = 8;
  const auto table = dispatch_tables(base_second).tables.at(0);
  EXPECT_EQ(table.entries.at(0).config, base_of_long_rows);
  EXPECT_NEAR(table.entries[0].evidence.regret.value(), 0.6, 1e-12) << "and says what that costs";
}

TEST(KernelsTest, AKernelServesEveryShapeOfItsRegions) {
  // The promise that the launchers rely on, for every region of a table with rows of many lengths.
  std::vector<db::BestRow> rows = three_workloads();
  for (const auto& more :
       {on_h200(4096, 1000, {{"lanes.b128.r1.v8.s1.p1.h1.x1", 5}, {"lanes.b128.r1.v8.s1.p0.h0.x1", 6}}),
        on_h200(4097, 1023, {{"lanes.b128.r1.v8.s1.p1.h1.x1", 5}, {"lanes.b128.r1.v8.s1.p0.h0.x1", 6}}),
        on_h200(8, 128256, {{"cluster.b512.r1.v8.s8.p0.m0.g0.h0.x1", 5}, {base_of_long_rows, 30}})})
    rows.insert(rows.end(), more.begin(), more.end());
  const auto table = dispatch_tables(rows).tables.at(0);
  for (const bool ragged : {false, true}) {
    const auto& regions = ragged ? table.ragged : table.aligned;
    ASSERT_FALSE(regions.empty());
    for (const auto& region : regions) {
      if (region.kernel < 0) continue;
      const auto kernel = constants_of(table, table.kernels.at(static_cast<std::size_t>(region.kernel)));
      const auto cols = ragged ? region.cols | 1 : region.cols / 8 * 8;
      const dispatch::Question q{region.rows, ragged ? std::min(cols, region.cols) : cols, 2, ragged ? 2 : 16, 16};
      EXPECT_TRUE(dispatch::serves(kernel, q)) << region.rows << "x" << region.cols << " " << ragged;
    }
  }
}

TEST(HeaderTest, IsTheSameTwiceAndHasAllEvidence) {
  const auto tables = dispatch_tables(three_workloads());
  const auto header = to_header(tables);
  EXPECT_EQ(header, to_header(dispatch_tables(three_workloads())));
  for (const char* word : {"struct Tuned<Operation::softmax, bf16>", "NVIDIA H200", "NVRTC 13.0", "10.150 us",
                           "90 % of a copy", "1.97 x base", "ties", "0.5 ulp", "1.5 % over block.b256", "abc"})
    EXPECT_NE(header.find(word), std::string::npos) << word << "\n" << header;
}

TEST(HeaderTest, AHostileModelNameStaysInItsString) {
  auto rows = three_workloads();
  for (auto& r : rows) r.device_model = "a\"\\\n}; evil \xc3\xbc";
  const auto header = to_header(dispatch_tables(rows));
  EXPECT_NE(header.find(R"({"a\"\\\012}; evil \303\274", 90, 132,)"), std::string::npos) << header;
  for (std::size_t at = 0; (at = header.find("evil", at)) != std::string::npos; ++at) {
    const auto line = header.rfind('\n', at) + 1;
    const auto start = header.find_first_not_of(' ', line);
    EXPECT_TRUE(header.compare(start, 2, "//") == 0 || header[start] == '{') << header.substr(line, 80);
  }
}

TEST(HeaderTest, HasEveryOperation) {
  for (const auto op : {Operation::softmax, Operation::log_softmax, Operation::layernorm, Operation::rmsnorm,
                        Operation::fused_add_rmsnorm, Operation::argmax_logsumexp}) {
    auto tables = dispatch_tables(three_workloads());
    for (auto& table : tables.tables) table.op = op;
    EXPECT_NE(to_header(tables).find("struct Tuned<Operation::" + to_string(op) + ", bf16>"), std::string::npos);
  }
}

TEST(HeaderTest, TablesOfOtherDevicesThanGpusAreLeftOut) {
  EXPECT_EQ(to_header(example()).find("struct Tuned"), std::string::npos);
}

}  // namespace
}  // namespace rowtune
