// Reads machine files: TOML tables checked against the table of keys, and files based on other
// files.
//
// Only this file uses the TOML library. Reading records where each key was set, so that errors
// about contradictory keys name file and line too.
#include <base/check.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sim/config_check.h>
#include <sim/config_file.h>
#include <sim/config_keys.h>
#include <sim/nearest.h>
#include <sim/plugins.h>
#include <toml++/toml.h>

#include <bit>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>

namespace stele::sim {
namespace {

namespace fs = std::filesystem;
using source_positions = std::map<std::string, std::string>;  // key path to "file:line"

std::unexpected<error> wrong(const std::string& at, const std::string& sentence) {
  return base::fail(errc::invalid_argument, at.empty() ? sentence : at + ": " + sentence);
}

const char* kind_of(const toml::node& n) {
  switch (n.type()) {
    case toml::node_type::string:
      return "a string";
    case toml::node_type::integer:
      return "a whole number";
    case toml::node_type::floating_point:
      return "a fraction";
    case toml::node_type::boolean:
      return "true or false";
    case toml::node_type::table:
      return "a table";
    case toml::node_type::array:
      return "an array";
    default:
      return "a date or time";
  }
}

// Describes the values that a key accepts, as the end of a sentence.
struct wish {
  const config_key& key;
  std::string operator()(bool*) const { return "true or false"; }
  std::string operator()(unsigned*) const { return whole(); }
  std::string operator()(std::uint64_t*) const { return whole(); }
  std::string operator()(double*) const {
    return fmt::format("a number from {} to {}", key.within.least, key.within.most);
  }
  std::string operator()(std::string*) const {
    return key.one_of.empty() ? "a string in quotes"
                              : fmt::format("one of {}", fmt::join(key.one_of, ", "));
  }
  std::string operator()(std::vector<std::string>*) const { return "an array of strings"; }
  template <class T>
  std::string operator()(std::vector<T>*) const {
    return "an array of tables";
  }
  std::string whole() const {
    return fmt::format("a {} from {:.0f} to {:.0f}",
                       key.within.power_of_two ? "power of two" : "whole number", key.within.least,
                       key.within.most);
  }
};

std::string wish_of(const config_key& k) {
  return std::visit(wish{k}, k.where);
}

result<> read_table(const toml::table& t, const std::string& prefix,
                    std::span<const config_key> keys, const std::string& file,
                    source_positions& where);

// Checks a value and stores it in the machine. `at` is the value's position for errors, `file` the
// file that contains nested tables.
struct assignment {
  const config_key& key;
  const toml::node& value;
  const std::string& file;
  std::string at;

  result<> operator()(bool* to) const {
    if (!value.is_boolean()) return of_kind();
    *to = value.as_boolean()->get();
    return {};
  }
  result<> operator()(unsigned* to) const { return whole(*to); }
  result<> operator()(std::uint64_t* to) const { return whole(*to); }
  result<> operator()(double* to) const {
    if (!value.is_number()) return of_kind();
    const double v = *value.value<double>();
    if (!(v >= key.within.least && v <= key.within.most))
      return out_of_bounds(fmt::format("{}", v));
    *to = v;
    return {};
  }
  result<> operator()(std::string* to) const {
    if (!value.is_string()) return of_kind();
    const std::string& v = value.as_string()->get();
    if (!key.one_of.empty() && std::ranges::find(key.one_of, v) == key.one_of.end())
      return wrong(at, fmt::format("{} is '{}'; the nearest right name is '{}' (of {})", key.path,
                                   v, nearest(v, key.one_of), fmt::join(key.one_of, ", ")));
    *to = v;
    return {};
  }
  result<> operator()(std::vector<std::string>* to) const {
    if (!value.is_array()) return of_kind();
    std::vector<std::string> texts;
    for (const toml::node& one : *value.as_array()) {
      if (!one.is_string()) return of_kind();
      texts.push_back(one.as_string()->get());
    }
    *to = std::move(texts);
    return {};
  }
  template <class T>
  result<> operator()(std::vector<T>* to) const {
    if (!value.is_array()) return of_kind();
    std::vector<T> rows;
    for (const toml::node& one : *value.as_array()) {
      if (!one.is_table()) return of_kind();
      if (auto read = row(one, rows.emplace_back()); !read) return read;
    }
    *to = std::move(rows);
    return {};
  }

