// Writes a machine as TOML and as JSON: every key, in the order of the table of keys.
#include <fmt/format.h>
#include <sim/config_file.h>
#include <sim/config_keys.h>

#include <nlohmann/json.hpp>

namespace stele::sim {
namespace {

using json = nlohmann::ordered_json;

template <class T>
json value_of(const T& v) {
  return v;
}
json value_of(const std::vector<std::string>& texts) {
  return texts.empty() ? json::array() : json(texts);
}
template <class T>
json value_of(const std::vector<T>& rows) {
  json out = json::array();
  for (T row : rows) {
    json one = json::object();
    for (const config_key& k : keys_of(row))
      one[k.path] = std::visit([](auto* p) { return value_of(*p); }, k.where);
    out.push_back(std::move(one));
  }
  return out;
}

json value_of(const config_key& k) {
  return std::visit([](auto* p) { return value_of(*p); }, k.where);
}

// A JSON string is a TOML string, except that TOML requires DEL to be escaped.
std::string quoted(const std::string& s) {
  std::string out = json(s).dump(-1, ' ', false, json::error_handler_t::replace);
  for (std::size_t at = 0; (at = out.find('\x7f', at)) != out.npos; at += 6)
    out.replace(at, 1, "\\u007f");
  return out;
}

std::string toml_of(const json& v) {
  if (v.is_string()) return quoted(v.get<std::string>());
  if (v.is_number_float()) return fmt::format("{}", v.get<double>());
  if (v.is_object()) {
    std::string out;
    for (const auto& [name, one] : v.items())
      out += fmt::format("{}{} = {}", out.empty() ? "" : ", ", name, toml_of(one));
    return fmt::format("{{{}}}", out);
  }
  if (!v.is_array()) return v.dump();
  std::string out = "[";
  for (const json& one : v) out += fmt::format("\n  {},", toml_of(one));
  return out + (v.empty() ? "]" : "\n]");
}

}  // namespace

std::string toml_of(const machine_config& m) {
  machine_config copy = m;  // keys_of takes a machine that can be changed
  std::string out, section;
  for (const config_key& k : keys_of(copy)) {
    const std::size_t dot = k.path.find('.');
    const std::string its_section = dot == k.path.npos ? "" : k.path.substr(0, dot);
    if (its_section != section) out += fmt::format("\n[{}]\n", section = its_section);
    out += fmt::format("{} = {}\n", k.path.substr(dot == k.path.npos ? 0 : dot + 1),
                       toml_of(value_of(k)));
  }
  return out;
}

json json_of(const machine_config& m) {
  machine_config copy = m;
  json out = json::object();
  for (const config_key& k : keys_of(copy)) {
    const std::size_t dot = k.path.find('.');
    if (dot == k.path.npos)
      out[k.path] = value_of(k);
    else
      out[k.path.substr(0, dot)][k.path.substr(dot + 1)] = value_of(k);
  }
  return out;
}

}  // namespace stele::sim
