//! What pping's chores share: how they run programs, install what is missing, and build pping.
//!
//! Chores print their progress to standard error. Standard output is for results, and for the program that a chore
//! starts.

pub mod arch;
pub mod build;
pub mod chore;
pub mod command;
pub mod document;
pub mod duration;
pub mod environment;
pub mod passed;
pub mod setup;
