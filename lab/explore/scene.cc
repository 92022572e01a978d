// Passing a tape's events to the crash model.
#include <explore/crash_model.h>
#include <explore/scene.h>
#include <explore/sector_model.h>

namespace stele::explore {

using media::tape_op;

namespace {

std::unique_ptr<media_model> model_of(const subject& s) {
  const std::size_t size = s.blank().size();
  if (s.on_file()) return std::make_unique<sector_model>(size);
  return std::make_unique<crash_model>(size);
}

}  // namespace

scene::scene(subject& s, experience& e)
    : settled(s.blank()), work(s.blank()), model(model_of(s)), judging(s, work, e) {}

void scene::begin(const hashed_image& at_start, std::uint64_t position) {
  settled.assign(at_start);
  work.assign(at_start);
  model->start(settled);
  point = 0;
  floor = ceiling = position;
  waiting_.reset();
}

bool scene::take(const media::tape_event& e) {
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
      ceiling = e.address + 1;
      return false;
    case tape_op::returned:
      floor = e.address + 1;
      break;
    case tape_op::fence:
    case tape_op::bulk:
      break;
    default:
      return false;
  }
  waiting_ = e;
  return true;
}

void scene::leave_point() {
  ++point;
  if (!waiting_) return;
  if (waiting_->op == tape_op::fence) bring_over(model->fence(waiting_->thread));
  if (waiting_->op == tape_op::bulk) bring_over(model->bulk(waiting_->thread, waiting_->address, waiting_->length));
  waiting_.reset();
}

void scene::bring_over(std::span<const std::uint32_t> units) {
  for (const std::uint32_t unit : units) choose(unit, 0);
}

std::vector<std::uint32_t> scene::stale() const {
  std::vector<std::uint32_t> lines;
  for (const std::uint32_t unit : model->pending()) model->add_stale(work, unit, lines);
  return lines;
}

}  // namespace stele::explore
