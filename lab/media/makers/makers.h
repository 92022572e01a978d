// Functions that make a mechanism's engine on a medium of the laboratory; one file each.
#pragma once

#include <tx/mechanism/on_media/makers.h>

namespace stele::detail {

engine_maker lab_default_mechanism, lab_none, lab_base_log, lab_redo, lab_redo_async, lab_undo,
    lab_xil, lab_vcbp, lab_blurred, lab_adaptive, lab_archapt_undo, lab_archapt_redo,
    lab_log_structured;

}  // namespace stele::detail
