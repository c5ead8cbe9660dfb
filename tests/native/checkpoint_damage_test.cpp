#include <sys/stat.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <random>

#include "core/base/checksum.hpp"
#include "native/checkpoint/file.hpp"
#include "native/checkpoint/find.hpp"
#include "native/checkpoint/manifest.hpp"
#include "tests/campaign.hpp"
#include "tests/native/checkpoint_state.hpp"

using namespace ringlet;
using namespace ringlet::test;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;
namespace rn = ringlet::native;

namespace {

std::string content_of(const fs::path& path) { return rn::read_file(path, 1 << 30); }

void rewrite(const fs::path& path, const std::string& text) {
  std::ofstream(path, std::ios::binary | std::ios::trunc).write(text.data(), static_cast<std::streamsize>(text.size()));
}

std::string flipped(std::string text, std::size_t at) {
  text[at] = static_cast<char>(text[at] ^ 0x10);
  return text;
}

/// Returns the manifest with the checksum of its text, as a forger would write it.
std::string sealed(const std::string& text) {
  const std::size_t begin = std::string(R"({"checksum":")").size();
  const std::string rest = text.substr(begin + Checksum::kDigits);
  return text.substr(0, begin) + checksum_of(rest) + rest;
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  if (at == std::string::npos) throw std::runtime_error("no " + what);
  return text.replace(at, what.size(), by);
}

rn::Manifest small_manifest() {
  rn::Manifest manifest;
  manifest.id = "0123456789abcdef";
  manifest.step = 7;
  manifest.directories = {{0, 1}};
  manifest.values = {{"seed", std::uint64_t{5}}, {"rate", 0.5}};
  manifest.files = {{1000, std::string(32, 'a')}, {2000, std::string(32, 'b')}};
  manifest.tensors = {{"p.w", DType::f32, Shape{5, 3}, {{0, {0, 3}, 100, 36}, {1, {3, 5}, 200, 24}}},
                      {"p.none", DType::u8, Shape{0}, {}},
                      {"r.0", DType::f32, Shape{6}, {{0, {0, 3}, 300, 12}, {1, {3, 6}, 400, 12}}, 2}};
  return manifest;
}

rn::Sighting sighting(std::uint64_t step, const std::string& id, std::vector<bool> files, std::vector<std::vector<int>> directories) {
  return {step, true, "step", "", id, std::move(files), std::move(directories)};
}

}  // namespace

TEST_CASE("a file that was cut short, altered or removed is named to every rank before anything is loaded") {
  const ScratchDirectory scratch;
  const bool shared = GENERATE(true, false);
  const auto directory_of = [&](int rank) { return shared ? scratch.path() : scratch.of(rank); };
  save_state(2, directory_of, 1, 2);
  for (const int owner : {0, 1}) {
    const std::string name = rn::file_name(static_cast<std::size_t>(owner), 2);
    const fs::path path = directory_of(owner) / "step-00000001" / name;
    const std::string good = content_of(path);
    const std::size_t size = good.size();
    for (const std::size_t length : {std::size_t{0}, std::size_t{7}, std::size_t{8}, size / 2, size - 1}) {
      rewrite(path, good.substr(0, length));
      CHECK_THAT(load_error(3, directory_of),
                 Contains(name + ": is " + std::to_string(length) + " bytes long instead of " + std::to_string(size)));
    }
    rewrite(path, good + "x");
    CHECK_THAT(load_error(2, directory_of), Contains(name + ": is "));
    for (const std::size_t at : {std::size_t{0}, std::size_t{9}, size / 3, size - 1}) {
      rewrite(path, flipped(good, at));
      CHECK_THAT(load_error(3, directory_of),
                 Contains(name + ": has the checksum ") && Contains("move its folder away, or name the older one's step"));
    }
    fs::remove(path);
    CHECK_THAT(load_error(2, directory_of), shared ? Contains(name + " is missing") : Contains("has a manifest but none of its 2 files"));
    rewrite(path, good);
  }
  CHECK(load_state(2, directory_of, 2) == 1u);
}

