//! One dialogue in each of the file formats.

use super::{
    Golden, compressed,
    dialogue::Dialogue,
    pcap::{self, ETHERNET, Endian, Unit},
};
use crate::frames::Ip;

pub(super) fn captures() -> Vec<Golden> {
    let frames = Dialogue::new(Ip::v4(), 0).basic().answer().ping().on_ethernet();
    let plain = pcap::nanoseconds(ETHERNET, &frames);
    let pcap = |endian, unit| pcap::file(endian, unit, ETHERNET, &frames);
    vec![
        Golden::new("microseconds-little-endian.pcap", pcap(Endian::Little, Unit::Microseconds))
            .with_samples("microseconds"),
        Golden::new("microseconds-big-endian.pcap", pcap(Endian::Big, Unit::Microseconds))
            .with_samples("microseconds"),
        Golden::new("nanoseconds-little-endian.pcap", plain.clone()).with_samples("nanoseconds"),
        Golden::new("nanoseconds-big-endian.pcap", pcap(Endian::Big, Unit::Nanoseconds))
            .with_samples("nanoseconds"),
        Golden::new("stored.pcap.gz", compressed::gzip(&plain)).with_samples("nanoseconds"),
        Golden::new("stored.pcap.zst", compressed::zstd(&plain)).with_samples("nanoseconds"),
    ]
}
