#include "tuner/baselines.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "kernels/errors.hpp"
#include "tuner/winners.hpp"

namespace rowtune {
namespace {

class Baselines : public testing::Test {
 protected:
  std::string write(const std::string& text) {
    const std::string path = (directory_ / "others.jsonl").string();
    std::ofstream(path, std::ios::binary) << text;
    return path;
  }
  void SetUp() override { std::filesystem::create_directories(directory_); }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  static std::string line(const std::string& impl, const std::string& shape, double us) {
    return R"({"device_model": "Test GPU", "op": "softmax", "dtype": "bf16", "shape": ")" + shape +
           R"(", "regime": "cold", "impl": ")" + impl + R"(", "version": "1", "time_us": )" + std::to_string(us) +
           "}\n";
  }
  void tuned(db::Database& database, const char* shape, double us) {
    db::Measurement m;
    m.key = {"Test GPU",
             "limits",
             "toolchain",
             "source",
             1,
             Workload::of(Operation::softmax, Dtype::bf16, parse_shape(shape)),
             "block.b128.r1.v8.s1"};
    m.provenance = {"cuda:0", "uuid", "driver", "host", "1", "2026-01-01T00:00:00Z"};
    m.algorithm = "block";
    m.time_us = m.time_lo_us = m.time_hi_us = us;
    m.bytes = 1;
    database.record(m);
  }

  std::filesystem::path directory_ =
      std::filesystem::temp_directory_path() / ("rowtune_baselines_" + std::to_string(::getpid()));
};

TEST_F(Baselines, ReadsALineForEachTime) {
  const auto all = read_baselines(write("# a comment\n\n" + line("torch", "4096x1000", 11) + line("liger", "8x64", 2)));
  ASSERT_EQ(all.size(), 2u);
  EXPECT_EQ(all[0].impl, "torch");
  EXPECT_EQ(all[0].time_us, 11);
  EXPECT_FALSE(all[0].time_lo_us.has_value());
  EXPECT_EQ(to_string(all[1].workload.shape), "8x64");
}

TEST_F(Baselines, DefaultOptionsAreTheOperations) {
  std::string text = line("torch", "16x4096", 5);
  text.replace(text.find("softmax"), 7, "fused_add_rmsnorm");
  EXPECT_EQ(read_baselines(write(text))[0].workload.options, default_options(Operation::fused_add_rmsnorm));
}

TEST_F(Baselines, ABadLineIsNamed) {
  for (const char* bad : {"nonsense", "[1]", "{}", R"({"device_model": 7})"}) {
    try {
      read_baselines(write(line("torch", "4096x1000", 11) + bad + "\n"));
      ADD_FAILURE() << bad;
    } catch (const UsageError& e) {
      EXPECT_NE(std::string(e.what()).find("line 2"), std::string::npos) << e.what();
    }
  }
  EXPECT_THROW(read_baselines(write(line("torch", "4096x1000", -1))), UsageError);
  EXPECT_THROW(read_baselines(write(line("torch", "4096 by 1000", 1))), UsageError);
  EXPECT_THROW(read_baselines(write("")), UsageError);
  EXPECT_THROW(read_baselines("/nonexistent/others.jsonl"), EnvironmentError);
}

TEST_F(Baselines, StandBesideTheWinners) {
  db::Database database = db::Database::open((directory_ / "t.db").string(), db::Database::Mode::read_write);
  tuned(database, "4096x1000", 10);
  tuned(database, "8x64", 4);
  tuned(database, "16x64", 1);  // nobody else was measured there
  database.record_baselines(read_baselines(write(line("slow", "4096x1000", 30) + line("fast", "4096x1000", 20) +
                                                 line("fast", "8x64", 2) + line("fast", "99x99", 1))));
  const std::vector<Standing> all = standings(database.baselines());
  ASSERT_EQ(all.size(), 2u);
  const std::string words = standings_words(all);
  EXPECT_NE(words.find("1 of them (50 %), 1.00 times"), std::string::npos) << words;  // sqrt(2 * 1/2)
  EXPECT_NE(words.find("8x64"), std::string::npos) << words;

  const reports::Sheet sheet = best_sheet(database.best({}), false, database.baselines());
  ASSERT_EQ(sheet.rows.size(), 3u);
  const std::size_t speedup = sheet.heads.size() - 1;
  EXPECT_EQ(sheet.heads[speedup].name, "speedup_over_other");
  std::size_t known = 0;
  for (const auto& row : sheet.rows) known += std::holds_alternative<double>(row[speedup]);
  EXPECT_EQ(known, 2u);
}

}  // namespace
}  // namespace rowtune
