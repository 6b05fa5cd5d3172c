//! The methods that measure RTTs: what each keeps of a flow direction, records, and matches.
//!
//! A packet is measured in three steps. The first step knows the methods: it plans which pending identifiers of the other
//! direction to look for, and which identifier of its own becomes pending (`MatchPlan`). The second step frees what the
//! packet echoes and takes the sample. The third frees what the packet made ambiguous and records. The kernel programs
//! write the plan to memory in between, so that the verifier follows each step once, and not once per path through the
//! step before.
//!
//! Nothing here knows of flows: [`crate::flow`] keeps these states for both directions and applies packets to them.

pub(crate) mod icmp_echo;
mod leg;
mod pending;
mod plan;
pub(crate) mod quic;
mod rules;
mod sample;
mod take_and_record;
pub(crate) mod tcp_handshake;
pub(crate) mod tcp_seq;
pub(crate) mod tcp_ts;

pub(crate) use leg::LegState;
pub use rules::{RttBasis, Rules};
pub use sample::Sample;
pub(crate) use take_and_record::{record, take_sample, void};
#[doc(hidden)]
pub use {
    leg::Leg,
    pending::{Pending, PendingEntry, PendingIdentifiers, PendingRange, any_pending},
    plan::{MatchPlan, Pass, PossibleChange},
    quic::{Spin, SpinTrust},
    rules::RttSummary,
    sample::Measured,
    tcp_seq::{Progress, TimestampOption},
    tcp_ts::{TsvalState, is_newer, missed},
};