TEST_CASE("a manifest that was cut short, altered or removed is named to every rank") {
  const ScratchDirectory scratch;
  const bool shared = GENERATE(true, false);
  const auto directory_of = [&](int rank) { return shared ? scratch.path() : scratch.of(rank); };
  save_state(2, directory_of, 1, 2);
  const fs::path path = directory_of(1) / "step-00000001" / "manifest.json";
  const std::string good = content_of(path);
  std::vector<std::string> bad{"", good.substr(0, 20), good.substr(0, good.size() / 2), good.substr(0, good.size() - 1), good + " "};
  for (const std::size_t at : {std::size_t{0}, std::size_t{15}, std::size_t{50}, good.size() / 2, good.size() - 1})
    bad.push_back(flipped(good, at));
  for (const std::string& text : bad) {
    rewrite(path, text);
    CHECK_THAT(load_error(2, directory_of), Contains("manifest.json: it") && (Contains("checksum") || Contains("beginning is damaged")) &&
                                                Contains("name the older one's step"));
  }
  rewrite(path, sealed(replaced(good, "\"version\": 1", "\"version\": 2")));
  CHECK_THAT(load_error(2, directory_of), Contains("its version is 2; this Ringlet reads version 1"));
  rewrite(path, sealed(replaced(good, "\"step\": 1", "\"step\": 3")));
  CHECK_THAT(load_error(2, directory_of), Contains("it is of step 3"));
  fs::remove(path);
  CHECK_THAT(load_error(2, directory_of), Contains("manifest.json: cannot be opened"));
  rewrite(path, good);
  CHECK(load_state(2, directory_of, 2) == 1u);
}

TEST_CASE("a FIFO or a directory in a file's place is refused, and nobody waits for it") {
  const ScratchDirectory scratch;
  const auto directory_of = [&](int) { return scratch.path(); };
  save_state(2, directory_of, 1, 2);
  const bool fifo = GENERATE(true, false);
  const std::string name = GENERATE(as<std::string>(), "manifest.json", rn::file_name(1, 2));
  CAPTURE(fifo, name);
  const fs::path path = scratch.path() / "step-00000001" / name;
  fs::remove(path);
  REQUIRE((fifo ? ::mkfifo(path.c_str(), 0600) == 0 : fs::create_directory(path)));
  CHECK_THAT(load_error(2, directory_of), Contains(name + ": is not a regular file"));
}

TEST_CASE("every single altered byte of a manifest is seen") {
  const std::string good = rn::to_text(small_manifest());
  CHECK(rn::parse_manifest(good) == small_manifest());
  Campaign campaign("a checkpoint's manifest is altered or cut, at each byte");
  for (std::size_t at = 0; at < good.size(); ++at) {
    CAPTURE(at);
    campaign.begin();
    REQUIRE_THROWS_AS(rn::parse_manifest(flipped(good, at)), IoError);
    REQUIRE_THROWS_AS(rn::parse_manifest(good.substr(0, at)), IoError);
    campaign.goes_well();
  }
}

