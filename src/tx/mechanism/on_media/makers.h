// Each function builds a mechanism's engine on the chosen medium and is defined in its own file.
#pragma once

#include <pool/pool_file.h>
#include <stele/mechanism_options.h>

#include <memory>

namespace stele::detail {

class engine;
struct media_choice;
struct pool_state;

using engine_maker = std::unique_ptr<engine>(pool_state&, const media_choice&);
engine_maker make_default_mechanism, make_none, make_base_log, make_redo, make_redo_async,
    make_undo, make_xil, make_vcbp, make_blurred, make_adaptive, make_archapt_undo,
    make_archapt_redo, make_log_structured;

// Room for the parity blocks and the checkpoint copy of archapt.
void add_archapt_geometry(storage::pool_geometry& geometry, const mechanism_options& options);

}  // namespace stele::detail
