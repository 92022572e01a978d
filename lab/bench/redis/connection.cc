// Connections by hiredis.
#include <base/check.h>
#include <bench/redis/connection.h>
#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <array>
#include <cassert>
#include <vector>

namespace stele::bench::redis {
namespace {

constexpr std::size_t most_words = 128;

struct pointers {
  std::array<const char*, most_words> words;
  std::array<std::size_t, most_words> sizes;
  int count = 0;
  explicit pointers(std::span<const std::string_view> from) {
    assert(from.size() <= most_words);
    for (const std::string_view w : from) {
      words[static_cast<std::size_t>(count)] = w.data();
      sizes[static_cast<std::size_t>(count++)] = w.size();
    }
  }
};

}  // namespace

result<std::shared_ptr<connection>> connection::open(const std::string& socket) {
  redisContext* const made = ::redisConnectUnix(socket.c_str());
  if (made == nullptr) return base::fail(errc::io, "no memory for a connection to Redis");
  std::shared_ptr<connection> opened(new connection(made));
  if (made->err != 0)
    return base::fail(errc::io,
                      fmt::format("cannot connect to Redis at {}: {}", socket, made->errstr));
  return opened;
}

connection::~connection() {
  ::redisFree(context_);
}

result<reply> connection::next_reply() {
  void* answer = nullptr;
  if (::redisGetReply(context_, &answer) != REDIS_OK)
    return base::fail(errc::io, fmt::format("Redis does not answer: {}", context_->errstr));
  const std::unique_ptr<redisReply, void (*)(void*)> held(static_cast<redisReply*>(answer),
                                                          ::freeReplyObject);
  reply r;
  if (held->type == REDIS_REPLY_ERROR)
    return base::fail(errc::io, fmt::format("Redis answers: {}", held->str));
  if (held->type == REDIS_REPLY_STRING || held->type == REDIS_REPLY_STATUS)
    r.text.assign(held->str, held->len);
  if (held->type == REDIS_REPLY_INTEGER) r.number = held->integer;
  if (held->type == REDIS_REPLY_ARRAY)
    for (std::size_t i = 0; i < held->elements; ++i)
      r.elements += held->element[i]->type != REDIS_REPLY_NIL;
  return r;
}

result<reply> connection::run(std::span<const std::string_view> words) {
  pointers p(words);
  if (::redisAppendCommandArgv(context_, p.count, p.words.data(), p.sizes.data()) != REDIS_OK)
    return base::fail(errc::io, fmt::format("cannot send to Redis: {}", context_->errstr));
  return next_reply();
}

void connection::append(std::initializer_list<std::string_view> words) {
  pointers p(std::span(words.begin(), words.size()));
  ::redisAppendCommandArgv(context_, p.count, p.words.data(), p.sizes.data());
  ++appended_;
}

result<> connection::finish() {
  result<> all;
  for (; appended_ != 0; --appended_)
    if (auto one = next_reply(); !one && all) all = std::unexpected(std::move(one.error()));
  return all;
}

}  // namespace stele::bench::redis
