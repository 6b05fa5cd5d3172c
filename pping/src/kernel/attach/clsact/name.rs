//! The names of filters.

use std::fmt;

use pping_common::{abi::PacketProgram, parse::Direction};

use super::run::Run;

/// Says that pping made the qdisc.
const QDISC: &str = "+qdisc";

/// The name of a filter of pping: `pping_ingress/0123456789abcdef+qdisc`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Name {
    pub(super) direction: Direction,
    pub(super) run: Run,
    /// Whether pping made the qdisc, in this run or an earlier one: its last filter to go removes it.
    pub(super) has_qdisc: bool,
}

impl Name {
    /// Reads what `Display` writes; `None` for the filters of other programs.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (program, rest) = text.split_once('/')?;
        let direction = Direction::ALL
            .into_iter()
            .find(|&direction| PacketProgram::at_tc(direction).name() == program)?;
        let number = rest.strip_suffix(QDISC);
        Some(Self { direction, run: Run::parse(number.unwrap_or(rest))?, has_qdisc: number.is_some() })
    }
}

impl fmt::Display for Name {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let qdisc = if self.has_qdisc { QDISC } else { "" };
        write!(formatter, "{}/{}{qdisc}", PacketProgram::at_tc(self.direction).name(), self.run)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_read_as_it_is_written_and_those_of_others_are_not() {
        for text in ["pping_ingress/0123456789abcdef", "pping_egress/0123456789abcdef+qdisc"] {
            assert_eq!(Name::parse(text).unwrap().to_string(), text);
        }
        for text in [
            "",
            "pping_ingress",
            "pping_ingress/",
            "pping_ingress/+qdisc",
            "pping_ingress/0123456789abcdef+",
            "pping_ingress/0123456789abcdef+qdisc+qdisc",
            "pping_xdp/0123456789abcdef",
            "bpf_main.o:[pping_ingress]",
        ] {
            assert_eq!(Name::parse(text), None, "{text}");
        }
    }
}