  template <class T>
  result<> whole(T& to) const {
    if (!value.is_integer()) return of_kind();
    const std::int64_t v = value.as_integer()->get();
    const bool odd = key.within.power_of_two && !std::has_single_bit(static_cast<std::uint64_t>(v));
    const auto as_number = static_cast<double>(v);
    if (as_number < key.within.least || as_number > key.within.most || odd)
      return out_of_bounds(fmt::format("{}", v));
    to = static_cast<T>(v);
    return {};
  }
  // One element of a list. Names in it have no default and must be given.
  template <class T>
  result<> row(const toml::node& one, T& into) const {
    const std::vector<config_key> keys = keys_of(into);
    source_positions unused;
    if (auto read = read_table(*one.as_table(), "", keys, file, unused); !read) {
      read.error().message += fmt::format(" (in {})", key.path);
      return read;
    }
    for (const config_key& k : keys)
      if (!k.one_of.empty() && std::get<std::string*>(k.where)->empty())
        return wrong(
            fmt::format("{}:{}", file, one.source().begin.line),
            fmt::format("{} has an entry without {}; give {}", key.path, k.path, wish_of(k)));
    return {};
  }
  result<> of_kind() const {
    return wrong(at, fmt::format("{} is {}; give {}", key.path, kind_of(value), wish_of(key)));
  }
  result<> out_of_bounds(const std::string& v) const {
    return wrong(at, fmt::format("{} is {}; give {}", key.path, v, wish_of(key)));
  }
};

std::vector<std::string> paths_of(std::span<const config_key> keys, bool with_sections) {
  std::vector<std::string> paths;
  for (const config_key& k : keys) {
    const std::string section = k.path.substr(0, k.path.find('.'));
    if (with_sections && section != k.path &&
        (paths.empty() || !paths.back().starts_with(section + '.')))
      paths.push_back(section);
    paths.push_back(k.path);
  }
  return paths;
}

std::string no_such_key(const std::string& path, std::span<const config_key> keys, bool is_table) {
  const auto paths = paths_of(keys, is_table);
  return fmt::format("there is no {} '{}'; the nearest right one is '{}'",
                     is_table ? "section" : "key", path, nearest(path, paths));
}

bool is_section(const std::string& path, std::span<const config_key> keys) {
  return std::ranges::any_of(keys,
                             [&](const config_key& k) { return k.path.starts_with(path + '.'); });
}

result<> read_table(const toml::table& t, const std::string& prefix,
                    std::span<const config_key> keys, const std::string& file,
                    source_positions& where) {
  for (const auto& [name, value] : t) {
    const std::string path = prefix + std::string(name.str());
    const std::string at = fmt::format("{}:{}", file, name.source().begin.line);
    const auto key = std::ranges::find(keys, path, &config_key::path);
    if (key != keys.end()) {
      if (auto put = std::visit(assignment{*key, value, file, at}, key->where); !put) return put;
      where[path] = at;
    } else if (is_section(path, keys)) {
      if (!value.is_table())
        return wrong(at, fmt::format("{} is {}; give a section, [{}]", path, kind_of(value), path));
      if (auto read = read_table(*value.as_table(), path + '.', keys, file, where); !read)
        return read;
    } else {
      return wrong(at, no_such_key(path, keys, value.is_table()));
    }
  }
  return {};
}

result<toml::table> parse(const std::string& text, const std::string& file) {
  try {
    return toml::parse(text);
  } catch (const toml::parse_error& e) {
    return wrong(fmt::format("{}:{}", file, e.source().begin.line),
                 fmt::format("this is no TOML: {}; correct the line", e.description()));
  }
}

// Loads what the value of `plugins` names, relative to a folder, and puts its full paths in place.
// A value that is no array of strings stays, for the check of its type.
result<> load_plugins(toml::node* named, const fs::path& folder, const std::string& at) {
  if (named == nullptr || !named->is_array()) return {};
  for (toml::node& one : *named->as_array()) {
    if (!one.is_string()) return {};
    std::string& path = one.as_string()->get();
    auto loaded = load_plugin((folder / path).string());
    if (!loaded) return base::fail(loaded.error().code, at + ": " + loaded.error().message);
    path = std::move(*loaded);
  }
  return {};
}

result<std::string> content_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::stringstream content;
  if (fs::is_directory(path) || !in || !(content << in.rdbuf()))
    return base::fail(
        fs::exists(path) ? errc::io : errc::not_found,
        fmt::format(
            "cannot read the machine file {}; check that it exists, is readable and not empty",
            path));
  return content.str();
}

// Reads a file and its bases. `chain` holds the files being read, to detect a cycle.
struct stack_of_files {
  machine_config machine;
  source_positions where;
  std::vector<fs::path> chain;

