//! The figures that rank the worst.

use pping_common::abi::Figure;
use serde::{Deserialize, Serialize};

/// A figure that ranks the worst.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(rename_all = "lowercase")]
#[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
pub enum By {
    /// The smoothed RTT of a flow, or `ranked_rtt` of a group.
    #[default]
    Rtt,
    /// The excess of that RTT over the lowest RTT of the flow, or over `baseline` of the group.
    Inflation,
    /// The share of packets that were retransmissions.
    Retransmissions,
    /// Bytes of payload.
    Bytes,
}

impl By {
    /// All figures.
    pub const ALL: [Self; Figure::COUNT] = [Self::Rtt, Self::Inflation, Self::Retransmissions, Self::Bytes];

    /// The figure of a candidate.
    pub fn figure(self) -> Figure {
        Figure::ALL[self as usize]
    }

    /// The name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Rtt => "rtt",
            Self::Inflation => "inflation",
            Self::Retransmissions => "retransmissions",
            Self::Bytes => "bytes",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_in_json_and_figures_are_in_order() {
        for by in By::ALL {
            assert_eq!(serde_json::to_string(&by).unwrap(), format!("\"{}\"", by.name()));
            assert_eq!(by as u8, by.figure() as u8);
        }
    }
}
