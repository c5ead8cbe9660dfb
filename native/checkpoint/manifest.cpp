#include "native/checkpoint/manifest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>

#include "core/base/arithmetic.hpp"
#include "core/base/checksum.hpp"
#include "native/checkpoint/manifest_json.hpp"

namespace ringlet::native {

namespace {

using nlohmann::json;

constexpr std::string_view kPrefix = R"({"checksum":")";
constexpr std::string_view kFormat = "ringlet checkpoint";
constexpr std::uint64_t kVersion = 1;
constexpr std::size_t kMaxFiles = 65'536;

json json_of(const Manifest::Tensor& tensor) {
  json pieces = json::array();
  for (const auto& piece : tensor.pieces)
    pieces.push_back(
        {{"file", piece.file}, {"rows", {piece.rows.begin, piece.rows.end}}, {"offset", piece.offset}, {"length", piece.length}});
  const auto extents = tensor.shape.extents();
  json entry{{"name", tensor.name},
             {"dtype", name_of(tensor.dtype)},
             {"shape", std::vector<std::int64_t>(extents.begin(), extents.end())},
             {"pieces", std::move(pieces)}};
  if (tensor.addends > 0) entry["addends"] = tensor.addends;
  return entry;
}

void check_hexadecimal(const std::string& digits, std::size_t length, const char* what) {
  if (digits.size() != length || digits.find_first_not_of("0123456789abcdef") != std::string::npos)
    refuse_manifest(fmt::format("'{}' is '{}'; it must be {} hexadecimal digits", what, digits, length));
}

std::vector<Manifest::File> parse_files(const json& list) {
  if (list.empty() || list.size() > kMaxFiles)
    refuse_manifest(fmt::format("it lists {} files; 1 to {} are possible", list.size(), kMaxFiles));
  std::vector<Manifest::File> files;
  for (const json& entry : list) {
    Manifest::File file{unsigned_member(entry, "size"), text_member(entry, "xxh3_128")};
    check_hexadecimal(file.checksum, Checksum::kDigits, "xxh3_128");
    if (const auto& name = text_member(entry, "name"); name != file_name(files.size(), list.size()))
      refuse_manifest(fmt::format("file {} is called '{}' instead of '{}'", files.size(), name, file_name(files.size(), list.size())));
    files.push_back(std::move(file));
  }
  return files;
}

/// Reads the directories; every rank has to be in exactly one of them.
std::vector<std::vector<int>> parse_directories(const json& list, std::size_t ranks) {
  std::vector<bool> placed(ranks, false);
  std::vector<std::vector<int>> directories;
  std::size_t count = 0;
  for (const json& entry : list) {
    if (!entry.is_array() || entry.empty()) refuse_manifest("an entry of 'directories' is no list of ranks");
    auto& directory = directories.emplace_back();
    for (const json& number : entry) {
      const std::size_t rank = unsigned_in(number, "directories", ranks - 1);
      if (placed[rank]) refuse_manifest(fmt::format("rank {} is in two directories", rank));
      placed[rank] = true;
      ++count;
      directory.push_back(static_cast<int>(rank));
    }
  }
  if (count != ranks) refuse_manifest(fmt::format("{} of {} ranks are in directories", count, ranks));
  return directories;
}

Shape parse_shape(const std::string& name, const json& list, DType dtype) {
  if (list.size() > Shape::kMaxAxes) refuse_manifest(fmt::format("'{}' has {} axes", name, list.size()));
  std::vector<std::int64_t> extents;
  for (const json& extent : list)
    extents.push_back(static_cast<std::int64_t>(unsigned_in(extent, "shape", std::numeric_limits<std::int64_t>::max())));
  if (!checked_bytes(extents, size_of(dtype))) refuse_manifest(fmt::format("'{}' has an impossible shape", name));
  return Shape(std::span<const std::int64_t>(extents));
}

Manifest::Piece parse_piece(const std::string& name, const json& entry, const std::vector<Manifest::File>& files) {
  constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  const json& rows = list_member(entry, "rows");
  if (rows.size() != 2) refuse_manifest(fmt::format("a piece of '{}' has {} row bounds instead of 2", name, rows.size()));
  Manifest::Piece piece{
      static_cast<int>(unsigned_member(entry, "file", files.size() - 1)),
      {static_cast<std::int64_t>(unsigned_in(rows[0], "rows", kMax)), static_cast<std::int64_t>(unsigned_in(rows[1], "rows", kMax))},
      unsigned_member(entry, "offset"),
      unsigned_member(entry, "length")};
  const std::uint64_t size = files[static_cast<std::size_t>(piece.file)].size;
  if (piece.offset > size || piece.length > size - piece.offset)
    refuse_manifest(fmt::format("a piece of '{}' is {} bytes from {} on in a file of {}", name, piece.length, piece.offset, size));
  return piece;
}

/// Reads how many addends a tensor consists of: that many pieces, all of one length.
void parse_addends(const json& entry, Manifest::Tensor& tensor) {
  tensor.addends = unsigned_member(entry, "addends");
  const auto is_as_long = [&](const Manifest::Piece& piece) { return piece.rows.count() == tensor.pieces.front().rows.count(); };
  if (tensor.addends == 0 || tensor.addends != tensor.pieces.size() || tensor.dtype != DType::f32 || tensor.shape.axes() != 1 ||
      !std::all_of(tensor.pieces.begin(), tensor.pieces.end(), is_as_long))
    refuse_manifest(fmt::format("the {} pieces of '{}' are not {} addends", tensor.pieces.size(), tensor.name, tensor.addends));
}

Manifest::Tensor parse_tensor(const json& entry, const std::vector<Manifest::File>& files) {
  Manifest::Tensor tensor;
  tensor.name = text_member(entry, "name");
  const auto dtype = find_dtype(text_member(entry, "dtype"));
  if (!dtype) refuse_manifest(fmt::format("'{}' is of the unknown dtype '{}'", tensor.name, text_member(entry, "dtype")));
  tensor.dtype = *dtype;
  tensor.shape = parse_shape(tensor.name, list_member(entry, "shape"), *dtype);
  const std::uint64_t bytes = tensor.shape.count() * size_of(*dtype);
  const std::int64_t rows = tensor.shape.axes() == 0 ? 1 : tensor.shape[0];
  std::int64_t next = 0;
  for (const json& piece_entry : list_member(entry, "pieces")) {
    const auto piece = parse_piece(tensor.name, piece_entry, files);
    if (bytes == 0 || piece.rows.begin != next || piece.rows.end <= next || piece.rows.end > rows)
      refuse_manifest(
          fmt::format("the rows {} to {} of '{}' do not follow row {} of {}", piece.rows.begin, piece.rows.end, tensor.name, next, rows));
    if (piece.length != static_cast<std::uint64_t>(piece.rows.count()) * (bytes / static_cast<std::uint64_t>(rows)))
      refuse_manifest(fmt::format("{} rows of '{}' are {} bytes long", piece.rows.count(), tensor.name, piece.length));
    next = piece.rows.end;
    tensor.pieces.push_back(piece);
  }
  if (bytes > 0 && next != rows) refuse_manifest(fmt::format("the rows from {} on of '{}' are missing", next, tensor.name));
  if (entry.contains("addends")) parse_addends(entry, tensor);
  return tensor;
}

Manifest parse_document(const json& document) {
  if (const auto& format = text_member(document, "format"); format != kFormat)
    refuse_manifest(fmt::format("its format is '{}' instead of '{}'", format, kFormat));
  if (const auto version = unsigned_member(document, "version"); version != kVersion)
    refuse_manifest(fmt::format("its version is {}; this Ringlet reads version {}", version, kVersion));
  Manifest manifest;
  manifest.id = text_member(document, "id");
  check_hexadecimal(manifest.id, 16, "id");
  manifest.step = unsigned_member(document, "step");
  manifest.files = parse_files(list_member(document, "files"));
  manifest.directories = parse_directories(list_member(document, "directories"), manifest.files.size());
  for (const auto& [name, value] : member(document, "values", json::value_t::object).items())
    manifest.values.emplace(name, value_from_json(name, value));
  std::unordered_set<std::string> names;
  for (const json& entry : list_member(document, "tensors")) {
    manifest.tensors.push_back(parse_tensor(entry, manifest.files));
    const auto& name = manifest.tensors.back().name;
    if (!names.insert(name).second) refuse_manifest(fmt::format("the tensor '{}' stands in it twice", name));
  }
  return manifest;
}

}  // namespace

