//! end_to_end
