//! What a capture gave.

use std::time::Duration;

use super::{
    report::{Echoes, QueriesLeft, TcpFlows, UnopenedTunnels},
    survey::Surveyed,
};
use crate::{Error, capture::Skipped};

/// A capture that was read.
#[derive(Debug)]
pub struct Replayed {
    /// The time from its oldest packet to its newest.
    pub span: Duration,
    /// Packets that were skipped.
    pub skipped: Skipped,
    /// Its TCP flows.
    pub tcp_flows: TcpFlows,
    /// Its echo requests.
    pub echoes: Echoes,
    /// Its DNS queries without a response at its end.
    pub queries_left: QueriesLeft,
    /// What its first packets show.
    pub surveyed: Surveyed,
    /// Whether hosts were to be on two sides of an interface (`--arms two`).
    pub has_two_arms: bool,
    /// The names of the interfaces over which its flows are split, if they are.
    pub split: Option<[String; 2]>,
    /// Packets of tunnels that were not entered.
    pub unopened_tunnels: UnopenedTunnels,
    /// Why reading stopped before the end of the capture, if it did.
    pub fault: Option<Error>,
}
