//! Kernels for ARM, as a machine boots them: unpacked.
//!
//! Debian has had three formats: the plain image, the same compressed, and a program of EFI firmware that unpacks it.
//! The emulator takes the first two. The last begins as `drivers/firmware/efi/libstub/zboot-header.S` of Linux says.

use std::{
    io::Write as _,
    process::{Command, Stdio},
    thread,
};

use anyhow::{Context as _, Result, bail, ensure};

/// Where the plain image has these bytes (`Documentation/arm64/booting.rst` of Linux).
const MAGIC: &[u8] = b"ARM\x64";
const MAGIC_OFFSET: usize = 56;

const GZIP: &[u8] = &[0x1f, 0x8b];

/// Where the EFI program says what it is, where the compressed image begins and how long it is, and how it is
/// compressed.
const EFI_PROGRAM: &[u8] = b"zimg";
const EFI_PROGRAM_OFFSET: usize = 4;
const PAYLOAD_OFFSET: usize = 8;
const PAYLOAD_LENGTH: usize = 12;
const COMPRESSION: usize = 24;
const COMPRESSION_LENGTH: usize = 32;

/// Returns the plain image of a kernel for ARM.
pub(super) fn plain(image: Vec<u8>) -> Result<Vec<u8>> {
    let plain = if image.get(EFI_PROGRAM_OFFSET..).is_some_and(|rest| rest.starts_with(EFI_PROGRAM)) {
        let (payload, compression) = payload(&image).context("its header is not complete")?;
        decompress(&compression, payload)?
    } else if image.starts_with(GZIP) {
        decompress("gzip", &image)?
    } else {
        image
    };
    let magic = plain.get(MAGIC_OFFSET..).is_some_and(|rest| rest.starts_with(MAGIC));
    ensure!(magic, "it is no kernel for ARM of a known format");
    Ok(plain)
}

/// Returns the compressed part of an EFI program, and the name of its compression.
fn payload(image: &[u8]) -> Option<(&[u8], String)> {
    let number = |offset: usize| {
        let bytes = image.get(offset..)?.first_chunk()?;
        usize::try_from(u32::from_le_bytes(*bytes)).ok()
    };
    let (from, length) = (number(PAYLOAD_OFFSET)?, number(PAYLOAD_LENGTH)?);
    let payload = image.get(from..from.checked_add(length)?)?;
    let name = image.get(COMPRESSION..COMPRESSION + COMPRESSION_LENGTH)?;
    let name = name.split(|byte| *byte == 0).next()?;
    Some((payload, String::from_utf8_lossy(name).into_owned()))
}

fn decompress(compression: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let program = match compression {
        "gzip" => "gzip",
        "zstd" | "zstd22" => "zstd",
        "xz" | "xzkern" => "xz",
        other => bail!("it is compressed by {other}"),
    };
    let mut command = Command::new(program);
    command.args(["--decompress", "--stdout"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut process = command.stderr(Stdio::null()).spawn().with_context(|| format!("starting {program}"))?;
    let mut input = process.stdin.take().context("it reads from a pipe")?;
    let output = thread::scope(|scope| {
        // A program that does not like its input stops reading it, which its status says.
        scope.spawn(move || input.write_all(bytes).ok());
        process.wait_with_output()
    })?;
    ensure!(output.status.success(), "{program} cannot decompress it");
    Ok(output.stdout)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn kernel() -> Vec<u8> {
        let mut kernel = vec![7; 5000];
        kernel[MAGIC_OFFSET..MAGIC_OFFSET + MAGIC.len()].copy_from_slice(MAGIC);
        kernel
    }

    fn compressed(program: &str) -> Vec<u8> {
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), kernel()).expect("it can be written");
        let mut compress = Command::new(program);
        let output = compress.arg("--stdout").arg(file.path()).output().expect("it starts");
        assert!(output.status.success());
        output.stdout
    }

    /// An EFI program with a payload, and something behind it.
    fn efi_program(compression: &str, payload: &[u8]) -> Vec<u8> {
        let mut program = b"MZ\0\0zimg".to_vec();
        program.extend(96_u32.to_le_bytes());
        program.extend(u32::try_from(payload.len()).expect("it is short").to_le_bytes());
        program.resize(COMPRESSION, 0);
        program.extend(compression.as_bytes());
        program.resize(96, 0);
        program.extend(payload);
        program.extend([0xaa; 100]);
        program
    }

    #[test]
    fn each_format_yields_the_same_image() {
        assert_eq!(plain(kernel()).expect("it is plain"), kernel());
        assert_eq!(plain(compressed("gzip")).expect("it is compressed"), kernel());
        for compression in ["gzip", "zstd", "xz"] {
            let program = efi_program(compression, &compressed(compression));
            assert_eq!(plain(program).expect(compression), kernel());
        }
    }

    #[test]
    fn other_files_are_refused() {
        let complaint = |image| plain(image).map(drop).expect_err("it is no kernel").to_string();
        assert!(complaint(b"MZ and nothing else".to_vec()).contains("no kernel for ARM"));
        assert!(complaint(efi_program("lzo", &[1, 2, 3])).contains("compressed by lzo"));
        assert!(complaint(efi_program("xz", b"no xz at all")).contains("xz cannot decompress"));
        let mut short = efi_program("gzip", &compressed("gzip"));
        short.truncate(100);
        assert!(complaint(short).contains("header is not complete"));
    }
}