  result<> read(const std::string& text, const std::string& file) {
    auto table = parse(text, file);
    if (!table) return std::unexpected(table.error());
    chain.push_back(fs::weakly_canonical(file));
    if (const toml::node* named = table->get("base"))
      if (auto done = read_base(*named, file); !done) return done;
    table->erase("base");
    if (toml::node* named = table->get("plugins"))
      if (auto loaded = load_plugins(named, fs::path(file).parent_path(),
                                     fmt::format("{}:{}", file, named->source().begin.line));
          !loaded)
        return loaded;
    const auto keys = keys_of(machine);
    return read_table(*table, "", keys, file, where);
  }

  result<> read_base(const toml::node& named, const std::string& file) {
    const std::string at = fmt::format("{}:{}", file, named.source().begin.line);
    if (!named.is_string())
      return wrong(at, fmt::format("base is {}; give the name of a machine file", kind_of(named)));
    const std::string path = (fs::path(file).parent_path() / named.as_string()->get()).string();
    if (std::ranges::find(chain, fs::weakly_canonical(path)) != chain.end())
      return wrong(
          at,
          fmt::format("base leads back to {}, which is being read; take one base out of the circle",
                      path));
    const auto text = content_of(path);
    if (!text) return base::fail(text.error().code, at + ": base: " + text.error().message);
    return read(*text, path);
  }
};

result<> check(const machine_config& m, const source_positions& where) {
  const auto found = find_config_conflict(m);
  if (!found) return {};
  const auto known =
      std::ranges::find_if(found->keys, [&](const std::string& k) { return where.contains(k); });
  return wrong(known == found->keys.end() ? "" : where.at(*known), found->sentence);
}

// The value of a key on a command line: TOML, or a name without quotes.
result<toml::table> parse_value(const std::string& value, bool is_name) {
  if (!is_name || value.starts_with('"') || value.starts_with('\''))
    if (auto table = parse("value = " + value, ""); table && table->size() == 1) return table;
  toml::table t;
  t.insert("value", value);
  return t;
}

}  // namespace

result<machine_config> parse_machine(const std::string& text, const std::string& name) {
  stack_of_files files;
  if (auto read = files.read(text, name); !read) return std::unexpected(read.error());
  if (auto sound = check(files.machine, files.where); !sound) return std::unexpected(sound.error());
  return std::move(files.machine);
}

result<machine_config> parse_closed_machine(const std::string& text, const std::string& name) {
  const auto table = parse(text, name);
  if (!table) return std::unexpected(table.error());
  const toml::node* const plugins = table->get("plugins");
  const bool none = plugins == nullptr || (plugins->is_array() && plugins->as_array()->empty());
  if (!none || table->get("base") != nullptr)
    return wrong(name, none ? "the machine in it has a base; name the machine yourself"
                            : "the machine in it has plug-ins, and no code is run because of this "
                              "file; name the machine yourself");
  return parse_machine(text, name);
}

result<machine_config> load_machine(const std::string& path) {
  const auto text = content_of(path);
  if (!text) return std::unexpected(text.error());
  return parse_machine(*text, path);
}

result<> set_key(machine_config& m, const std::string& key, const std::string& value) {
  const auto keys = keys_of(m);
  const std::string at = fmt::format("{}={}", key, value);
  const auto found = std::ranges::find(keys, key, &config_key::path);
  if (found == keys.end()) return wrong(at, no_such_key(key, keys, false));
  auto table = parse_value(value, std::holds_alternative<std::string*>(found->where));
  if (!table) return std::unexpected(table.error());
  if (key == "plugins")
    if (auto loaded = load_plugins(table->get("value"), "", at); !loaded) return loaded;
  return std::visit(assignment{*found, *table->get("value"), at, at}, found->where);
}

result<> check_machine(const machine_config& m) {
  return check(m, {});
}

result<std::vector<machine_config>> with_designs(const machine_config& m,
                                                 const std::vector<std::string>& designs) {
  std::vector<machine_config> machines;
  std::map<std::string, std::size_t> idle;  // on how many designs a key has no effect
  for (const std::string& design : designs) {
    machine_config& one = machines.emplace_back(m);
    if (auto set = set_key(one, "design.name", design); !set) return std::unexpected(set.error());
    for (const config_conflict& c : idle_keys(one))
      if (++idle[c.keys.front()] == designs.size()) return wrong("", c.sentence);
    reset_idle_keys(one);
    if (auto sound = check_machine(one); !sound) return std::unexpected(sound.error());
  }
  return machines;
}

}  // namespace stele::sim
