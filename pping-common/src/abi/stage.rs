//! The stages of a packet: programs, each of which calls the next.

/// A stage that follows the attached program, by its index in the array of programs. Each is a tail call: there is no way back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Stage {
    /// Parses any packet, counts it, and finds or makes its flow.
    Slow,
    /// Matches and records in a flow over IPv4.
    StepV4,
    /// Matches and records in a flow over IPv6.
    StepV6,
}

impl Stage {
    /// How many there are.
    pub const COUNT: u32 = Self::ALL.len() as u32;

    /// All of them, in the order of their numbers.
    pub const ALL: [Self; 3] = [Self::Slow, Self::StepV4, Self::StepV6];

    /// Its name in those of programs: `pping_tc_slow`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Slow => "slow",
            Self::StepV4 => "step4",
            Self::StepV6 => "step6",
        }
    }
}
