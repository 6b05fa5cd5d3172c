//! Files in compression formats with stored data only, built by hand so that they never change.

/// gzip (RFC 1952) with one stored block (RFC 1951, 3.2.4).
pub(crate) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u16;
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 3, 1];
    file.extend([len.to_le_bytes(), (!len).to_le_bytes()].concat());
    file.extend(bytes);
    file.extend([crc32(bytes), u32::from(len)].map(u32::to_le_bytes).concat());
    file
}

/// zstd (RFC 8878): a skippable frame, and a frame with a raw block.
pub(crate) fn zstd(bytes: &[u8]) -> Vec<u8> {
    const RAW_AND_LAST: u32 = 1;
    let block = RAW_AND_LAST | (bytes.len() as u32) << 3;
    let mut file = vec![0x50, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4];
    // A single segment with its length in four bytes.
    file.extend([0x28, 0xb5, 0x2f, 0xfd, 0xa0]);
    file.extend((bytes.len() as u32).to_le_bytes());
    file.extend(&block.to_le_bytes()[..3]);
    file.extend(bytes);
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(u32::MAX, |crc, byte| {
        (0..8).fold(crc ^ u32::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}
