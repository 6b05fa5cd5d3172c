//! Tests of flow keys, and of the life of a flow.

mod count;
mod idle;
mod key;
mod lifecycle;
mod properties;
mod rtt;
