//! A flow: its name, what is kept of it between two packets, and what a packet does to that.

mod count;
mod direction;
mod key;
mod latest;
mod lifecycle;
mod quic;
mod state;
mod step;
mod tcp;
#[cfg(test)]
mod tests;
mod transitions;

pub use count::{Adder, Exclusive};
pub use direction::FlowDirection;
pub use key::{Endpoint, FlowKey};
pub use latest::{Latest, Noted};
pub use lifecycle::{Changes, Lifecycle, Reason};
pub use state::Flow;
pub use step::Outcome;

pub use crate::{
    parse::{Address, Ipv4, Ipv6},
    rtt::Progress,
};