TEST_CASE("a forged manifest whose parts do not fit together is refused") {
  const std::string good = rn::to_text(small_manifest());
  const auto refusal = [&](const std::string& what, const std::string& by) {
    try {
      rn::parse_manifest(sealed(replaced(good, what, by)));
    } catch (const IoError& error) {
      return std::string(error.what());
    }
    return std::string("taken");
  };
  CHECK_THAT(refusal("\"offset\": 100", "\"offset\": 18446744073709551600"),
             Contains("36 bytes from 18446744073709551600 on in a file of 1000"));
  CHECK_THAT(refusal("\"offset\": 100", "\"offset\": 965"), Contains("36 bytes from 965 on"));
  CHECK_THAT(refusal("\"offset\": 100", "\"offset\": -1"), Contains("'offset'"));
  CHECK_THAT(refusal("\"offset\": 100", "\"offset\": 1.5"), Contains("'offset'"));
  CHECK_THAT(refusal("\"length\": 36", "\"length\": 35"), Contains("35 bytes long"));
  CHECK_THAT(refusal("\"file\": 1", "\"file\": 2"), Contains("'file' is 2; at most 1 fits"));
  CHECK_THAT(refusal("\"name\": \"rank-00001-of-00002", "\"name\": \"../../rank-00001-of-00002"), Contains("is called '../../rank"));
  CHECK_THAT(refusal("\"dtype\": \"f32\"", "\"dtype\": \"f31\""), Contains("unknown dtype 'f31'"));
  CHECK_THAT(refusal("\"p.none\"", "\"p.w\""), Contains("stands in it twice"));
  CHECK_THAT(refusal("\"addends\": 2", "\"addends\": 3"), Contains("the 2 pieces of 'r.0' are not 3 addends"));
  CHECK_THAT(refusal("\"addends\": 2", "\"addends\": 0"), Contains("are not 0 addends"));
  CHECK_THAT(refusal("\"addends\": 2", "\"addends\": \"2\""), Contains("'addends'"));
  CHECK_THAT(refusal("\"step\"", "\"stop\""), Contains("'step' is missing"));
  CHECK_THAT(refusal("\"tensors\": [", "\"tensors\": {\"x\": ["), Contains("not JSON"));
  CHECK_THAT(refusal("\"ringlet checkpoint\"", "\"cake\""), Contains("its format is 'cake'"));
  // Any other forgery is refused, or it is a sound manifest.
  std::mt19937 random(1);
  const std::string alphabet = "0123456789-+.eE[]{}\",: ntf\\u\xff";
  for (int attempt = 0; attempt < 20'000; ++attempt) {
    std::string text = good;
    for (unsigned changes = 1 + random() % 3; changes > 0; --changes)
      text[46 + random() % (text.size() - 46)] = alphabet[random() % alphabet.size()];
    try {
      const auto manifest = rn::parse_manifest(sealed(text));
      for (const auto& tensor : manifest.tensors)
        for (const auto& piece : tensor.pieces)
          REQUIRE(piece.offset + piece.length <= manifest.files.at(static_cast<std::size_t>(piece.file)).size);
    } catch (const IoError&) {
    }
  }
}

TEST_CASE("which checkpoint is loaded follows from what all ranks see") {
  const std::vector<std::vector<int>> apart{{0}, {1}};
  const auto old0 = sighting(10, "a", {true, false}, apart);
  const auto old1 = sighting(10, "a", {false, true}, apart);
  const auto new0 = sighting(20, "b", {true, false}, apart);
  const auto new1 = sighting(20, "b", {false, true}, apart);
  CHECK(rn::choose({{}, {}}, {}) == std::nullopt);
  CHECK(rn::choose({{new0, old0}, {new1, old1}}, {})->step == 20);
  CHECK(rn::choose({{new0, old0}, {new1, old1}}, 10)->step == 10);
  CHECK(rn::choose({{new0, old0}, {old1}}, {})->step == 10);
  const auto found = rn::choose({{}, {new1}, {new0, new1}}, {});
  CHECK(found->seen_by == std::vector<std::vector<int>>{{2}, {1, 2}});
  CHECK_THROWS_WITH(rn::choose({{new0}, {}}, {}), Contains("rank-00001-of-00002.safetensors is seen by no rank"));
  CHECK_THROWS_WITH(rn::choose({{new0, old0}, {old1}}, 20), Contains("is seen by no rank"));
  CHECK_THROWS_WITH(rn::choose({{old0}, {old1}}, 20), Contains("no checkpoint of step 20; there are: 10"));
  CHECK_THROWS_WITH(rn::choose({{sighting(20, "b", {true, false}, {{0, 1}}), old0}, {old1}}, {}),
                    Contains("rank-00001-of-00002.safetensors is missing"));
  // The replacement is only half done, so the checkpoint that was there before counts.
  auto aside0 = sighting(20, "b", {true, false}, apart);
  aside0.in_place = false;
  const auto next0 = sighting(20, "c", {true, false}, apart);
  CHECK(rn::choose({{next0, aside0}, {new1}}, {})->id == "b");
  auto damaged = new0;
  damaged.error = "x/manifest.json: is damaged";
  CHECK_THROWS_WITH(rn::choose({{old0}, {damaged, old1}}, {}), Contains("rank 1: x/manifest.json"));
}
