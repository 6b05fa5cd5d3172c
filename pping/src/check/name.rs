//! The names of checks.

use serde::Serialize;

use crate::kernel::features::Feature;

/// Defines [`Name`] by its variants and their texts.
macro_rules! names {
    ($($(#[$doc:meta])+ $variant:ident = $text:literal,)+) => {
        /// Name of the check.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[cfg_attr(test, derive(schemars::JsonSchema), schemars(inline))]
        pub(super) enum Name {
            $($(#[$doc])+ #[serde(rename = $text)] $variant,)+
        }

        impl Name {
            /// The text in the table and in JSON.
            pub(super) fn text(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }
    };
}

names! {
    /// The release of the kernel.
    Kernel = "kernel",
    /// The capabilities of the process.
    Capabilities = "capabilities",
    /// The options and the configuration file.
    Configuration = "configuration",
    /// The methods that are on.
    Methods = "methods",
    /// A kernel feature, atomic instructions that return the old value.
    Fetch = "fetch",
    /// A kernel feature, a helper that walks through a map.
    ForEach = "for-each",
    /// A kernel feature, tc programs attached by links.
    Tcx = "tcx",
    /// A kernel feature, its types for tools that inspect programs.
    Btf = "btf",
    /// The ring buffer, without which pping receives no samples.
    RingBuffer = "ring-buffer",
    /// Whether the verifier accepts the kernel programs.
    Programs = "programs",
    /// Whether programs run as machine code.
    Jit = "jit",
    /// Whether the kernel measures runs of programs.
    Statistics = "statistics",
    /// Memory for the maps.
    Memory = "memory",
    /// The limit of locked memory; only before Linux 5.11.
    Memlock = "memlock",
    /// The clock source.
    Clock = "clock",
    /// What --residence needs.
    Residence = "residence",
    /// The file system for pinned maps; only with --pin.
    Pin = "pin",
    /// The receiver of metrics; only with --otlp.
    Otlp = "otlp",
    /// Whether there is an interface to watch; only if there is none.
    Interfaces = "interfaces",
    /// Whether an interface exists, is up, and has frames that pping can read.
    Interface = "interface",
    /// Ports of the interface; only if it is a bridge.
    Bridge = "bridge",
    /// Whether the interface is promiscuous, if it looks like a mirror port; of the machine, whether it can be made so, with --mirror.
    Mirror = "mirror",
    /// Whether packets have hosts that are inside the network; only with --inside.
    Inside = "inside",
    /// Flow tables of nftables, through which packets pass unseen; only if the interface or one below it is in one.
    FlowTable = "flow-table",
    /// Programs at XDP of the interface.
    Xdp = "xdp",
    /// Filters and programs at tc of the interface.
    Tc = "tc",
    /// Whether this router forwards from the interface to itself; only if so.
    Arms = "arms",
    /// Merging of received segments by the card.
    Lro = "lro",
    /// Merging of received segments by the kernel.
    Gro = "gro",
    /// Segmentation of sent data by the card, or just before it.
    Segmentation = "segmentation",
    /// Removal of VLAN tags by the card.
    Vlan = "vlan",
    /// The offloads of the interface; only if the driver cannot be queried.
    Offloads = "offloads",
}

impl From<Feature> for Name {
    fn from(feature: Feature) -> Self {
        match feature {
            Feature::Fetch => Self::Fetch,
            Feature::ForEach => Self::ForEach,
            Feature::Tcx => Self::Tcx,
            Feature::Btf => Self::Btf,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_have_the_same_names_as_elsewhere() {
        for feature in Feature::ALL {
            assert_eq!(Name::from(feature).text(), feature.name());
        }
    }
}
