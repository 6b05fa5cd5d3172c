//! Undoing the compression of a file, by what it begins with.

use std::io::{self, BufReader, Cursor, Read};

use flate2::bufread::MultiGzDecoder;

use super::Fault;

/// Compressed bytes that are read at a time.
const READ: usize = 128 << 10;

/// The zstd tool's limit for how far back a file may refer, as a power of 2: 128 MiB, and that much memory.
const ZSTD_WINDOW_LOG: u32 = 27;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// A zstd frame that says nothing, of which `pzstd` puts one at the start; its lowest four bits are free.
const ZSTD_SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];

const OTHERS: [(&[u8], &str); 6] = [
    (&[0xfd, b'7', b'z', b'X', b'Z', 0], "xz"),
    (b"BZh", "bzip2"),
    (&[0x04, 0x22, 0x4d, 0x18], "lz4"),
    (b"LZIP", "lzip"),
    (&[0x1f, 0x9d], "uncompress"),
    (&[0x5d, 0, 0, 0x80], "xz"),
];

/// The longest of these.
const MAGIC: usize = 6;

/// What is in a file, with its compression undone.
///
/// # Errors
/// [`Fault::Compressed`] for a compression that is not undone here; what reading says.
pub fn undone<'a>(mut source: impl Read + Send + 'a) -> Result<Box<dyn Read + Send + 'a>, Fault> {
    let mut magic = Vec::with_capacity(MAGIC);
    source.by_ref().take(MAGIC as u64).read_to_end(&mut magic).map_err(Fault::Io)?;
    if let Some((_, name)) = OTHERS.iter().find(|(start, _)| magic.starts_with(start)) {
        return Err(Fault::Compressed(name));
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
            zstd::Decoder::with_buffer(BufReader::with_capacity(READ, whole)).map_err(Fault::Io)?;
        decoder.window_log_max(ZSTD_WINDOW_LOG).map_err(Fault::Io)?;
        Ok(Box::new(decoder))
    } else {
        Ok(Box::new(whole))
    }
}

/// What an error while reading means: what is compressed fails in ways of its own.
pub(super) fn fault(error: io::Error) -> Fault {
    match error.kind() {
        io::ErrorKind::UnexpectedEof => Fault::CompressedCutShort,
        // Neither decoder has an error of the operating system's, and reading has no other.
        _ if error.raw_os_error().is_none() => Fault::Damaged(error),
        _ => Fault::Io(error),
    }
}
