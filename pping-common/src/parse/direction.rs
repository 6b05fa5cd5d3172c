//! The direction of a packet.

use crate::layout::numbered;

numbered! {
    /// The direction of a packet at an interface.
    #[derive(PartialOrd, Ord, Hash)]
    pub enum Direction {
        /// Coming in, on XDP or tc.
        Ingress,
        /// Going out, on tc.
        Egress,
    }
}

impl Direction {
    /// The name in labels, records and file names.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }
}
