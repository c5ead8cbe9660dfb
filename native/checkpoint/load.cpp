#include "native/checkpoint/load.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_map>

#include "core/base/checksum.hpp"
#include "native/checkpoint/addends.hpp"
#include "native/checkpoint/file.hpp"
#include "native/checkpoint/find.hpp"
#include "native/checkpoint/transfer.hpp"

namespace ringlet::native {

namespace {

using Kind = CheckpointMismatch::Kind;

[[noreturn]] void mismatch(Kind kind, const std::string& tensor, std::string text) {
  throw CheckpointMismatch({Errc::mismatch, std::move(text)}, kind, tensor);
}

/// Finds every tensor of the checkpoint in the manifest. Throws where one is missing or differs, or the manifest has others. Addends may be
/// missing, or left.
std::vector<const Manifest::Tensor*> match(const std::vector<GroupTensor>& tensors, const Manifest& manifest) {
  std::unordered_map<std::string_view, const Manifest::Tensor*> saved;
  for (const auto& tensor : manifest.tensors) saved.emplace(tensor.name, &tensor);
  std::vector<const Manifest::Tensor*> matched;
  for (const GroupTensor& tensor : tensors) {
    const Checkpoint::Entry& entry = *tensor.entry;
    const auto it = saved.find(entry.name);
    if (it == saved.end())
      mismatch(Kind::not_saved, entry.name, fmt::format("the checkpoint of step {} has no tensor '{}'", manifest.step, entry.name));
    const Manifest::Tensor& there = *it->second;
    if (there.dtype != entry.values.dtype() || !(there.shape == entry.full_shape))
      mismatch(Kind::other_type, entry.name,
               fmt::format("'{}' is {} {} in the checkpoint of step {} and {} {} here", entry.name, name_of(there.dtype),
                           to_string(there.shape), manifest.step, name_of(entry.values.dtype()), to_string(entry.full_shape)));
    matched.push_back(&there);
    saved.erase(it);
  }
  for (const auto& tensor : manifest.tensors)
    if (saved.contains(tensor.name) && tensor.addends == 0)
      mismatch(Kind::not_loaded, tensor.name,
               fmt::format("the checkpoint of step {} has a tensor '{}' that is not loaded; add it, or load the state that was saved",
                           manifest.step, tensor.name));
  return matched;
}

void verify(const std::filesystem::path& path, const Manifest::File& expected) {
  const File file = File::open(path);
  if (const auto size = file.size(); size != expected.size)
    throw_io_error(path, fmt::format("is {} bytes long instead of {}; {}", size, expected.size, kDamaged));
  std::vector<std::byte> block(std::min<std::uint64_t>(kBlockBytes, expected.size));
  Checksum checksum;
  for (std::uint64_t done = 0; done < expected.size; done += block.size()) {
    block.resize(std::min<std::uint64_t>(kBlockBytes, expected.size - done));
    file.read(done, block);
    checksum.update(block);
  }
  if (const auto hex = checksum.hex(); hex != expected.checksum)
    throw_io_error(path, fmt::format("has the checksum {} instead of {}; {}", hex, expected.checksum, kDamaged));
}

/// Verifies every file that this rank reads, and those that it is the first rank to see, so that each file is verified by some rank.
void verify_files(const Found& found, const std::vector<Transfer>& transfers, int rank) {
  std::set<int> files;
  for (const Transfer& transfer : transfers)
    if (transfer.source == rank) files.insert(transfer.file);
  for (std::size_t file = 0; file < found.seen_by.size(); ++file)
    if (found.seen_by[file].front() == rank) files.insert(static_cast<int>(file));
  for (const int number : files) {
    const auto file = static_cast<std::size_t>(number);
    verify(found.folder / file_name(file, found.seen_by.size()), found.manifest.files[file]);
  }
}

std::string wanted_text(const LoadOptions& options) { return options.step ? fmt::format("step {}", *options.step) : "the newest step"; }

}  // namespace

std::optional<std::uint64_t> load(Group& group, const std::filesystem::path& directory, Checkpoint& checkpoint,
                                  const LoadOptions& options) {
  const Exchange exchange(group, {.stream = options.stream, .timeout = options.timeout});
  exchange.require_ok(attempt([&] { check(checkpoint, group.rank(), group.size()); }));
  exchange.require_same("checkpoints", fmt::format("a load of {}\n{}", wanted_text(options), describe_tensors(checkpoint)));
  const auto found = find(exchange, directory, options.step);
  if (!found) return std::nullopt;
  auto tensors = group_tensors(checkpoint);
  auto placed = match(tensors, found->manifest);
  AddendLoad addends(exchange, checkpoint, found->manifest);
  addends.append_to(tensors, placed);
  const auto transfers = plan_transfers(tensors, placed, found->seen_by, group.rank(), group.size());
  exchange.require_ok(attempt([&] {
    addends.take_memory();
    verify_files(*found, transfers, group.rank());
  }));
  move(exchange, transfers, tensors, *found);
  exchange.require_ok(attempt([&] { addends.hand_over(); }));
  checkpoint.set_values(found->manifest.values);
  return found->manifest.step;
}

std::optional<std::uint64_t> find_latest(Group& group, const std::filesystem::path& directory, const LoadOptions& options) {
  const Exchange exchange(group, {.stream = options.stream, .timeout = options.timeout});
  exchange.require_same("checkpoints", fmt::format("a look for {}\n", wanted_text(options)));
  const auto found = find(exchange, directory, options.step);
  return found ? std::optional(found->manifest.step) : std::nullopt;
}

}  // namespace ringlet::native
