// Reads URI parameters and the environment.
#include "options.h"

#include <base/bytes.h>

#include <cstdlib>
#include <optional>
#include <string_view>

#include "api.h"
#include "stored.h"

namespace stele::sqlite {

namespace {

std::unexpected<error> wrong(std::string_view name, std::string_view value,
                             std::string_view right) {
  return std::unexpected(error{errc::invalid_argument,
                               "the parameter " + std::string(name) + "=" + std::string(value) +
                                   " of the database is wrong: " + std::string(right)});
}

// A parameter of the URI, else of the environment; nullopt: in neither.
std::optional<std::string> parameter(const char* name, const char* key) {
  if (const char* value = sqlite3_uri_parameter(name, key)) return value;
  const char* const all = std::getenv("STELE_SQLITE_OPTIONS");
  for (std::string_view rest = all != nullptr ? all : ""; !rest.empty();) {
    const std::string_view one = rest.substr(0, rest.find('&'));
    rest.remove_prefix(std::min(rest.size(), one.size() + 1));
    const auto equals = one.find('=');
    if (equals != one.npos && one.substr(0, equals) == key)
      return std::string(one.substr(equals + 1));
  }
  return std::nullopt;
}

}  // namespace

result<database_options> options_of(const char* name) {
  database_options o;
  o.pool.create_size = 16 << 20;
  o.pool.policy = concurrency::external;
  o.pool.layout = layout_name;
  if (const auto m = parameter(name, "mechanism")) o.pool.engine.mechanism = *m;
  if (const auto m = parameter(name, "media")) o.pool.engine.media = *m;
  if (const auto r = parameter(name, "require"); r && !r->empty()) {
    const auto level = durability_level_of(*r);
    if (!level) return wrong("require", *r, "give process, power or 'power, cache included'");
    o.pool.require = *level;
  }
  if (const auto d = parameter(name, "database")) o.database = *d;
  if (const auto b = parameter(name, "background")) {
    if (*b != "0" && *b != "1") return wrong("background", *b, "give 0 or 1");
    o.pool.engine.background = *b == "1";
  }
  if (const auto v = parameter(name, "verify")) {
    const auto verify = verification_of(*v);
    if (!verify) return wrong("verify", *v, "give auto, always or never");
    o.pool.engine.verify = *verify;
  }
  if (o.database.empty()) return wrong("database", "", "a database of a pool has a name");
  const bool grows = !o.pool.engine.mechanism.starts_with("archapt");
  o.pool.max_size = grows ? std::size_t{1} << 40 : 0;
  for (const auto& [key, to] :
       {std::pair("size", &o.pool.create_size), std::pair("max_size", &o.pool.max_size),
        std::pair("pending", &o.pending_bytes)})
    if (const auto text = parameter(name, key)) {
      const auto bytes = base::bytes_of(*text);
      if (!bytes) return wrong(key, *text, "give bytes, or a number with K, M, G or T, as 64M");
      *to = *bytes;
    }
  if (o.pool.max_size != 0 && o.pool.max_size < o.pool.create_size) o.pool.max_size = 0;
  return o;
}

}  // namespace stele::sqlite
