//! The two directions of an interface.

use crate::kernel::bpf;

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

    /// Of `enum bpf_attach_type`.
    pub(super) fn attach_type(self) -> u32 {
        match self {
            Self::Ingress => bpf::TCX_INGRESS,
            Self::Egress => bpf::TCX_EGRESS,
        }
    }
}
