//! The methods that measure a round-trip time: what each keeps of a direction, records, and matches.
//!
//! A packet is measured in three steps. The first knows the methods: it plans what to look for among the pending identifiers of
//! the other direction, and what becomes pending itself (`MatchPlan`). The second frees what is echoed and takes the sample, the third
//! frees what the packet made ambiguous and records. The kernel programs write the plan to memory in between, so that the verifier
//! follows each step once, and not once for each way through the one before.
//!
//! Nothing here knows of flows: [`crate::flow`] keeps these states for both directions, and has them changed by each packet.

pub(crate) mod icmp_echo;
mod leg;
mod pending;
mod plan;
pub(crate) mod quic;
mod rules;
mod sample;
mod steps;
pub(crate) mod tcp_handshake;
pub(crate) mod tcp_seq;
pub(crate) mod tcp_ts;

pub use leg::Leg;
pub(crate) use leg::LegState;
pub use pending::{Pending, PendingEntry, PendingRange, Waiting, any};
pub use plan::{Effect, MatchPlan, Pass};
pub use quic::{Connection, Spin};
pub use rules::{RttBasis, RttSummary, Rules};
pub use sample::{Measured, Sample};
pub(crate) use steps::{record, take_sample};
pub use tcp_seq::{Progress, TimestampOption};
pub use tcp_ts::{TsvalState, is_newer, missed};

pub use crate::method::{Method, Methods};
