//! The stages of a packet: programs, each of which calls the next.

use crate::layout::listed;

listed! {
    /// A stage after the attached program, by its index in the array of programs. It is reached by a tail call, which does
    /// not return.
    pub enum Stage {
        /// Parses and counts any packet, and finds or inserts its flow.
        Slow,
        /// Tells copies at a mirror port, and counts the other packets in place of [`Stage::Slow`]. Nothing calls it elsewhere.
        Copies,
        /// Matches and records in an IPv4 flow.
        StepV4,
        /// Matches and records in an IPv6 flow.
        StepV6,
        /// Reports what the step found in an IPv4 flow: counts, histograms, events.
        ReportV4,
        /// The same in an IPv6 flow.
        ReportV6,
        /// Counts samples of an IPv4 flow for the network at the other end, and calls [`Stage::ReportV4`]. Nothing calls it unless
        /// networks are counted.
        NetworksV4,
        /// The same in an IPv6 flow.
        NetworksV6,
    }
}

impl Stage {
    /// The number of stages.
    pub const COUNT: u32 = Self::ALL.len() as u32;

    /// The stage's part in the names of programs, such as `pping_tc_slow`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::Copies => "copies",
            Self::StepV4 => "step4",
            Self::StepV6 => "step6",
            Self::ReportV4 => "report4",
            Self::ReportV6 => "report6",
            Self::NetworksV4 => "networks4",
            Self::NetworksV6 => "networks6",
        }
    }
}
