#pragma once

#include <functional>
#include <optional>
#include <ringlet/group.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/address.hpp"
#include "native/world.hpp"

namespace ringlet::native {

/// Looks a variable up; nothing where it is not set or empty.
using Variables = std::function<std::optional<std::string>(std::string_view name)>;

/// The process' environment.
std::optional<std::string> process_variable(std::string_view name);

/// The group's token; empty where none is set. Throws `InvalidArgument` where it is too short or its file cannot be read.
std::string read_token(const InitOptions& options, const Variables& variables);

/// What init() shall do: `InitOptions` first, then the variables. Throws `InvalidArgument` that names the variable, its value, and what is
/// missing. Nothing configured: a world of one, or, if strict, an error.
WorldConfig make_world_config(const InitOptions& options, const Variables& variables);

/// A JSON list with one list of "host:port" per rank, MLX's format. Throws `InvalidArgument` with file, rank and reason.
std::vector<std::vector<Address>> parse_hostfile(const std::string& path, std::string_view text);

}  // namespace ringlet::native
