//! The two directions of an interface.

use aya::programs::TcAttachType;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Side {
    Ingress,
    Egress,
}

impl Side {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Ingress => "ingress",
            Self::Egress => "egress",
        }
    }

    pub(super) fn program(self) -> &'static str {
        match self {
            Self::Ingress => "pping_ingress",
            Self::Egress => "pping_egress",
        }
    }

    pub(super) fn attach_type(self) -> TcAttachType {
        match self {
            Self::Ingress => TcAttachType::Ingress,
            Self::Egress => TcAttachType::Egress,
        }
    }
}
