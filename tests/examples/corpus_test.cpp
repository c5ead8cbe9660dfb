#include <sys/stat.h>

#include <batches.hpp>
#include <catch2/catch.hpp>
#include <cmath>
#include <corpus.hpp>
#include <input_error.hpp>
#include <string>
#include <text_files.hpp>

#include "folder.hpp"

using namespace train_text;
namespace {

Bytes bytes_of(std::string_view text) { return {text.begin(), text.end()}; }

Bytes counted_text(std::size_t bytes) {
  Bytes text(bytes);
  for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<std::uint8_t>(i * i % 251);
  return text;
}

}  // namespace

TEST_CASE("a folder's text files are joined in the order of their names") {
  const Folder folder;
  folder.write("b.md", "second ");
  folder.write("a/z.cpp", "first ");
  folder.write("c.txt", "third");
  folder.write("c.bin", "not text");
  folder.write(".hidden/a.txt", "hidden");
  folder.write("build-x/a.txt", "built");
  folder.write("node_modules/a.js", "fetched");
  CHECK(load_text(folder.path()) == bytes_of("first second third"));
}

TEST_CASE("a file is loaded whatever its ending, byte for byte") {
  const Folder folder;
  const std::string text("nul \0 and high \xff", 16);
  folder.write("data.bin", text);
  CHECK(load_text(folder.path() / "data.bin") == bytes_of(text));
}

TEST_CASE("a text that cannot be used is an error that says so") {
  const Folder folder;
  folder.write("empty.txt", "");
  CHECK_THROWS_WITH(load_text(folder.path() / "missing.txt"), Catch::Contains("missing.txt") && Catch::Contains("--data"));
  CHECK_THROWS_WITH(load_text(folder.path() / "empty.txt"), Catch::Contains("holds no text"));
  // Another one without an end would be read until the memory is full.
  CHECK_THROWS_WITH(load_text("/dev/null"), Catch::Contains("/dev/null is neither a file nor a folder"));
  const std::filesystem::path pipe = folder.path() / "pipe";
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);
  CHECK_THROWS_WITH(load_text(pipe), Catch::Contains("pipe is neither a file nor a folder"));
  CHECK_THROWS_AS(Corpus(counted_text(33), 16), InputError);
  CHECK_THROWS_WITH(Corpus(counted_text(33), 16), Catch::Contains("33 bytes") && Catch::Contains("at least 34"));
  CHECK_NOTHROW(Corpus(counted_text(34), 16));
}

TEST_CASE("the tail is held out, at least one window of it") {
  const Corpus large(counted_text(1000), 16);
  CHECK(large.training().size() == 900);
  CHECK(large.held_out().size() == 100);
  const Corpus small(counted_text(40), 16);
  CHECK(small.held_out().size() == 17);
  CHECK(small.held_out().data() == small.text().data() + 23);
}

TEST_CASE("unigram entropy of texts whose entropy is known") {
  CHECK(unigram_entropy(bytes_of("aaaa")) == 0);
  CHECK(unigram_entropy(bytes_of("abab")) == Approx(std::log(2.0)));
  CHECK(unigram_entropy(bytes_of("aabc")) == Approx(1.5 * std::log(2.0)));
  Bytes all;
  for (int byte = 0; byte < 256; ++byte) all.push_back(static_cast<std::uint8_t>(byte));
  CHECK(unigram_entropy(all) == Approx(std::log(256.0)));
}

TEST_CASE("the hash is FNV-1a") {
  CHECK(hash_of({}) == 0xcbf29ce484222325U);
  const Bytes a = bytes_of("a");
  CHECK(hash_of(std::as_bytes(std::span(a))) == 0xaf63dc4c8601ec8cU);
}

TEST_CASE("slices cover the whole without overlap, the first ranks taking one more") {
  const int total = GENERATE(1, 2, 7, 16, 30);
  const int ranks = GENERATE(1, 2, 3, 4, 7);
  CAPTURE(total, ranks);
  int next = 0;
  for (int rank = 0; rank < ranks; ++rank) {
    const Slice slice = slice_of(total, rank, ranks);
    CHECK(slice.first == next);
    CHECK(slice.count >= total / ranks);
    CHECK(slice.count <= total / ranks + 1);
    next += slice.count;
  }
  CHECK(next == total);
}

TEST_CASE("the global batch of a step is the same however many ranks share it") {
  const Corpus corpus(counted_text(5000), 16);
  constexpr int kBatch = 7;
  const Batch whole = training_batch(corpus, 16, 42, 3, {0, kBatch});
  REQUIRE(whole.rows.size() == kBatch * 17);
  const int ranks = GENERATE(2, 3, 4);
  std::vector<std::uint8_t> joined;
  for (int rank = 0; rank < ranks; ++rank) {
    const Batch part = training_batch(corpus, 16, 42, 3, slice_of(kBatch, rank, ranks));
    joined.insert(joined.end(), part.rows.begin(), part.rows.end());
  }
  CHECK(joined == whole.rows);
  CHECK(training_batch(corpus, 16, 42, 4, {0, kBatch}).rows != whole.rows);
  CHECK(training_batch(corpus, 16, 43, 3, {0, kBatch}).rows != whole.rows);
}

TEST_CASE("validation windows span the held-out text and stay within it") {
  const std::size_t bytes = GENERATE(34, 400, 5000, 100000);
  const Corpus corpus(counted_text(bytes), 16);
  const int windows = validation_windows(corpus, 16, 96);
  REQUIRE(windows >= 1);
  REQUIRE(windows <= 96);
  const Batch batch = validation_batch(corpus, 16, windows, {0, windows});
  CHECK(batch.sequences == windows);
  CHECK(std::equal(batch.rows.begin(), batch.rows.begin() + 17, corpus.held_out().begin()));
  if (windows > 1) CHECK(std::equal(batch.rows.end() - 17, batch.rows.end(), corpus.held_out().end() - 17));
}
