//! Files in compression formats with stored data only, so that they do not depend on a library's choices.

/// A gzip member (RFC 1952) with one stored block (RFC 1951, section 3.2.4).
pub(super) fn gzip(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u16;
    let mut file = vec![0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255, 1];
    file.extend(len.to_le_bytes());
    file.extend((!len).to_le_bytes());
    file.extend(bytes);
    file.extend(crc32(bytes).to_le_bytes());
    file.extend(u32::from(len).to_le_bytes());
    file
}

/// A Zstandard frame with one raw block (RFC 8878, section 3.1.1).
pub(super) fn zstd(bytes: &[u8]) -> Vec<u8> {
    let len = bytes.len() as u32;
    // A single segment with its size in four bytes, and no checksum.
    let mut file = vec![0x28, 0xb5, 0x2f, 0xfd, 0b1010_0000];
    file.extend(len.to_le_bytes());
    let last_raw_block = len << 3 | 1;
    file.extend(&last_raw_block.to_le_bytes()[..3]);
    file.extend(bytes);
    file
}

fn crc32(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0, |crc, &byte| {
        (0..8)
            .fold(crc ^ u32::from(byte), |crc: u32, _| crc >> 1 ^ if crc & 1 == 1 { 0xedb8_8320 } else { 0 })
    })
}
