// Passes a tape's events to the media model.
#include <explore/crash_model.h>
#include <explore/explored_tape.h>
#include <explore/sector_model.h>

namespace stele::explore {

using media::tape_op;

namespace {

std::unique_ptr<media_model> model_of(const subject& s) {
  const std::size_t size = s.empty_image().size();
  if (s.on_file()) return std::make_unique<sector_model>(size);
  return std::make_unique<crash_model>(size);
}

}  // namespace

explored_tape::explored_tape(subject& s, verdict_cache& e)
    : durable(s.empty_image()),
      work(s.empty_image()),
      model(model_of(s)),
      image_judge(s, work, e) {}

void explored_tape::begin(const hashed_image& at_start, std::uint64_t position) {
  durable.assign(at_start);
  work.assign(at_start);
  model->start(durable);
  point = 0;
  acknowledged = invoked = position;
  event_at_point_.reset();
}

bool explored_tape::take(const media::tape_event& e) {
  switch (e.op) {
    case tape_op::store:
      model->store(e.thread, e.address, e.bytes);
      return false;
    case tape_op::stream:
      model->stream(e.thread, e.address, e.bytes);
      return false;
    case tape_op::flush:
      model->flush(e.thread, e.address, e.length);
      return false;
    case tape_op::invoked:
      invoked = e.address + 1;
      return false;
    case tape_op::returned:
      acknowledged = e.address + 1;
      break;
    case tape_op::fence:
    case tape_op::bulk:
      break;
    default:
      return false;
  }
  event_at_point_ = e;
  return true;
}

void explored_tape::leave_point() {
  ++point;
  if (!event_at_point_) return;
  if (event_at_point_->op == tape_op::fence) copy_durable(model->fence(event_at_point_->thread));
  if (event_at_point_->op == tape_op::bulk)
    copy_durable(
        model->bulk(event_at_point_->thread, event_at_point_->address, event_at_point_->length));
  event_at_point_.reset();
}

void explored_tape::copy_durable(std::span<const std::uint32_t> units) {
  for (const std::uint32_t unit : units) choose(unit, 0);
}

std::vector<std::uint32_t> explored_tape::stale() const {
  std::vector<std::uint32_t> lines;
  for (const std::uint32_t unit : model->pending()) model->add_stale(work, unit, lines);
  return lines;
}

}  // namespace stele::explore