std::string file_name(std::size_t rank, std::size_t ranks) { return fmt::format("rank-{:05}-of-{:05}.safetensors", rank, ranks); }

std::string to_text(const Manifest& manifest) {
  json files = json::array();
  for (const auto& file : manifest.files)
    files.push_back({{"name", file_name(files.size(), manifest.files.size())}, {"size", file.size}, {"xxh3_128", file.checksum}});
  json values = json::object();
  for (const auto& [name, value] : manifest.values) values[name] = to_json(value);
  json tensors = json::array();
  for (const auto& tensor : manifest.tensors) tensors.push_back(json_of(tensor));
  const json document{{"format", kFormat},
                      {"version", kVersion},
                      {"id", manifest.id},
                      {"step", manifest.step},
                      {"ranks", manifest.files.size()},
                      {"directories", manifest.directories},
                      {"values", std::move(values)},
                      {"files", std::move(files)},
                      {"tensors", std::move(tensors)}};
  const std::string rest = "\",\n" + document.dump(1).substr(2) + "\n";
  std::string text = std::string(kPrefix) + checksum_of(rest) + rest;
  if (text.size() > kMaxManifestBytes)
    throw InvalidArgument({Errc::invalid_argument,
                           fmt::format("the checkpoint's manifest would be {} bytes long; at most {} are possible; save fewer tensors",
                                       text.size(), kMaxManifestBytes)});
  return text;
}

Manifest parse_manifest(std::string_view text) {
  if (text.size() < kPrefix.size() + Checksum::kDigits || text.substr(0, kPrefix.size()) != kPrefix)
    refuse_manifest(fmt::format("it is no manifest of a Ringlet checkpoint, or its beginning is damaged; {}", kDamaged));
  const auto written = text.substr(kPrefix.size(), Checksum::kDigits);
  const std::string computed = checksum_of(text.substr(kPrefix.size() + Checksum::kDigits));
  if (written != computed) refuse_manifest(fmt::format("its checksum is {} instead of {}; {}", computed, written, kDamaged));
  const json document = json::parse(text, nullptr, false);
  if (document.is_discarded()) refuse_manifest("it is not JSON");
  return parse_document(document);
}

}  // namespace ringlet::native
