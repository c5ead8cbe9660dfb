#pragma once

#include <ringlet/checkpoint.hpp>

namespace ringlet::native {

std::optional<std::uint64_t> load(Group& group, const std::filesystem::path& directory, Checkpoint& checkpoint, const LoadOptions& options);
std::optional<std::uint64_t> find_latest(Group& group, const std::filesystem::path& directory, const LoadOptions& options);

}  // namespace ringlet::native
