//! What a program can be attached to.

/// How a program is attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttachPoint {
    /// XDP in the driver.
    XdpNative,
    /// XDP in the network stack, for drivers that have none.
    XdpGeneric,
    /// tc by a link (Linux 6.6).
    Tcx,
    /// tc by a filter on a clsact queueing discipline.
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
}

/// The attach points of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttachPoints {
    /// Where packets coming in are seen.
    pub ingress: AttachPoint,
    /// Where packets going out are seen.
    pub egress: AttachPoint,
}
