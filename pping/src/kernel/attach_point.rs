//! The attach points.

/// An attach point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// XDP in the driver.
    XdpNative,
    /// XDP in the network stack, for drivers that have none.
    XdpGeneric,
    /// tc by a link (Linux 6.6).
    Tcx,
    /// tc by a filter on a clsact qdisc.
    Clsact,
}

impl AttachPoint {
    /// The name in logs and labels.
    pub fn name(self) -> &'static str {
        match self {
            Self::XdpNative => "xdp-native",
            Self::XdpGeneric => "xdp-generic",
            Self::Tcx => "tcx",
            Self::Clsact => "clsact",
        }
    }

    /// Whether the XDP program is attached there.
    pub fn is_xdp(self) -> bool {
        matches!(self, Self::XdpNative | Self::XdpGeneric)
    }
}

/// The attach points of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachPoints {
    /// For incoming packets.
    pub ingress: AttachPoint,
    /// For outgoing packets; none at a mirror port.
    pub egress: Option<AttachPoint>,
}

impl AttachPoints {
    /// Their names, without duplicates.
    pub fn names(self) -> Vec<&'static str> {
        let mut names = vec![self.ingress.name()];
        names.extend(self.egress.map(AttachPoint::name));
        names.dedup();
        names
    }
}
