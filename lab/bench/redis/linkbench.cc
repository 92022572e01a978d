// linkbench on hashes: a node is a hash n:ID of version and data; the links of a node and a type
// are a hash l:ID:TYPE, with a field for each other node, whose value is the link's data; c:ID has
// the counts of the links, a field for each type.
//
// The content at the start and the operations are those of lab/workloads/linkbench_kind.h, with
// these differences: links of a list are in no order, so a link added to a full list replaces any
// other one, and a list is read whole; all lists have the room of the longest.
#include <bench/redis/workload.h>
#include <fmt/format.h>
#include <workloads/linkbench.h>
#include <workloads/store.h>

#include <map>

namespace stele::bench::redis {
namespace {

using kind = operation::kind;
using workloads::linkbench::change;
using workloads::linkbench::types;

constexpr std::uint64_t room =
    workloads::linkbench::room_at_start(workloads::linkbench::links_at_start);

// ARGV of all: the id; of those on links the type, then the other node or a position among the
// links, then the data and the room. `chosen` is the link at the position, if there is any.
constexpr const char* update_node = R"lua(
redis.call('HINCRBY', 'n:' .. ARGV[1], 'version', 1)
redis.call('HSET', 'n:' .. ARGV[1], 'data', ARGV[2])
)lua";
constexpr const char* add_link = R"lua(
local list = 'l:' .. ARGV[1] .. ':' .. ARGV[2]
if redis.call('HEXISTS', list, ARGV[3]) == 0 then
  if redis.call('HLEN', list) >= tonumber(ARGV[5]) then
    redis.call('HDEL', list, redis.call('HKEYS', list)[1])
  else
    redis.call('HINCRBY', 'c:' .. ARGV[1], ARGV[2], 1)
  end
end
redis.call('HSET', list, ARGV[3], ARGV[4])
)lua";
constexpr const char* choose = R"lua(
local list = 'l:' .. ARGV[1] .. ':' .. ARGV[2]
local links = redis.call('HKEYS', list)
if #links == 0 then return 0 end
local chosen = links[ARGV[3] % #links + 1]
)lua";
constexpr const char* update_link = "redis.call('HSET', list, chosen, ARGV[4])";
constexpr const char* delete_link = R"lua(
redis.call('HDEL', list, chosen)
redis.call('HINCRBY', 'c:' .. ARGV[1], ARGV[2], -1)
)lua";

// ARGV: the ids from and to, the bytes of all data, the number of types, the room of a list.
constexpr const char* sound = R"lua(
for id = ARGV[1], ARGV[2] - 1 do
  if redis.call('HSTRLEN', 'n:' .. id, 'data') ~= tonumber(ARGV[3]) then
    return 'node ' .. id .. ' is not there, or its data not as long as all data'
  end
  for type = 0, ARGV[4] - 1 do
    local list = 'l:' .. id .. ':' .. type
    local counted = redis.call('HGET', 'c:' .. id, type)
    if redis.call('HLEN', list) ~= tonumber(counted or 0) then
      return 'a count differs from the number of links: ' .. list
    end
    if tonumber(counted or 0) > tonumber(ARGV[5]) then return 'a list is too long: ' .. list end
    for _, data in ipairs(redis.call('HVALS', list)) do
      if #data ~= tonumber(ARGV[3]) then return 'the data of a link is not as long: ' .. list end
    end
  end
end
)lua";

std::string name_of_list(std::uint64_t list) {
  return fmt::format("l:{}:{}", list / types, list % types);
}

class linkbench_session final : public session {
 public:
  linkbench_session(std::shared_ptr<connection> to, std::size_t value_size)
      : session(std::move(to), {update_node, add_link, std::string(choose) + update_link,
                                std::string(choose) + delete_link}),
        value_size_(value_size) {}

 private:
  enum script : std::uint8_t { updating_node, adding, updating, deleting };

