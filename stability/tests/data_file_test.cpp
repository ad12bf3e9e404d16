#include "stability/data_file.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>

#include "kernels/errors.hpp"
#include "stability/user_data.hpp"

namespace rowtune::stability {
namespace {

class Files : public testing::Test {
 protected:
  void SetUp() override {
    const auto* info = testing::UnitTest::GetInstance()->current_test_info();
    directory_ = std::filesystem::temp_directory_path() / (std::string("rowtune_stability_") + info->test_suite_name() +
                                                           "_" + info->name() + "_" + std::to_string(::getpid()));
    std::filesystem::create_directories(directory_);
  }
  void TearDown() override { std::filesystem::remove_all(directory_); }

  std::string write(const std::string& name, const std::string& bytes) {
    const std::string path = (directory_ / name).string();
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  template <class T>
  static std::string bytes_of(const std::vector<T>& values) {
    return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
  }
  static std::string npy(const std::string& descr, const std::string& shape, const std::string& data,
                         const std::string& fortran = "False", char version = 1) {
    std::string header = "{'descr': '" + descr + "', 'fortran_order': " + fortran + ", 'shape': " + shape + ", }";
    const std::size_t start = version == 1 ? 10 : 12;
    header.append((64 - (start + header.size() + 1) % 64) % 64, ' ');
    header += '\n';
    std::string file = "\x93NUMPY";
    file += version;
    file += '\0';
    for (std::size_t i = 0; i < start - 8; ++i) file += static_cast<char>((header.size() >> (8 * i)) & 255);
    return file + header + data;
  }
  static std::vector<double> row(const DataFile& file, std::int64_t index) {
    std::vector<double> values(static_cast<std::size_t>(file.cols()));
    file.read(index, 0, values);
    return values;
  }
  template <class Error>
  void refuses(const std::string& path, const std::string& says, const DataFileOptions& options = {}) {
    try {
      open_data_file(path, options);
      FAIL() << "taken";
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(says), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(path), std::string::npos) << e.what();
    }
  }
  std::filesystem::path directory_;
};

using Npy = Files;

TEST_F(Npy, ReadsEachDtype) {
  const auto f4 = open_data_file(write("a.npy", npy("<f4", "(2, 3)", bytes_of<float>({1, 2, 3, 4, 5, 6}))), {});
  EXPECT_EQ(f4->rows(), 2);
  EXPECT_EQ(row(*f4, 1), (std::vector<double>{4, 5, 6}));
  EXPECT_EQ(f4->dtype(), Dtype::f32);
  const auto f8 = open_data_file(write("b.npy", npy("<f8", "(2,)", bytes_of<double>({0.1, -1e300}))), {});
  EXPECT_EQ(f8->rows(), 1);
  EXPECT_EQ(row(*f8, 0), (std::vector<double>{0.1, -1e300}));
  const auto f2 =
      open_data_file(write("c.npy", npy("<f2", "(4,)", bytes_of<std::uint16_t>({0x3c00, 0xc000, 0x0001, 0x7c00}))), {});
  EXPECT_EQ(row(*f2, 0), (std::vector<double>{1, -2, 0x1p-24, std::numeric_limits<double>::infinity()}));
  const auto bf =
      open_data_file(write("d.npy", npy("<u2", "(1, 2)", bytes_of<std::uint16_t>({0x3f80, 0xc040}))), {Dtype::bf16});
  EXPECT_EQ(row(*bf, 0), (std::vector<double>{1, -3}));
  EXPECT_EQ(bf->dtype(), Dtype::bf16);
}

TEST_F(Npy, ReadsVersion2AndFortranOrderWhereItMeansNothing) {
  EXPECT_EQ(row(*open_data_file(write("a.npy", npy("<f4", "(2,)", bytes_of<float>({1, 2}), "True", 2)), {}), 0),
            (std::vector<double>{1, 2}));
  EXPECT_EQ(open_data_file(write("b.npy", npy("<f4", "(2, 1)", bytes_of<float>({1, 2}), "True")), {})->rows(), 2);
}

TEST_F(Npy, RoundsToAnotherDtypeFirst) {
  const auto file = open_data_file(write("a.npy", npy("<f4", "(2,)", bytes_of<float>({2049, 70000}))), {Dtype::f16});
  EXPECT_EQ(row(*file, 0), (std::vector<double>{2048, std::numeric_limits<double>::infinity()}));
  EXPECT_EQ(file->dtype(), Dtype::f16);
}

TEST_F(Npy, RefusesWhatItCannotTake) {
  const std::string six = bytes_of<float>({1, 2, 3, 4, 5, 6});
  const std::string whole = npy("<f4", "(2, 3)", six);
  refuses<EnvironmentError>(write("truncated.npy", whole.substr(0, whole.size() - 1)), "truncated");
  refuses<EnvironmentError>(write("header.npy", whole.substr(0, 40)), "truncated");
  refuses<EnvironmentError>(write("empty.npy", ""), "empty");
  refuses<EnvironmentError>(write("text.npy", "1 2 3\n4 5 6\n"), "NumPy");
  refuses<EnvironmentError>(write("int.npy", npy("<i4", "(6,)", six)), "<i4");
  refuses<EnvironmentError>(write("complex.npy", npy("<c8", "(3,)", six)), "<c8");
  refuses<EnvironmentError>(write("object.npy", npy("|O", "(3,)", six)), "|O");
  refuses<EnvironmentError>(write("big.npy", npy(">f4", "(6,)", six)), "big-endian");
  refuses<UsageError>(write("bits.npy", npy("<u2", "(12,)", six)), "--dtype bf16");
  refuses<UsageError>(write("bits32.npy", npy("<u2", "(12,)", six)), "--dtype bf16", {Dtype::f32});
  refuses<EnvironmentError>(write("fortran.npy", npy("<f4", "(2, 3)", six, "True")), "Fortran");
  refuses<EnvironmentError>(write("cube.npy", npy("<f4", "(1, 2, 3)", six)), "3 dimensions");
  refuses<EnvironmentError>(write("scalar.npy", npy("<f4", "()", six)), "0 dimensions");
  refuses<EnvironmentError>(write("none.npy", npy("<f4", "(0, 3)", "")), "no numbers");
  refuses<EnvironmentError>(write("impossible.npy", npy("<f4", "(4611686018427387904, 4)", six)), "impossible");
  refuses<EnvironmentError>(write("negative.npy", npy("<f4", "(-1, 6)", six)), "damaged");
  refuses<EnvironmentError>(
      write("records.npy", "\x93NUMPY" + std::string("\x01\x00\x3c\x00", 4) +
                               "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}    \n"),
      "records");
  refuses<EnvironmentError>((directory_ / "absent.npy").string(), "cannot open");
  refuses<EnvironmentError>(directory_.string(), "not a file");
}

TEST_F(Npy, AShrinkingFileIsAnErrorNotGarbage) {
  const std::string path = write("a.npy", npy("<f4", "(6,)", bytes_of<float>({1, 2, 3, 4, 5, 6})));
  const auto file = open_data_file(path, {});
  std::filesystem::resize_file(path, 70);
  EXPECT_THROW(row(*file, 0), EnvironmentError);
}

using Text = Files;

TEST_F(Text, AColumnIsOneRowOfData) {
  const auto file = open_data_file(write("a.txt", "# NIST style\n1.5\n\n-2\n 3e2 # comment\n"), {});
  EXPECT_EQ(file->rows(), 1);
  EXPECT_EQ(row(*file, 0), (std::vector<double>{1.5, -2, 300}));
  EXPECT_EQ(file->dtype(), Dtype::f64);
}

TEST_F(Text, LinesOfSeveralNumbersAreRows) {
  for (const char* text : {"1,2,3\n4,5,6\n", "1 2 3\r\n4 5 6", "1;\t2; 3\n4 ;5\t6\n"}) {
    const auto file = open_data_file(write("a.csv", text), {Dtype::f32});
    EXPECT_EQ(file->rows(), 2) << text;
    EXPECT_EQ(row(*file, 1), (std::vector<double>{4, 5, 6})) << text;
  }
}

TEST_F(Text, RefusesWhatItCannotTake) {
  refuses<EnvironmentError>(write("words.txt", "1 2\nthree 4\n"), "line 2 has 'three'");
  refuses<EnvironmentError>(write("ragged.txt", "1 2\n3 4 5\n"), "line 2 has 3 numbers");
  refuses<EnvironmentError>(write("empty.txt", ""), "no numbers");
  refuses<EnvironmentError>(write("comments.txt", "# nothing\n\n"), "no numbers");
  refuses<EnvironmentError>(write("binary.txt", std::string("\x7f\x45\x4c\x46\x00\x01", 6)), "line 1");
}

using UserData = Files;

DataReport study(const DataFile& file) {
  return study_data(
      file, 32, [](const std::vector<Result>&) {}, [](std::int64_t, std::int64_t) {});
}
const MethodOnData& method(const DataReport& report, const std::string& op, const std::string& name,
                           const std::string& order) {
  for (const MethodOnData& m : report.methods)
    if (m.op == op && m.method == name && m.order == order) return m;
  throw std::runtime_error("no method " + name);
}
std::string joined(const std::vector<std::string>& lines) {
  std::string all;
  for (const std::string& line : lines) all += line + "\n";
  return all;
}

TEST_F(UserData, NamesTheMethodsThatFailAndTheFirstRow) {
  std::vector<float> x;
  for (int row = 0; row < 5; ++row)
    for (int i = 0; i < 100; ++i) x.push_back((row >= 2 ? 20000.0f : 0.0f) + static_cast<float>(i % 7) * 0.25f);
  const auto file = open_data_file(write("a.npy", npy("<f4", "(5, 100)", bytes_of(x))), {});
  const DataReport report = study(*file);
  EXPECT_EQ(method(report, "variance", "one_pass", "lanes32").first_unsafe_row, 2);
  EXPECT_EQ(method(report, "variance", "one_pass", "lanes32").unsafe_rows, 3);
  EXPECT_EQ(method(report, "variance", "two_pass", "lanes32").unsafe_rows, 0);
  EXPECT_EQ(method(report, "softmax", "unsafe", "lanes32").first_unsafe_row, 2);
  EXPECT_EQ(method(report, "softmax", "online", "lanes32").unsafe_rows, 0);
  const std::string words = joined(verdict(report));
  EXPECT_NE(
      words.find(
          "one_pass in f32 (sequential, lanes32, pairwise) is not safe here: wrong on 3 of 5 rows, first on row 2"),
      std::string::npos)
      << words;
  EXPECT_NE(words.find("every form that rowtune's kernels use is safe"), std::string::npos) << words;
}

TEST_F(UserData, RowsWithNaNAreSaidAndJudgeNoMethod) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  const auto file =
      open_data_file(write("a.npy", npy("<f4", "(3, 3)", bytes_of<float>({1, 2, 3, nan, 2, 3, -inf, 2, 3}))), {});
  const DataReport report = study(*file);
  EXPECT_EQ(report.rows_with_nan, 1);
  EXPECT_EQ(report.first_nan_row, 1);
  EXPECT_EQ(report.rows_with_inf, 1);
  for (const MethodOnData& m : report.methods) EXPECT_EQ(m.unsafe_rows, 0) << m.op << " " << m.method << " " << m.order;
  EXPECT_NE(joined(verdict(report)).find("hold a NaN, the first is row 1"), std::string::npos);
}

TEST_F(UserData, EachRowIsReportedInOrder) {
  std::vector<float> x;
  for (int row = 0; row < 150; ++row)
    for (int i = 0; i < 8; ++i) x.push_back(static_cast<float>(row == 149 ? 50000 + i : i));
  const auto file = open_data_file(write("a.npy", npy("<f4", "(150, 8)", bytes_of(x))), {});
  std::vector<std::string> rows, unsafe;
  study_data(
      *file, 32,
      [&](const std::vector<Result>& results) {
        rows.push_back(results.front().test_case);
        for (const Result& r : results)
          if (r.method == "one_pass" && r.order == "sequential" && r.note.rfind("unsafe", 0) == 0)
            unsafe.push_back(r.test_case);
      },
      [](std::int64_t, std::int64_t) {});
  ASSERT_EQ(rows.size(), 150u);
  for (std::size_t i = 0; i < rows.size(); ++i) EXPECT_EQ(rows[i], "row_" + std::to_string(i));
  EXPECT_EQ(unsafe, std::vector<std::string>{"row_149"});
}

TEST_F(UserData, AConstantRowIsNoFailureOfAMethod) {
  const std::vector<float> x(64, 0.1f);
  const DataReport report = study(*open_data_file(write("a.npy", npy("<f4", "(64,)", bytes_of(x))), {}));
  EXPECT_EQ(report.constant_rows, 1);
  EXPECT_EQ(method(report, "variance", "two_pass", "lanes32").unsafe_rows, 0);
}

TEST_F(UserData, LowSumsAreJudgedApart) {
  std::vector<std::uint16_t> ones(5000, 0x3c00);
  ones[7] = 0x4000;
  const DataReport report = study(*open_data_file(write("a.npy", npy("<f2", "(5000,)", bytes_of(ones))), {}));
  std::int64_t unsafe_low = 0, unsafe_f32 = 0;
  for (const MethodOnData& m : report.methods)
    if (m.op == "softmax" && m.order == "sequential")
      (m.arithmetic == Dtype::f16 ? unsafe_low : unsafe_f32) += m.unsafe_rows;
  EXPECT_GT(unsafe_low, 0);
  EXPECT_EQ(unsafe_f32, 0);
}

}  // namespace
}  // namespace rowtune::stability
