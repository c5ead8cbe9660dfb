#include "native/checkpoint/save.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <numeric>
#include <random>

#include "native/checkpoint/addends.hpp"
#include "native/checkpoint/exchange.hpp"
#include "native/checkpoint/file.hpp"
#include "native/checkpoint/file_writer.hpp"
#include "native/checkpoint/folders.hpp"
#include "native/checkpoint/manifest_json.hpp"

namespace ringlet::native {

namespace {

namespace fs = std::filesystem;

/// One save. A method that throws a failure which all ranks have agreed on has removed the save's files before. Where the group itself
/// fails, the files stay, because another rank may have passed the last agreement and may rely on them.
class Saving {
 public:
  Saving(const Exchange& exchange, fs::path directory, const Checkpoint& checkpoint, const GroupAddends& addends,
         const SaveOptions& options, const SaveHook& hook)
      : exchange_(exchange),
        directory_(std::move(directory)),
        checkpoint_(checkpoint),
        options_(options),
        hook_(hook),
        rank_(exchange.group().rank()),
        ranks_(exchange.group().size()),
        tensors_(with(group_tensors(checkpoint), addends.tensors)),
        file_name_(native::file_name(static_cast<std::size_t>(rank_), static_cast<std::size_t>(ranks_))) {}

  SaveReport run();

 private:
  void reach(SaveMoment moment) const {
    if (hook_) hook_(moment);
  }
  static std::vector<GroupTensor> with(std::vector<GroupTensor> tensors, const std::vector<GroupTensor>& more) {
    tensors.insert(tensors.end(), more.begin(), more.end());
    return tensors;
  }
  void choose_id();
  void write_tensors();
  Manifest gather_manifest() const;
  void gather_directories();
  void write_manifest(const Manifest& manifest) const;
  void take_place();
  void discard() const;
  void give_back() const;

