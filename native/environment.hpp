#pragma once

#include <ringlet/group.hpp>
#include <string>

#include "native/setting.hpp"
#include "native/world_config.hpp"

namespace ringlet::native {

/// The group's token; empty where none is set. Throws `InvalidArgument` where it is too short or its file cannot be read.
std::string read_token(const InitOptions& options, const Variables& variables);

/// Makes the configuration for init(). `InitOptions` come first, then the variables. Throws `InvalidArgument` that names the variable, its
/// value, and what is missing. Where nothing is configured, the result is a world of one rank, or, if strict, an error.
WorldConfig make_world_config(const InitOptions& options, const Variables& variables);

}  // namespace ringlet::native
