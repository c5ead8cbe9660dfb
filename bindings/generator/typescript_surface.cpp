#include <ringlet/average_options.hpp>
#include <ringlet/wire.hpp>
#include "bindings/generator/surfaces.hpp"
#include "bindings/generator/text.hpp"
#include "core/optimizers/optimizer_table.hpp"

#include "core/plan/collective_table.hpp"

// Generates the npm package's files from the tables.
namespace ringlet::generator {

namespace {

std::string quoted(std::string_view text) { return "'" + std::string(text) + "'"; }

std::string constant(const std::string& name, std::string_view about, const std::vector<std::string>& items) {
  std::string text = "\n" + wrapped(about, "/** ", " * ", " */") + "export const " + name + " = [";
  const std::string one_line = joined(items, ", ");
  if (text.size() - text.rfind('\n') - 1 + one_line.size() + std::string_view("] as const;").size() <= kColumns)
    return text + one_line + "] as const;\n";
  for (const std::string& item : items) text += "\n  " + item + ",";
  return text + "\n] as const;\n";
}

std::string_view name_of(ElementKind kind) {
  switch (kind) {
    case ElementKind::boolean:
      return "boolean";
    case ElementKind::unsigned_integer:
      return "unsigned_integer";
    case ElementKind::signed_integer:
      return "signed_integer";
    case ElementKind::ieee_float:
      return "ieee_float";
    case ElementKind::brain_float:
      return "brain_float";
    case ElementKind::complex:
      return "complex";
  }
  return "";
}

std::string tables() {
  std::vector<std::string> dtypes, ops, blocks, forms, in_place, formulas;
  for (const ringlet::detail::DTypeFacts& facts : ringlet::detail::kDTypes)
    dtypes.push_back("{ name: " + quoted(facts.name) + ", kind: " + quoted(name_of(facts.kind)) +
                     ", bytes: " + std::to_string(facts.bytes) + " }");
  for (const ringlet::detail::ReduceOpFacts& facts : ringlet::detail::kReduceOps) ops.push_back(quoted(facts.name));
  for (const ringlet::detail::BlockFormatFacts& facts : ringlet::detail::kBlockFormats) blocks.push_back(quoted(facts.name));
  for (const CollectiveFormFacts& form : kCollectiveForms) {
    forms.push_back(quoted(form.name));
    const bool has_buffers = form.arguments.begin() != form.arguments.end();
    if (has_buffers && facts_of(form.kind).in_place == InPlace::whole) in_place.push_back(quoted(form.name));
  }
  for_each_optimizer([&](const auto& row) { formulas.push_back(quoted(row.name)); });
  return "// " + std::string(kNotice) + "\n" +
         constant("dtypeTable", "Element types, in the order of their numbers on the wire and in the core.", dtypes) +
         constant("reduceOps", "How elements are reduced, in the order of their numbers on the wire and in the core.", ops) +
         constant("blockFormats", "The formats of blocks in which gradients cross the network, in the order of their numbers in the core.",
                  blocks) +
         "\n/** The number of the first format of blocks among those of the wires. */\nexport const firstBlocks = " +
         std::to_string(ringlet::kFirstBlockFormat) + ";\n" +
         constant("collectiveForms", "The collectives, in the order of their numbers in the core. Those with `_v` take counts.", forms) +
         constant("inPlaceForms", "The collectives for which the core takes one buffer as input and output.", in_place) +
         constant("formulas", "The optimizers' classes.", formulas);
}

std::string ts_default(double value) { return number(value); }
std::string ts_default(bool value) { return value ? "true" : "false"; }
std::string ts_default(const std::array<double, 2>& values) { return "[" + number(values[0]) + ", " + number(values[1]) + "]"; }

std::string type_of(double) { return "number"; }
std::string type_of(bool) { return "boolean"; }
std::string type_of(const std::array<double, 2>&) { return "readonly [number, number]"; }

/// These return an option as an element, or several, of the list of numbers that the core takes.
std::string as_number(double, const std::string& name) { return name; }
std::string as_number(bool, const std::string& name) { return name + " ? 1 : 0"; }
std::string as_number(const std::array<double, 2>&, const std::string& name) { return "..." + name; }

template <class Row>
std::string optimizer_class(const Row& row) {
  const typename Row::Options defaults;
  const std::string name(row.name);
  std::string fields;
  std::vector<std::string> read, numbers;
  for_each_option(row, [&](const auto& option) {
    const auto& value = defaults.*option.value;
    const std::string camel = camel_case(option.name);
    fields +=
        "  /** " + sentence(ts_default(value) + " unless given" + (option.text.empty() ? "" : "; " + std::string(option.text))) + " */\n";
    fields += "  readonly " + camel + "?: " + type_of(value) + " | undefined;\n";
    read.push_back(camel + " = " + ts_default(value));
    numbers.push_back(as_number(value, camel));
  });
  read.emplace_back("stateDtype");
  std::string unpacked = "    const { " + joined(read, ", ") + " } = options;\n";
  if (unpacked.size() > kColumns + 1) unpacked = "    const {\n      " + joined(read, ",\n      ") + ",\n    } = options;\n";
  return "\n/** Options of " + name + ". */\nexport interface " + name + "Options extends OptimizerOptions {\n" + fields +
         "}\n\nexport class " + name + " extends Optimizer {\n  constructor(learningRate: LearningRate, options: " + name +
         "Options = {}) {\n" + unpacked + "    super('" + name + "', learningRate, [" + joined(numbers, ", ") + "], stateDtype);\n  }\n}\n";
}

std::string optimizers() {
  std::string text =
      "// " + std::string(kNotice) + "\n" + "import { type LearningRate, Optimizer, type OptimizerOptions } from './optimizer.js';\n";
  for_each_optimizer([&](const auto& row) { text += optimizer_class(row); });
  return text;
}

}  // namespace

std::vector<GeneratedFile> typescript_files() { return {{"wasm/src/tables.ts", tables()}, {"wasm/src/optimizers.ts", optimizers()}}; }

}  // namespace ringlet::generator