  const Exchange& exchange_;
  const fs::path directory_;
  const Checkpoint& checkpoint_;
  const SaveOptions& options_;
  const SaveHook& hook_;
  const int rank_;
  const int ranks_;
  const std::vector<GroupTensor> tensors_;
  const std::string file_name_;
  std::string id_;
  fs::path temporary_;
  WrittenFile written_;
  std::vector<std::vector<int>> directories_;
  bool leads_ = false;      // whether this is the lowest rank in this directory, which writes the manifest and renames
  bool set_aside_ = false;  // a checkpoint of this step was there and has been renamed
};

void Saving::choose_id() {
  std::uint64_t number = 0;
  if (rank_ == 0) number = std::uint64_t{std::random_device()()} << 32 | std::random_device()();
  exchange_.group().broadcast(std::span(&number, 1), 0, exchange_.call());
  id_ = fmt::format("{:016x}", number);
  temporary_ = directory_ / saving_name(options_.step, id_);
}

void Saving::write_tensors() {
  const Status status = attempt([&] {
    make_directories(directory_);
    make_directories(temporary_);
    reach(SaveMoment::folder_created);
    written_ = write_pieces(temporary_ / file_name_, tensors_, place_pieces(tensors_, rank_, ranks_), rank_, options_.step,
                            [&] { reach(SaveMoment::block_written); });
    reach(SaveMoment::file_written);
  });
  exchange_.require_ok(status, [&] {
    // The leading rank is not known yet, so every rank tries to remove the folder, and the last one succeeds.
    std::error_code ignored;
    fs::remove(temporary_ / file_name_, ignored);
    fs::remove(temporary_, ignored);
  });
}

/// Finds out which ranks share a directory: those that see each other's files.
void Saving::gather_directories() {
  std::vector<int> seen;
  for (int rank = 0; rank < ranks_; ++rank) {
    std::error_code ignored;
    if (fs::exists(temporary_ / native::file_name(static_cast<std::size_t>(rank), static_cast<std::size_t>(ranks_)), ignored))
      seen.push_back(rank);
  }
  leads_ = !seen.empty() && seen.front() == rank_;
  std::vector<int> all;
  const auto texts = exchange_.gather(leads_ ? nlohmann::json(seen).dump() : "");
  for (int rank = 0; rank < ranks_; ++rank) {
    const std::string& text = texts[static_cast<std::size_t>(rank)];
    if (text.empty()) continue;
    directories_.push_back(
        read_from(exchange_.group(), rank, "a list of files", [&] { return nlohmann::json::parse(text).get<std::vector<int>>(); }));
    all.insert(all.end(), directories_.back().begin(), directories_.back().end());
  }
  std::sort(all.begin(), all.end());
  std::vector<int> each_once(static_cast<std::size_t>(ranks_));
  std::iota(each_once.begin(), each_once.end(), 0);
  // The file system may show different files to different ranks. All ranks have the same lists here, so they fail alike.
  exchange_.require_ok(attempt([&] {
                         if (all != each_once) throw_io_error(temporary_, "the ranks do not agree on which files they see here");
                       }),
                       [&] { discard(); });
}

Manifest Saving::gather_manifest() const {
  const nlohmann::json mine{written_.file.size, written_.file.checksum, written_.header_bytes};
  const auto texts = exchange_.gather(mine.dump());
  Manifest manifest{id_, options_.step, directories_, checkpoint_.values(), {}, {}};
  for (const GroupTensor& tensor : tensors_)
    manifest.tensors.push_back({tensor.entry->name, tensor.entry->values.dtype(), tensor.entry->full_shape, {}, tensor.addends});
  for (int rank = 0; rank < ranks_; ++rank) {
    std::uint64_t header = 0;
    manifest.files.push_back(read_from(exchange_.group(), rank, "the size and checksum of a file", [&] {
      const auto file = nlohmann::json::parse(texts[static_cast<std::size_t>(rank)]);
      header = unsigned_in(file.at(2), "header");
      return Manifest::File{unsigned_in(file.at(0), "size"), file.at(1).get<std::string>()};
    }));
    for (const PlacedPiece& piece : place_pieces(tensors_, rank, ranks_))
      manifest.tensors[piece.tensor].pieces.push_back({rank, piece.rows, header + piece.offset, piece.length});
  }
  return manifest;
}

void Saving::write_manifest(const Manifest& manifest) const {
  const Status status = attempt([&] {
    if (leads_) {
      write_file(temporary_ / kManifestName, to_text(manifest));
      sync_directory(temporary_);
    }
    reach(SaveMoment::manifest_written);
  });
  exchange_.require_ok(status, [&] { discard(); });
}

void Saving::take_place() {
  const fs::path place = directory_ / step_name(options_.step);
  const Status status = attempt([&] {
    if (!leads_) return;
    if (std::error_code ignored; fs::exists(place, ignored)) {
      rename_path(place, directory_ / replaced_name(options_.step, id_));
      set_aside_ = true;
      reach(SaveMoment::replaced_set_aside);
    }
    rename_path(temporary_, place);
    sync_directory(directory_);
    reach(SaveMoment::renamed);
  });
  exchange_.require_ok(status, [&] { give_back(); });
}

void Saving::discard() const {
  std::error_code ignored;
  if (leads_) fs::remove_all(temporary_, ignored);
}

/// Restores the former checkpoint. All ranks know that the new one is not valid, so none has removed an older one.
void Saving::give_back() const {
  if (!leads_) return;
  const fs::path place = directory_ / step_name(options_.step);
  std::error_code ignored;
  if (!fs::exists(temporary_, ignored)) fs::rename(place, temporary_, ignored);
  if (set_aside_) fs::rename(directory_ / replaced_name(options_.step, id_), place, ignored);
  discard();
}

SaveReport Saving::run() {
  choose_id();
  write_tensors();
  gather_directories();
  const Manifest manifest = gather_manifest();
  write_manifest(manifest);
  take_place();
  SaveReport report{directory_ / step_name(options_.step), written_.file.size, 0};
  for (const auto& file : manifest.files) report.total_bytes += file.size;
  // The new checkpoint is valid already; folders that cannot be removed now are removed by the next save.
  (void)attempt([&] {
    reach(SaveMoment::agreed);
    if (leads_) clean(directory_, options_.step, options_.keep);
    reach(SaveMoment::cleaned);
  });
  return report;
}

}  // namespace

SaveReport save(Group& group, const std::filesystem::path& directory, const Checkpoint& checkpoint, const SaveOptions& options,
                const SaveHook& hook) {
  const Exchange exchange(group, {.stream = options.stream, .timeout = options.timeout});
  exchange.require_ok(attempt([&] {
    if (options.keep < 1)
      throw InvalidArgument({Errc::invalid_argument, fmt::format("keep is {}; at least the new checkpoint must be kept", options.keep)});
    check(checkpoint, group.rank(), group.size());
  }));
  exchange.require_same("checkpoints", fmt::format("a save of step {}, keep {}\n{}{}", options.step, options.keep,
                                                   describe_tensors(checkpoint), describe_values(checkpoint)));
  const GroupAddends addends = gather_addends(exchange, checkpoint);
  return Saving(exchange, directory, checkpoint, addends, options, hook).run();
}

}  // namespace ringlet::native
