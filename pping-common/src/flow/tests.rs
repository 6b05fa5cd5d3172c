//! The names of flows, and their lives.

mod idle;
mod key;
mod lifecycle;
mod properties;
