#pragma once
// What the tests of this folder share: a temporary folder, and measurements that differ from a plain one in what a
// test is about.

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "db/database.hpp"

namespace rowtune::db::test {

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string name = (std::filesystem::temp_directory_path() / "rowtune-db-XXXXXX").string();
    if (mkdtemp(name.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = name;
  }
  ~TemporaryFolder() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  std::string file(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

class DatabaseTest : public ::testing::Test {
 protected:
  TemporaryFolder folder;
  std::string path = folder.file("t.db");
  Database open(Database::Mode mode = Database::Mode::read_write) { return Database::open(path, mode); }
};

inline std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline Workload softmax(std::int64_t rows = 64, std::int64_t cols = 1000) {
  return Workload::of(Operation::softmax, Dtype::bf16, Shape::of(rows, cols));
}

inline MeasurementKey key_of(const Workload& workload, const std::string& config = {}) {
  return {"Test GPU", "units=1", "NVRTC 13.0", "source-a", 1, workload, config};
}

/// An ok measurement with an interval of 1 % to either side.
inline Measurement measured(const Workload& workload, const std::string& config, double time_us) {
  Measurement m;
  m.key = key_of(workload, config);
  m.provenance = {"cuda:0", "GPU-1", "580.1", "host", "0.1.0", "2026-01-01T00:00:00Z"};
  m.measured_at = "2026-01-01T00:00:01.000Z";
  m.algorithm = config.substr(0, config.find('.'));
  m.block_size = 128, m.rows_per_warp = 1, m.vector_width = 8, m.split_count = 1;
  m.time_us = time_us, m.time_lo_us = 0.99 * time_us, m.time_hi_us = 1.01 * time_us;
  m.sample_count = 3, m.settled = true;
  m.samples_us = {0.99 * time_us, time_us, 1.01 * time_us};
  m.bytes = bytes_moved(workload);
  m.max_error_ulp = 0.5;
  return m;
}

inline Measurement failed(const Workload& workload, const std::string& config, Outcome outcome,
                          const std::string& message) {
  auto m = measured(workload, config, 1);
  m.outcome = outcome;
  m.message = message;
  m.time_us = m.time_lo_us = m.time_hi_us = m.max_error_ulp = std::nullopt;
  return m;
}

inline Measurement base(Measurement m) {
  m.is_base = true;
  return m;
}

inline Measurement ineligible(Measurement m) {
  m.eligible = false;
  return m;
}

}  // namespace rowtune::db::test
