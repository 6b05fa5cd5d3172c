//! Reading the file, which a kill or a disk may have damaged.

use std::{
    fs::OpenOptions,
    io::{self, BufRead as _, BufReader, Read as _},
    os::unix::fs::OpenOptionsExt as _,
    path::Path,
};

use rustix::fs::OFlags;

use super::{
    super::protocol::Request,
    numbered::{HEADER, MAX_NUMBERED, split_number},
};

/// What is wrong with a file.
#[derive(Debug, PartialEq, Eq)]
pub enum Damage {
    /// The last line was not written to its end: pping was killed, or the power failed. All before it is used.
    CutOff,
    /// From this line on, counted from 1, nothing can be read. All before it is used.
    End {
        /// The line.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// This line, counted from 1, cannot be read or is missing, but others after it can. Nothing is used: a prefix may have moved
    /// there.
    Middle {
        /// The line.
        line: u64,
        /// What is wrong with it.
        reason: String,
    },
    /// It is another kind of file.
    Foreign,
}

/// Reads a file, and returns its requests with what is wrong with it. There are none if it does not exist.
///
/// # Errors
/// If it cannot be read.
pub fn read(path: &Path) -> io::Result<(Vec<Request>, Option<Damage>)> {
    // Opening a named pipe must not wait for a writer.
    let opened = OpenOptions::new().read(true).custom_flags(OFlags::NONBLOCK.bits() as i32).open(path);
    let file = match opened {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok((Vec::new(), None)),
        Err(error) => return Err(error),
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("it is not a regular file; give another path"));
    }
    parse(BufReader::new(file))
}

pub(super) fn parse(mut file: impl io::BufRead) -> io::Result<(Vec<Request>, Option<Damage>)> {
    let (mut requests, mut damage, mut line) = (Vec::new(), None, Vec::new());
    for of_line in 1.. {
        line.clear();
        let mut limited = file.by_ref().take(MAX_NUMBERED as u64);
        if limited.read_until(b'\n', &mut line)? == 0 {
            break;
        }
        if of_line == 1 {
            if line == HEADER {
                continue;
            }
            let is_cut = HEADER.starts_with(&line);
            return Ok((Vec::new(), Some(if is_cut { Damage::CutOff } else { Damage::Foreign })));
        }
        let is_whole = line.ends_with(b"\n");
        let is_cut = !is_whole && line.len() < MAX_NUMBERED && !line.contains(&0);
        match numbered(line.trim_ascii_end()) {
            Ok((number, request)) => match damage {
                None if number == requests.len() as u64 + 1 => requests.push(request),
                None => {
                    let reason =
                        format!("change {} should be there, and change {number} is", requests.len() + 1);
                    return Ok((Vec::new(), Some(Damage::Middle { line: of_line, reason })));
                }
                Some(Damage::End { line, reason }) => {
                    return Ok((Vec::new(), Some(Damage::Middle { line, reason })));
                }
                Some(_) => {}
            },
            Err(_) if damage.is_some() => {}
            Err(_) if is_cut => damage = Some(Damage::CutOff),
            Err(reason) => damage = Some(Damage::End { line: of_line, reason }),
        }
    }
    Ok((requests, damage))
}

/// Parses a line, without its line break: the number of a change, and the change.
fn numbered(line: &[u8]) -> Result<(u64, Request), String> {
    let (number, request) = split_number(line).ok_or("it has no number")?;
    match Request::parse(request)? {
        request @ (Request::Add(_) | Request::Remove { .. } | Request::Columns { .. }) => {
            Ok((number, request))
        }
        _ => Err("it is no change".to_owned()),
    }
}
