// See reader_beside.h.
#include <base/check.h>
#include <explore/schedule/reader_beside.h>
#include <tx/readers/reader_session.h>
#include <tx/runtime.h>
#include <unistd.h>

#include <algorithm>
#include <vector>

namespace stele::explore {

namespace {

using detail::reader_request;

class session_here final : public detail::reader_session {
 public:
  session_here(detail::runtime& writer, detail::reader_service& service)
      : reader_session(writer.state().file.header(), writer.base(), writer.base()),
        writer_(writer),
        service_(service) {}
  ~session_here() override {
    for (const auto& m : moments_) service_.end_moment(*m);
    if (is_attached()) service_.remove_reader();
  }
  using reader_session::begin_reading;

 private:
  result<bool> try_attach() override {
    if (auto added = service_.add_reader(); !added) return std::unexpected(added.error());
    const detail::shared_memory& locks = service_.locks();
    attached_to({.locks = reinterpret_cast<detail::line_lock*>(locks.at()),
                 .mask = locks.size() / sizeof(detail::line_lock) - 1,
                 .clock = &writer_.state().clock});
    return true;
  }
  bool has_lost_writer() noexcept override { return false; }
  result<detail::received_message> ask(reader_request what, std::uint64_t argument) override {
    detail::received_message reply;
    if (what == reader_request::settle) {
      service_.settle();
    } else if (what == reader_request::begin_moment) {
      auto begun = service_.begin_moment();
      if (!begun) return std::unexpected(begun.error());
      reply.message.argument = {(*begun)->number, (*begun)->layout().pages, 0, 0};
      reply.fds[0] = storage::descriptor(::dup((*begun)->fd()));
      moments_.push_back(std::move(*begun));
    } else {
      const auto found = std::ranges::find(moments_, argument, &detail::kept_pages::number);
      service_.end_moment(**found);
      moments_.erase(found);
    }
    return reply;
  }

  detail::runtime& writer_;
  detail::reader_service& service_;
  std::vector<std::unique_ptr<detail::kept_pages>> moments_;
};

}  // namespace

result<std::unique_ptr<reader_beside>> reader_beside::attach(subject& s,
                                                             detail::reader_service& service) {
  detail::runtime& writer = s.workload().core();
  if (writer.mechanism().home() != nullptr)
    return base::fail(errc::unsupported, "home is in the memory of its process");
  auto workload = subject::make_workload(s.run_plan());
  if (!workload) return std::unexpected(workload.error());
  const storage::pool_file& file = writer.state().file;
  auto mapped = storage::pool_file::adopt(writer.base(), file.header().size);
  if (!mapped) return std::unexpected(mapped.error());
  auto reading = session_here::begin_reading(std::make_unique<session_here>(writer, service),
                                             std::move(*mapped));
  if (!reading) return std::unexpected(reading.error());
  auto handle = detail::pool_handle::from_reader(std::move(*reading), (*workload)->root_size(), 0);
  if (!handle) return std::unexpected(handle.error());
  (*workload)->attach(std::move(*handle));
  return std::unique_ptr<reader_beside>(new reader_beside(std::move(*workload)));
}

result<std::uint64_t> reader_beside::digest_at_once() {
  if (detail::begin_transaction(workload_->core(), false, durability::durable,
                                detail::code_between::may_wait) == detail::begin_status::refused)
    return std::unexpected(detail::last_error());
  auto seen = workload_->digest();
  if (detail::commit_transaction() != detail::commit_status::committed)
    return base::fail(errc::corrupt, "a read of one moment was lost");
  return seen;
}

reader_beside::~reader_beside() {
  workload_->detach();
}

}  // namespace stele::explore
