//! Decompression of a capture. Its first bytes tell the format.

use std::io::{self, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::error::Error;

/// The size of a read of compressed data, bytes.
const READ: usize = 128 << 10;

/// The largest window of zstd, as a power of 2: 128 MiB of memory, the limit of the zstd tool.
const ZSTD_WINDOW_LOG: u32 = 27;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The rest of the magic of a skippable zstd frame, with which `pzstd` begins; the low four bits of its first byte vary.
const ZSTD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];

const OTHERS: [(&[u8], &str); 6] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"BZh", "bzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    (b"LZIP", "lzip"),
    (&[0x1f, 0x9d], "uncompress"),
    (&[0x5d, 0, 0, 0x80], "xz"),
];

/// The length of the longest magic, bytes.
const MAGIC: usize = 6;

/// Decompresses `source` if it is compressed.
///
/// # Errors
/// [`Error::UnsupportedCompression`], or [`Error::Io`] if reading fails.
pub fn decompress<'a>(mut source: impl Read + Send + 'a) -> Result<Box<dyn Read + Send + 'a>, Error> {
    let mut magic = Vec::with_capacity(MAGIC);
    source.by_ref().take(MAGIC as u64).read_to_end(&mut magic).map_err(Error::Io)?;
    if let Some((_, name)) = OTHERS.iter().find(|(start, _)| magic.starts_with(start)) {
        return Err(Error::UnsupportedCompression(name));
    }
    let is_gzip = magic.starts_with(GZIP);
    let is_skippable = magic.first().is_some_and(|first| first & 0xf0 == 0x50)
        && magic.get(1..).is_some_and(|rest| rest.starts_with(ZSTD_SKIPPABLE));
    let is_zstd = magic.starts_with(ZSTD) || is_skippable;
    let whole = Cursor::new(magic).chain(source);
    if is_gzip {
        Ok(Box::new(MultiGzDecoder::new(BufReader::with_capacity(READ, whole))))
    } else if is_zstd {
        let mut decoder =
            zstd::Decoder::with_buffer(BufReader::with_capacity(READ, whole)).map_err(Error::Io)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(Error::Io)?;
        Ok(Box::new(decoder))
    } else {
        Ok(Box::new(whole))
    }
}

/// Tells decoder errors from read errors.
pub(super) fn error(error: io::Error) -> Error {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Error::CompressedTruncated,
        _ if error.to_string().contains("too much memory") => Error::CompressedTooWide,
        // Read errors have a number of the operating system, decoder errors do not.
        _ if error.raw_os_error().is_none() => Error::CompressedDamaged(error),
        _ => Error::Io(error),
    }
}