  result<> run(const operation& op) override {
    const change c(op);
    switch (op.what) {
      case kind::scan:
        return run_command({"HGETALL", name_of_list(c.list)});
      case kind::put:
        return run_script(updating_node, {fmt::format("{}", op.a), value(op.b)});
      case kind::insert:
        return run_on(adding, c, c.to, op.b);
      case kind::read_modify:
        return run_on(updating, c, c.position, op.b);
      case kind::erase:
        return run_on(deleting, c, c.position, op.b);
      default:
        return read(op);
    }
  }
  result<> read(const operation& op) {
    if (op.b == 0) return run_command({"HMGET", fmt::format("n:{}", op.a), "data", "version"});
    const std::uint64_t list = workloads::linkbench::counted_list(op);
    return run_command(
        {"HGET", fmt::format("c:{}", list / types), fmt::format("{}", list % types)});
  }
  result<> run_on(script which, const change& c, std::uint64_t link, std::uint64_t word) {
    return run_script(which, {fmt::format("{}", c.list / types), fmt::format("{}", c.list % types),
                              fmt::format("{}", link), value(word), fmt::format("{}", room)});
  }
  std::string value(std::uint64_t word) {
    return std::string(workloads::store::value(word, value_size_, buffer_));
  }

  const std::size_t value_size_;
  std::string buffer_;
};

class linkbench final : public redis_workload {
 public:
  explicit linkbench(const workloads::parameters& p) : keys_(p), ids_(p) {}

  result<> fill(connection& to) const override {
    std::string buffer;
    for (std::uint64_t id = 0; id < ids_.nodes(); ++id)
      if (auto sent =
              to.append({"HSET", fmt::format("n:{}", id), "version", "0", "data",
                         workloads::store::value(keys_.word_at_start(id), value_size(), buffer)});
          !sent)
        return sent;
    return fill_links(to);
  }
  std::unique_ptr<session> make_session(std::shared_ptr<connection> to) override {
    return std::make_unique<linkbench_session>(std::move(to), value_size());
  }
  result<> check(connection& to) const override {
    constexpr std::uint64_t at_once = 1000;  // so that the server answers others meanwhile
    for (std::uint64_t from = 0; from < ids_.nodes(); from += at_once)
      if (auto checked = check_by_script(
              to, sound,
              {fmt::format("{}", from), fmt::format("{}", std::min(from + at_once, ids_.nodes())),
               fmt::format("{}", value_size()), fmt::format("{}", types), fmt::format("{}", room)});
          !checked)
        return checked;
    return {};
  }

 private:
  std::size_t value_size() const { return keys_.params().value_size; }

  result<> fill_links(connection& to) const {
    std::vector<std::map<std::uint32_t, std::uint64_t>> lists(ids_.nodes() * types);
    for (std::uint64_t i = 0; i < keys_.size(); ++i)
      if (const auto l = ids_.at_start(keys_, i))
        if (lists[l->list].size() < workloads::linkbench::links_at_start)
          lists[l->list].emplace(l->to, l->word);
    std::string buffer;
    for (std::uint64_t list = 0; list < lists.size(); ++list) {
      if (lists[list].empty()) continue;
      texts links = {"HSET", name_of_list(list)};
      for (const auto& [other, word] : lists[list]) {
        links.push_back(fmt::format("{}", other));
        links.emplace_back(workloads::store::value(word, value_size(), buffer));
      }
      auto sent = to.append(std::vector<std::string_view>(links.begin(), links.end()));
      if (sent)
        sent = to.append({"HSET", fmt::format("c:{}", list / types),
                          fmt::format("{}", list % types), fmt::format("{}", lists[list].size())});
      if (!sent) return sent;
    }
    return to.finish();
  }

  const workloads::key_space keys_;
  const workloads::linkbench::id_choice ids_;
};

}  // namespace

std::unique_ptr<redis_workload> make_linkbench(const workloads::parameters& p) {
  return std::make_unique<linkbench>(p);
}

}  // namespace stele::bench::redis
