#include "bindings/generator/surfaces.hpp"
#include "bindings/generator/text.hpp"
#include "core/optimizers/optimizer_table.hpp"
#include "core/plan/collective_table.hpp"

// Generates the C API's files from the tables: headers, definitions, and the list of functions that its test calls.
namespace ringlet::generator {

namespace {

std::string header(std::string_view about, std::string_view include, const std::string& body) {
  std::string text = "#pragma once\n\n/* " + std::string(kNotice) + " */\n\n";
  text += wrapped(about, "/** @file\n * ", " * ", " */") + "\n";
  text += "#include <" + std::string(include) + ">\n\n";
  return text + "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n" + body + "#ifdef __cplusplus\n}\n#endif\n";
}

std::string source(std::string_view include, const std::string& body) {
  return "// " + std::string(kNotice) + "\n#include <" + std::string(include) + ">\n\n" + body;
}

std::string doc(std::string_view text) { return wrapped(text, "/** ", " * ", " */"); }

// ---- dtypes

template <class Rows>
std::string enumeration(const Rows& rows) {
  std::vector<std::string> values;
  for (std::size_t i = 0; i < rows.size(); ++i) values.push_back("RINGLET_" + upper_case(rows[i].name) + " = " + std::to_string(i));
  const std::string one_line = "enum { " + joined(values, ", ") + " };\n";
  return one_line.size() <= kColumns ? one_line : "enum {\n  " + joined(values, ",\n  ") + "\n};\n";
}

std::string dtypes_header() {
  return header("Element types and operations.", "ringlet/c/language.h",
                doc("Element types. f16, bf16: two bytes each; complex64: two floats; complex128: two doubles; bool: one byte, 0 or 1.") +
                    enumeration(ringlet::detail::kDTypes) + "\n" + doc("Stands for no dtype in an option that names one.") +
                    "enum { RINGLET_NO_DTYPE = -1 };\n\n" +
                    doc("How two elements are reduced. Integers wrap; max and min give NaN if either is NaN; on bool sum and max are OR, "
                        "prod and min AND. The bitwise operations are for bool and integers.") +
                    enumeration(ringlet::detail::kReduceOps) + "\n");
}

// ---- collectives

std::string parameter(Argument argument) {
  switch (argument) {
    case Argument::op:
      return "int32_t op";
    case Argument::input:
    case Argument::root_input:
      return "const ringlet_tensor* input";
    case Argument::output:
    case Argument::root_output:
      return "const ringlet_tensor* output";
    case Argument::values:
      return "const ringlet_tensor* values";
    case Argument::counts:
      return "const int64_t* counts";
    case Argument::send_counts:
      return "const int64_t* send_counts";
    case Argument::receive_counts:
      return "const int64_t* receive_counts";
    case Argument::root:
      return "int32_t root";
  }
  return "";
}

/// Returns the expression that is passed to the C++ function for an argument.
std::string converted(Argument argument) {
  switch (argument) {
    case Argument::op:
      return "reduce_op(op)";
    case Argument::input:
      return R"(read_view(input, "input"))";
    case Argument::output:
      return R"(written_view(output, "output"))";
    case Argument::root_input:
      return "input_at(root, group, input)";
    case Argument::root_output:
      return "output_at(root, group, output)";
    case Argument::values:
      return R"(written_view(values, "values"))";
    case Argument::counts:
      return R"(per_rank(group, counts, "counts"))";
    case Argument::send_counts:
      return R"(per_rank(group, send_counts, "send_counts"))";
    case Argument::receive_counts:
      return R"(per_rank(group, receive_counts, "receive_counts"))";
    case Argument::root:
      return "root";
  }
  return "";
}

std::vector<std::string> parameters_of(const CollectiveFormFacts& form, bool is_async) {
  std::vector<std::string> all{"ringlet_group* group"};
  for (const Argument argument : form.arguments) all.push_back(parameter(argument));
  all.emplace_back("const ringlet_call_options* options");
  if (is_async) all.emplace_back("ringlet_work** work");
  return all;
}

std::string function_name(const CollectiveFormFacts& form, bool is_async) {
  return "ringlet_" + std::string(form.name) + (is_async ? "_async" : "");
}

std::string collectives_header() {
  std::string body;
  for (std::size_t i = 0; i < kCollectiveFormCount; ++i) {
    const CollectiveFormFacts& form = kCollectiveForms[i];
    body += doc(form.text) + "/** @{ */\n";
    for (const bool is_async : {false, true})
      body += call_text("RINGLET_API int32_t " + function_name(form, is_async), parameters_of(form, is_async), ";");
    body += "/** @} */\n";
    // No blank line separates a form from its `_v` form.
    if (i + 1 == kCollectiveFormCount || !kCollectiveForms[i + 1].name.ends_with("_v")) body += "\n";
  }
  return header(
      "Collectives of a group. Every rank of the group makes the same calls in the same order. Each returns when it has ended; its "
      "`_async` "
      "form returns once it is started: the tensors' elements are then borrowed until the work has ended. A mistake in the arguments is "
      "reported by that call or, where it is found later, by the work. A mistake between ranks (another operation, dtype or size) is "
      "RINGLET_MISMATCH on all, with a message that says what each of them called. `counts` has one number per rank of the group and is "
      "the "
      "same on every rank. `options` may be NULL.",
      "ringlet/c/group.h", body);
}

/// Returns the body of a function, which passes the C++ call to `run` or `start`.
std::string collective_body(const CollectiveFormFacts& form, bool is_async) {
  std::vector<std::string> arguments;
  for (const Argument argument : form.arguments) arguments.push_back(converted(argument));
  arguments.emplace_back("call_options(options)");
  const std::string head = is_async ? "  return start(" : "  return run(";
  const std::string first = is_async ? "__func__, group, work, " : "__func__, group, ", lambda = "[&](ringlet::Group& g) {";
  const std::string call = (is_async ? "return g." : "g.") + std::string(form.name) + (is_async ? "_async" : "");
  const std::string one_line = lambda + " " + call + "(" + joined(arguments, ", ") + "); });";
  if (head.size() + first.size() + one_line.size() <= kColumns) return head + first + one_line + "\n";
  if (head.size() + one_line.size() <= kColumns)
    return head + first.substr(0, first.size() - 1) + "\n" + std::string(head.size(), ' ') + one_line + "\n";
  return head + first + lambda + "\n" + call_text("    " + call, arguments, ";") + "  });\n";
}

std::string collectives_source() {
  std::string body = "#include \"bindings/c/calls.hpp\"\n\nusing namespace ringlet::c;\n";
  for (const CollectiveFormFacts& form : kCollectiveForms)
    for (const bool is_async : {false, true})
      body += std::string(is_async ? "" : "\n") +
              call_text("int32_t " + function_name(form, is_async), parameters_of(form, is_async), " {") + collective_body(form, is_async) +
              "}\n";
  return source("ringlet/c/collectives.h", body);
}

// ---- optimizers

std::string c_default(double value) { return number(value); }
std::string c_default(bool value) { return value ? "1" : "0"; }
std::string c_default(const std::array<double, 2>& values) { return number(values[0]) + ", " + number(values[1]); }

std::string field(double, const std::string& name) { return "double " + name + ";"; }
std::string field(bool, const std::string& name) { return "int32_t " + name + ";"; }
std::string field(const std::array<double, 2>&, const std::string& name) { return "double " + name + "[2];"; }

/// These return statements that copy an option: to_c() from the C++ struct `from` to the C struct `to`, to_cpp() the other way.
std::string to_c(double, const std::string& name) { return "  to." + name + " = from." + name + ";\n"; }
std::string to_c(bool, const std::string& name) { return to_c(0.0, name); }
std::string to_c(const std::array<double, 2>&, const std::string& name) { return to_c(0.0, name + "[0]") + to_c(0.0, name + "[1]"); }

std::string to_cpp(double, const std::string& name) { return to_c(0.0, name); }
std::string to_cpp(bool, const std::string& name) { return "  to." + name + " = from." + name + " != 0;\n"; }
std::string to_cpp(const std::array<double, 2>& values, const std::string& name) { return to_c(values, name); }

template <class Row>
std::string prefix_of(const Row& row) {
  return "ringlet_" + lower_case(row.name);
}

template <class Row>
std::string init_function(const Row& row, const std::string& tail) {
  return call_text("int32_t " + prefix_of(row) + "_options_init", {prefix_of(row) + "_options* options", "size_t struct_size"}, tail);
}

template <class Row>
std::string create_function(const Row& row, const std::string& tail) {
  return call_text("int32_t " + prefix_of(row) + "_create",
                   {"double learning_rate", "const " + prefix_of(row) + "_options* options", "ringlet_optimizer** optimizer"}, tail);
}

template <class Row>
std::string options_struct(const Row& row) {
  const typename Row::Options defaults;
  std::vector<std::pair<std::string, std::string>> fields{{"size_t struct_size;", "set by the function that fills in the defaults"}};
  for_each_option(row, [&](const auto& option) {
    const auto& value = defaults.*option.value;
    fields.emplace_back(field(value, std::string(option.name)),
                        c_default(value) + (option.text.empty() ? "" : "; " + std::string(option.text)));
  });
  fields.emplace_back("int32_t state_dtype;", "RINGLET_NO_DTYPE: the gradient's own");
  std::size_t width = 0;
  for (const auto& each : fields) width = std::max(width, each.first.size());
  std::string text = doc("Options of " + prefix_of(row) + "_create.") + "typedef struct " + prefix_of(row) + "_options {\n";
  for (const auto& [declaration, comment] : fields)
    text += "  " + declaration + std::string(width + 1 - declaration.size(), ' ') + "/**< " + comment + " */\n";
  return text + "} " + prefix_of(row) + "_options;\n\n";
}

std::string optimizers_header() {
  std::string body =
      doc("An optimizer, which changes parameters by their gradients.") + "typedef struct ringlet_optimizer ringlet_optimizer;\n\n";
  for_each_optimizer([&](const auto& row) { body += options_struct(row); });
  body += doc("Each fills in the defaults; struct_size must be `sizeof *options`.") + "/** @{ */\n";
  for_each_optimizer([&](const auto& row) { body += "RINGLET_API " + init_function(row, ";"); });
  body += "/** @} */\n\n" + doc("Each makes an optimizer; RINGLET_INVALID_ARGUMENT if an option is out of its bounds.") + "/** @{ */\n";
  for_each_optimizer([&](const auto& row) { body += "RINGLET_API " + create_function(row, ";"); });
  body += "/** @} */\n\n";
  return header("The options of each optimizer, and the functions that make optimizers. Formulas and bounds are given in optimizers.hpp.",
                "ringlet/c/base.h", body);
}

template <class Row>
std::string conversions(const Row& row) {
  const typename Row::Options defaults;
  const std::string cpp = "ringlet::" + std::string(row.name) + "Options", c = prefix_of(row) + "_options";
  std::string into_c = "  " + c + " to{};\n  to.struct_size = sizeof to;\n", into_cpp = "  " + cpp + " to;\n";
  for_each_option(row, [&](const auto& option) {
    into_c += to_c(defaults.*option.value, std::string(option.name));
    into_cpp += to_cpp(defaults.*option.value, std::string(option.name));
  });
  into_c += "  to.state_dtype = RINGLET_NO_DTYPE;\n";
  into_cpp += "  to.state_dtype = optional_dtype(from.state_dtype, \"state_dtype\");\n";
  return "\n" + c + " to_c(const " + cpp + "& from) {\n" + into_c + "  return to;\n}\n" + cpp + " to_cpp(const " + c + "& from) {\n" +
         into_cpp + "  return to;\n}\n";
}

std::string optimizers_source() {
  std::string body =
      "#include \"bindings/c/arguments.hpp\"\n#include \"bindings/c/handles.hpp\"\n\nusing namespace ringlet::c;\n\nnamespace {\n";
  for_each_optimizer([&](const auto& row) { body += conversions(row); });
  body += R"(
template <class Optimizer, class CppOptions, class Options>
int32_t create(const char* call, double learning_rate, const Options* options, ringlet_optimizer** optimizer) noexcept {
  return guarded(call, [&] {
    give(optimizer, "optimizer",
         [&] { return std::make_unique<Optimizer>(learning_rate, to_cpp(options_or(options, to_c(CppOptions{})))); });
  });
}

}  // namespace
)";
  for_each_optimizer([&](const auto& row) {
    const std::string name = "ringlet::" + std::string(row.name);
    body += "\n" + init_function(row, " {") + "  return init_options(__func__, options, struct_size, to_c(" + name + "Options{}));\n}\n";
    body += create_function(row, " {") + "  return create<" + name + ", " + name +
            "Options>(__func__, learning_rate, options, optimizer);\n}\n";
  });
  return source("ringlet/c/optimizer_kinds.h", body);
}

// ---- tests

std::string function_list() {
  std::string text = "// " + std::string(kNotice) + "\n";
  for (const CollectiveFormFacts& form : kCollectiveForms) text += "FUNCTION_AND_ASYNC(" + function_name(form, false) + "),\n";
  for_each_optimizer(
      [&](const auto& row) { text += "FUNCTION(" + prefix_of(row) + "_options_init),\nFUNCTION(" + prefix_of(row) + "_create),\n"; });
  return text;
}

}  // namespace

std::vector<GeneratedFile> c_files() {
  return {{"include/ringlet/c/dtypes.h", dtypes_header()},
          {"include/ringlet/c/collectives.h", collectives_header()},
          {"include/ringlet/c/optimizer_kinds.h", optimizers_header()},
          {"bindings/c/collectives.cpp", collectives_source()},
          {"bindings/c/optimizer_kinds.cpp", optimizers_source()},
          {"tests/c/table_functions.inc", function_list()}};
}

}  // namespace ringlet::generator
